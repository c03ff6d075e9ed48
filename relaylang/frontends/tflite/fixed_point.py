"""Arithmetic in fixed point as TensorFlow Lite's reference kernels do it: every product is rounded twice.

Sigmoid and tanh of int16 are tables of all 65 536 results.

Source: gemmlowp, fixedpoint/fixedpoint.h, and TensorFlow Lite, kernels/internal/common.h.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from relaylang.frontends.common import Builder
from relaylang.ir import Expr
from relaylang.rules.qnn_lowering.numbers import fixed_point

#: The numbers of int16 that a table has results for.
_WIDE = 1 << 16
_MOST = (1 << 15) - 1
#: exp(-2**e) of int16 without integer bits, for e = -2 ... 4.
_POWERS = {e: round(np.exp(-(2.0**e)) * (1 << 15)) for e in range(-2, 5)}


def multiplied(b: Builder, x: Expr, scale: np.ndarray | np.floating | float) -> Expr:
    """int32 numbers times positive reals (one, or one for each index of the last axis), as int32.

    The product with 31 bits of the real is rounded, halves upwards; then the shift, halves away from zero.
    """
    significand, shift = fixed_point(np.asarray(scale, np.float64))
    significand, shift = (np.where(shift < -31, 0, v) for v in (significand, shift))
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    wide = b.cast(x, "int64")
    if left.any():
        wide = b.op("left_shift", wide, b.const(left, "int64"))
    return b.cast(rounded_shift(b, product_high(b, wide, b.const(significand, "int64")), right), "int32")


def product_high(b: Builder, x: Expr, y: Expr) -> Expr:
    """`x * y / 2**31` of int64, halves upwards."""
    return b.op("right_shift", b.op("add", b.op("multiply", x, y), 1 << 30), 31)


def rounded_shift(b: Builder, x: Expr, bits: np.ndarray | int | Expr) -> Expr:
    """`x / 2**bits`, halves away from zero. Sums with half of the divisor fit the element type."""
    if not isinstance(bits, Expr):
        if not np.any(bits):
            return x
        bits = b.const(bits, b.dtype(x))
    half = b.op("right_shift", b.op("left_shift", b.const(1, b.dtype(x)), bits), 1)
    sign = b.op("multiply", b.cast(b.op("less", x, 0), b.dtype(x)), b.op("minimum", bits, 1))
    return b.op("right_shift", b.op("subtract", b.op("add", x, half), sign), bits)


def inverse_root(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """`1 / sqrt(x)` of positive int64 below 2**31, as a significand of 31 bits and a shift to the right."""
    one = b.const(1, "int64")
    large = b.cast(b.op("greater_equal", x, 1 << 29), "int64")
    near = b.op("right_shift", x, b.op("multiply", large, 2))
    pairs = b.op("subtract", one, one)
    for bits in range(27, 0, -2):
        pairs = b.op("add", pairs, b.cast(b.op("less", near, 1 << bits), "int64"))
    near = b.op("left_shift", near, b.op("multiply", pairs, 2))
    shift = b.op("subtract", b.op("add", large, 11), pairs)
    half = b.op("right_shift", b.op("add", b.op("right_shift", near, 1), 1), 1)
    root = b.op("add", b.op("multiply", x, 0), 1 << 28)
    three = b.const((1 << 28) + (1 << 27), "int64")
    for _ in range(5):  # Newton's iteration, with three bits before the point
        cube = _raised(b, product_high(b, product_high(b, root, root), root), 6)
        root = _raised(b, b.op("subtract", product_high(b, three, root), product_high(b, half, cube)), 3)
    root = product_high(b, root, b.const(1518500250, "int64"))
    root = b.op("left_shift", root, b.op("maximum", b.op("negative", shift), 0))
    is_one = b.op("less_equal", x, 1)
    root = b.op("where", is_one, b.const((1 << 31) - 1, "int64"), root)
    return root, b.op("where", is_one, b.const(0, "int64"), b.op("maximum", shift, 0))


def _raised(b: Builder, x: Expr, bits: int) -> Expr:
    """`x * 2**bits`, held to the range of int32."""
    raised: Expr = b.op("maximum", b.op("minimum", b.op("left_shift", x, bits), (1 << 31) - 1), -(1 << 31))
    return raised


def looked_up(b: Builder, table: Expr, x: Expr) -> Expr:
    """The entries of a table of all int16 for stored numbers, as int32."""
    return b.cast(b.op("take", table, b.op("add", b.cast(x, "int32"), _WIDE // 2), axis=0, mode="clip"), "int32")


# ---- tables


@cache
def sigmoid_table() -> np.ndarray:
    """sigmoid(i / 2**12) * 2**15 as int16, for i = -32768 ... 32767."""
    x = _all()
    less = _raise(_newton(_exp(np.where(x > 0, _negative(x), x), 3)), 1)  # 1 / (1 + exp(-|x|))
    return np.where(x == 0, 1 << 14, np.where(x > 0, less, _MOST - less)).astype(np.int16)


@cache
def tanh_table(integer_bits: int) -> np.ndarray:
    """tanh(i / 2**(15 - integer_bits)) * 2**15 as int16, for i = -32768 ... 32767."""
    x = _all()
    below = _exp(np.where(x < 0, x, _negative(x)), integer_bits + 1)
    positive = _raise(_newton(below) - (1 << 13), 2)
    return np.where(x == 0, 0, np.where(x < 0, _negative(positive), positive)).astype(np.int16)


def _all() -> np.ndarray:
    return np.arange(-32768, 32768, dtype=np.int64)


def _negative(x: np.ndarray) -> np.ndarray:
    """-x in 16 bits: the least number is its own."""
    return np.where(x == -_WIDE // 2, x, -x)


def _times(x: np.ndarray, y: np.ndarray | int) -> np.ndarray:
    """`x * y / 2**15`, halves upwards."""
    return np.minimum((x * y + (1 << 14)) >> 15, _MOST)


def _raise(x: np.ndarray, bits: int) -> np.ndarray:
    """`x * 2**bits`, held to the range of int16; a negative power rounds halves away from zero."""
    if bits < 0:
        return (x + (1 << -bits - 1) - (x < 0)) >> -bits
    return np.clip(x << bits, -_WIDE // 2, _MOST)


def _exp(x: np.ndarray, integer_bits: int) -> np.ndarray:
    """exp of numbers that are not positive, without integer bits: a polynomial below 1/4, and a product for each bit above."""
    quarter = 1 << 13 - integer_bits
    rest = (x & quarter - 1) - quarter
    near = _raise(rest, integer_bits) + (1 << 12)
    square = _times(near, near)
    cube, fourth = _times(square, near), _times(square, square)
    more = _raise(_times(_raise(fourth, -2) + cube, 10923) + square, -1)
    eighth = 28918  # exp(-1/8)
    result = np.clip(eighth + _times(near + more, eighth), -_WIDE // 2, _MOST)
    left = rest - x
    for power, factor in _POWERS.items():
        if integer_bits > power:
            result = np.where(left & (1 << 15 - integer_bits + power), _times(result, factor), result)
    if integer_bits > 5:
        result = np.where(x < -(1 << 20 - integer_bits), 0, result)
    return np.where(x == 0, _MOST, result)


def _newton(x: np.ndarray) -> np.ndarray:
    """`2 / (1 + x)` for x from 0 to 1, with two integer bits."""
    half = (x + _MOST + 1) >> 1
    inverse = 23130 + _times(half, -15420)  # 48/17 - 32/17 * half
    for _ in range(3):
        inverse = inverse + _raise(_times(inverse, (1 << 13) - _times(half, inverse)), 2)
    return inverse


__all__ = ["inverse_root", "looked_up", "multiplied", "product_high", "rounded_shift", "sigmoid_table", "tanh_table"]
