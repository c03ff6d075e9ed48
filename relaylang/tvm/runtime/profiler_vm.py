"""`tvm.runtime.profiler_vm`: machines of the VM that say where their time goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.tvm.contrib.debugger.debug_executor import Report
from relaylang.tvm.runtime.vm import VirtualMachine


def enabled() -> bool:
    """Whether there is a profiler."""
    return True


class VirtualMachineProfiler(VirtualMachine):
    """A machine with `profile`."""

    def get_stat(self, sort_by_time: bool = True) -> str:
        """An empty text, as in TVM; `profile` has the times."""
        return ""

    def profile(self, *args: Any, func_name: str = "main", collectors: Sequence[Any] | None = None, **kwargs: Any) -> Report:
        """Call a function, and report each kernel's time. `collectors`, TVM's counters of hardware, have no effect."""
        return Report(self._exec.profile(func_name, (), self._arguments(func_name, args, kwargs)), "VM")


__all__ = ["VirtualMachineProfiler", "enabled"]
