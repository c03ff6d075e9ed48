"""Tensors of whole numbers with a scale and a zero point, and their change to another scale and zero point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr
from relaylang.ir.typed import typed_constant
from relaylang.ops import make_attrs
from relaylang.ops.build import op_call


@dataclass(frozen=True)
class Affine:
    """`(ints - zero) * scale` as real numbers; a vector of scales or zero points lies along `axis`."""

    ints: Expr
    scale: np.ndarray
    zero: np.ndarray
    dtype: str
    axis: int = -1

    @property
    def plain(self) -> bool:
        return self.scale.ndim == 0 and self.zero.ndim == 0

    @property
    def narrow(self) -> bool:
        return self.dtype in ("int8", "uint8")


@dataclass(frozen=True)
class Wanted:
    """The scale and zero point of the quantize that a value flows to."""

    scale: np.ndarray
    zero: np.ndarray
    dtype: str


#: `(call, operands, wanted)` to the result in whole numbers, or None.
Rule = Callable[[Call, "list[Affine | None]", "Wanted | None"], "Affine | None"]


def in_dtype(wanted: Wanted | None, dtype: str) -> Wanted | None:
    """The same numbers in another element type of as many bits; None for another number of bits."""
    if wanted is None or wanted.dtype == dtype:
        return wanted
    if {wanted.dtype, dtype} != {"int8", "uint8"}:
        return None
    return Wanted(wanted.scale, wanted.zero + (128 if dtype == "uint8" else -128), dtype)


def one(values: np.ndarray) -> np.ndarray:
    """The one number of a vector whose entries are all equal; other vectors stay."""
    return values.reshape(-1)[0].reshape(()) if values.size and np.all(values == values.reshape(-1)[0]) else values


def affine(ints: Expr, scale: Any, zero: Any, dtype: str, axis: int = -1) -> Affine:
    return Affine(ints, one(np.asarray(scale, np.float32)), one(np.asarray(zero)), dtype, axis)


def const(value: Any, dtype: str) -> Constant:
    """A typed constant of an element type."""
    return typed_constant(np.asarray(value).astype(dtype), dtype)


def again(call: Call, args: Sequence[Expr], **changed: Any) -> Call:
    """A call with other operands, and some attributes changed."""
    if call.attrs is None:
        return Call(call.op, args, None, (), call.span)
    cls = type(call.attrs)
    values = {name: getattr(call.attrs, name) for name in cls.schema}
    return Call(call.op, args, make_attrs(cls, {**values, **changed}), (), call.span)


def parts(x: Affine) -> list[Expr]:
    """Scale and zero point as operands of the qnn dialect."""
    return [const(x.scale, "float32"), const(x.zero, "int32")]


def at(x: Affine, scale: np.ndarray, zero: np.ndarray, dtype: str) -> Affine:
    """The same at another scale and zero point (single numbers), by qnn.requantize where they are others."""
    if x.dtype == dtype and x.plain and float(x.scale) == float(scale) and int(x.zero) == int(zero):
        return x
    if x.dtype == "uint16":
        x = replace(x, ints=op_call("cast", [x.ints], dtype="int32"), dtype="int32")
    target = affine(x.ints, scale, zero, dtype)
    requantized = op_call("qnn.requantize", [x.ints, *parts(x), *parts(target)], axis=x.axis, out_dtype=dtype)
    return replace(target, ints=requantized)


def at_channels(x: Affine, scale: np.ndarray, zero: np.ndarray, dtype: str, axis: int, rank: int) -> Affine | None:
    """The same at scales or zero points along an axis. None where x has its own along another axis."""
    axis %= rank
    if not x.plain and x.axis % rank != axis:
        return None
    target = Affine(x.ints, scale, zero, dtype, axis)
    if x.dtype == dtype and all(np.all(mine == other) for mine, other in ((x.scale, scale), (x.zero, zero))):
        return replace(target, scale=x.scale, zero=x.zero)
    if dtype == "int32" and zero.any():
        return None  # the sum with the zero point may be out of range
    ints = x.ints if x.dtype != "uint16" else op_call("cast", [x.ints], dtype="int32")
    ratio = x.scale.astype("float64") / scale
    if not (ratio.min() > np.finfo("float32").tiny and ratio.max() < np.finfo("float32").max):
        return None
    of_one = [const(ratio, "float32"), const(x.zero, "int32"), const(1, "float32"), const(0, "int32")]
    requantized = op_call("qnn.requantize", [ints, *of_one], axis=axis, out_dtype="int32")
    if dtype != "int32":
        info = np.iinfo(dtype)
        shift = spread(zero, axis, rank)
        # held to the range first, so that the sum is in that of int32
        requantized = op_call("clip", [requantized], a_min=float(info.min - int(zero.max())), a_max=float(info.max - int(zero.min())))
        requantized = op_call("add", [requantized, const(shift, "int32")]) if zero.any() else requantized
        requantized = op_call("cast", [op_call("clip", [requantized], a_min=float(info.min), a_max=float(info.max))], dtype=dtype)
    return replace(target, ints=requantized)


def spread(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector along an axis of a tensor of so many dimensions; a single number as it is."""
    return values.reshape([-1 if i == axis % rank else 1 for i in range(rank)]) if values.ndim else values


