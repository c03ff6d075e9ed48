"""A quantised network whose inputs and outputs are whole numbers, as accelerators take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Constant, Expr, Function, IRModule, TensorType, Tuple, Var, children, post_order, rewrite
from relaylang.ir.typed import forget_stale_types, typed_var
from relaylang.passes.infer_type import InferType
from relaylang.passes.rewriting import is_call


@dataclass(frozen=True)
class Edge:
    """An input or output in whole numbers: `(x - zero) * scale` is the real number."""

    name: str
    dtype: str
    scale: float
    zero: int


def integer_io(mod: IRModule) -> tuple[IRModule, list[Edge], list[Edge]]:
    """The module without conversions at the edges of @main, and the inputs and outputs that are whole numbers now.

    An input stays as it is where anything but one conversion takes it, an output where no conversion makes it.
    """
    func = mod["main"]
    users: dict[int, list[Expr]] = {}
    for node in post_order(func):
        for child in children(node):
            users.setdefault(id(child), []).append(node)
    new_params: dict[int, Var] = {}
    inputs = []
    for param in func.params:
        takes = users.get(id(param), [])
        first = takes[0] if takes else None
        if first is None or not is_call(first, "qnn.quantize") or not all(_alike(first, other) for other in takes):
            continue
        assert isinstance(param.checked_type, TensorType)
        ty = TensorType(param.checked_type.shape, first.attrs.out_dtype)
        new_params[id(param)] = typed_var(param.name_hint, ty, param.span)
        inputs.append(_edge(param.name_hint, ty.dtype, first))

    def put(old: Expr, new: Expr) -> Expr:
        if is_call(old, "qnn.quantize") and id(old.args[0]) in new_params:
            return new_params[id(old.args[0])]
        return new

    results = list(func.body.fields) if isinstance(func.body, Tuple) else [func.body]
    outputs = []
    for number, result in enumerate(results):
        if is_call(result, "qnn.dequantize") and _plain(result):
            source_type = result.args[0].checked_type
            assert isinstance(source_type, TensorType)
            outputs.append(_edge(f"output {number}", source_type.dtype, result))
            results[number] = result.args[0]
    body = rewrite(Tuple(results) if isinstance(func.body, Tuple) else results[0], put)
    params = [new_params.get(id(p), p) for p in func.params]
    rewritten = forget_stale_types(Function(params, body, None, func.type_params, func.attrs, func.span))
    assert isinstance(rewritten, Function)
    return InferType()(mod.with_functions({**mod.functions, mod.get_global_var("main"): rewritten})), inputs, outputs


def _plain(call: Call) -> bool:
    return all(isinstance(a, Constant) and a.data.size == 1 for a in call.args[1:3])


def _alike(a: Call, b: Expr) -> bool:
    """Whether another value is a conversion to the same numbers, those of one scale."""
    if not is_call(b, "qnn.quantize") or not (_plain(a) and _plain(b)):
        return False
    same = all(np.array_equal(x.data, y.data) for x, y in zip(a.args[1:3], b.args[1:3]))  # type: ignore[attr-defined]
    return same and a.attrs.out_dtype == b.attrs.out_dtype


def _edge(name: str, dtype: str, call: Call) -> Edge:
    scale, zero = call.args[1:3]
    assert isinstance(scale, Constant) and isinstance(zero, Constant)
    return Edge(name, dtype, float(scale.data.reshape(-1)[0]), int(zero.data.reshape(-1)[0]))


__all__ = ["Edge", "integer_io"]
