"""Names in attributes become operands: what a parameter's shape says in a run.

`zeros(shape=[b, 8])` becomes `dyn.zeros` of a vector, which is computed from the shape of a parameter that has `b`. So the
interpreter and the VM need no rule of their own for such calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ir import Call, Expr, Function, TensorType, TupleType, Var, post_order, rewrite
from relaylang.ir.typed import retype, typed_field
from relaylang.ir.types import ComputedDim, TypeVar
from relaylang.rules.static_to_dynamic import dynamic_call, extents_vector, open_extents


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
            shape = extents_vector(dims, places, vectors)
        except KeyError:
            return retype(new, old)
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
