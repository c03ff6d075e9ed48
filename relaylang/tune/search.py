"""The search: batches of measurements go to the task that gains the most from them, and into the log.

with LocalMeasurer() as measurer, Log("log.jsonl") as log:
    outcome = search(extract_tasks(mod), measurer, log, trials=500)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Protocol

from relaylang.backends.cpu.tuning_log import Record, best, confirmed, frozen
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.tune.cost_model import XGBTuner
from relaylang.tune.measure import Measurement, Measurer
from relaylang.tune.space import Point, SearchSpace, space_of
from relaylang.tune.task import Machine, Task
from relaylang.tune.tuners import GATuner, GridTuner, RandomTuner, Result, Tuner

#: Tuners by name: `TUNERS[name](space, seed=0)`.
TUNERS: dict[str, Callable[..., Tuner]] = {"xgb": XGBTuner, "ga": GATuner, "random": RandomTuner, "grid": GridTuner}
#: The weight of recent gains, beside the chance of further ones, and the trials that a gain is looked for in.
_RECENT, _WINDOW = 0.5, 24
#: The points that are measured once more at the end of a search, so that the best is the best.
_FINALISTS = 3
#: How often the points that are then the fastest are measured.
_FINALS = 4
#: The ratio to beat where nothing is compared: few turns are enough.
_ANY = 1e-9


@dataclass
class State:
    """A task in the search. Times are seconds of a run; `curve` has the best ratio after each trial.

    `default` is the time of the default schedule, on the processor `cpu`.
    """

    task: Task
    space: SearchSpace | None
    tuner: Tuner | None
    default: float | None = None
    cpu: str = ""
    curve: list[float] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)
    results: list[Record] = field(default_factory=list)
    last: Record | None = None
    quiet: int = 0
    done: str = ""

    @property
    def trials(self) -> int:
        return len(self.curve)

    @property
    def ratio(self) -> float:
        """The time of the best point beside the default's."""
        return self.curve[-1] if self.curve else 1.0

    @property
    def seconds(self) -> float | None:
        """The time of the best point."""
        return None if self.default is None else self.default * self.ratio

    @property
    def total(self) -> float:
        """The share of a run of the program, in seconds, with the best point."""
        return (self.seconds or 0.0) * self.task.count

    def gflops(self, seconds: float | None) -> float | None:
        """The speed of a run that takes so long; None for kernels without products."""
        return self.task.flops / seconds / 1e9 if seconds and self.task.flops else None

    def gradient(self) -> float:
        """The seconds of the program that another trial is expected to save.

        It is the mean of what recent trials saved, and of an even share of the time that is left.
        """
        window = min(_WINDOW, self.trials)
        earlier = self.curve[-window - 1] if self.trials > window else 1.0
        recent = (earlier - self.ratio) / max(window, 1)
        chance = self.ratio / max(self.trials, 1)
        return (self.default or 0.0) * self.task.count * (_RECENT * recent + (1 - _RECENT) * chance)


@dataclass
class Outcome:
    """The end of a search: its tasks, and why it ended."""

    states: list[State]
    reason: str

    @property
    def seconds(self) -> float:
        """The estimated time of a run of the program."""
        return sum(s.total for s in self.states)

    @property
    def default_seconds(self) -> float:
        """The same with the default schedules."""
        return sum((s.default or 0.0) * s.task.count for s in self.states)


class Sink(Protocol):
    """Where the records of a search go: a `Log`, for instance."""

    def append(self, record: Record) -> None:
        """Take a record."""


#: Called after each measurement: with the task's state, and the states of all.
Watch = Callable[[State, Sequence[State]], None]


def tuner_named(name: str, space: SearchSpace, seed: int = 0, **options: Any) -> Tuner:
    """A tuner for a space. Raises `RelayError` (R0645) for a name that there is not."""
    make = TUNERS.get(name)
    if make is None:
        near = did_you_mean(name, TUNERS)
        notes = [f"did you mean {near}?"] if near else [f"tuners: {', '.join(TUNERS)}"]
        raise RelayError(error("R0645", f"there is no tuner {name}", notes=notes))
    return make(space, seed=seed, **options)


