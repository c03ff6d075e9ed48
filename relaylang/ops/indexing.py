"""Operators that select from tensors: by index, by range, by condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.extents import combine
from relaylang.ir.types import ANY, Dim, TensorType, Type, extent, extent_dtype
from relaylang.ops.record import Bounds, Integer, Ints, Op, OpPattern, RelationContext, String, attrs_class, tensor
from relaylang.ops.shapes import (
    add_dim,
    broadcast_shapes,
    div_dim,
    need_entries,
    need_int,
    need_rank,
    norm_axis,
    same_dim,
)
from relaylang.ops.traits import Trait

B, I, OPAQUE = OpPattern.BROADCAST, OpPattern.INJECTIVE, OpPattern.OPAQUE


INT64_MAX = 2**63 - 1
#: The largest extent. A bound beyond it is the end of the axis.
INT32_MAX = 2**31 - 1


@attrs_class("relay.attrs.TakeAttrs")
class TakeAttrs:
    batch_dims: Integer = 0
    axis: Integer | None = None
    mode: String = "clip"


@attrs_class("relay.attrs.GatherAttrs")
class GatherAttrs:
    axis: Integer | None = None


@attrs_class("relay.attrs.GatherNDAttrs")
class GatherNDAttrs:
    batch_dims: Integer = 0
    index_rank: Integer | None = None


@attrs_class("relay.attrs.StridedSliceAttrs")
class StridedSliceAttrs:
    begin: Bounds | None
    end: Bounds | None
    strides: Ints | None
    slice_mode: String = "end"
    axes: Ints | None


@attrs_class("relay.attrs.SliceLikeAttrs")
class SliceLikeAttrs:
    axes: Ints | None


@attrs_class("relay.attrs.SequenceMaskAttrs")
class SequenceMaskAttrs:
    mask_value: float = 0.0
    axis: int = 0


@attrs_class("relay.attrs.MatrixSetDiagAttrs")
class MatrixSetDiagAttrs:
    k1: int = 0
    k2: int = 0
    super_diag_right_align: bool = True
    sub_diag_right_align: bool = False


@attrs_class("relay.attrs.SlidingWindowAttrs")
class SlidingWindowAttrs:
    axis: int
    window_shape: Ints
    strides: Ints


def take(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any type, indices of whole numbers. The result is (data before axis, indices behind batch_dims,
    data behind axis). Without axis the data counts as a vector, and the result has the shape of indices. Its element
    type is the data's.
    """
    data, indices = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_int(indices, 1, ctx)
    if attrs.axis is None:
        need_entries(data.shape, indices.shape, data, 0, ctx)
        return TensorType(indices.shape, data.dtype)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    batch = attrs.batch_dims + len(indices.shape) if attrs.batch_dims < 0 else attrs.batch_dims
    if batch > len(indices.shape) or batch > axis or batch < 0:
        ctx.fail(f"batch_dims={attrs.batch_dims} must be at most axis={axis} and the indices' {len(indices.shape)}")
    for i in range(batch):
        if not same_dim(data.shape[i], indices.shape[i]):
            ctx.fail(f"has the batch extent {indices.shape[i]}, but the data `{data!r}` has {data.shape[i]}", 1)
    shape = (*data.shape[:axis], *indices.shape[batch:], *data.shape[axis + 1 :])
    need_entries(data.shape[axis : axis + 1], shape, data, 0, ctx)
    return TensorType(shape, data.dtype)


