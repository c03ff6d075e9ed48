"""Names in attributes become operands: what a parameter's shape says in a run.

`zeros(shape=[b, 8])` becomes `dyn.zeros` of a vector, which is computed from the shape of a parameter that has `b`. So the
interpreter and the VM need no rule of their own for such calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relaylang.ir import Call, Dim, Expr, Function, TensorType, TupleType, Var, post_order, rewrite
from relaylang.ir.typed import retype, typed, typed_constant, typed_field, typed_tuple
from relaylang.ir.types import ComputedDim, TypeVar
from relaylang.ops import get
from relaylang.ops.record import make_attrs
from relaylang.rules.static_to_dynamic import dynamic_call, open_extents

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


def extents_as_operands(function: Function) -> Function:
    """A typed function whose calls have no names in attributes. Those whose names no parameter has as an extent stay."""
    calls = {id(node): dims for node in post_order(function) if isinstance(node, Call) and (dims := open_extents(node)) is not None}
    if not calls:
        return function
    places = _places(function)
    vectors: dict[int, Expr] = {}

    def changed(old: Expr, new: Expr) -> Expr:
        dims = calls.get(id(old))
        if dims is None:
            return retype(new, old)
        assert isinstance(old, Call) and isinstance(new, Call)
        try:
            parts = typed_tuple([_vector(d, places, vectors) for d in dims])
        except KeyError:
            return retype(new, old)
        shape = _call("concatenate", [parts], TensorType((len(dims),), "int64"), axis=0)
        return dynamic_call(old, new.args, shape)

    rewritten = rewrite(function, changed)
    assert isinstance(rewritten, Function)
    return rewritten


def _places(function: Function) -> Mapping[int, tuple[Expr, int]]:
    """The tensor and the axis that has each name, by the name's id.

    A function's parameters have the names that it declares. Those of the outermost one have a program's names, too.
    """
    places: dict[int, tuple[Expr, int]] = {}
    for inner in post_order(function):
        if not isinstance(inner, Function):
            continue
        stack: list[Expr] = list(reversed(inner.params))
        while stack:
            value = stack.pop()
            ty = value.checked_type or (value.type_annotation if isinstance(value, Var) else None)
            if isinstance(ty, TupleType):
                stack += [typed_field(value, n) for n in reversed(range(len(ty.fields)))]
            elif isinstance(ty, TensorType):
                for axis, dim in enumerate(ty.shape):
                    if type(dim) is not ComputedDim and isinstance(dim, TypeVar) and (inner is function or dim in inner.type_params):
                        places.setdefault(id(dim), (value, axis))
    return places


def _vector(dim: Dim, places: Mapping[int, tuple[Expr, int]], vectors: dict[int, Expr]) -> Expr:
    """An extent as a vector of one int64. `vectors` has those that are made, by the extent's id.

    Raises `KeyError` for `?`, for a name that has no place, and for a computation of another form.
    """
    stack = [dim]
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
            vectors[id(node)] = typed(Call(get(_COMPUTES[node.type_key]), operands), _VECTOR)
        elif isinstance(node, TypeVar):
            tensor, axis = places[id(node)]
            assert isinstance(tensor.checked_type, TensorType)
            shape = _call("shape_of", [tensor], TensorType((len(tensor.checked_type.shape),), "int64"), dtype="int64")
            vectors[id(node)] = _call("strided_slice", [shape], _VECTOR, begin=[axis], end=[axis + 1], strides=[1])
        elif isinstance(node, int):
            vectors[id(node)] = typed_constant(np.asarray([int(node)], "int64"))
        else:
            raise KeyError(node)
    return vectors[id(dim)]


def _call(name: str, args: Sequence[Expr], ty: TensorType, **attrs: object) -> Call:
    op = get(name)
    assert op.attrs is not None
    return typed(Call(op, args, make_attrs(op.attrs, attrs)), ty)
