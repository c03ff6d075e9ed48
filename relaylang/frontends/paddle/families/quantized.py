"""Whole numbers with scales: a scale of PaddlePaddle is that of the largest number, such as 127."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, quantized
from relaylang.frontends.paddle.node import Node
from relaylang.ir import Expr


def _largest(n: Node) -> float:
    """The largest whole number: 127 for 8 bits."""
    bits = n.int("bit_length", 8)
    if bits != 8:
        raise Unsupported(f"its whole numbers have {bits} bits")
    return 2.0 ** (bits - 1) - 1


def _scale(n: Node, scale: Expr) -> Expr:
    """The size of one step, a scalar or a vector."""
    b = n.b
    step = b.op("divide", b.cast(scale, "float32"), _largest(n))
    return b.scalar(step) if b.shape(step) == (1,) else step


def _axis(n: Node, x: Expr) -> int:
    axis = n.int("quant_axis", -1)
    return int(axis % n.b.rank(x)) if axis >= 0 else -1


def quantize_linear(n: Node, x: Expr, scale: Expr, zero: Expr | None = None, accum: Any = None, state: Any = None) -> Any:
    return [quantized.quantize(n.b, x, _scale(n, scale), None, "int8", _axis(n, x))]


def dequantize_linear(n: Node, x: Expr, scale: Expr, zero: Expr | None = None, accum: Any = None, state: Any = None) -> Any:
    b, value = n.b, n.b.value(x)
    if "float" in b.dtype(x):
        if value is not None and (np.abs(value) <= 128).all() and (value == np.round(value)).all():
            x = b.const(value.astype("int8"))
        else:
            step = quantized.along(b, _scale(n, scale), _axis(n, x), b.rank(x))
            return [b.op("multiply", x, step)]
    return [quantized.dequantize(b, x, _scale(n, scale), None, _axis(n, x))]


def _both(n: Node, x: Expr, scale: Expr, axis: int) -> list[Expr]:
    """Numbers rounded to those that the scale has. By `round_type` 1, they are held within the scale."""
    step = _scale(n, scale)
    ints = quantized.quantize(n.b, x, step, None, "int8", axis)
    if n.int("round_type", 1) == 1:
        ints = n.b.op("maximum", ints, n.b.const(-127, "int8"))
    return [quantized.dequantize(n.b, ints, step, None, axis), scale]


def fake_channels(n: Node, x: Expr) -> Any:
    b, axis = n.b, n.axis(x, "quant_axis", 0)
    if b.rank(x) < 2:
        raise Malformed(f"its operand has {int(b.rank(x))} axes")
    return _both(n, x, b.op("max", b.op("abs", x), axis=[i for i in range(b.rank(x)) if i != axis]), axis)


RULES = (
    Rule("dequantize_linear", dequantize_linear),
    Rule("fake_channel_wise_quantize_dequantize_abs_max", fake_channels),
    Rule(
        "fake_quantize_dequantize_abs_max",
        lambda n, x: _both(n, x, n.b.op("max", n.b.op("abs", x), axis=list(range(n.b.rank(x)))), -1),
    ),
    Rule("fake_quantize_dequantize_moving_average_abs_max", lambda n, x, scale, *others: _both(n, x, scale, -1)),
    Rule("quantize_linear", quantize_linear),
)