def gather(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data and indices of one rank and, but along axis, the same extents; indices of signed whole numbers. The
    result has the shape of indices and the data's element type.
    """
    data, indices = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if not indices.dtype.startswith("int"):
        ctx.fail(f"must be a tensor of signed whole numbers, not of {indices.dtype}", 1)
    if attrs.axis is None:
        ctx.fail("the attribute axis must be given")
    need_rank(indices, len(data.shape), 1, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    for i, (a, b) in enumerate(zip(data.shape, indices.shape)):
        if i != axis and not same_dim(a, b):
            ctx.fail(f"has the extent {b} along axis {i}, but the data `{data!r}` has {a}", 1)
    if indices.shape[axis] == 0:
        ctx.fail(f"must have at least one entry along axis {axis}", 1)
    need_entries(data.shape[axis : axis + 1], indices.shape, data, 0, ctx)
    return TensorType(indices.shape, data.dtype)


def index_depth(indices: TensorType, rank: int, ctx: RelationContext) -> int:
    depth = indices.shape[0] if indices.shape else ANY
    if not isinstance(depth, int):
        ctx.fail(f"must have a known first extent, not `{indices!r}`", 1)
    assert isinstance(depth, int)
    if depth > rank:
        ctx.fail(f"picks {depth} axes of a tensor that has {rank}", 1)
    return depth


def gather_nd(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (b..., d0, ...), indices (m, b..., i...) with batch_dims extents b. The result is (b..., i..., data
    behind the m indexed axes) of the data's element type.
    """
    data, indices = tensor(types, 0, ctx), tensor(types, 1, ctx)
    depth = index_depth(indices, len(data.shape), ctx)
    if depth + attrs.batch_dims > len(data.shape):
        ctx.fail(f"picks {depth} axes behind {attrs.batch_dims} of a tensor that has {len(data.shape)}", 1)
    if attrs.batch_dims >= min(len(indices.shape), len(data.shape) + 1):
        ctx.fail(f"batch_dims={attrs.batch_dims} does not fit data `{data!r}` and indices `{indices!r}`")
    for i in range(attrs.batch_dims):
        if not same_dim(data.shape[i], indices.shape[i + 1]):
            ctx.fail(f"has the batch extent {indices.shape[i + 1]}, but the data `{data!r}` has {data.shape[i]}", 1)
    behind = depth + attrs.batch_dims
    shape = (*indices.shape[1:], *data.shape[behind:])
    need_entries(data.shape[attrs.batch_dims : behind], shape, data, 0, ctx)
    return TensorType(shape, data.dtype)


def where(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes condition, x and y broadcast; x and y of one element type, which the result has."""
    condition, x, y = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 2, ctx)
    if x.dtype != y.dtype:
        ctx.fail(f"is of {y.dtype}, but x is of {x.dtype}", 2)
    both = broadcast_shapes(x.shape, y.shape, ctx, 2)
    return TensorType(broadcast_shapes(condition.shape, both, ctx, 0), x.dtype)


def strided_slice(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any type. The result has its element type and rank. Along each axis it has the entries from begin
    to end by strides; negative bounds count from the end. An extent `?` stays `?`, and so do those with names that are
    cut backwards.
    """
    data = tensor(types, 0, ctx)
    if attrs.begin is None or attrs.end is None:
        ctx.fail("the attributes begin and end must be given")
    begin, end = list(attrs.begin), list(attrs.end)
    strides = list(attrs.strides or ())
    rank = len(data.shape)
    if attrs.axes is not None:
        axes = [norm_axis(a, rank, ctx, "axes: axis") for a in attrs.axes]
        strides = strides if strides else [1] * len(axes)
        if not len(begin) == len(end) == len(axes) == len(strides):
            ctx.fail("begin, end, strides and axes must have as many numbers as each other")
    else:
        axes = list(range(rank))
        if max(len(begin), len(end), len(strides)) > rank:
            ctx.fail(f"begin, end and strides name more dimensions than `{data!r}` has")
    if 0 in strides and attrs.slice_mode != "size":
        ctx.fail(f"strides={list(attrs.strides)} must not be 0")
    shape = list(data.shape)
    for axis, first, last, stride in slice_entries(attrs, rank):
        size = shape[axis]
        if not isinstance(size, int):
            shape[axis] = _cut(size, first, last, stride)
            continue
        a, b = slice_bound(first, size, stride), slice_bound(last, size, stride)
        if (b - a) * stride < 0:
            ctx.fail(f"begin {first} and end {last} of axis {axis} (extent {size}) leave nothing by stride {stride}")
        shape[axis] = extent((abs(b - a) + abs(stride) - 1) // abs(stride), extent_dtype(size))
    return TensorType(shape, data.dtype)


def _cut(size: Dim, first: int, last: int, stride: int) -> Dim:
    """How many entries a slice of a named extent has; `?` for one that goes backwards, but for all of them."""
    if stride < 0:
        is_all = (first == -1 or first >= INT32_MAX) and last < -INT32_MAX
        return div_dim(add_dim(size, -stride - 1), -stride) if is_all else ANY
    if first > INT32_MAX or min(first, last) < -INT32_MAX:
        return ANY
    if first >= 0 > last:
        count = combine("tir.Max", add_dim(size, last - first), 0)
    elif last >= INT32_MAX:
        count = size if first == 0 else combine("tir.Max", add_dim(size, -first), 0) if first > 0 else combine("tir.Min", size, -first)
    elif first >= 0:
        count = combine("tir.Min", size, last)
        count = combine("tir.Max", add_dim(count, -first), 0) if first else count
    else:
        return ANY
    return div_dim(add_dim(count, stride - 1), stride)


def slice_entries(attrs: AnyValue, rank: int) -> list[tuple[int, int, int, int]]:
    """Each axis that `strided_slice` cuts, with its begin, end and stride. A missing bound, or None, reaches to the
    axis's end; a missing stride is 1.

    A bound may be negative, or beyond the axis: `slice_bound` puts it where it belongs.
    """
    axes = list(range(rank)) if attrs.axes is None else [a % rank for a in attrs.axes]
    begin, end = list(attrs.begin), list(attrs.end)
    strides = [] if attrs.slice_mode == "size" else list(attrs.strides or ())
    strides += [1] * (len(axes) - len(strides))
    begin += [None] * (len(axes) - len(begin))
    begin = [(0 if stride > 0 else INT64_MAX) if b is None else b for b, stride in zip(begin, strides)]
    if attrs.slice_mode == "size":
        end = [INT64_MAX if e is None or e < 0 else b + e for b, e in zip(begin, end)]
    end += [None] * (len(axes) - len(end))
    end = [(0 if stride < 0 else INT64_MAX) if e is None else e for e, stride in zip(end, strides)]
    return list(zip(axes, begin, end, strides))


def slice_bound(index: int, size: int, stride: int) -> int:
    low, high = (-1, size - 1) if stride < 0 else (0, size)
    return min(max(index + size if index < 0 else index, low), high)


def slice_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data and shape_like of any type. The result has the data's element type. Along axes (by default all common
    ones) it has the extents of shape_like, which are not larger.
    """
    data, like = tensor(types, 0, ctx), tensor(types, 1, ctx)
    shape = list(data.shape)
    rank = len(shape)
    if attrs.axes is not None and not attrs.axes:
        ctx.fail("axes must not be empty")
    axes = range(min(rank, len(like.shape))) if attrs.axes is None else [norm_axis(a, rank, ctx) for a in attrs.axes]
    for a in axes:
        if a >= len(like.shape):
            ctx.fail(f"has no axis {a}", 1)
        small, large = like.shape[a], shape[a]
        if isinstance(small, int) and isinstance(large, int) and small > large:
            ctx.fail(f"axis {a} has {large} entries, from which {small} cannot be cut", 0)
        shape[a] = small
    return TensorType(shape, data.dtype)


def argwhere(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes condition of rank n; the result is (?, n) of int32."""
    return TensorType((ANY, len(tensor(types, 0, ctx).shape)), "int32")


def sequence_mask(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of rank 2 or more. The vector valid_length has an entry for each of axis 1 - axis (the batch). The
    result has the data's type.
    """
    data, lengths = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if attrs.axis not in (0, 1):
        ctx.fail(f"axis={attrs.axis} must be 0 or 1")
    if len(data.shape) < 2:
        ctx.fail(f"must have at least 2 dimensions, not `{data!r}`", 0)
    ctx.unify(1, TensorType((data.shape[1 - attrs.axis],), lengths.dtype))
    return data


def matrix_set_diag(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes input (..., rows, columns); diagonal (..., length) or, for several, (..., k2 - k1 + 1, length). The result
    has the input's type.
    """
    data, diagonal = tensor(types, 0, ctx), tensor(types, 1, ctx)
    k1, k2 = attrs.k1, attrs.k2
    if k2 < k1:
        ctx.fail(f"k1={k1} must not be above k2={k2}")
    if len(data.shape) < 2:
        ctx.fail(f"must have at least 2 dimensions, not `{data!r}`", 0)
    rows, columns = data.shape[-2:]
    expected: list[Dim] = list(data.shape[:-2])
    if k1 != k2:
        expected.append(k2 - k1 + 1)
    if isinstance(rows, int) and isinstance(columns, int):
        if rows <= -k1 or columns <= k2:
            ctx.fail(f"has no diagonals from {k1} to {k2}", 0)
        expected.append(min(rows + min(k2, 0), columns - max(k1, 0)))
    else:
        expected.append(ANY)
    ctx.unify(1, TensorType(expected, diagonal.dtype))
    return data


def sliding_window(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (b..., d...) with an extent of window_shape and strides for each axis d, from axis on. The result is
    (b..., (d - window) // stride + 1 ..., window_shape...) of its element type.
    """
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    window = attrs.window_shape
    if len(window) != len(data.shape) - axis or len(attrs.strides) != len(window) or any(s < 1 for s in attrs.strides):
        ctx.fail(f"window_shape and strides must have a positive number for each axis of `{data!r}` from {axis}")
    moved = [div_dim(add_dim(d, -(w - 1) + s - 1), s) for d, w, s in zip(data.shape[axis:], window, attrs.strides)]
    return TensorType((*data.shape[:axis], *moved, *window), data.dtype)


DATA = ("data",)

OPS = (
    Op(
        "take",
        ("data", "indices"),
        TakeAttrs,
        take,
        I,
        3,
        doc="Entries along an axis by indices.",
        takes="tensor integer",
        python="(data, indices, axis=None, batch_dims=0, mode='clip')",
    ),
    Op(
        "gather",
        ("data", "indices"),
        GatherAttrs,
        gather,
        I,
        3,
        doc="Elements along an axis, an index for each element of the result.",
        takes="tensor integer",
        python="(data, axis, indices)",
    ),
    Op(
        "gather_nd",
        ("data", "indices"),
        GatherNDAttrs,
        gather_nd,
        I,
        3,
        doc="Elements or slices by indices into the first axes.",
        takes="tensor integer",
    ),
    Op(
        "strided_slice",
        DATA,
        StridedSliceAttrs,
        strided_slice,
        I,
        4,
        doc="The entries from begin to end by strides.",
        python="(data, begin, end, strides=None, axes=None, slice_mode='end')",
    ),
    Op(
        "slice_like",
        ("data", "shape_like"),
        SliceLikeAttrs,
        slice_like,
        I,
        10,
        doc="The front part of the data, of another tensor's size.",
        python="(..., axes=None)",
    ),
    Op(
        "where",
        ("condition", "x", "y"),
        None,
        where,
        B,
        4,
        doc="x where the condition holds, else y.",
        traits={Trait.BROADCAST},
    ),
    Op(
        "argwhere",
        ("condition",),
        None,
        argwhere,
        OPAQUE,
        10,
        doc="The indices of the elements that are not zero, a row for each.",
    ),
    Op(
        "sequence_mask",
        ("data", "valid_length"),
        SequenceMaskAttrs,
        sequence_mask,
        I,
        10,
        doc="The data with a value behind the end of each sequence.",
        takes="tensor number[_]",
        python="(..., mask_value=0)",
    ),
    Op(
        "matrix_set_diag",
        ("input", "diagonal"),
        MatrixSetDiagAttrs,
        matrix_set_diag,
        I,
        10,
        doc="Matrices with other diagonals.",
        takes="tensor same",
        python="(data, diagonal, k=0, align='RIGHT_LEFT')",
        example="fn (%x: Tensor[(3, 3), float32], %diagonal: Tensor[(3), float32]) { matrix_set_diag(%x, %diagonal, k1=0, k2=0) }",
    ),
    Op(
        "sliding_window",
        DATA,
        SlidingWindowAttrs,
        sliding_window,
        OPAQUE,
        10,
        doc="The windows of the data, each as axes at the end.",
    ),
)
