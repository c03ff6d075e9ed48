"""`recast`: computes chosen operators with another element type."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, post_order, rewrite
from relaylang.ops.record import Op
from relaylang.tvm import op
from relaylang.typing import infer


def recast(
    expr: Expr | IRModule, dtype: str, out_dtype: str, ops: Sequence[str] | None = None, skip_layers: Sequence[int] | None = None
) -> Expr | IRModule:
    """A function or module whose calls of `ops` (default: nn.conv2d) take `dtype` and give `out_dtype`.

    Casts stand around each such call. `skip_layers` are numbers of calls that stay: 0 is the first one, -1 the last one.
    """
    if isinstance(expr, IRModule):
        recast_function = recast(expr["main"], dtype, out_dtype, ops, skip_layers)
        assert isinstance(recast_function, Expr)
        return IRModule.from_expr(recast_function)
    names = set(ops if ops is not None else ["nn.conv2d"])
    infer(expr, fragment=not isinstance(expr, Function))
    calls = [n for n in post_order(expr) if isinstance(n, Call) and isinstance(n.op, Op) and n.op.name in names]
    skipped = {n % len(calls) for n in skip_layers or ()} if calls else set()
    chosen = {id(call) for number, call in enumerate(calls) if number not in skipped}

    def narrowed(argument: Expr) -> Expr:
        if isinstance(argument, Tuple):
            return Tuple([op.cast(f, dtype) for f in argument.fields])
        return op.cast(argument, dtype)

    def change(old: Expr, new: Expr) -> Expr:
        if id(old) not in chosen:
            return new
        assert isinstance(new, Call)
        before = old.checked_type
        attrs = new.attrs
        if "out_dtype" in getattr(type(attrs), "schema", {}):
            attrs = copy.copy(attrs)
            attrs.out_dtype = out_dtype
        call = Call(new.op, [narrowed(a) for a in new.args], attrs)
        return op.cast(call, before.dtype if isinstance(before, TensorType) else "float32")

    return rewrite(expr, change)
