"""Legalize: calls that every target can do without.

A rule gets a call's attributes, its operands, and the types of the operands and of the result. It returns an expression
of the result's type, or None to leave the call as it is. `register_legalize` puts users' rules on top of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.ir import Call, Expr, TensorType, Type

#: `(attributes, operands, types of the operands and of the result)` to an expression, or None.
Rule = Callable[[Any, Sequence[Expr], Sequence["Type | None"]], "Expr | None"]


def _clip(attrs: Any, inputs: Sequence[Expr], types: Sequence[Type | None]) -> Expr | None:
    """Drop the clip of a requantized tensor to the range of its element type."""
    data, ty = inputs[0], types[0]
    if not isinstance(data, Call) or getattr(data.op, "name", "") != "qnn.requantize" or not isinstance(ty, TensorType):
        return None
    if not ty.dtype.startswith(("int", "uint")):
        return None
    limits = np.iinfo(ty.dtype)
    return data if attrs.a_min <= limits.min and attrs.a_max >= limits.max else None


RULES: Mapping[str, Rule] = {"clip": _clip}