def search(
    tasks: Sequence[Task],
    measurer: Measurer,
    log: Sink | None = None,
    trials: int = 1000,
    tuner: str | Callable[[SearchSpace], Tuner] = "xgb",
    early_stopping: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    known: Iterable[Record] = (),
    transfer: Iterable[Record] = (),
    watch: Watch | None = None,
    spaces: Callable[[Task], SearchSpace] = space_of,
    clock: Callable[[], float] = time.monotonic,
    machine: Machine | None = None,
    per_task: int | None = None,
) -> Outcome:
    """Search the tasks' spaces with up to `trials` measurements (`per_task` of each task), `seconds` of time.

    A task whose best stays for `early_stopping` trials takes no further part. `known` are records of an earlier search,
    which count as trials; with a `machine`, only those that were measured on one like it. `transfer` are records of other
    kernels, which a cost model learns from. Every measurement becomes a record in `log`. Raises `RelayError`;
    `KeyboardInterrupt` leaves the log whole.
    """
    begin = clock()
    search_state = _Search(measurer, log, watch, early_stopping, tuner if isinstance(tuner, str) else "custom", machine)
    older, other = list(known), list(transfer)
    for task in tasks:
        search_state.add(task, spaces, tuner, seed, [r for r in older if r.key == task.key], [*other, *older])

    def late() -> bool:
        return seconds is not None and clock() - begin >= seconds

    reason = search_state.defaults(late)
    while not reason:
        active = [s for s in search_state.states if not s.done]
        left = trials - sum(s.trials for s in search_state.states)
        if not active or left <= 0 or late():
            reason = "all is searched" if not active else "the trials are used" if left <= 0 else "the time is over"
            break
        fresh = [s for s in active if s.trials == 0]
        state = max(fresh or active, key=lambda s: s.total if fresh else s.gradient())
        assert state.tuner is not None
        left = min(left, measurer.batch, left if per_task is None else per_task - state.trials)
        points = state.tuner.next_batch(left) if left > 0 else []
        if not points:
            state.done = "the space is searched" if left > 0 else "its trials are used"
            continue
        search_state.round(state, points)
    for state in search_state.states:
        search_state.final(state)
    return Outcome(search_state.states, reason)


