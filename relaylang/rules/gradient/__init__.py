"""Each operator's gradient: how a change of its operands changes its result, carried backwards.

`RULES[name](call, grad)` gives the gradient of each operand. It gives None for an operand without one (whole numbers,
shapes). A rule raises `NoGradient` for a call that it does not cover.
"""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.rules.gradient import nn, shape, tensor
from relaylang.rules.gradient.common import Gradient, Grads, NoGradient

RULES: Mapping[str, Gradient] = {**tensor.RULES, **shape.RULES, **nn.RULES}

__all__ = ["RULES", "Gradient", "Grads", "NoGradient"]
