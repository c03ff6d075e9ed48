"""Rules by which calls of an operator become others: kept here by map and operator, used by the passes that legalize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.ir import Call, Expr, TensorType, Type

#: `(attributes, operands, types of the operands and of the result)` to an expression, or None.
Rule = Callable[[Any, Sequence[Expr], Sequence["Type | None"]], "Expr | None"]


def _clip(attrs: Any, inputs: Sequence[Expr], types: Sequence[Type | None]) -> Expr | None:
    """A clip of a requantized tensor to what its element type holds anyway is the tensor."""
    data, ty = inputs[0], types[0]
    if not isinstance(data, Call) or getattr(data.op, "name", "") != "qnn.requantize" or not isinstance(ty, TensorType):
        return None
    if not ty.dtype.startswith(("int", "uint")):
        return None
    limits = np.iinfo(ty.dtype)
    return data if attrs.a_min <= limits.min and attrs.a_max >= limits.max else None


#: Map's name -> operator -> rule.
MAPS: dict[str, dict[str, Rule]] = {"FTVMLegalize": {"clip": _clip}}


def register_legalize(op_name: str, rule: Rule | None = None, attr_name: str = "FTVMLegalize") -> Any:
    """Add a rule for an operator to a map; also a decorator."""

    def add(function: Rule) -> Rule:
        MAPS.setdefault(attr_name, {})[op_name] = function
        return function

    return add(rule) if rule is not None else add


def register_qnn_legalize(op_name: str, legal_op: Rule | None = None, level: int = 10) -> Any:
    """Add a rule for `relaylang.qnn.transform.Legalize`, before those that there are; also a decorator."""
    return register_legalize(op_name, legal_op, "FTVMQnnLegalize")


def register_qnn_canonicalize(op_name: str, legal_op: Rule | None = None, level: int = 10) -> Any:
    """Add a rule for `relaylang.qnn.transform.CanonicalizeOps`, before those that there are; also a decorator."""
    return register_legalize(op_name, legal_op, "FTVMQnnCanonicalize")
