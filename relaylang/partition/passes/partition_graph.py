"""PartitionGraph: lift regions into functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Function, GlobalVar, IRModule
from relaylang.partition.annotations import partition_graph
from relaylang.passes.manager import Pass
from relaylang.typing import check

#: Compiler -> what it makes of each of its partitions: a function of a module whose @main is the partition's body.
OPTIMIZERS: dict[str, Callable[[IRModule], IRModule]] = {}


def optimized(func: Function) -> Function:
    """A partition as its compiler's optimizer makes it. Raises `RelayError` (R0503) for one that returns no @main."""
    compiler = str(func.attrs.get("Compiler", ""))
    if compiler not in OPTIMIZERS:
        return func
    plain = Function(func.params, func.body, func.ret_type, func.type_params, {}, func.span)
    mod = IRModule.from_expr(plain)
    check(mod)
    optimised = OPTIMIZERS[compiler](mod)
    if not isinstance(optimised, IRModule) or "main" not in optimised:
        raise RelayError(error("R0503", f"the optimizer of {compiler} returned no module with @main", func.span))
    return optimised["main"].with_attrs(dict(func.attrs))


@dataclass(frozen=True)
class PartitionGraph(Pass):
    """Lift each region into a function of the module, marked for its compiler."""

    mod_name: str = "default"
    bind_constants: bool = True

    def run(self, mod: IRModule) -> IRModule:
        partitioned = partition_graph(mod, self.mod_name, self.bind_constants)

        def done(gv: GlobalVar, func: Function) -> Function:
            return func if gv in mod.functions else optimized(func)

        return (
            partitioned.with_functions({gv: done(gv, func) for gv, func in partitioned.functions.items()})
            if OPTIMIZERS
            else partitioned
        )