class _Search:
    def __init__(
        self, measurer: Measurer, log: Sink | None, watch: Watch | None, patience: int | None, name: str, machine: Machine | None
    ) -> None:
        self.measurer, self.log, self.watch = measurer, log, watch
        self.patience, self.name = patience, name
        self.machine = machine
        self.version = version("relaylang")
        self.states: list[State] = []

    def add(
        self,
        task: Task,
        spaces: Callable[[Task], SearchSpace],
        tuner: str | Callable[[SearchSpace], Tuner],
        seed: int,
        known: Sequence[Record],
        transfer: Sequence[Record],
    ) -> None:
        """Take a task with the records that are known of it, in their order."""
        space = spaces(task)
        if isinstance(tuner, str):
            others = [(r.features, r.ratio) for r in transfer if r.key != task.key and r.features and r.ratio is not None]
            chooser = tuner_named(tuner, space, seed, **({"transfer": others} if tuner == "xgb" else {}))
        else:
            chooser = tuner(space)
        state = State(task, space, chooser)
        if not task.tunable or all(len(choices) < 2 for choices in space.default.knobs.values()):
            state.done = "no knobs"
        results = []
        for record in known:
            here = self.machine is None or (record.cpu, record.isa) == (self.machine.cpu, self.machine.isa)
            if not here or record.threads != task.threads:
                continue
            point = space.point(record.choice)
            if point.key != frozen(record.choice):
                continue  # the knobs have changed since
            if record.is_default:
                state.default, state.cpu = record.seconds, record.cpu
            else:
                results.append(Result(point, record.ratio if record.failure is None else None))
                self._count(state, record)
        chooser.update(results)
        self.states.append(state)

    def _count(self, state: State, record: Record) -> None:
        known = any(frozen(r.choice) == frozen(record.choice) for r in state.results)
        state.results.append(record)
        state.last = record
        before = state.ratio
        best_ratio = min([r.ratio for r in confirmed(state.results) if r.is_faster and r.ratio is not None], default=1.0)
        if known:  # a second look at a point is no trial
            if state.curve:
                state.curve[-1] = best_ratio
            return
        if record.failure is not None:
            state.failures[record.failure] = state.failures.get(record.failure, 0) + 1
        state.curve.append(best_ratio)
        state.quiet = 0 if best_ratio < before else state.quiet + 1
        if self.patience is not None and state.quiet >= self.patience and not state.done:
            state.done = f"no gain in {self.patience} trials"

    def defaults(self, late: Callable[[], bool]) -> str:
        """Measure the default schedule of each task. The reason to stop, "" for none."""
        for state in self.states:
            if state.default is not None:
                continue
            if late():
                return "the time is over"
            assert state.space is not None
            for measurement in self.measurer.measure(state.task, [state.space.default], _ANY):
                if measurement.failure is not None:
                    state.done = f"the default schedule fails: {measurement.failure}: {measurement.message}"
                    self._write(self._record(state, measurement, "default"))
                else:
                    state.default, state.cpu = (
                        measurement.reference,
                        measurement.machine.cpu if measurement.machine is not None else "",
                    )
                    alone = Measurement(
                        measurement.point, 1.0, 1.0, 1.0, measurement.pairs, measurement.reference, machine=measurement.machine
                    )
                    self._write(self._record(state, alone, "default"))
                if self.watch is not None:
                    self.watch(state, self.states)
        return ""

    def round(self, state: State, points: Sequence[Point], thorough: bool = False) -> None:
        """Measure points of a task."""
        assert state.tuner is not None
        results = []
        for measurement in self.measurer.measure(state.task, points, state.ratio, thorough):
            record = self._record(state, measurement, self.name)
            self._write(record)
            self._count(state, record)
            results.append(Result(measurement.point, measurement.ratio if measurement.failure is None else None))
            if self.watch is not None:
                self.watch(state, self.states)
        state.tuner.update(results)

    def final(self, state: State) -> None:
        """Measure the fastest points of a task once more, at length, until the fastest one is among them."""
        assert state.space is not None
        for _ in range(_FINALS):
            faster = [r for r in confirmed(state.results) if r.is_faster]
            first = sorted(faster, key=lambda r: r.ratio or 0.0)[:_FINALISTS]
            if not first or _is_thorough(first[0], state.results):
                return
            thin = [r for r in first if not _is_thorough(r, state.results)]
            self.round(state, [state.space.point(r.choice) for r in thin], thorough=True)

    def _record(self, state: State, measurement: Measurement, tuner: str) -> Record:
        machine = measurement.machine or self.machine or Machine("", state.task.isa, "")
        seconds = None
        if measurement.ratio is not None:
            # The machines of a farm have times of their own.
            default = state.default if machine.cpu == state.cpu else measurement.reference
            seconds = measurement.ratio * (default or 0.0)
        return Record(
            key=state.task.key,
            operators=state.task.operators,
            choice=dict(measurement.point.choice),
            cpu=machine.cpu,
            isa=machine.isa,
            compiler=machine.compiler,
            threads=state.task.threads,
            space=measurement.point.digest,
            seconds=seconds,
            ratio=measurement.ratio,
            low=measurement.low,
            high=measurement.high,
            pairs=measurement.pairs,
            flops=state.task.flops,
            count=state.task.count,
            failure=measurement.failure,
            message=measurement.message,
            tuner=tuner,
            time=round(time.time(), 3),
            relaylang=self.version,
            features=measurement.point.features,
        )

    def _write(self, record: Record) -> None:
        if self.log is not None:
            self.log.append(record)


def _is_thorough(record: Record, records: Sequence[Record]) -> bool:
    """Whether a point was measured a second time."""
    return sum(frozen(r.choice) == frozen(record.choice) for r in records) > 1


def best_choices(records: Iterable[Record]) -> dict[str, dict[str, Any]]:
    """The choices of the best record of each kernel, as a schedule has them."""
    return {key: dict(record.choice) for key, record in best(records).items()}


__all__ = ["TUNERS", "Outcome", "State", "best_choices", "search", "tuner_named"]
