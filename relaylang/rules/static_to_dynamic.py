"""The dynamic form of operators whose attributes have extents that only a run gives.

A rule has the dynamic operator, and the attribute that becomes its operand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relaylang.diagnostics.source import OperatorSpan, Span
from relaylang.ir import ANY, Call, Dim, Expr, TensorType
from relaylang.ir.typed import retype, typed, typed_constant, typed_tuple
from relaylang.ir.types import ComputedDim, TypeVar
from relaylang.ops import get
from relaylang.ops.record import Op, make_attrs

#: Operators whose results have the shape that the dynamic form takes.
_SHAPED = {
    "reshape": "newshape",
    "contrib_reverse_reshape": "newshape",
    "broadcast_to": "shape",
    "zeros": "shape",
    "ones": "shape",
    "full": "shape",
    "sparse_to_dense": "output_shape",
}
#: Operators and the attribute that is an operand of the dynamic form.
RULES: Mapping[str, tuple[str, str]] = {
    **{name: (f"dyn.{name}", attr) for name, attr in _SHAPED.items()},
    "contrib_reverse_reshape": ("dyn.reshape", "newshape"),
    "image.resize2d": ("dyn.image.resize2d", "size"),
}
#: Operators on whole numbers that compute what extents do.
_COMPUTES = {
    "tir.Add": "add",
    "tir.Sub": "subtract",
    "tir.Mul": "multiply",
    "tir.FloorDiv": "floor_divide",
    "tir.FloorMod": "floor_mod",
    "tir.Div": "divide",
    "tir.Mod": "mod",
    "tir.Min": "minimum",
    "tir.Max": "maximum",
}
_VECTOR = TensorType((1,), "int64")


def open_extents(call: Call) -> Sequence[Dim] | None:
    """The extents that the dynamic form of a typed call takes; None for calls of numbers alone, and of other operators."""
    form = RULES.get(call.op.name) if isinstance(call.op, Op) else None
    extents = getattr(call.attrs, form[1], None) if form is not None else None
    if extents is None or all([isinstance(d, int) for d in extents]):
        return None
    ty = call.checked_type
    if call.op.name in _SHAPED and isinstance(ty, TensorType) and ANY not in ty.shape:  # type: ignore[attr-defined]
        return ty.shape  # without -1 and its like
    if call.op.name == "contrib_reverse_reshape" and any([isinstance(d, int) and (d == 0 or d < -1) for d in extents]):  # type: ignore[attr-defined]
        return None  # other codes are read from the right
    return extents  # type: ignore[no-any-return]


def dynamic_call(call: Call, args: Sequence[Expr], extents: Expr) -> Call:
    """The dynamic form of a call of new operands, with a vector of `extents`. It has the call's type."""
    assert isinstance(call.op, Op)
    name, attr = RULES[call.op.name]
    op = get(name)
    operands = [*args, extents]
    if name == "dyn.image.resize2d":
        operands.append(typed_constant(np.asarray(call.attrs.roi or (), "float32")))
    attrs = None
    if op.attrs is not None:
        kept = {k: getattr(call.attrs, k) for k in op.schema if k != attr and hasattr(call.attrs, k)}
        if "allowzero" in kept and isinstance(call.checked_type, TensorType) and ANY not in call.checked_type.shape:
            kept["allowzero"] = True
        attrs = make_attrs(op.attrs, {**kept, attr: None} if attr in op.schema else kept)
    span = None if call.span is None else OperatorSpan(call.span, call.op.name)
    return retype(Call(op, operands, attrs, (), span), call)


def extents_vector(
    dims: Sequence[Dim], places: Mapping[int, tuple[Expr, int]], vectors: dict[int, Expr], span: Span | None = None
) -> Expr:
    """Extents as a vector of int64, by calls that stand at `span`.

    `places` has the tensor and the axis that has each name, by the name's id; `vectors` the extents that have a vector of
    one already, by theirs. Raises `KeyError` for `?`, for a name that has no place, and for a computation of another form.
    """
    stack = [*dims]
    while stack:
        node = stack[-1]
        waiting = [o for o in node.operands if id(o) not in vectors] if isinstance(node, ComputedDim) else []
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if id(node) in vectors:
            continue
        if isinstance(node, ComputedDim):
            operands = [vectors[id(o)] for o in node.operands]
            vectors[id(node)] = typed(Call(get(_COMPUTES[node.type_key]), operands, None, (), span), _VECTOR)
        elif isinstance(node, TypeVar):
            tensor, axis = places[id(node)]
            assert isinstance(tensor.checked_type, TensorType)
            shape = _call("shape_of", [tensor], TensorType((len(tensor.checked_type.shape),), "int64"), span, dtype="int64")
            vectors[id(node)] = _call("strided_slice", [shape], _VECTOR, span, begin=[axis], end=[axis + 1], strides=[1])
        elif isinstance(node, int):
            vectors[id(node)] = typed_constant(np.asarray([int(node)], "int64"))
        else:
            raise KeyError(node)
    parts = typed_tuple([vectors[id(d)] for d in dims])
    return _call("concatenate", [parts], TensorType((len(dims),), "int64"), span, axis=0)


def _call(name: str, args: Sequence[Expr], ty: TensorType, span: Span | None, **attrs: object) -> Call:
    op = get(name)
    assert op.attrs is not None
    return typed(Call(op, args, make_attrs(op.attrs, attrs), (), span), ty)
