"""`tvm.autotvm`, as far as scripts use logs of tuning: programs are built with the CPU backend's own schedules."""

from __future__ import annotations

import warnings
from typing import Any


class DefaultSchedules:
    """A `with` block whose programs are built with the default schedules. A log that is given has no effect, with a warning."""

    def __init__(self, records: Any = None, *_: Any, **__: Any) -> None:
        if records is not None:
            note = "relaylang does not read logs of TVM's tuners: the program is built with the default schedules"
            warnings.warn(note, stacklevel=2)

    def __enter__(self) -> DefaultSchedules:
        return self

    def __exit__(self, *_: object) -> None:
        """The block ends."""


class FallbackContext(DefaultSchedules):
    """The default schedules, without a log."""

    def __init__(self) -> None:
        super().__init__()


class ApplyHistoryBest(DefaultSchedules):
    """The default schedules, in place of the best ones of a log."""


def apply_history_best(dispatcher: Any) -> ApplyHistoryBest:
    """The default schedules, in place of the best ones of a log, with a warning."""
    return ApplyHistoryBest(dispatcher)


__all__ = ["ApplyHistoryBest", "FallbackContext", "apply_history_best"]
