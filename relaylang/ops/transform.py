"""Operators that change the shape of tensors or the order of their elements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from relaylang.ir.types import Dim, TensorType, Type
from relaylang.ops.create import InitOpAttrs, given_shape
from relaylang.ops.record import AnyAttr, Integer, Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.relations import check_same_size, equal_dtypes, tensor_identity
from relaylang.ops.reshape import reshape, reshape_like, reverse_reshape
from relaylang.ops.shapes import (
    broadcast_shapes,
    change_layout,
    distinct_axes,
    fits,
    mul_dim,
    need_int,
    need_rank,
    norm_axis,
    same_dim,
    shape_text,
)
from relaylang.ops.traits import Trait

B, I = OpPattern.BROADCAST, OpPattern.INJECTIVE


@attrs_class("relay.attrs.ReshapeAttrs")
class ReshapeAttrs:
    newshape: Ints
    allowzero: bool = False


@attrs_class("relay.attrs.ReshapeLikeAttrs")
class ReshapeLikeAttrs:
    lhs_begin: int = 0
    lhs_end: Integer | None = None
    rhs_begin: int = 0
    rhs_end: Integer | None = None


@attrs_class("relay.attrs.TransposeAttrs")
class TransposeAttrs:
    axes: Ints | None


@attrs_class("relay.attrs.ExpandDimsAttrs")
class ExpandDimsAttrs:
    axis: int
    num_newaxis: int = 1


@attrs_class("relay.attrs.SqueezeAttrs")
class SqueezeAttrs:
    axis: Ints | None = None


@attrs_class("relay.attrs.RepeatAttrs")
class RepeatAttrs:
    repeats: Integer
    axis: Integer | None = None


@attrs_class("relay.attrs.TileAttrs")
class TileAttrs:
    reps: Ints


@attrs_class("relay.attrs.ReverseAttrs")
class ReverseAttrs:
    axis: Integer | None = None


@attrs_class("relay.attrs.ReverseSequenceAttrs")
class ReverseSequenceAttrs:
    seq_axis: Integer = 1
    batch_axis: Integer = 0


@attrs_class("relay.attrs.LayoutTransformAttrs")
class LayoutTransformAttrs:
    src_layout: str
    dst_layout: str


@attrs_class("relay.attrs.AutoSchedulerLayoutTransformAttrs")
class AutoSchedulerLayoutTransformAttrs(LayoutTransformAttrs):
    pass


@attrs_class("relay.attrs.MetaScheduleLayoutTransformAttrs")
class MetaScheduleLayoutTransformAttrs:
    index_map: AnyAttr


SCHEDULED = re.compile(r"(\d+)([A-Za-z]+)")


def transpose(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The result has its element type and its extents in the order of axes, by default
    reversed.
    """
    data = tensor(types, 0, ctx)
    rank = len(data.shape)
    if attrs.axes is None:
        return TensorType(data.shape[::-1], data.dtype)
    if len(attrs.axes) != rank:
        ctx.fail(f"axes={list(attrs.axes)} must name each of the {rank} dimensions of `{data!r}`")
    axes = distinct_axes(attrs.axes, rank, ctx, "axes", whole=True)
    return TensorType([data.shape[a] for a in axes], data.dtype)


