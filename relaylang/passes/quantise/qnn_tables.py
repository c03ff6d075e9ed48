"""qnn.Legalize: functions of 8-bit tensors as tables of their 256 values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType, Type
from relaylang.ops import get
from relaylang.passes.build import op_call
from relaylang.passes.quantise.legalize import Rule
from relaylang.passes.quantise.qnn_numbers import Compute, constant

FUNCTIONS = ("abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh")


def table_rules(compute: Compute) -> dict[str, Rule]:
    """Rules for the functions of the qnn dialect where scales and zero points are constants; `compute` makes the values,
    which are those that the interpreter computes."""
    return {f"qnn.{name}": _rule(f"qnn.{name}", compute) for name in FUNCTIONS}


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
