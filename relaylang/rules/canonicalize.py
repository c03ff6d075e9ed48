"""CanonicalizeOps: the plain operators of each operator that abbreviates others.

A rule gets a call, its two operands, the type of the second one, and the result's type. It returns the plain call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relaylang.ir import Call, Expr, TensorType
from relaylang.ops.build import op_call, with_axes_behind

Rule = Callable[[Call, Expr, Expr, TensorType, TensorType], Call]


def _bias_add(call: Call, data: Expr, bias: Expr, bias_type: TensorType, ty: TensorType) -> Call:
    """A sum, with the bias's trailing axes made where they are needed."""
    behind = len(ty.shape) - call.attrs.axis % len(ty.shape) - 1
    return op_call("add", [data, with_axes_behind(bias, bias_type, behind)], ty)


RULES: Mapping[str, Rule] = {"nn.bias_add": _bias_add}
