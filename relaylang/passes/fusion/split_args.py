"""SplitArgs: divide concatenations of more operands than a kernel may have into several steps."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule, TensorType
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.rules.splitting import RULES


def split_args(mod: IRModule, max_function_args: int) -> IRModule:
    """A typed module in which no concatenation has more than `max_function_args` operands, its result counted, too.
    A limit below 3 changes nothing."""
    limit = max_function_args - 1
    if limit < 2:
        return mod

    def put(old: Expr, new: Expr) -> Expr:
        rule = RULES.get(new.op.name) if isinstance(new, Call) and isinstance(new.op, Op) else None
        ty = old.checked_type
        if rule is None or not isinstance(new, Call) or not isinstance(ty, TensorType):
            return new
        split = rule(new, ty, limit)
        return new if split is None else split

    return per_function(mod, lambda f: rewrite_typed(f, put))


@dataclass(frozen=True)
class SplitArgs(Pass):
    """Divide concatenations of more operands than a kernel may have into several steps."""

    max_function_args: int

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return split_args(mod, self.max_function_args)
