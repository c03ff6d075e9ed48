"""SplitArgs: concatenations of more operands than a kernel may have are made in several steps."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule, TensorType, Tuple
from relaylang.ir.typed import typed_tuple
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function, rewrite_typed


def split_args(mod: IRModule, max_function_args: int) -> IRModule:
    """A typed module in which no concatenation has more than `max_function_args` operands, its result counted, too.
    A limit below 3 changes nothing."""
    limit = max_function_args - 1
    if limit < 2:
        return mod

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.name != "concatenate":
            return new
        fields = new.args[0]
        ty = old.checked_type
        if not isinstance(fields, Tuple) or len(fields.fields) <= limit or not isinstance(ty, TensorType):
            return new
        axis = new.attrs.axis % len(ty.shape)
        items = list(fields.fields)
        while len(items) > limit:
            joined = []
            for i in range(0, len(items), limit):
                joined.append(_joined(items[i : i + limit], axis, ty))
            items = joined
        return _joined(items, axis, ty)

    return per_function(mod, lambda f: rewrite_typed(f, put))


def _joined(items: list[Expr], axis: int, whole: TensorType) -> Expr:
    """A concatenation behind which fusion stops, so that it is a kernel of its own."""
    if len(items) == 1:
        return items[0]
    types = [i.checked_type for i in items]
    extents = [t.shape[axis] if isinstance(t, TensorType) else None for t in types]
    ty: TensorType | None = None
    if all(isinstance(e, int) for e in extents):
        total = sum(e for e in extents if isinstance(e, int))
        ty = TensorType((*whole.shape[:axis], total, *whole.shape[axis + 1 :]), whole.dtype)
    made = op_call("concatenate", [typed_tuple(items)], ty, axis=axis)
    return op_call("annotation.stop_fusion", [made], ty)


@dataclass(frozen=True)
class SplitArgs(Pass):
    """Concatenations of more operands than a kernel may have are made in several steps."""

    max_function_args: int

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return split_args(mod, self.max_function_args)
