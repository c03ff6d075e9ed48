"""Sorting and searching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, TupleType, Type
from relaylang.ops.create import given_dtype
from relaylang.ops.record import Integer, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import norm_axis, same_dim

OPAQUE = OpPattern.OPAQUE


@attrs_class("relay.attrs.ArgsortAttrs")
class ArgsortAttrs:
    axis: int = -1
    is_ascend: bool = True
    dtype: str | None = None


@attrs_class("relay.attrs.TopkAttrs")
class TopkAttrs:
    k: Integer | None
    axis: int = -1
    ret_type: str = "both"
    is_ascend: bool = False
    dtype: str | None = None


@attrs_class("relay.attrs.SearchSortedAttrs")
class SearchSortedAttrs:
    right: bool = False
    dtype: str = "int32"


def argsort(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; the result has that shape and the attribute dtype."""
    return TensorType(sort(types, attrs, ctx).shape, given_dtype(attrs, ctx))


def sort(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> TensorType:
    """Takes data of any shape, axis one of its axes; the result has the data's type."""
    data = tensor(types, 0, ctx)
    norm_axis(attrs.axis, len(data.shape), ctx)
    return data


def topk(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The result is values, indices, or a tuple of both where ret_type is "both". Both have
    the data's shape with k along axis, or the whole extent where k < 1. Values have the data's element type, indices
    the attribute dtype.
    """
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    if attrs.k is None:
        ctx.fail("the attribute k must be given")
    shape = list(data.shape)
    if attrs.k >= 1:
        extent = shape[axis]
        if isinstance(extent, int) and attrs.k > extent:
            ctx.fail(f"k={attrs.k} is more than the extent {extent} along axis {axis}", 0)
        shape[axis] = attrs.k
    values = TensorType(shape, data.dtype)
    if attrs.ret_type == "values":
        return values
    indices = TensorType(shape, given_dtype(attrs, ctx))
    if attrs.ret_type == "indices":
        return indices
    if attrs.ret_type != "both":
        ctx.fail(f'ret_type={attrs.ret_type!r} must be "both", "values" or "indices"')
    return TupleType((values, indices))


def searchsorted(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes sorted_sequence (n,), or (..., n) with the same leading extents as values (..., m). The result has the
    shape of values and the attribute dtype.
    """
    haystack, values = both = tensor(types, 0, ctx), tensor(types, 1, ctx)
    for arg, ty in enumerate(both):
        if not ty.shape:
            ctx.fail("must have at least one dimension", arg)
    if len(haystack.shape) > 1:
        if len(haystack.shape) != len(values.shape):
            ctx.fail(f"must have as many dimensions as `{haystack!r}`, not `{values!r}`", 1)
        for i, (a, b) in enumerate(zip(haystack.shape[:-1], values.shape[:-1])):
            if not same_dim(a, b):
                ctx.fail(f"has the extent {b} along axis {i}, but the sorted sequence `{haystack!r}` has {a}", 1)
    return TensorType(values.shape, attrs.dtype)


OPS = (
    Op(
        "sort",
        ("data",),
        ArgsortAttrs,
        sort,
        OPAQUE,
        6,
        doc="The elements sorted along an axis.",
        python="(data, axis=-1, is_ascend=1)",
    ),
    Op(
        "argsort",
        ("data",),
        ArgsortAttrs,
        argsort,
        OPAQUE,
        6,
        doc="The indices that sort along an axis.",
        python="(..., is_ascend=1, dtype='int32')",
    ),
    Op(
        "topk",
        ("data",),
        TopkAttrs,
        topk,
        OPAQUE,
        6,
        doc="The k largest (or smallest) elements along an axis, their indices, or both.",
        results=lambda args, attrs: 2 if attrs.ret_type == "both" else 0,
        python="(..., k=1, dtype='int32')",
    ),
    Op(
        "searchsorted",
        ("sorted_sequence", "values"),
        SearchSortedAttrs,
        searchsorted,
        OPAQUE,
        6,
        doc="Where each value belongs in a sorted sequence.",
    ),
)
