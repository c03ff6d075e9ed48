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
        replaced: Expr | None = None
        if isinstance(old, Call) and isinstance(old.op, Op):
            ty = old.args[0].checked_type if old.args else None
            rule = RULES.get(old.op.name) if old.op.name in operators else None
            if rule is not None and not rule.first_field and isinstance(new, Call) and isinstance(ty, TensorType):
                replaced = rule.make(new, ty)
        elif isinstance(new, TupleGetItem) and new.index == 0:
            call = new.tuple_value
            if isinstance(call, Call) and isinstance(call.op, Op):
                ty = old.checked_type
                rule = RULES.get(call.op.name) if call.op.name in operators else None
                if rule is not None and rule.first_field and isinstance(ty, TensorType):
                    replaced = rule.make(call, ty)
        if replaced is not None and replaced.span is None:
            replaced.span = old.span
        done[id(old)] = new if replaced is None else replaced
    return done[id(expr)]


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
        made: IRModule = simplify_inference(mod, self.operators or RULES)
        return made
