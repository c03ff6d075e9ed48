"""A whole module of StableHLO."""

from __future__ import annotations

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.prepared import without_qnn
from relaylang.export.stablehlo.emitter import Emitter, written
from relaylang.export.stablehlo.table import RULES
from relaylang.export.walk import leaves, tensor_types
from relaylang.ir import IRModule


def export_stablehlo(mod: IRModule, entry: str = "main", file: str = "<module>") -> str:
    """A typed program as MLIR text of the StableHLO and CHLO dialects (https://openxla.org/stablehlo/spec).

    The function `@main` has the parameters of `entry` as arguments and a result for each tensor. Shapes are static.
    Quantised operators become integer arithmetic. Raises `RelayError` (R0806) with every operator that StableHLO lacks.
    """
    e = Emitter(without_qnn(mod), file, RULES)
    parameters, result, ty = e.entry(entry)
    try:
        types = [written(t) for t in tensor_types(ty)]
        arguments = ", ".join(f"%{p.name}: {written(p.type)}" for p in parameters)
    except Unsupported as why:
        notes = ["--shape NAME=1x3x224x224 fixes the shape of a network's input"]
        raise RelayError(error("R0806", f"@{entry}: {why.reason}", notes=notes)) from None
    values = leaves(result)
    e.line(f"return {', '.join(f'%{v.name}' for v in values)} : {', '.join(types)}" if values else "return")
    head = f"  func.func public @{entry}({arguments}) -> ({', '.join(types)}) {{"
    return "\n".join(["module {", head, *e.lines, "  }", "}", ""])


__all__ = ["export_stablehlo"]
