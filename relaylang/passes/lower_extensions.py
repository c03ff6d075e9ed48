"""Lower added operators by their own `lower`, for backends without code for them."""

from __future__ import annotations

from collections.abc import Collection

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, IRModule, post_order
from relaylang.ops.extensions import EXTENSIONS
from relaylang.ops.record import Op
from relaylang.passes.quantize.legalizations import apply_rule
from relaylang.passes.rewriting import rewrite_typed

#: So often an added operator may become another added operator.
ROUNDS = 16


def lower_extensions(expr: Expr, keep: Collection[str] = ()) -> Expr:
    """A typed expression without the added operators that say what they are made of; itself where it has none.

    Those of `keep` stay.

    Raises `RelayError` for a `lower` that raises, gives no expression, or one of another type.
    """
    if not EXTENSIONS:
        return expr
    rules = {name: extension.lower for name, extension in EXTENSIONS.items() if extension.lower is not None and name not in keep}

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.name not in rules:
            return new
        lowered = apply_rule(rules[new.op.name], "lower", old, new, IRModule())
        return new if lowered is None else lowered

    for _ in range(ROUNDS):
        names = {n.op.name for n in post_order(expr) if isinstance(n, Call) and isinstance(n.op, Op)}
        if not names & set(rules):
            return expr
        new = rewrite_typed(expr, put)
        if new is expr:
            return expr
        expr = new
    left = ", ".join(sorted(names & set(rules)))
    raise RelayError(error("R0502", f"lowering does not end: {left} becomes an added operator again and again"))


__all__ = ["lower_extensions"]
