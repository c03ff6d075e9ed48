"""DivToMul: the products of each operator that divides.

A rule gets a call and its type. It returns a product, or None where the divisor is not a constant of floats without 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from relaylang.ir import Call, Constant, Expr, Type
from relaylang.ir.typed import typed_constant
from relaylang.ops.build import op_call

Rule = Callable[[Call, "Type | None"], "Expr | None"]


def _divide(call: Call, ty: Type | None) -> Expr | None:
    divisor = call.args[1]
    if not isinstance(divisor, Constant) or divisor.data.dtype.kind != "f" or not np.all(divisor.data != 0):
        return None
    reciprocal = typed_constant((1 / divisor.data).astype(divisor.data.dtype))
    return op_call("multiply", [call.args[0], reciprocal], ty)


RULES: Mapping[str, Rule] = {"divide": _divide}
