"""DivToMul: replace division by a constant by a product."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.rules.div_to_mul import RULES


def div_to_mul(mod: IRModule) -> IRModule:
    """Division by a constant as the product with its reciprocal, for floats."""

    def put(old: Expr, new: Expr) -> Expr:
        rule = RULES.get(new.op.name) if isinstance(new, Call) and isinstance(new.op, Op) else None
        product = rule(new, old.checked_type) if rule is not None and isinstance(new, Call) else None
        return new if product is None else product

    return per_function(mod, lambda f: rewrite_typed(f, put))


@dataclass(frozen=True)
class DivToMul(Pass):
    """Replace division by a constant by multiplication with its reciprocal."""

    def run(self, mod: IRModule) -> IRModule:
        return div_to_mul(mod)
