"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import Dim, TensorType, Type, extent_dtype
from relaylang.ops.record import Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import distinct_axes, fits, need_entries
from relaylang.ops.traits import Trait

R = OpPattern.COMM_REDUCE


@attrs_class("relay.attrs.ReduceAttrs")
class ReduceAttrs:
    axis: Ints | None = None
    keepdims: bool = False
    exclude: bool = False


@attrs_class("relay.attrs.ArgReduceAttrs")
class ArgReduceAttrs:
    axis: Ints | None = None
    keepdims: bool = False
    select_last_index: bool = False
    exclude: bool = False


@attrs_class("relay.attrs.VarianceAttrs")
class VarianceAttrs(ReduceAttrs):
    unbiased: bool = False


def taken_axes(rank: int, axis: Ints | None, exclude: bool) -> list[int]:
    """The axes that a reduction takes away, in order: all of them where none is named."""
    if not axis:
        return list(range(rank))
    named = {a % rank for a in axis}
    return [i for i in range(rank) if (i in named) != exclude]


def reduced_axes(rank: int, axis: Ints | None, exclude: bool, ctx: RelationContext) -> list[int]:
    """As `taken_axes`, but reports a wrong `axis`."""
    distinct_axes(axis or (), rank, ctx)
    return taken_axes(rank, axis, exclude)


def reduced_shape(ty: TensorType, attrs: AnyValue, ctx: RelationContext) -> tuple[Dim, ...]:
    axes = set(reduced_axes(len(ty.shape), attrs.axis, attrs.exclude, ctx))
    if attrs.keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(ty.shape))
    return tuple(d for i, d in enumerate(ty.shape) if i not in axes)


def reduce(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The result has its element type, without the axes of axis, or with 1 for each where
    keepdims. No axis means all of them; exclude means the others.
    """
    ty = tensor(types, 0, ctx)
    return TensorType(reduced_shape(ty, attrs, ctx), ty.dtype)


def arg_reduce(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of at least one dimension. The result has the type of its first extent: int32, unless the text gives
    another as `10i64`. It lacks the axes of axis, or has 1 for each where keepdims. No axis means all of them; exclude
    means the others.
    """
    ty = tensor(types, 0, ctx)
    if not ty.shape:
        ctx.fail("must have at least one dimension", 0)
    shape = reduced_shape(ty, attrs, ctx)
    away = [ty.shape[i] for i in reduced_axes(len(ty.shape), attrs.axis, attrs.exclude, ctx)]
    need_entries(away, shape, ty, 0, ctx, " along the reduced axes")
    return TensorType(shape, extent_dtype(ty.shape[0]))


def variance(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of at least one dimension, mean of the same rank. The result has the data's element type, without the
    axes of axis, or with 1 for each where keepdims. No axis means all of them; exclude means the others.
    """
    data, mean = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if not data.shape:
        ctx.fail("must have at least one dimension", 0)
    if len(mean.shape) != len(data.shape):
        ctx.fail(f"must have as many dimensions as the data `{data!r}`, not `{mean!r}`", 1)
    for i, (extent, own) in enumerate(zip(data.shape, mean.shape)):
        if not fits(own, extent):
            ctx.fail(f"has the extent {own} along axis {i}, but the data `{data!r}` has {extent}", 1)
    return TensorType(reduced_shape(data, attrs, ctx), data.dtype)


OPS = (
    Op(
        "all",
        ("data",),
        ReduceAttrs,
        reduce,
        R,
        4,
        doc="Whether all elements along axes hold.",
        traits={Trait.REDUCTION},
    ),
    Op(
        "any",
        ("data",),
        ReduceAttrs,
        reduce,
        R,
        4,
        doc="Whether some element along axes holds.",
        traits={Trait.REDUCTION},
    ),
    Op("max", ("data",), ReduceAttrs, reduce, R, 4, doc="The largest element along axes.", traits={Trait.REDUCTION}),
    Op("mean", ("data",), ReduceAttrs, reduce, R, 4, doc="The mean along axes.", traits={Trait.REDUCTION}),
    Op("min", ("data",), ReduceAttrs, reduce, R, 4, doc="The smallest element along axes.", traits={Trait.REDUCTION}),
    Op("prod", ("data",), ReduceAttrs, reduce, R, 4, doc="The product along axes.", traits={Trait.REDUCTION}),
    Op("sum", ("data",), ReduceAttrs, reduce, R, 4, doc="The sum along axes.", traits={Trait.REDUCTION}),
    Op(
        "argmax",
        ("data",),
        ArgReduceAttrs,
        arg_reduce,
        R,
        4,
        doc="The index of the largest element along axes.",
        traits={Trait.REDUCTION, Trait.ARG_REDUCTION},
        python="(data, axis=None, keepdims=False, exclude=False, select_last_index=False)",
    ),
    Op(
        "argmin",
        ("data",),
        ArgReduceAttrs,
        arg_reduce,
        R,
        4,
        doc="The index of the smallest element along axes.",
        traits={Trait.REDUCTION, Trait.ARG_REDUCTION},
        python="(data, axis=None, keepdims=False, exclude=False, select_last_index=False)",
    ),
    Op(
        "variance",
        ("data", "mean"),
        VarianceAttrs,
        variance,
        R,
        4,
        doc="The variance along axes, around a given mean.",
        takes="number same",
        traits={Trait.PARTS_BROADCAST, Trait.REDUCTION},
        python="(data, axis=None, keepdims=False, exclude=False, unbiased=False, with_mean=None)",
    ),
)
