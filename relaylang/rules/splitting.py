"""SplitArgs: the steps of each operator that takes any number of operands.

A rule gets a call, its type, and how many operands one step may have. It returns an expression, or None where the call
has no more operands than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relaylang.ir import Call, Expr, TensorType, Tuple
from relaylang.ir.typed import typed_tuple
from relaylang.ops.build import op_call

Rule = Callable[[Call, TensorType, int], "Expr | None"]


def _joined(items: list[Expr], axis: int, full_type: TensorType) -> Expr:
    """A concatenation that fusion keeps as a kernel of its own."""
    if len(items) == 1:
        return items[0]
    types = [i.checked_type for i in items]
    extents = [t.shape[axis] if isinstance(t, TensorType) else None for t in types]
    ty: TensorType | None = None
    if all(isinstance(e, int) for e in extents):
        total = sum(e for e in extents if isinstance(e, int))
        ty = TensorType((*full_type.shape[:axis], total, *full_type.shape[axis + 1 :]), full_type.dtype)
    joined = op_call("concatenate", [typed_tuple(items)], ty, axis=axis)
    return op_call("annotation.stop_fusion", [joined], ty)


def _concatenate(call: Call, ty: TensorType, limit: int) -> Expr | None:
    fields = call.args[0]
    if not isinstance(fields, Tuple) or len(fields.fields) <= limit:
        return None
    axis = call.attrs.axis % len(ty.shape)
    items = list(fields.fields)
    while len(items) > limit:
        items = [_joined(items[i : i + limit], axis, ty) for i in range(0, len(items), limit)]
    return _joined(items, axis, ty)


RULES: Mapping[str, Rule] = {"concatenate": _concatenate}
