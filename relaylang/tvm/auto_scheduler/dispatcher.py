"""Which records programs are built with: `with auto_scheduler.ApplyHistoryBest(log):`."""

from __future__ import annotations

from typing import Any

from relaylang.tvm.autotvm import dispatcher
from relaylang.tvm.autotvm.dispatcher import DispatchContext, FallbackContext


class ApplyHistoryBest(dispatcher.ApplyHistoryBest):
    """The best records of logs, as `autotvm.apply_history_best` takes them; of the first `n_lines` alone."""

    def __init__(self, records: Any, n_lines: int | None = None, include_compatible: bool = False) -> None:
        super().__init__(records)
        self.records = (self.records or [])[:n_lines]


class ApplyHistoryBestOrSample(ApplyHistoryBest):
    """The best records of logs. Kernels without one keep the default schedule, and nothing is sampled."""

    def __init__(
        self, records: Any, sample_simple_workloads: bool = False, cost_model_file: str | None = None, num_measure: int = -1
    ) -> None:
        super().__init__(records)


__all__ = ["ApplyHistoryBest", "ApplyHistoryBestOrSample", "DispatchContext", "FallbackContext"]
