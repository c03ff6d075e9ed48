"""`GraphExecutorCodegen`: the compiler of the graph executor, as scripts call it below `relay.build`."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Function, IRModule
from relaylang.tvm.build_module import build
from relaylang.tvm.runtime.ndarray import NDArray
from relaylang.tvm.runtime.program import Program


class GraphExecutorCodegen:
    """A compiler for targets. `mod` has no effect, as in TVM."""

    def __init__(self, mod: Any, target: Any) -> None:
        self.target = target

    def codegen(self, ir_module: IRModule, func: Function | None = None) -> tuple[str, dict[str, Program], dict[str, NDArray]]:
        """The graph as JSON, the compiled kernels by target, and the constants by name. Raises `RelayError`.

        With `func`, it is compiled in the place of @main.
        """
        mod = ir_module if isinstance(ir_module, IRModule) else IRModule.from_expr(ir_module)
        if func is not None:
            mod = mod.with_functions(mod.functions)
            mod["main"] = func
        graph, lib, params = build(mod, self.target)
        return graph, {str(self.target): lib}, params


__all__ = ["GraphExecutorCodegen"]
