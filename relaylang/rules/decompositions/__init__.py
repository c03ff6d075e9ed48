"""Operators composed of other operators: transposed convolutions, blocks, layouts, losses, quantised products.

`relaylang.passes.decompose` replaces each by the operators that compute it. Backends and
exporters without code of their own for the operator then take these like any others. Integers come out the same to the bit.
"""

from relaylang.rules.decompositions import conv_transpose, layouts, qnn, tensor
from relaylang.rules.decompositions.common import Decomposition

RULES: dict[str, Decomposition] = {**conv_transpose.RULES, **qnn.RULES, **tensor.RULES, **layouts.RULES}

__all__ = ["RULES", "Decomposition"]
