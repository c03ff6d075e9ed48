"""FastMath: replace exp, tanh, erf and softmax by fast approximations."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule
from relaylang.ops import get
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.rules.fast_math import RULES


def fast_math(mod: IRModule) -> IRModule:
    """exp, tanh, erf and nn.softmax of float32 as fast_exp, fast_tanh, fast_erf and nn.fast_softmax."""

    def put(old: Expr, new: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(new.op, Op) and new.op.name in RULES:
            return Call(get(RULES[new.op.name]), new.args, new.attrs, (), new.span)
        return new

    return per_function(mod, lambda f: rewrite_typed(f, put))


@dataclass(frozen=True)
class FastMath(Pass):
    """Replace exp, tanh, erf and softmax by fast approximations."""

    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return fast_math(mod)
