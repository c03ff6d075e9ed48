"""Products of real operands with int8 weights.

TFLite rounds the operand of each element of the batch to int8 first, with a scale that it finds then. It adds up whole
numbers, and multiplies the sums by both scales.

Source: TensorFlow Lite, kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr


@dataclass(frozen=True)
class Matrix:
    """Weights (units, depth): real ones, or int8 with a scale for each unit."""

    weights: Expr
    scales: np.ndarray | None = None


def is_hybrid(n: Node, index: int) -> bool:
    """Whether an operand is weights of 8 bits or less, and the layer's result is real.

    TFLite takes the bits of uint8 for int8 here, and has no zero points of such weights.
    """
    return n.q(index) is not None and n.q_out() is None and n.b.dtype(n.x(index)) in ("int8", "uint8", "int4")


def matrix(n: Node, indices: Sequence[int]) -> Matrix:
    """The operands, matrices of one depth, below each other."""
    b = n.b
    parts = [n.x(i) for i in indices]
    if not all(is_hybrid(n, i) for i in indices):
        return Matrix(b.concat([n.real(i) for i in indices], 0))
    scales = [np.broadcast_to(q.scales, b.arrays.reserve(b.extent(x, 0))) for i, x in zip(indices, parts) if (q := n.q(i)) is not None]
    return Matrix(b.cast(b.concat(parts, 0), "int8"), np.concatenate(scales))


def product(n: Node, x: Expr, by: Matrix, asymmetric: bool | None = None) -> Expr:
    """Rows (batch, depth) with each unit: (batch, units)."""
    b = n.b
    units = b.extent(by.weights, 0)
    if by.scales is None:  # a product of a first state, which is a constant, has the form of the others
        return b.unfolded("nn.dense", x, by.weights, units=units)
    wanted = n.options.get("asymmetric_quantize_inputs") if asymmetric is None else asymmetric
    integers, scale = rounded(b, x, bool(wanted))
    sums = b.op("nn.dense", integers, b.cast(by.weights, b.dtype(integers)), units=units, out_dtype="int32")
    return scaled(b, sums, scale, by.scales)


def scaled(b: Builder, sums: Expr, scale: Expr, weights: np.ndarray) -> Expr:
    """Sums of whole numbers as real ones: `scale` is of the batch, `weights` of the last axis or of all."""
    factor = b.op("multiply", scale, b.const(weights.astype("float32")))
    return b.op("multiply", b.cast(sums, "float32"), factor)


def rounded(b: Builder, x: Expr, asymmetric: bool) -> tuple[Expr, Expr]:
    """Whole numbers for real ones, of each element of the batch, less their zero point; and the scales, (batch, 1 ...)."""
    if b.dtype(x) != "float32":
        raise Unsupported(f"its operand is of {b.dtype(x)}, its weights are quantised")
    axes = tuple(range(1, b.rank(x)))
    return _asymmetric(b, x, axes) if asymmetric else _symmetric(b, x, axes)


def _symmetric(b: Builder, x: Expr, axes: tuple[int, ...]) -> tuple[Expr, Expr]:
    """From -127 to 127, which is the largest magnitude."""
    most = b.op("max", b.op("abs", x), axis=axes, keepdims=True)
    none = b.op("equal", most, 0.0)
    most = b.op("where", none, b.const(127.0, "float32"), most)
    steps = b.op("round", b.op("multiply", x, b.op("divide", b.const(127.0, "float32"), most)))
    return b.cast(b.op("clip", steps, a_min=-127.0, a_max=127.0), "int8"), b.op("divide", most, 127.0)


def _asymmetric(b: Builder, x: Expr, axes: tuple[int, ...]) -> tuple[Expr, Expr]:
    """From -128 to 127 for the smallest to the largest element, 0 among them. The zero point is a whole number."""
    low, high = (b.cast(b.op(op, x, axis=axes, keepdims=True), "float64") for op in ("min", "max"))
    low, high = b.op("minimum", low, 0.0), b.op("maximum", high, 0.0)
    none = b.op("equal", low, high)
    width = b.op("where", none, b.const(255.0, "float64"), b.op("subtract", high, low))
    scale = b.op("divide", width, 255.0)
    below, above = b.op("divide", low, scale), b.op("divide", high, scale)
    least, most = b.const(-128.0, "float64"), b.const(127.0, "float64")
    # Of the two zero points that the ends give, the one with the smaller terms.
    nearer = b.op("less", b.op("subtract", 128.0, below), b.op("add", b.op("abs", above), 127.0))
    zero = b.op("where", nearer, b.op("subtract", least, below), b.op("subtract", most, above))
    zero = b.op("clip", b.op("round", zero), a_min=-128.0, a_max=127.0)
    zero = b.cast(b.op("where", none, b.const(0.0, "float64"), zero), "float32")
    factor = b.cast(scale, "float32")
    steps = b.op("round", b.op("add", zero, b.op("multiply", x, b.op("divide", b.const(1.0, "float32"), factor))))
    steps = b.op("subtract", b.op("clip", steps, a_min=-128.0, a_max=127.0), zero)
    return b.cast(steps, "int16"), factor


__all__ = ["Matrix", "is_hybrid", "matrix", "product", "rounded", "scaled"]
