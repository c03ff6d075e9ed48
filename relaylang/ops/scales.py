"""Checks that quantised operators share: scales, zero points, and the element types of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import Dim, TensorType, Type
from relaylang.ops.record import RelationContext, tensor
from relaylang.ops.shapes import fits, need_scalar

#: The element types of results, the commonest first.
QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32")
REQUANTIZED = ("int8", "uint8", "int16", "int32")
REALS = ("float32", "float16")
CONV_RESULTS = ("int32", "int16", "int64")
DENSE_RESULTS = ("int32", "int64")
MATMUL_RESULTS = ("int32",)


def out_dtype(attrs: AnyValue, dtypes: Sequence[str], ctx: RelationContext) -> str:
    dtype: str | None = attrs.out_dtype
    if dtype not in dtypes:
        shown = "given" if dtype is None else f"{dtype!r}"
        ctx.fail(f"out_dtype must be {' or '.join(dtypes)}{', but is not ' if dtype is None else ', not '}{shown}")
    assert dtype is not None
    return dtype


def per_channel(types: Sequence[Type], arg: int, dtype: str, extent: Dim | None, ctx: RelationContext) -> None:
    """A scale or zero point: a scalar, or a vector of one for each channel."""
    ty = tensor(types, arg, ctx)
    if ty.dtype != dtype:
        ctx.fail(f"must be of {dtype}, not {ty.dtype}", arg)
    if ty.shape:
        if extent is None:
            ctx.fail(f"must be a scalar, not `{ty!r}`: the number of channels is not known", arg)
        assert extent is not None
        ctx.unify(arg, TensorType((extent,), dtype))


def one_or_each(types: Sequence[Type], arg: int, extent: Dim, what: str, ctx: RelationContext) -> None:
    """Scales or zero points: a scalar, or a vector of one number or of one for each channel."""
    ty = tensor(types, arg, ctx)
    if len(ty.shape) > 1:
        ctx.fail(f"must be a scalar or a vector, not `{ty!r}`", arg)
    if ty.shape and not fits(ty.shape[0], extent):
        ctx.fail(f"has {ty.shape[0]} {what} for {extent} channels", arg)


def channel_extent(data: TensorType, axis: int, needed: bool, ctx: RelationContext) -> Dim:
    """The extent along the axis that scales and zero points are counted along."""
    rank = len(data.shape)
    at = axis + rank if axis < 0 and rank else max(axis, 0) if rank == 0 else axis
    if needed and not 0 <= at < max(rank, 1):
        ctx.fail(f"axis={axis} is out of range for `{data!r}`")
    return data.shape[at] if rank and 0 <= at < rank else 1


def is_scalar(types: Sequence[Type], arg: int) -> bool:
    ty = types[arg]
    return isinstance(ty, TensorType) and not ty.shape


def single(types: Sequence[Type], arg: int) -> bool:
    ty = types[arg]
    return isinstance(ty, TensorType) and all(d == 1 for d in ty.shape)


def scalar_scales(types: Sequence[Type], ctx: RelationContext) -> None:
    """Arguments 1 to 4 are a scale and a zero point of the input, and of the output."""
    for arg, dtype in ((1, "float32"), (2, "int32"), (3, "float32"), (4, "int32")):
        need_scalar(types, arg, dtype, ctx)


__all__ = [
    "CONV_RESULTS",
    "MATMUL_RESULTS",
    "QUANTIZED",
    "REALS",
    "REQUANTIZED",
    "DENSE_RESULTS",
    "channel_extent",
    "is_scalar",
    "one_or_each",
    "out_dtype",
    "per_channel",
    "scalar_scales",
    "single",
]
