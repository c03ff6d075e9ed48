"""Operators on each element: functions, activations, arithmetic, comparisons, element types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.quantized import dequantize as dequantized
from relaylang.frontends.common.quantized import quantize as quantized
from relaylang.frontends.common.quantized import round_even
from relaylang.frontends.coreml.node import Node, like_axis
from relaylang.ir import Expr


def shifted(b: Builder, x: Expr, epsilon: float) -> Expr:
    """`x + epsilon`, where the element type holds such a small number as a normal one."""
    kind = np.dtype(b.dtype(x))
    return b.op("add", x, epsilon) if kind.kind == "f" and abs(epsilon) >= np.finfo(kind).tiny else x


def by_element(name: str, **attrs: float) -> Callable[..., Any]:
    def convert(n: Node, x: Expr) -> Any:
        """An operator of each element."""
        return n.b.op(name, x, **attrs)

    return convert


def inverse(n: Node, x: Expr, epsilon: float = 1e-4) -> Any:
    return n.b.op("divide", n.b.const(1.0, n.b.dtype(x)), shifted(n.b, x, epsilon))


def log(n: Node, x: Expr, epsilon: float = 1e-45) -> Any:
    return n.b.op("log", shifted(n.b, x, epsilon))


def rsqrt(n: Node, x: Expr, epsilon: float = 1e-12) -> Any:
    return n.b.op("rsqrt", shifted(n.b, x, epsilon))


def exp2(n: Node, x: Expr) -> Any:
    return n.b.op("exp", n.b.op("multiply", x, math.log(2.0)))


def square(n: Node, x: Expr) -> Any:
    return n.b.op("multiply", x, x)


def rounded(n: Node, x: Expr) -> Any:
    return round_even(n.b, x)


def clip(n: Node, x: Expr, alpha: float, beta: float) -> Any:
    low, high = (None if math.isinf(v) else v for v in (alpha, beta))
    if "int" in n.b.dtype(x):
        low, high = (None if v is None else int(v) for v in (low, high))
    return nn.clip(n.b, x, low, high)


def threshold(n: Node, x: Expr, alpha: float) -> Any:
    """Never below a number."""
    return n.b.op("maximum", x, alpha)


def cast(n: Node, x: Expr, dtype: str) -> Any:
    """The values as another element type. Real numbers lose their fractions."""
    kind = {"fp16": "float16", "fp32": "float32", "fp64": "float64"}.get(dtype, dtype)
    if kind not in ("float16", "float32", "float64", "bool") and not kind.startswith(("int", "uint")):
        raise Unsupported(f"the element type {dtype[:40]}")
    return n.b.cast(x, kind)


# ---- activations


def clamped_relu(n: Node, x: Expr, alpha: float, beta: float) -> Any:
    """`alpha * x` below zero, never above `beta`."""
    return n.b.op("minimum", n.b.op("nn.leaky_relu", x, alpha=alpha), beta)


def elu(n: Node, x: Expr, alpha: float = 1.0) -> Any:
    return nn.elu(n.b, x, alpha)


def gelu(n: Node, x: Expr, mode: str = "EXACT") -> Any:
    if mode == "SIGMOID_APPROXIMATION":
        return nn.swish(n.b, x, 1.702)
    if mode not in ("EXACT", "TANH_APPROXIMATION"):
        raise Malformed(f"its mode is {mode[:40]!r}")
    return nn.gelu(n.b, x, mode == "TANH_APPROXIMATION")


def leaky_relu(n: Node, x: Expr, alpha: float = 0.01) -> Any:
    return n.b.op("nn.leaky_relu", x, alpha=alpha)


def linear_activation(n: Node, x: Expr, alpha: float, beta: float = 0.0) -> Any:
    scaled = x if alpha == 1 else n.b.op("multiply", x, alpha)
    return scaled if beta == 0 else n.b.op("add", scaled, beta)


def prelu(n: Node, x: Expr, alpha: Expr) -> Any:
    return nn.prelu(n.b, x, like_axis(n.b, x, alpha, 1))


def scaled_tanh(n: Node, x: Expr, alpha: float, beta: float) -> Any:
    return n.b.op("multiply", n.b.op("tanh", n.b.op("multiply", x, beta)), alpha)


def sigmoid_hard(n: Node, x: Expr, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return nn.hard_sigmoid(n.b, x, alpha, beta)


def softplus(n: Node, x: Expr) -> Any:
    return nn.softplus(n.b, x)


def softplus_parametric(n: Node, x: Expr, alpha: Expr, beta: Expr) -> Any:
    """`alpha * log(1 + exp(beta * x))`, of each channel."""
    b = n.b
    return b.op("multiply", nn.softplus(b, b.op("multiply", x, like_axis(b, x, beta, 1))), like_axis(b, x, alpha, 1))


def softsign(n: Node, x: Expr) -> Any:
    return nn.softsign(n.b, x)


def silu(n: Node, x: Expr) -> Any:
    return nn.swish(n.b, x)


def softmax(n: Node, x: Expr, axis: int = -1) -> Any:
    return n.b.op("nn.softmax", x, axis=int(axis % n.b.rank(x)))


def thresholded_relu(n: Node, x: Expr, alpha: float) -> Any:
    b = n.b
    return b.op("where", b.op("greater_equal", x, alpha), x, b.const(0.0, b.dtype(x)))


# ---- two operands


def _pair(name: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, y: Expr) -> Any:
        """An operator of two operands that broadcast."""
        return n.b.op(name, *n.alike(x, y))

    return convert


def select(n: Node, cond: Expr, a: Expr, b: Expr) -> Any:
    return n.b.op("where", n.b.cast(cond, "bool"), *n.alike(a, b))


# ---- whole numbers


def quantize(n: Node, input: Expr, scale: Expr, output_dtype: str, zero_point: Expr | None = None, axis: int = -1) -> Any:
    if output_dtype not in ("int8", "uint8", "int4", "uint4"):
        raise Malformed(f"its element type is {output_dtype[:40]!r}")
    if "4" in output_dtype:
        raise Unsupported("Relay has no tensors of four bits")
    return quantized(n.b, input, scale, zero_point, output_dtype, axis)


def dequantize(n: Node, input: Expr, scale: Expr, zero_point: Expr | None = None, axis: int = -1) -> Any:
    return dequantized(n.b, input, scale, zero_point, axis, n.b.dtype(scale))


#: Names that Relay has, too.
_SAME = "abs acos asin atan atanh ceil cos cosh erf exp floor logical_not sigmoid sign sin sinh sqrt tan tanh"
_PAIRS = """
add add; equal equal; floor_div floor_divide; greater greater; greater_equal greater_equal; less less; less_equal less_equal;
logical_and logical_and; logical_or logical_or; logical_xor logical_xor; maximum maximum; minimum minimum; mod floor_mod;
mul multiply; not_equal not_equal; pow power; real_div divide; sub subtract
"""

RULES = (
    *[Rule(name, by_element(name)) for name in _SAME.split()],
    *[Rule(name, _pair(op)) for name, op in (row.split() for row in _PAIRS.replace("\n", " ").split(";"))],
    Rule("cast", cast),
    Rule("clamped_relu", clamped_relu),
    Rule("clip", clip),
    Rule("dequantize", dequantize),
    Rule("elu", elu),
    Rule("exp2", exp2),
    Rule("gelu", gelu),
    Rule("inverse", inverse),
    Rule("leaky_relu", leaky_relu),
    Rule("linear_activation", linear_activation),
    Rule("log", log),
    Rule("prelu", prelu),
    Rule("quantize", quantize),
    Rule("relu", by_element("nn.relu")),
    Rule("relu6", by_element("clip", a_min=0.0, a_max=6.0)),
    Rule("round", rounded),
    Rule("rsqrt", rsqrt),
    Rule("scaled_tanh", scaled_tanh),
    Rule("select", select),
    Rule("sigmoid_hard", sigmoid_hard),
    Rule("silu", silu),
    Rule("softmax", softmax),
    Rule("softplus", softplus),
    Rule("softplus_parametric", softplus_parametric),
    Rule("softsign", softsign),
    Rule("square", square),
    Rule("threshold", threshold),
    Rule("thresholded_relu", thresholded_relu),
)
