"""Of `tvm.relay.backend` there are values of the interpreter, and the options of executors and runtimes."""

from __future__ import annotations

from relaylang.tvm.relay.backend.executor import Executor, Runtime

__all__ = ["Executor", "Runtime"]
