"""What all of autotvm shares: `tvm.autotvm.env`."""

from __future__ import annotations


class AutotvmGlobalScope:
    """The state of this process's tuners. `silent` has no effect."""

    def __init__(self) -> None:
        self.in_tuning = False
        self.silent = False


GLOBAL_SCOPE = AutotvmGlobalScope()

__all__ = ["GLOBAL_SCOPE", "AutotvmGlobalScope"]
