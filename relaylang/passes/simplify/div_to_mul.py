"""DivToMul: division by a constant as a product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Constant, Expr, IRModule
from relaylang.ir.typed import typed
from relaylang.ops.build import op_call
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_call, per_function, rewrite_typed


def div_to_mul(mod: IRModule) -> IRModule:
    """Division by a constant as the product with its reciprocal, for floats."""

    def put(old: Expr, new: Expr) -> Expr:
        if is_call(new, "divide") and isinstance(new, Call) and isinstance(new.args[1], Constant):
            divisor = new.args[1]
            if divisor.data.dtype.kind == "f" and np.all(divisor.data != 0):
                reciprocal = typed(Constant((1 / divisor.data).astype(divisor.data.dtype)), divisor.checked_type)
                return op_call("multiply", [new.args[0], reciprocal], old.checked_type)
        return new

    return per_function(mod, lambda f: rewrite_typed(f, put))


@dataclass(frozen=True)
class DivToMul(Pass):
    """Division by a constant as the product with its reciprocal."""

    def run(self, mod: IRModule) -> IRModule:
        return div_to_mul(mod)