def less_zero(x: Affine, rank: int, bits: int = 0) -> Affine:
    """The tensor as int32 with zero point 0, `2**bits` times as fine."""
    wide = x.ints if x.dtype == "int32" else op_call("cast", [x.ints], dtype="int32")
    if x.zero.any():
        wide = op_call("subtract", [wide, const(spread(x.zero, x.axis, rank), "int32")])
    if bits:
        wide = op_call("multiply", [wide, const(1 << bits, "int32")])
    return Affine(wide, (x.scale / np.float32(1 << bits)).astype("float32"), np.asarray(0), "int32", x.axis)


def together(given: Sequence[Affine]) -> list[Affine] | None:
    """All at one scale as int32, so fine that hardly anything is lost; None where that cannot be."""
    if not given or not all(x.plain and float(x.scale) > 0 for x in given):
        return None
    wide = [float(x.scale) for x in given if x.dtype == "int32"]
    scale = max(wide) if wide else min(float(x.scale) for x in given) / 256
    bits = {"int8": 9, "uint8": 9, "int16": 17, "uint16": 17}
    if any(float(x.scale) / scale * 2.0 ** bits.get(x.dtype, 0) >= 2**30 for x in given):
        return None
    return [at(x, np.asarray(scale, "float32"), np.asarray(0), "int32") for x in given]


def quantized_constant(c: Constant, x: Affine) -> Affine | None:
    """A float constant in the element type of x, at a scale of its own."""
    if c.data.dtype.kind != "f" or not c.data.size or not np.isfinite(c.data).all() or not x.narrow:
        return None
    most = float(np.abs(c.data).max()) or 1.0
    zero = 128 if x.dtype == "uint8" else 0
    scale = np.float32(most / 127)
    if scale < np.finfo("float32").tiny:
        return None
    held = np.clip(np.round(c.data.astype("float64") / float(scale)), -127, 127) + zero
    return affine(const(held, x.dtype), scale, zero, x.dtype)


def quantized_at(c: Constant, x: Affine, rank: int) -> Constant | None:
    """A float constant at the scale and zero point of x. None where it is out of the range of the element type."""
    if c.data.dtype.kind != "f" or not np.isfinite(c.data).all():
        return None
    scale, zero = (spread(v, x.axis, rank).astype("float64") for v in (x.scale, x.zero))
    try:
        with np.errstate(all="ignore"):
            held = np.round(c.data.astype("float64") / scale) + zero
    except ValueError:
        return None
    info = np.iinfo(x.dtype)
    return const(held, x.dtype) if held.size and held.min() >= info.min and held.max() <= info.max else None


def real(x: Affine, dtype: str, rank: int) -> Expr:
    """The real numbers of a tensor of whole ones. Sums of 64 bits, which qnn.dequantize does not take, have the zero point 0."""
    if x.dtype == "int64":
        return op_call("multiply", [op_call("cast", [x.ints], dtype=dtype), const(spread(x.scale, x.axis, rank), dtype)])
    return op_call("qnn.dequantize", [x.ints, *parts(x)], axis=x.axis, out_dtype=dtype)
