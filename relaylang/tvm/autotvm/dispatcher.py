"""Which records programs are built with: `with autotvm.apply_history_best(log):`, as in `tvm.autotvm.task.dispatcher`."""

from __future__ import annotations

import os
from typing import Any

from relaylang.backends.cpu.tuning_log import Record, best
from relaylang.tvm.autotvm.record import records_of
from relaylang.tvm.autotvm.space import ConfigEntity, FallbackConfigEntity
from relaylang.tvm.tuning import Applied


class DispatchContext(Applied):
    """A `with` block whose programs are built with the records that it has. `DispatchContext.current` is the innermost one."""

    current: DispatchContext | None = None

    def __enter__(self) -> Any:
        self._outer, DispatchContext.current = DispatchContext.current, self
        return super().__enter__()

    def __exit__(self, *reason: object) -> None:
        DispatchContext.current = self._outer
        super().__exit__(*reason)

    def query(self, target: Any, workload: tuple[Any, ...]) -> ConfigEntity:
        """The best values for a task's workload, which a log has; no values for the default schedule."""
        record = best(self.records or ()).get(str(workload[-1]) if workload else "")
        return ConfigEntity(None, record.choice, cost=record.seconds) if record is not None else FallbackConfigEntity()


class FallbackContext(DispatchContext):
    """The default schedules."""

    def __init__(self) -> None:
        super().__init__()


class ApplyHistoryBest(DispatchContext):
    """The best records of logs: a path, an open file, measurements, several of them, or None.

    A log of TVM's tuners gives the default schedules, with a warning. Raises `RelayError` (R0645) for other files.
    """

    def __init__(self, records: Any) -> None:
        super().__init__([], os.fspath(records) if isinstance(records, (str, os.PathLike)) else "the given records")
        self.load(records)

    def load(self, records: Any) -> None:
        """Add records."""
        self.records = [*(self.records or ()), *records_of(records)]

    @property
    def best_by_targetkey(self) -> dict[tuple[str, tuple[Any, ...]], Record]:
        """The best record of each kernel, by the kind of target and the task's workload."""
        return {("llvm", (r.operators.partition(":")[0], r.key)): r for r in best(self.records or ()).values()}

    @property
    def best_by_model(self) -> dict[tuple[str, tuple[Any, ...]], Record]:
        """The same by processors."""
        return {(r.cpu, (r.operators.partition(":")[0], r.key)): r for r in best(self.records or ()).values()}


class ApplyGraphBest(ApplyHistoryBest):
    """The best records, as `ApplyHistoryBest` has them: layouts are the compiler's."""


def clear_fallback_cache(target: Any, workload: Any) -> None:
    """Does nothing: no default schedule is kept."""


__all__ = [
    "ApplyGraphBest",
    "ApplyHistoryBest",
    "DispatchContext",
    "FallbackContext",
    "clear_fallback_cache",
]
