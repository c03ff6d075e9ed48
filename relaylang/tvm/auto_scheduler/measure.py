"""Builders, runners, callbacks and records: `tvm.auto_scheduler.measure` and `measure_record`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from relaylang.backends.cpu.tuning_log import Log, Record, best
from relaylang.runtime.files import atomic_write
from relaylang.tune.measure import Measurer
from relaylang.tvm.autotvm import measure as autotvm
from relaylang.tvm.autotvm.record import bests
from relaylang.tvm.tuning import loaded, refused


class MeasureInput(NamedTuple):
    """A candidate: a task, and values of its knobs."""

    task: Any
    state: Any


class _Result(NamedTuple):
    costs: tuple[float, ...]
    error_no: int
    error_msg: str
    all_cost: float
    timestamp: float


class MeasureResult(_Result):
    """A measurement: seconds of a run in `costs`, or an `error_no` with a message. `record` is its record in a log."""

    record: Record | None = None


def result_of(record: Record) -> MeasureResult:
    """The result that a record of a log has."""
    plain = autotvm.result_of(record)
    costs = () if record.failure is not None else plain.costs
    result = MeasureResult(costs, int(plain.error_no), record.message, 0.0, record.time)
    result.record = record
    return result


class LocalBuilder(autotvm.LocalBuilder):
    """Compiles on this machine: `timeout` seconds for each candidate. `build_func` has no effect."""

    def __init__(self, timeout: float = 15, n_parallel: int | None = None, build_func: str = "default") -> None:
        super().__init__(timeout, n_parallel, build_func=build_func)


class LocalRunner(autotvm.LocalRunner):
    """Runs on this machine, as `autotvm.LocalRunner` does. `device` has no effect."""

    def __init__(
        self,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: float = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush)


class RPCRunner(autotvm.RPCRunner):
    """Runs on the workers of a Dask scheduler, as `autotvm.RPCRunner` does. `device` has no effect."""

    def __init__(
        self,
        key: str | None,
        host: str,
        port: int,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: float = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        super().__init__(key, host, port, priority, timeout, n_parallel, number, repeat, min_repeat_ms, cooldown_interval)


class LocalRPCMeasureContext:
    """A runner in `runner`, which works in processes of its own on this machine. `priority` and `device` have no effect."""

    def __init__(
        self,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        self.runner = LocalRunner(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush)


def measurer_of(builder: Any, runner: Any) -> Measurer:
    """What a search measures with: from "local" or a builder, and "local" or a runner. Raises `RelayError` (R0645)."""
    builder = LocalBuilder() if builder == "local" else builder
    runner = LocalRunner() if runner == "local" else runner
    for value, kind in ((builder, autotvm.Builder), (runner, autotvm.Runner)):
        if not isinstance(value, kind):
            name = kind.__name__.lower()
            raise refused(f"TuningOptions takes a {name}, not {value!r}", f'{name}="local", or a Local{kind.__name__}')
    measurer: Measurer = runner.measurer(builder)
    return measurer


class MeasureCallback:
    """Takes measurements when they end."""

    def callback(self, policy: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Take measurements. A callback has its own."""


class PythonBasedMeasureCallback(MeasureCallback):
    """A callback of a script: it has its own method `callback`."""


class RecordToFile(MeasureCallback):
    """Appends every record to a log of `relay tune`. Raises `RelayError` (R0645) where it cannot be written."""

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        self.filename = os.fspath(filename)
        Log(self.filename).close()

    def append(self, record: Record) -> None:
        """Add a record."""
        with Log(self.filename) as log:
            log.append(record)


class RecordReader:
    """The measurements of a log. Raises `RelayError` (R0645)."""

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        self.filename = filename
        self._records = loaded(filename)

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        return ((MeasureInput(None, dict(record.choice)), result_of(record)) for record in self._records)

    def read_lines(self, max_lines: int | None = None, skip_lines: int = 0) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """The inputs and results of up to `max_lines` records behind the first `skip_lines`."""
        end = None if max_lines is None or max_lines < 0 else skip_lines + max_lines
        pairs = list(self)[skip_lines:end]
        return [inp for inp, _ in pairs], [result for _, result in pairs]


def load_records(filename: str | os.PathLike[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The measurements of a log. Raises `RelayError` (R0645)."""
    return iter(RecordReader(filename))


def save_records(filename: str | os.PathLike[str], inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
    """Append measurements to a log. Raises `RelayError` (R0645)."""
    with Log(os.fspath(filename)) as log:
        for result in results:
            if result.record is None:
                raise refused("the result is of no search: it lacks the time of the default schedule")
            log.append(result.record)


def load_best_record(
    filename: str | os.PathLike[str], workload_key: str | None = None, target: Any = None, include_compatible: bool = False
) -> tuple[MeasureInput | None, MeasureResult | None]:
    """The fastest measurement of a log, or of one task in it; None where there is none. Raises `RelayError` (R0645)."""
    records = [record for key, record in best(loaded(filename)).items() if workload_key in (None, key)]
    if not records:
        return None, None
    record = min(records, key=lambda r: r.seconds or 0.0)
    return MeasureInput(None, dict(record.choice)), result_of(record)


def distill_record_file(in_file: str | os.PathLike[str], out_file: str | os.PathLike[str]) -> None:
    """Write the best record of each kernel to another log, with the default's. Raises `RelayError` (R0645)."""
    atomic_write(out_file, "".join(record.line() + "\n" for record in bests(loaded(in_file))))


__all__ = [
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "MeasureCallback",
    "MeasureInput",
    "MeasureResult",
    "PythonBasedMeasureCallback",
    "RPCRunner",
    "RecordReader",
    "RecordToFile",
    "distill_record_file",
    "load_best_record",
    "load_records",
    "measurer_of",
    "result_of",
    "save_records",
]
