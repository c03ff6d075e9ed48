"""SimplifyInference: normalisation and dropout of a trained network in plain operators, by `relaylang.rules.inference`."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from relaylang.ir import Call, Expr, IRModule, TensorType, TupleGetItem, post_order, rebuilt
from relaylang.ir.typed import typed
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.rules.inference import RULES


def simplify_expr(expr: Expr, operators: Container[str] = RULES) -> Expr:
    """Simplify one typed expression; see `simplify_inference`."""
    done: dict[int, Expr] = {}
    for old in post_order(expr):
        new = rebuilt(old, done)
        if new is not old:
            typed(new, old.checked_type)
        replaced = _replacement(old, new, operators)
        if replaced is not None and replaced.span is None:
            replaced.span = old.span
        done[id(old)] = new if replaced is None else replaced
    return done[id(expr)]


def _replacement(old: Expr, new: Expr, operators: Container[str]) -> Expr | None:
    """What a call becomes, or the first field of one; None where no rule is for it. `old` has the types."""
    first_field = isinstance(new, TupleGetItem)
    call = new.tuple_value if isinstance(new, TupleGetItem) and new.index == 0 else new
    if not isinstance(call, Call) or not isinstance(call.op, Op) or call.op.name not in operators:
        return None
    rule = RULES.get(call.op.name)
    if rule is None or rule.first_field != first_field:
        return None
    if first_field:
        ty = old.checked_type
    else:
        ty = old.args[0].checked_type if isinstance(old, Call) and old.args else None
    return rule.make(call, ty) if isinstance(ty, TensorType) else None


def simplify_inference(mod: Any, operators: Container[str] = RULES) -> Any:
    """Simplify every function of a typed module (also usable on a single expression). The result is typed."""
    if isinstance(mod, Expr):
        return simplify_expr(mod, operators)
    return mod.with_functions({gv: simplify_expr(f, operators) for gv, f in mod.functions.items()})  # type: ignore[misc]


@dataclass(frozen=True)
class SimplifyInference(Pass):
    """Replace batch normalisation, dropout and others by arithmetic that gives the same inference.

    `operators` are the ones to replace; the default is all of them.
    """

    operators: list[str] | None = None

    def run(self, mod: IRModule) -> IRModule:
        simplified: IRModule = simplify_inference(mod, self.operators or RULES)
        return simplified
