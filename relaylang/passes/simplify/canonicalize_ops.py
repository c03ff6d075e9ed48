"""CanonicalizeOps: replace nn.bias_add by add."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule
from relaylang.ir.tensors import tensor_type
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function, rewrite_typed
from relaylang.rules.canonicalize import RULES


def canonicalize_ops(mod: IRModule) -> IRModule:
    """nn.bias_add as add, with the bias's trailing axes made where they are needed."""

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or not isinstance(old, Call) or new.op.name not in RULES:
            return new
        ty, second = tensor_type(old), tensor_type(old.args[1])
        if ty is None or second is None:
            return new
        return RULES[new.op.name](new, new.args[0], new.args[1], second, ty)

    return per_function(mod, lambda f: rewrite_typed(f, put))


@dataclass(frozen=True)
class CanonicalizeOps(Pass):
    """Replace nn.bias_add by add."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return canonicalize_ops(mod)
