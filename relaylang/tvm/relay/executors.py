"""The executors' classes, as scripts make them without `create_executor`: `GraphExecutor(mod, device, target)`."""

from __future__ import annotations

from typing import Any

from relaylang.ir import IRModule
from relaylang.tvm.executor import KINDS, Executor


class _ByKind(Executor):
    """An executor of a kind for a module; see `create_executor`. The device is the CPU."""

    kind = ""

    def __init__(self, mod: IRModule | None, device: Any, target: Any) -> None:
        if device is not None:
            device.check()
        super().__init__(mod if mod is not None else IRModule(), compile=KINDS[self.kind], target=target)


class Interpreter(_ByKind):
    """Interprets a module."""

    kind = "debug"


class GraphExecutor(_ByKind):
    """Compiles a module, and runs its graph."""

    kind = "graph"


class AotExecutor(_ByKind):
    """Compiles a module to one function."""

    kind = "aot"


class VMExecutor(_ByKind):
    """Compiles a module for the virtual machine."""

    kind = "vm"


__all__ = ["AotExecutor", "GraphExecutor", "Interpreter", "VMExecutor"]
