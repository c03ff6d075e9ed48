"""qnn.Legalize: functions of 8-bit tensors as tables of their 256 values.

`RULES[name](compute)` gives a rule as `relaylang.rules.legalize` has them. `compute` makes the table's values. The rule
leaves calls alone whose scales and zero points are not constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType, Type
from relaylang.ops import Trait, forms, get
from relaylang.ops.build import op_call
from relaylang.rules.legalize import Rule
from relaylang.rules.qnn_lowering.numbers import Compute, constant


def _rule(name: str, compute: Compute) -> Rule:
    op = get(name)

    def rule(attrs: Any, inputs: Sequence[Expr], types: Sequence[Type | None]) -> Expr | None:
        known = [a for a in inputs[1:] if isinstance(a, Constant)]
        ty = types[0]
        if len(known) != len(inputs) - 1 or not isinstance(ty, TensorType):
            return None
        every = constant(np.arange(256, dtype="uint8").view(ty.dtype), ty.dtype)
        values = compute(Call(op, [every, *known], attrs), [every.data, *[k.data for k in known]])
        if values is None:
            return None
        at = inputs[0] if ty.dtype == "uint8" else op_call("reinterpret", [inputs[0]], dtype="uint8")
        return op_call("take", [constant(values, ty.dtype), at], axis=0, mode="fast")

    return rule


RULES: Mapping[str, Callable[[Compute], Rule]] = {
    name: partial(_rule, name)
    for name in (*forms(Trait.QUANTISED, Trait.UNARY), "qnn.hardswish")
    if name != "qnn.leaky_relu"  # it has an attribute
}
