"""A whole module of Relax."""

from __future__ import annotations

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.prepared import without_qnn
from relaylang.export.relax.emitter import Emitter, written
from relaylang.export.relax.table import RULES
from relaylang.export.walk import leaves, tensor_types
from relaylang.ir import IRModule


def export_relax(mod: IRModule, entry: str = "main", file: str = "<module>") -> tuple[str, dict[str, np.ndarray]]:
    """A typed program as TVMScript text of Relax, and the values of its parameters behind the inputs.

    Shapes are static. Quantised operators become integer arithmetic. `R.func_attr({"num_input": n})` counts the inputs, as TVM's own
    importers do; `relax.transform.BindParams` takes the values. Raises `RelayError` (R0806) with every operator that Relax lacks.
    """
    e = Emitter(without_qnn(mod), file, RULES)
    parameters, result, ty = e.entry(entry)
    try:
        types = [written(t) for t in tensor_types(ty)]
        arguments = [f"{p.name}: {written(p.type)}" for p in [*parameters, *e.weights.values()]]
    except Unsupported as why:
        notes = ["--shape NAME=1x3x224x224 fixes the shape of a network's input"]
        raise RelayError(error("R0806", f"@{entry}: {why.reason}", notes=notes)) from None
    values = leaves(result)
    name, own = e.unique("result"), entry if entry == "main" else e.unique(entry)
    several = len(values) != 1 or isinstance(result, list)
    returned = f"({', '.join(v.name for v in values)}{',' if len(values) == 1 else ''})" if several else values[0].name
    out = f"R.Tuple({', '.join(types)})" if several else types[0]
    e.line(f"{name}: {out} = {returned}")
    body = [line[4:] for line in e.lines] if e.branches else ["        with R.dataflow():", *e.lines, f"            R.output({name})"]
    head = [
        "# from tvm.script import ir as I",
        "# from tvm.script import relax as R",
        "",
        "",
        "@I.ir_module",
        "class Module:",
        "    @R.function",
        f"    def {own}(",
        *[f"        {a}," for a in arguments],
        f"    ) -> {out}:",
        f'        R.func_attr({{"num_input": {len(parameters)}}})',
    ]
    return "\n".join([*head, *body, f"        return {name}", ""]), {n: np.asarray(v.data) for n, v in e.weights.items()}


__all__ = ["export_relax"]
