"""`tvm.auto_scheduler`, as far as scripts use its logs: see `relaylang.tvm.autotvm`."""

from __future__ import annotations

from relaylang.tvm.autotvm import ApplyHistoryBest, DefaultSchedules


class ApplyHistoryBestOrSample(DefaultSchedules):
    """The default schedules, in place of those of a log or of a sample."""


__all__ = ["ApplyHistoryBest", "ApplyHistoryBestOrSample"]
