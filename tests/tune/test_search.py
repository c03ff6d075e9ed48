"""The search with made-up times: trials go where they pay, failures end nothing, a log is gone on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from relaylang.backends.cpu.tuning_log import Log, best, load
from relaylang.tune import Outcome, State, search
from relaylang.tune.report import rows, svg, table
from tests.tune.made_up import BEST, MACHINE, POINTS, Fake, space, task, time_of

Times = Callable[[str, Mapping[str, Any]], float | str]


def plain(key: str, choice: Mapping[str, Any]) -> float:
    return time_of(choice)


def tuned(times: Times = plain, keys: Mapping[str, int] | None = None, **options: Any) -> tuple[Outcome, Fake]:
    measurer = Fake(times)
    tasks = [task(key, count) for key, count in (keys or {"one": 1}).items()]
    settings = {"tuner": "random", "machine": MACHINE, **options}
    return search(tasks, measurer, spaces=lambda task: space(), **settings), measurer


def test_a_whole_space(tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    with Log(path) as log:
        outcome, _ = tuned(log=log)
    assert outcome.reason == "all is searched" and outcome.states[0].trials == POINTS - 1
    records, notes = load(path)
    assert not notes and dict(best(records)["one"].choice) == BEST
    ratio = time_of(BEST) / time_of({"kind": "blocks", "rows": 4, "width": 2})
    assert outcome.states[0].ratio == pytest.approx(ratio) and outcome.seconds == pytest.approx(outcome.default_seconds * ratio)
    curve = outcome.states[0].curve
    assert curve == sorted(curve, reverse=True)


def test_trials_go_where_they_save_the_most() -> None:
    outcome, _ = tuned(keys={"rare": 1, "often": 50}, trials=40)
    rare, often = outcome.states
    assert rare.trials + often.trials == 40 and 1 <= rare.trials < often.trials


def test_a_task_without_gains_is_left() -> None:
    outcome, _ = tuned(lambda key, choice: 1.0, keys={"flat": 9, "other": 1}, early_stopping=5)
    assert [s.done for s in outcome.states] == ["no gain in 5 trials"] * 2 and all(s.trials < 10 for s in outcome.states)


def test_failures_are_recorded_and_end_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    with Log(path) as log:
        outcome, _ = tuned(lambda key, choice: "it ended by SIGSEGV" if "wide" in choice else time_of(choice), log=log)
    state = outcome.states[0]
    assert state.failures == {"crash": 16} and state.trials == POINTS - 1
    records, _ = load(path)
    assert sum(r.failure == "crash" and r.message == "it ended by SIGSEGV" for r in records) == 16
    assert "wide" not in best(records)["one"].choice


def test_a_default_that_fails_leaves_the_others() -> None:
    def times(key: str, choice: Mapping[str, Any]) -> float | str:
        return time_of(choice)

    class Half(Fake):
        def measure(self, task: Any, points: Any, best: float = 1.0, thorough: bool = False) -> Any:
            for found in super().measure(task, points, best, thorough):
                yield found if task.key != "bad" else type(found)(found.point, failure="compiler", message="it says no")

    outcome = search([task("bad"), task("good")], Half(times), spaces=lambda t: space(), tuner="grid", trials=10)
    assert outcome.states[0].done == "the default schedule fails: compiler: it says no" and outcome.states[0].trials == 0
    assert outcome.states[1].trials == 10


def test_it_goes_on_from_a_log(tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    with Log(path) as log:
        tuned(log=log, trials=10)
    first, _ = load(path)
    with Log(path) as log:
        outcome, measurer = tuned(log=log, trials=25, known=first)
    every, _ = load(path)
    new = every[len(first) :]
    assert outcome.states[0].trials == 25
    choices = [tuple(sorted(r.choice.items())) for r in every if r.pairs == 10 and not r.is_default]
    assert len(choices) == len(set(choices)) == 25 and not any(r.is_default for r in new)
    with Log(path) as log:
        outcome, measurer = tuned(log=log, trials=25, known=every)
    assert measurer.calls == [] or all(thorough for _, _, thorough in measurer.calls)


def test_records_of_other_machines_and_threads_do_not_count(tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    with Log(path) as log:
        tuned(log=log, trials=10)
    records, _ = load(path)
    other = type(MACHINE)("another", "avx2", "a compiler")
    _, measurer = tuned(trials=10, known=records, machine=other)
    assert sum(count for _, count, thorough in measurer.calls if not thorough) == 1 + 10


def test_the_fastest_are_measured_again(tmp_path: Path) -> None:
    """A lucky measurement does not win: the second, thorough one counts."""

    class Lucky(Fake):
        def measure(self, task: Any, points: Any, best: float = 1.0, thorough: bool = False) -> Any:
            for found in super().measure(task, points, best, thorough):
                lucky = not thorough and found.point.choice.get("rows") == 2
                yield type(found)(found.point, 0.01, 0.01, 0.01, 4, found.reference, machine=MACHINE) if lucky else found

    path = str(tmp_path / "log.jsonl")
    with Log(path) as log:
        outcome = search([task("one")], Lucky(plain), log, spaces=lambda t: space(), tuner="grid", machine=MACHINE)
    records, _ = load(path)
    assert best(records)["one"].ratio != 0.01 and outcome.states[0].ratio != 0.01


def test_an_interrupt_leaves_the_log_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"

    def watch(state: State, states: Any) -> None:
        if state.trials == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Log(str(path)) as log:
        tuned(log=log, watch=watch)
    records, notes = load(str(path))
    assert len(records) == 7 and not notes and path.read_bytes().endswith(b"\n")


def test_time_ends_it() -> None:
    now = iter(range(1000))
    outcome, _ = tuned(seconds=5, clock=lambda: float(next(now)))
    assert outcome.reason == "the time is over"


def test_a_table_and_a_picture(tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    with Log(path) as log:
        tuned(log=log, keys={"one": 2, "<two>": 1}, trials=30)
    found = rows(load(path)[0])
    assert {r.key for r in found} == {"one", "<two>"} and sum(r.trials for r in found) == 30
    assert all(r.gain is not None and r.gain >= 1 and r.curve[-1] == pytest.approx(1 / r.gain) for r in found)
    text = table(found)
    assert "all kernels, 1 thread: " in text and text.splitlines()[0].startswith("kernel")
    picture = svg(found)
    assert picture.startswith("<svg") and "&lt;two&gt;" in picture and picture.count("<path") >= 4
    assert svg([]).startswith("<svg") and "nan" not in svg([])
