"""Logs: whole records, notes about others, the best choice of each kernel, and what compilers make of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit
from relaylang.backends.cpu.tuning_log import Log, Record, best, load, tuning_notes
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.syntax import parse
from relaylang.tune import extract_tasks
from relaylang.tune.task import machine_of

TEXT = """def @main(%x: Tensor[(16, 24), float32], %w: Tensor[(8, 24), float32]) {
  (nn.dense(%x, %w, units=8), exp(transpose(%x, axes=None)))
}
"""


def module() -> IRModule:
    mod = parse(TEXT).module
    assert mod is not None
    return mod


def record(**values: Any) -> Record:
    plain: dict[str, Any] = {"key": "k", "operators": "o", "choice": {"rows": 2}, "cpu": "c", "isa": "avx2", "compiler": "cc"}
    plain |= {"threads": 1, "space": "", "seconds": 0.5, "ratio": 0.5, "low": 0.4, "high": 0.6, "pairs": 4}
    return Record(**{**plain, **values})


def test_records_come_back(tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    every = [record(), record(failure="crash", seconds=None, ratio=None, low=None, high=None), record(features=(1.0, 2.5))]
    for one in every:
        with Log(path) as log:
            log.append(one)
    assert load(path) == (every, [])


def test_a_half_line_is_left_out_and_ended(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(record().line() + "\n" + record().line()[:40])
    records, notes = load(str(path))
    assert len(records) == 1 and [n.title for n in notes] == [f"the last line of {path} is not whole, and is left out"]
    with Log(str(path)) as log:
        log.append(record(key="new"))
    records, notes = load(str(path))
    assert [r.key for r in records] == ["k", "new"] and len(notes) == 1


def test_a_log_survives_the_end_of_its_writer(tmp_path: Path) -> None:
    """Every record that was appended before `kill -9` is whole."""
    path = tmp_path / "log.jsonl"
    code = (
        "import sys\nfrom tests.tune.test_log import record\nfrom relaylang.backends.cpu.tuning_log import Log\n"
        f"log = Log({str(path)!r})\nfor n in range(10**9):\n    log.append(record(key=str(n)))\n"
        "    if n == 50: print('go', flush=True)\n"
    )
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-I", "-c", f"import sys; sys.path.append({root!r})\n{code}"], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"go\n"
        os.kill(writer.pid, signal.SIGKILL)
    records, _ = load(str(path))
    assert len(records) > 50 and [r.key for r in records] == [str(n) for n in range(len(records))]


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("{}", "1 line that hold no record"),
        ('{"relay-tune": 1, "key": 3}', "1 line"),
        ('{"relay-tune": 7}', "records of the version 7 are left out"),
        (record().line().replace('"ratio":0.5', '"ratio":NaN'), "1 line"),
        (record().line().replace('"choice":{"rows":2}', '"choice":{"rows":[2]}'), "1 line"),
        ("\xff\x00", "1 line"),
        ("[" * 100_000, "1 line"),
    ],
)
def test_lines_that_are_no_records(tmp_path: Path, line: str, left: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(record().line().encode() + b"\n" + line.encode("latin-1") + b"\n" + record().line().encode() + b"\n")
    records, notes = load(str(path))
    assert len(records) == 2 and left in notes[0].title


@pytest.mark.parametrize(("text", "note"), [("not json\n{}\n", "relay tune"), ('{"relay-tune": 2}\n', "it has the version 2")])
def test_files_that_are_no_logs(tmp_path: Path, text: str, note: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(RelayError, match="is no log of relay tune") as caught:
        load(str(path))
    assert caught.value.diagnostics[0].code == "R0645" and note in str(caught.value)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="cannot read the log"):
        load(str(tmp_path / "none.jsonl"))
    with pytest.raises(RelayError, match="cannot write the log"):
        Log(str(tmp_path / "none" / "log.jsonl"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk() -> None:
    with pytest.raises(RelayError, match="cannot write the log /dev/full: no space left on device"):
        Log("/dev/full").append(record())


def test_the_best_is_surely_faster_and_thoroughly_measured() -> None:
    a, b, c = {"rows": 1}, {"rows": 2}, {"rows": 3}
    default = record(choice={"rows": 4}, ratio=1.0, low=1.0, high=1.0, tuner="default")
    lucky = record(choice=a, ratio=0.1, high=0.2, pairs=4)
    sure = record(choice=a, ratio=0.9, high=0.95, pairs=30)
    unsure = record(choice=b, ratio=0.7, high=1.1)
    failed = record(choice=c, failure="crash", ratio=None)
    assert best([default, lucky, sure, unsure, failed])["k"] is sure
    assert best([default, unsure, failed])["k"] is default
    assert best([failed, unsure]) == {}


def log_for(path: Path, threads: int = 1, **values: Any) -> tuple[str, dict[str, Any]]:
    """A log in which the dense kernel has another choice than the default; and that choice."""
    task = next(t for t in extract_tasks(module(), "c") if "dense" in t.operators)
    kernel = task.lower()
    name = next(n for n, choices in kernel.space.knobs.items() if len(choices) > 1)
    other = next(v for v in kernel.space.knobs[name] if v != kernel.space.choice[name])
    choice = dict(task.lower({name: other}).space.choice)
    fields = {"key": task.key, "operators": task.operators, "choice": choice, **asdict(machine_of({}))}
    with Log(str(path)) as log:
        log.append(record(**{**fields, "threads": threads, **values}))
    return task.key, choice


def choices(path: Path) -> dict[str, Any]:
    text = emit(module(), "space", options={"tuning": str(path)})
    return {row["key"]: row["choice"] for row in json.loads(text)["kernels"]}


def test_a_program_gets_the_best_choices(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    key, choice = log_for(path)
    assert choices(path)[key] == choice
    x, w = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((16, 24), (8, 24)))
    with tuning_notes() as notes:
        tuned = compile_module(module(), "c", {"w": w}, tuning=str(path))
    assert [n.title for n in notes] == [f"1 of 2 kernels with knobs have no record in {path}: they keep the default schedule"]
    assert "transpose" in notes[0].notes[0]
    plain = compile_module(module(), "c", {"w": w})
    for one, two in zip(tuned.run(x), plain.run(x)):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_a_schedule_wins_over_a_log(tmp_path: Path) -> None:
    path, file = tmp_path / "log.jsonl", tmp_path / "schedule.json"
    log_for(path)
    file.write_text(emit(module(), "space"))
    text = emit(module(), "space", options={"tuning": str(path), "schedule": str(file)})
    assert text == emit(module(), "space")


def test_records_that_do_not_fit(tmp_path: Path) -> None:
    """Of another processor, and of other knobs: the defaults stay, with a note. Those of another compiler are taken."""
    default = {row["key"]: row["choice"] for row in json.loads(emit(module(), "space"))["kernels"]}
    other, stale = tmp_path / "other.jsonl", tmp_path / "stale.jsonl"
    log_for(other, cpu="a processor of 1999")
    log_for(stale, choice={"nonsense": 3})
    for path, what in ((other, "another processor"), (stale, "fit the knobs of 1 kernels no more")):
        with tuning_notes() as notes:
            assert choices(path) == default
        assert any(what in n.title for n in notes), notes
    foreign = tmp_path / "foreign.jsonl"
    key, choice = log_for(foreign, compiler="cc of 1999")
    with tuning_notes() as notes:
        assert choices(foreign)[key] == choice
    assert [n.notes for n in notes if "with another compiler than" in n.title] == [("cc of 1999",)]


def test_records_of_the_program_s_threads_come_first(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    key, choice = log_for(path, threads=1)
    with Log(str(path)) as log:
        log.append(replace(load(str(path))[0][0], threads=2, choice=default_of(key), ratio=0.1))
    for threads, wanted in ((1, choice), (2, default_of(key))):
        text = emit(module(), "space", options={"tuning": str(path), "num-threads": threads})
        assert {row["key"]: row["choice"] for row in json.loads(text)["kernels"]}[key] == wanted


def default_of(key: str) -> dict[str, Any]:
    found: dict[str, Any] = {row["key"]: row["choice"] for row in json.loads(emit(module(), "space"))["kernels"]}[key]
    return found
