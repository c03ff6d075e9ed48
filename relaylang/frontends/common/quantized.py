"""Whole numbers with scales and zero points, as models of all formats have them.

Where scales and zero points are constants, the `qnn` operators are built, which passes and accelerators recognise.
Elsewhere the same is built from element-wise operators.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.ir import Expr

#: The element types of qnn.quantize's result, of qnn.dequantize's operand, and of qnn.requantize's result.
_QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32")
_REQUANTIZED = ("int8", "uint8", "int16", "int32")


def limits(dtype: str) -> tuple[float, float]:
    """The smallest and the largest number of an element type."""
    kind = np.dtype(dtype)
    info = ml_dtypes.finfo(kind) if "float" in dtype else ml_dtypes.iinfo(kind)
    return float(info.min), float(info.max)


def round_even(b: Builder, x: Expr) -> Expr:
    """To the nearest whole numbers, halves to the even one. (`round` takes halves away from zero.)"""
    half = b.op("equal", b.op("abs", b.op("subtract", x, b.op("trunc", x))), 0.5)
    even = b.op("multiply", b.op("round", b.op("multiply", x, 0.5)), 2.0)
    return b.op("where", half, even, b.op("round", x))


def held(b: Builder, x: Expr, dtype: str) -> Expr:
    """Numbers as an element type, those out of its range at the ends of the range."""
    low, high = limits(dtype)
    return b.cast(b.op("clip", x, a_min=low, a_max=high), dtype)


def along(b: Builder, values: Expr, axis: int, rank: int) -> Expr:
    """A vector along an axis of a tensor of so many axes; a tensor of one element as a scalar."""
    if b.rank(values) == 0 or b.shape(values) == (1,):
        return b.scalar(values)
    if b.rank(values) != 1:
        return values
    return b.unsqueeze(values, [i for i in range(rank) if i != axis % rank])


def _constant(b: Builder, x: Expr | None, dtype: str) -> Expr | None:
    """A scale or zero point as a constant operand of the qnn dialect: a scalar or a vector. None where it is neither."""
    value = b.value(x)
    if value is None or value.ndim > 1:
        return None
    return b.const((value.reshape(()) if value.size == 1 else value).astype(dtype))


def zero_like(b: Builder, zero: Expr | None, dtype: str) -> Expr:
    """The zero point, 0 where there is none."""
    return zero if zero is not None else b.const(0, dtype)


def quantize(b: Builder, x: Expr, scale: Expr, zero: Expr | None, dtype: str, axis: int = -1) -> Expr:
    """`round(x / scale) + zero` in an element type. `scale` and `zero` are scalars, vectors along `axis`, or broadcast.

    Constants are rounded to the even number at once. qnn.quantize takes halves away from zero.
    """
    zero = zero_like(b, zero, dtype)
    s, z = _constant(b, scale, "float32"), _constant(b, zero, "int32")
    qnn = b.value(x) is None and b.dtype(x) == b.dtype(scale) == "float32" and dtype in _QUANTIZED
    if qnn and s is not None and z is not None:
        return b.op("qnn.quantize", x, s, z, out_dtype=dtype, axis=axis if b.rank(s) or b.rank(z) else -1)
    return _quantize_reals(b, x, scale, zero, dtype, axis)


def _quantize_reals(b: Builder, x: Expr, scale: Expr, zero: Expr, dtype: str, axis: int) -> Expr:
    real, rank = b.cast(x, "float32"), b.rank(x)
    divided = b.op("divide", real, along(b, b.cast(scale, "float32"), axis, rank))
    shift = along(b, b.cast(zero, "float32"), axis, rank)
    return held(b, b.op("add", round_even(b, divided), shift), dtype)


def dequantize(b: Builder, x: Expr, scale: Expr, zero: Expr | None, axis: int = -1, dtype: str = "float32") -> Expr:
    """`(x - zero) * scale` as float32 or float16."""
    kind = b.dtype(x)
    zero = zero_like(b, zero, kind)
    s, z = _constant(b, scale, "float32"), _constant(b, zero, "int32")
    if s is not None and z is not None and kind in _QUANTIZED and dtype in ("float32", "float16"):
        return b.op("qnn.dequantize", x, s, z, out_dtype=dtype, axis=axis if b.rank(s) or b.rank(z) else -1)
    wide, rank = "float32" if "float" in kind else "int32", b.rank(x)
    shifted = b.op("subtract", b.cast(x, wide), along(b, b.cast(zero, wide), axis, rank))
    real = b.op("multiply", b.cast(shifted, "float32"), along(b, b.cast(scale, "float32"), axis, rank))
    return b.cast(real, dtype)


def requantize(b: Builder, sums: Expr, scale: Expr, out_scale: Expr, out_zero: Expr | None, dtype: str, axis: int = 1) -> Expr:
    """Sums of int32 at a scale (a scalar, or a vector along `axis`) as numbers at another scale and zero point.

    qnn.requantize rounds in fixed point and takes halves upwards; the form for computed scales rounds to even.
    """
    zero = zero_like(b, out_zero, dtype)
    s = _constant(b, scale, "float32")
    t, z = _constant(b, out_scale, "float32"), _constant(b, zero, "int32")
    if s is not None and t is not None and z is not None and not b.rank(t) and not b.rank(z) and dtype in _REQUANTIZED:
        none = b.const(0, "int32")
        return b.op("qnn.requantize", sums, s, none, t, z, axis=axis if b.rank(s) else -1, out_dtype=dtype)
    rank = b.rank(sums)
    ratio = b.op("divide", along(b, b.cast(scale, "float32"), axis, rank), along(b, b.cast(out_scale, "float32"), axis, rank))
    real = b.op("multiply", b.cast(sums, "float32"), ratio)
    shift = along(b, b.cast(zero, "float32"), axis, rank)
    return held(b, b.op("add", round_even(b, real), shift), dtype)


def less_zero(b: Builder, x: Expr, zero: Expr | None, axis: int = 0) -> Expr:
    """The numbers without their zero point, as int32."""
    wide = b.cast(x, "int32")
    value = b.value(zero)
    if zero is None or (value is not None and not value.any()):
        return wide
    return b.op("subtract", wide, along(b, b.cast(zero, "int32"), axis, b.rank(x)))


__all__ = [
    "along",
    "dequantize",
    "held",
    "less_zero",
    "limits",
    "quantize",
    "requantize",
    "round_even",
    "zero_like",
]
