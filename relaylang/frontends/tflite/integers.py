"""Layers on stored integers, where Relay's quantised operators give TFLite's numbers or those next to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr


def is_whole(n: Node, *indices: int) -> bool:
    """Whether the operands and the result are of one type of 8 bits, each with one scale."""
    found = [n.q_out(), *[n.q(i) for i in indices]]
    if any(q is None or not q.per_tensor for q in found):
        return False
    return n.out_dtype() in ("int8", "uint8") and all(n.b.dtype(n.x(i)) == n.out_dtype() for i in indices)


def scales(n: Node, *indices: int) -> list[Expr]:
    """The scales and zero points of operands, then the result's, one behind the other."""
    found = [*[n.q(i) for i in indices], n.q_out()]
    return [x for q in found if q is not None for x in n.pair(q)]


def binary(op: str, quantised: str) -> Callable[[Node], Any]:
    """An operator of two operands."""

    def convert(n: Node) -> Any:
        if is_whole(n, 0, 1):
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
    made: Expr = b.op("qnn.requantize", x, one, b.const(zero, "int32"), *n.pair(q), axis=axis, out_dtype=n.out_dtype())
    return made


def added(n: Node, axes: tuple[int, ...], keep: bool, mean: bool) -> Expr:
    """The sum or the mean of the operand's elements along axes."""
    b, q = n.b, n.q(0)
    assert q is not None
    count = int(np.prod([b.extent(n.x(0), a) for a in axes]))
    sums = b.op("sum", b.cast(n.x(0), "int32"), axis=axes, keepdims=keep)
    scale = float(q.scales[0]) / count if mean else float(q.scales[0])
    return requantized(n, sums, scale, int(q.zero_points[0]) * count)


__all__ = ["added", "binary", "extreme", "is_whole", "requantized", "scales", "unary"]
