"""SimplifyExpr: replace expressions by smaller ones with the same values.

Each rule gets one node whose operands are simplified already. Its result is simplified again, so that one walk does it.
The rules stand in `relaylang.rules.simplify`.
"""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule, Tuple, TupleGetItem
from relaylang.ir.tensors import tensor_type
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.rules.simplify import RULES

#: So often one node is looked at again; each rule makes the expression smaller or moves it towards constants.
_ROUNDS = 16


def simplify_expr(mod: IRModule) -> IRModule:
    """A typed module with its functions simplified."""
    return per_function(mod, lambda f: rewrite_typed(f, _simplify))


def _simplify(old: Expr, new: Expr) -> Expr:
    for _ in range(_ROUNDS):
        if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
            return new.tuple_value.fields[new.index]
        if not isinstance(new, Call) or not isinstance(new.op, Op):
            return new
        ty = tensor_type(new) or tensor_type(old)
        rules = RULES.get(new.op.name)
        if ty is None or rules is None:
            return new
        for rule in rules:
            simplified = rule(new, ty)
            if simplified is not None and simplified is not new:
                new = retype(simplified, old)
                break
        else:
            return new
    return new


@dataclass(frozen=True)
class SimplifyExpr(Pass):
    """Simplify reshapes, transposes, casts, clips, neutral elements and constants."""

    def run(self, mod: IRModule) -> IRModule:
        return simplify_expr(mod)
