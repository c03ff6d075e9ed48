"""`tvm.contrib.debugger.debug_runtime`: the earlier name of `debug_executor`."""

from relaylang.tvm.contrib.debugger.debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
