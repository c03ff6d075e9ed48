"""What a tuner measures with, and what a measurement gives: `tvm.autotvm.measure`.

A builder and a runner have the limits of a measurement. Each candidate is compiled and run in a process of its own, by turns
with the default schedule; see `relaylang.tune.measure`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from relaylang.backends.cpu.tuning_log import Record
from relaylang.tune.farm import FarmMeasurer
from relaylang.tune.measure import LocalMeasurer, Measurer
from relaylang.tvm.tuning import limits_of, refused


class MeasureErrorNo(enum.IntEnum):
    """Why a measurement has no time."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


#: Failures of a log (`tuning_log.FAILURES`) as numbers.
_ERRORS = {
    "compiler": MeasureErrorNo.COMPILE_HOST,
    "crash": MeasureErrorNo.RUNTIME_DEVICE,
    "memory": MeasureErrorNo.RUNTIME_DEVICE,
    "timeout": MeasureErrorNo.RUN_TIMEOUT,
    "wrong result": MeasureErrorNo.WRONG_ANSWER,
}


class MeasureInput(NamedTuple):
    """A candidate: a task with the values of its knobs."""

    target: Any
    task: Any
    config: Any


class _Result(NamedTuple):
    costs: tuple[Any, ...]
    error_no: int
    all_cost: float
    timestamp: float


class MeasureResult(_Result):
    """A measurement: seconds of a run in `costs`, or a message with an `error_no`. `record` is its record in a log."""

    record: Record | None = None

    def __repr__(self) -> str:
        error = f"MeasureErrorNo.{MeasureErrorNo(self.error_no).name}" if self.error_no else "0"
        return f"MeasureResult(costs={self.costs}, error_no={error}, all_cost={self.all_cost}, timestamp={self.timestamp})"


def result_of(record: Record, all_cost: float = 0.0) -> MeasureResult:
    """The result that a record of a log has. `all_cost` are the seconds that the measurement took."""
    failed = record.failure is not None
    error = _ERRORS.get(record.failure or "", MeasureErrorNo.UNKNOWN_ERROR) if failed else MeasureErrorNo.NO_ERROR
    costs = (f"{record.failure}: {record.message}",) if failed else (record.seconds,)
    result = MeasureResult(costs, error, all_cost, record.time)
    result.record = record
    return result


class Builder:
    """Compiles candidates: `timeout` seconds for each, `n_parallel` at a time (None: as many as there are processors)."""

    def __init__(self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: Mapping[str, Any] | None = None) -> None:
        self.timeout, self.n_parallel, self.build_kwargs = timeout, n_parallel, dict(build_kwargs or {})


class LocalBuilder(Builder):
    """Compiles on this machine. The kernel's own compiler builds; `build_func`, `do_fork` and `runtime` have no effect."""

    def __init__(
        self,
        timeout: float = 10,
        n_parallel: int | None = None,
        build_kwargs: Mapping[str, Any] | None = None,
        build_func: str | Callable[..., Any] = "default",
        do_fork: bool = False,
        runtime: Any = None,
    ) -> None:
        super().__init__(timeout, n_parallel, build_kwargs)
        if isinstance(build_func, str) and build_func not in ("default", "ndk", "stackvm"):
            raise refused(f"LocalBuilder has no build_func {build_func}", "default, ndk, stackvm or a function")


class Runner:
    """Runs candidates: `timeout` seconds for each."""

    def __init__(self, timeout: float = 5, n_parallel: int | None = None) -> None:
        self.timeout, self.n_parallel = timeout, n_parallel

    def measurer(self, builder: Builder) -> Measurer:
        """What the search measures with. Raises `RelayError`."""
        return LocalMeasurer({"build": float(builder.timeout), "run": float(self.timeout)}, builder.n_parallel)


class LocalRunner(Runner):
    """Runs on this machine: at least four turns, or `repeat` ones, each of `min_repeat_ms` or more.

    The number of runs in a turn follows from the kernel's time. `number`, `cooldown_interval`, `enable_cpu_cache_flush` and
    `module_loader` have no effect.
    """

    def __init__(
        self,
        timeout: float = 10,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: float = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Any = None,
    ) -> None:
        super().__init__(timeout, 1)
        self.number, self.repeat, self.min_repeat_ms = number, repeat, min_repeat_ms
        self.cooldown_interval, self.enable_cpu_cache_flush = cooldown_interval, enable_cpu_cache_flush

    def measurer(self, builder: Builder) -> Measurer:
        limits = limits_of(builder.timeout, self.timeout, self.repeat, self.min_repeat_ms)
        return LocalMeasurer(limits, builder.n_parallel)


class RPCRunner(Runner):
    """Runs on the workers of a Dask scheduler at `host` and `port`, those with the resource `key` (None or "" for all).

    `repeat` and `min_repeat_ms` are those of `LocalRunner`; the arguments without an effect are its own, `n_parallel` and
    `priority`. Its measurer raises `RelayError` (R0645) where no scheduler answers, as for a tracker of TVM.
    """

    def __init__(
        self,
        key: str | None,
        host: str,
        port: int,
        priority: int = 1,
        timeout: float = 10,
        n_parallel: int | None = None,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: float = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Any = None,
    ) -> None:
        super().__init__(timeout, n_parallel)
        self.key, self.host, self.port, self.priority = key, host, port, priority
        self.number, self.repeat, self.min_repeat_ms = number, repeat, min_repeat_ms
        self.cooldown_interval, self.enable_cpu_cache_flush = cooldown_interval, enable_cpu_cache_flush

    def measurer(self, builder: Builder) -> Measurer:
        limits = limits_of(builder.timeout, self.timeout, self.repeat, self.min_repeat_ms)
        return FarmMeasurer(f"tcp://{self.host}:{self.port}", {self.key: 1.0} if self.key else {}, limits)


def measure_option(builder: Builder | str, runner: Runner | str) -> dict[str, Any]:
    """The options of `Tuner.tune`. "local" is a `LocalBuilder()` or a `LocalRunner()`. Raises `RelayError` (R0645)."""
    builder = LocalBuilder() if builder == "local" else builder
    runner = LocalRunner() if runner == "local" else runner
    for value, kind in ((builder, Builder), (runner, Runner)):
        if not isinstance(value, kind):
            raise refused(f"measure_option takes a {kind.__name__.lower()}, not {value!r}", f"autotvm.Local{kind.__name__}()")
    return {"builder": builder, "runner": runner}


def mean_cost(result: MeasureResult) -> float:
    """The mean of the seconds of a result; infinite where the measurement failed."""
    return math.fsum(result.costs) / len(result.costs) if result.error_no == MeasureErrorNo.NO_ERROR else math.inf


__all__ = [
    "Builder",
    "LocalBuilder",
    "LocalRunner",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "RPCRunner",
    "Runner",
    "mean_cost",
    "measure_option",
    "result_of",
]
