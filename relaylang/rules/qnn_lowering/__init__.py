"""qnn.CanonicalizeOps: the plain integer operators of each operator of the qnn dialect.

A rule gets `Numbers`, a call, its operands' types and its result's type. It returns plain operators, or raises
`RelayError` (R0517). The result is exact to the integer. Scales and zero points are constants, or arrive when the
program runs. There is one for a tensor or one a channel. Functions of real numbers (tanh, exp, ...) are dequantized,
computed and quantized again; `relaylang.rules.qnn_legalize` has them as tables.
"""

from __future__ import annotations

from relaylang.rules.qnn_lowering.operators import RULES, Rule

__all__ = ["RULES", "Rule"]
