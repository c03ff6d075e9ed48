"""Fourier transforms. A tensor of complex numbers is a pair of tensors while it is converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.tflite.node import Complex, Node
from relaylang.ir import Expr

#: The matrix of a transform has the square of its places.
_LONGEST = 1 << 13


def _turns(b: Builder, size: int, used: int, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and negative sines (used, bins) of a transform of `size` places."""
    turn = 2 * np.pi * b.arrays.outer(b.arrays.arange(used), b.arrays.arange(bins)) / size
    return np.cos(turn).astype("float32"), -np.sin(turn).astype("float32")


def rfft2d(n: Node) -> Any:
    """The transform of the last two axes, cut or filled with zeros to a size; the last one keeps half of its bins."""
    b, x = n.b, n.x(0)
    rank = b.rank(x)
    height, width = n.ints(1, "the size of the transform", 2)
    if max(height, width) > _LONGEST:
        raise Unsupported(f"its transform has {max(height, width)} places, more than {_LONGEST}")
    rows, columns = min(b.extent(x, -2), height), min(b.extent(x, -1), width)
    x = b.slice(x, [0, 0], [rows, columns], [rank - 2, rank - 1])
    cosines, sines = _turns(b, width, columns, width // 2 + 1)
    real, imaginary = (matmul(b, x, b.const(m)) for m in (cosines, sines))
    cosines, sines = _turns(b, height, rows, height)
    order = [*range(rank - 2), rank - 1, rank - 2]

    def along(part: Expr, matrix: np.ndarray) -> Expr:
        return b.transpose(matmul(b, b.transpose(part, order), b.const(matrix)), order)

    first = b.op("subtract", along(real, cosines), along(imaginary, sines))
    return [Complex(first, b.op("add", along(imaginary, cosines), along(real, sines)))]


def _part(get: Callable[[Node, Complex], Any]) -> Callable[[Node], Any]:
    def convert(n: Node) -> Any:
        x = n.x(0)
        if not isinstance(x, Complex):
            raise Unsupported("its operand is not complex")
        return get(n, x)

    return convert


def _length(n: Node, x: Complex) -> Any:
    b = n.b
    return b.op("sqrt", b.op("add", *[b.op("multiply", part, part) for part in (x.real, x.imaginary)]))


RULES = (
    Rule("COMPLEX_ABS", _part(_length)),
    Rule("IMAG", _part(lambda n, x: x.imaginary)),
    Rule("REAL", _part(lambda n, x: x.real)),
    Rule("RFFT2D", rfft2d),
)
