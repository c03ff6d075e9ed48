"""`relay.optimize`: the passes that TVM runs before it compiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params_by_name
from relaylang.tvm import transform
from relaylang.tvm.arrays import from_python


def optimize(mod: IRModule, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[IRModule, dict[str, Any]]:
    """The module after the passes of the current context's level, and the parameters that are left: none.

    `params` become constants of @main. `target` has no effect: no layout depends on it. Raises `RelayError`.
    """
    if params:
        mod = mod.with_functions(mod.functions)
        mod["main"] = bind_params_by_name(mod["main"], {name: from_python(value) for name, value in params.items()})
    three = ("CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul")
    passes = [
        transform.RemoveUnusedFunctions(), transform.SimplifyInference(), transform.EliminateCommonSubexpr(),
        *[getattr(transform, name)(3) for name in three], transform.FoldConstant(), transform.FoldScaleAxis(),
        transform.SimplifyExpr(), transform.CanonicalizeCast(), transform.CanonicalizeOps(), transform.FlattenAtrousConv(),
        transform.AlterOpLayout(), transform.FastMath(), transform.FoldConstant(),
    ]  # fmt: skip
    return transform.Sequential(passes)(mod), {}


__all__ = ["optimize"]
