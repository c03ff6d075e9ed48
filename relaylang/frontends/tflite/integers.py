"""Layers on stored integers, where Relay's quantised operators give TFLite's numbers or those next to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr
from relaylang.rules.qnn_lowering.numbers import fixed_point

#: Types of stored numbers: those of 8 bits, and all that arithmetic on two operands takes.
BYTES = ("int8", "uint8")
STORED = (*BYTES, "int16")
#: The most numbers of int16 whose sums int32 holds.
_MOST_WIDE = 1 << 15


def is_whole(n: Node, *indices: int, dtypes: Sequence[str] = BYTES) -> bool:
    """Whether the operands and the result are of one of these types, each with one scale."""
    quantizations = [n.q_out(), *[n.q(i) for i in indices]]
    if any(q is None or not q.per_tensor for q in quantizations):
        return False
    return n.out_dtype() in dtypes and all(n.b.dtype(n.x(i)) == n.out_dtype() for i in indices)


def scales(n: Node, *indices: int) -> list[Expr]:
    """The scales and zero points of operands, then the result's, one behind the other."""
    quantizations = [*[n.q(i) for i in indices], n.q_out()]
    return [x for q in quantizations if q is not None for x in n.pair(q)]


def binary(op: str, quantised: str) -> Callable[[Node], Any]:
    """An operator of two operands."""

    def convert(n: Node) -> Any:
        if is_whole(n, 0, 1, dtypes=STORED):
            return n.held(n.b.op(quantised, n.x(0), n.x(1), *scales(n, 0, 1)))
        return n.result(n.b.op(op, n.real(0), n.real(1)))

    return convert


def unary(op: str, quantised: str) -> Callable[[Node], Any]:
    """An operator of one operand."""

    def convert(n: Node) -> Any:
        if is_whole(n, 0):
            return n.b.op(quantised, n.x(0), *scales(n, 0))
        return n.result(n.b.op(op, n.real(0)))

    return convert


def extreme(op: str) -> Callable[[Node], Any]:
    """The larger or the smaller of two operands, which are mostly stored as the result is."""

    def convert(n: Node) -> Any:
        if n.q_out() is not None and n.same_scales(0) and n.same_scales(1):
            return n.b.op(op, n.x(0), n.x(1))
        return n.result(n.b.op(op, n.real(0), n.real(1)))

    return convert


def requantized(n: Node, x: Expr, scale: np.ndarray | float, zero: int = 0, axis: int = -1) -> Expr:
    """Integers at a scale (of all, or of each index of `axis`) as the result is stored."""
    b, q = n.b, n.q_out()
    assert q is not None
    scale = np.asarray(scale, np.float32)
    one = b.const(scale.reshape(()) if scale.size == 1 else scale)
    rescaled: Expr = b.op("qnn.requantize", x, one, b.const(zero, "int32"), *n.pair(q), axis=axis, out_dtype=n.out_dtype())
    return rescaled


def shifted(n: Node, sums: Expr, scale: np.ndarray) -> Expr:
    """int64 sums at a scale (of all, or of each index of the last axis) as the result is stored.

    As TensorFlow Lite's kernels of int16 do: a product with a number of 15 bits, and a shift that rounds halves up.
    """
    b, q = n.b, n.q_out()
    assert q is not None
    significand, exponent = fixed_point(scale.astype(np.float64) / float(q.scales[0]))
    factor = np.where(significand < 0x7FFF << 16, (significand + (1 << 15)) >> 16, 0x7FFF)
    shift = 15 - exponent
    by, half, down = (b.const(v if v.size > 1 else v.reshape(()), "int64") for v in (factor, 1 << shift - 1, shift))
    rescaled = b.op("right_shift", b.op("add", b.op("multiply", sums, by), half), down)
    limits = np.iinfo(n.out_dtype())
    return b.cast(b.op("clip", rescaled, a_min=float(limits.min), a_max=float(limits.max)), n.out_dtype())


def added(n: Node, axes: tuple[int, ...], keep: bool, mean: bool) -> Expr | None:
    """The sum or the mean of the operand's elements along axes. None where int32 does not hold the sums of stored numbers."""
    b, q = n.b, n.q(0)
    if q is None or not is_whole(n, 0, dtypes=STORED):
        return None
    count = int(np.prod([b.extent(n.x(0), a) for a in axes]))
    if n.out_dtype() == "int16" and count > _MOST_WIDE:
        return None
    sums = b.op("sum", b.cast(n.x(0), "int32"), axis=axes, keepdims=keep)
    scale = float(q.scales[0]) / count if mean else float(q.scales[0])
    return requantized(n, sums, scale, int(q.zero_points[0]) * count)


__all__ = ["STORED", "added", "binary", "extreme", "is_whole", "requantized", "scales", "shifted", "unary"]
