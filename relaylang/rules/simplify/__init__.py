"""SimplifyExpr's rules of each operator, in the order in which they are tried.

A rule gets a typed call whose operands are simplified, and the call's type. It returns an expression of that type, or
None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ops import Trait, having
from relaylang.rules.simplify import numbers, shapes
from relaylang.rules.simplify.numbers import Rule

RULES: Mapping[str, tuple[Rule, ...]] = {
    **dict.fromkeys(having(Trait.BINARY), (numbers.fill_operand,)),
    "add": (numbers.identity, numbers.double, numbers.fill_operand, numbers.binomial, numbers.constants_together),
    "subtract": (numbers.identity, numbers.fill_operand),
    "multiply": (numbers.identity, numbers.fill_operand, numbers.constants_together, numbers.product_of_sum),
    "divide": (numbers.identity, numbers.fill_operand, numbers.rsqrt),
    **dict.fromkeys(("reshape", "contrib_reverse_reshape"), (shapes.reshape,)),
    "transpose": (shapes.transpose,),
    "layout_transform": (shapes.layout,),
    "cast": (shapes.cast,),
    "clip": (shapes.clip,),
    **dict.fromkeys(having(Trait.LIKE), (shapes.like,)),
    **dict.fromkeys((*having(Trait.ARG_REDUCTION), "argsort"), (shapes.of_dequantized,)),
}

__all__ = ["RULES", "Rule"]