def expand_dims(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; the result has its element type and num_newaxis extents of 1 put in at axis."""
    data = tensor(types, 0, ctx)
    if attrs.num_newaxis < 0:
        ctx.fail(f"num_newaxis={attrs.num_newaxis} must not be negative")
    at = norm_axis(attrs.axis, len(data.shape) + 1, ctx)
    return TensorType((*data.shape[:at], *[1] * attrs.num_newaxis, *data.shape[at:]), data.dtype)


def squeeze(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The result has its element type, without the axes of axis, which have the extent 1. By
    default all axes of extent 1 go.
    """
    data = tensor(types, 0, ctx)
    if attrs.axis is None:
        if not all(isinstance(d, int) for d in data.shape):
            ctx.fail(f"the attribute axis must be given for `{data!r}`, which has unknown extents")
        return TensorType([d for d in data.shape if d != 1], data.dtype)
    away = distinct_axes(attrs.axis, len(data.shape), ctx)
    for a in sorted(away):
        size = data.shape[a]
        # A size is taken to be 1 where its difference to 1 is taken to be 0. Its kernel checks this.
        if not same_dim(size, 1) and (not isinstance(size, int) or size - 1):
            ctx.fail(f"axis {a} of `{data!r}` has the extent {size}; only 1 can be squeezed away", 0)
    return TensorType([d for i, d in enumerate(data.shape) if i not in away], data.dtype)


def repeat(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; the result has its element type and repeats times its extent along axis."""
    data = tensor(types, 0, ctx)
    if attrs.repeats < 1:
        ctx.fail(f"repeats={attrs.repeats} must be positive")
    if attrs.axis is None:
        ctx.fail("the attribute axis must be given")
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    shape = list(data.shape)
    shape[axis] = mul_dim(shape[axis], attrs.repeats)
    return TensorType(shape, data.dtype)


def tile(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The result has its element type and each extent times its number in reps. The shorter of
    the two is filled up with 1 from the left.
    """
    data = tensor(types, 0, ctx)
    if any(r < 1 for r in attrs.reps):
        ctx.fail(f"reps={list(attrs.reps)} must be positive")
    rank = max(len(data.shape), len(attrs.reps))
    shape = (*[1] * (rank - len(data.shape)), *data.shape)
    reps = (*[1] * (rank - len(attrs.reps)), *attrs.reps)
    return TensorType([mul_dim(d, r) for d, r in zip(shape, reps)], data.dtype)


def reverse(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; axis is one of its axes. The result has the data's type."""
    data = tensor(types, 0, ctx)
    if attrs.axis is None:
        ctx.fail("the attribute axis must be given")
    norm_axis(attrs.axis, len(data.shape), ctx)
    return data


def reverse_sequence(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, seq_lengths a vector of whole numbers of the extent along batch_axis. The result has the
    data's type.
    """
    data, lengths = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_rank(lengths, 1, 1, ctx)
    need_int(lengths, 1, ctx)
    batch = norm_axis(attrs.batch_axis, len(data.shape), ctx, "batch_axis")
    if norm_axis(attrs.seq_axis, len(data.shape), ctx, "seq_axis") == batch:
        ctx.fail(f"seq_axis={attrs.seq_axis} is the batch_axis, too")
    if not same_dim(lengths.shape[0], data.shape[batch]):
        ctx.fail(f"has {lengths.shape[0]} lengths, but the data `{data!r}` has {data.shape[batch]} sequences", 1)
    return data


def broadcast_to(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data that broadcasts to the attribute shape, which the result has, with the data's element type."""
    data = tensor(types, 0, ctx)
    shape = given_shape(attrs, ctx)
    must_broadcast_to(data.shape, shape, ctx)
    return TensorType(shape, data.dtype)


def must_broadcast_to(source: Sequence[Dim], target: Sequence[Dim], ctx: RelationContext) -> None:
    if len(source) > len(target) or not all(map(fits, source[::-1], target[::-1])):
        broadcast_shapes(source, target, ctx, 0)
        ctx.fail(f"cannot be broadcast from {shape_text(source)} to {shape_text(target)}", 0)


def broadcast_to_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data and broadcast_type of one element type. The data broadcasts to the shape of broadcast_type, whose type
    the result has.
    """
    data, like = equal_dtypes(types, ctx)
    must_broadcast_to(data.shape, like.shape, ctx)
    return like


def collapse_sum_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data and collapse_type of one element type; collapse_type broadcasts to the data's shape, and the result
    has its type.
    """
    data, like = equal_dtypes(types, ctx)
    must_broadcast_to(like.shape, data.shape, ctx)
    return like


def layout_transform(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data in src_layout. The result has its extents in dst_layout, those of a split axis (NCHW4c) divided, and
    the data's element type.
    """
    data = tensor(types, 0, ctx)
    return TensorType(change_layout(data.shape, attrs.src_layout, attrs.dst_layout, ctx), data.dtype)


def scheduled_layout(layout: str, ctx: RelationContext) -> list[tuple[str, int]]:
    """The axes of a layout as a scheduler writes it, `1N16h3x4c`: an extent before each axis' name."""
    pairs = SCHEDULED.findall(layout)
    if "".join(f"{n}{a}" for n, a in pairs) != layout:
        ctx.fail(f"`{layout}` is not a layout with an extent before each axis")
    return [(axis, int(extent)) for extent, axis in pairs]


def auto_scheduler_layout_transform(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; the result has the extents that dst_layout names (`1N16h3x4c`) and the data's element
    type.
    """
    data = tensor(types, 0, ctx)
    result = TensorType([n for _, n in scheduled_layout(attrs.dst_layout, ctx)], data.dtype)
    check_same_size(data.shape, result.shape, ctx)
    return result


def meta_schedule_layout_transform(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of known extents. From arrays of indices, `index_map(i, j, ...)` gives the indices at which each
    element goes, and so the result's extents. Its element type is the data's.
    """
    data = tensor(types, 0, ctx)
    if not all(isinstance(d, int) for d in data.shape):
        ctx.fail(f"must have known extents, not `{data!r}`", 0)
    if not callable(attrs.index_map):
        ctx.fail("index_map must be a function of the indices; one in TVM's loop language (TIR) cannot be read")
    grid = np.ogrid[tuple(slice(d) for d in data.shape)]
    return TensorType([int(np.max(at)) + 1 for at in attrs.index_map(*grid)], data.dtype)


DATA = ("data",)

OPS = (
    Op("reshape", DATA, ReshapeAttrs, reshape, I, 3, doc="The elements in another shape.", traits={Trait.RESHAPE}),
    Op(
        "contrib_reverse_reshape",
        DATA,
        ReshapeAttrs,
        reverse_reshape,
        I,
        10,
        doc="The elements in another shape, whose numbers are read from the right.",
        traits={Trait.RESHAPE},
        python="reverse_reshape(data, newshape)",
    ),
    Op(
        "reshape_like",
        ("data", "shape_like"),
        ReshapeLikeAttrs,
        reshape_like,
        I,
        3,
        doc="The elements in another tensor's shape.",
        traits={Trait.RESHAPE, Trait.LIKE},
        of="reshape",
    ),
    Op("transpose", DATA, TransposeAttrs, transpose, I, 3, doc="The axes in another order.", python="(..., axes=None)"),
    Op(
        "expand_dims",
        DATA,
        ExpandDimsAttrs,
        expand_dims,
        B,
        1,
        doc="Axes of extent 1 put in.",
        traits={Trait.RESHAPE},
    ),
    Op("squeeze", DATA, SqueezeAttrs, squeeze, I, 3, doc="Axes of extent 1 taken away.", traits={Trait.RESHAPE}),
    Op("repeat", DATA, RepeatAttrs, repeat, B, 3, doc="Each entry along an axis, repeated.", python="(..., axis)"),
    Op("tile", DATA, TileAttrs, tile, B, 3, doc="The data repeated as a whole along axes."),
    Op(
        "reverse",
        DATA,
        ReverseAttrs,
        reverse,
        I,
        3,
        doc="The entries along an axis in reverse order.",
        python="(..., axis)",
    ),
    Op(
        "reverse_sequence",
        ("data", "seq_lengths"),
        ReverseSequenceAttrs,
        reverse_sequence,
        I,
        3,
        doc="The first entries of each sequence in reverse order.",
        takes="tensor integer",
    ),
    Op(
        "broadcast_to",
        DATA,
        InitOpAttrs,
        broadcast_to,
        B,
        4,
        doc="The data repeated along axes of extent 1 to a shape.",
        python="(data, shape)",
    ),
    Op(
        "broadcast_to_like",
        ("data", "broadcast_type"),
        None,
        broadcast_to_like,
        B,
        10,
        doc="The data repeated along axes of extent 1 to another tensor's shape.",
        traits={Trait.LIKE},
        of="broadcast_to",
    ),
    Op(
        "collapse_sum_like",
        ("data", "collapse_type"),
        None,
        collapse_sum_like,
        OpPattern.COMM_REDUCE,
        10,
        doc="The sums along broadcast axes, to another tensor's shape.",
        traits={Trait.PARTS_BROADCAST, Trait.LIKE},
        of="collapse_sum_to",
    ),
    Op("layout_transform", DATA, LayoutTransformAttrs, layout_transform, I, 5, doc="The data in another layout."),
    Op(
        "auto_scheduler_layout_transform",
        DATA,
        AutoSchedulerLayoutTransformAttrs,
        auto_scheduler_layout_transform,
        I,
        5,
        doc="The data in another layout, as a scheduler names layouts.",
        python=None,
        example="fn (%x: Tensor[(1, 16, 8, 8), float32]) { "
        'auto_scheduler_layout_transform(%x, src_layout="1N16C8H8W", dst_layout="1N8H8W16c") }',
    ),
    Op(
        "meta_schedule_layout_transform",
        DATA,
        MetaScheduleLayoutTransformAttrs,
        meta_schedule_layout_transform,
        I,
        5,
        doc="The elements at the places that an index map gives.",
        python=None,
        example="""\
op = OPS["meta_schedule_layout_transform"]
Call(op, [var("x", shape=(2, 3))], make_attrs(op.attrs, {"index_map": lambda i, j: (j, i)}))""",
    ),
    Op(
        "invert_permutation",
        DATA,
        None,
        tensor_identity,
        I,
        1,
        doc="For each number, where it stands in the permutation.",
        takes="integer[_]",
    ),
)
