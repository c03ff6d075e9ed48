"""Operators that make tensors, change their shape, select from them, or put them together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.expr import Constant
from relaylang.ir.types import ANY, Dim, TensorType, TupleType, Type
from relaylang.ops.record import (
    AnyAttr,
    Ints,
    Op,
    OpPattern,
    RelationContext,
    attrs_class,
    tensor,
)
from relaylang.ops.relations import equal_dtypes, tensor_identity
from relaylang.ops.reshape import reshape, reshape_like, reverse_reshape
from relaylang.ops.shapes import (
    add_dim,
    broadcast_shapes,
    change_layout,
    div_dim,
    mul_dim,
    need_int,
    need_rank,
    need_scalar,
    norm_axis,
    same_dim,
    shape_text,
)

E, B, I, OPAQUE = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE, OpPattern.OPAQUE
INT64_MAX = 2**63 - 1


@attrs_class("relay.attrs.InitOpAttrs")
class InitOpAttrs:
    shape: Ints | None
    dtype: str | None = None


@attrs_class("relay.attrs.ArangeAttrs")
class ArangeAttrs:
    start: AnyAttr
    stop: AnyAttr
    step: AnyAttr
    dtype: str


@attrs_class("relay.attrs.ReshapeAttrs")
class ReshapeAttrs:
    newshape: Ints
    allowzero: bool = False


@attrs_class("relay.attrs.ReshapeLikeAttrs")
class ReshapeLikeAttrs:
    lhs_begin: int = 0
    lhs_end: int | None = None
    rhs_begin: int = 0
    rhs_end: int | None = None


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


@attrs_class("relay.attrs.ConcatenateAttrs")
class ConcatenateAttrs:
    axis: int = 0


@attrs_class("relay.attrs.StackAttrs")
class StackAttrs:
    axis: int = 0


@attrs_class("relay.attrs.SplitAttrs")
class SplitAttrs:
    indices_or_sections: AnyAttr
    axis: int = 0


@attrs_class("relay.attrs.TakeAttrs")
class TakeAttrs:
    batch_dims: int = 0
    axis: int | None = None
    mode: str = "clip"


@attrs_class("relay.attrs.GatherAttrs")
class GatherAttrs:
    axis: int | None = None


@attrs_class("relay.attrs.GatherNDAttrs")
class GatherNDAttrs:
    batch_dims: int = 0
    index_rank: int | None = None


@attrs_class("relay.attrs.RepeatAttrs")
class RepeatAttrs:
    repeats: int
    axis: int | None = None


@attrs_class("relay.attrs.TileAttrs")
class TileAttrs:
    reps: Ints


@attrs_class("relay.attrs.ReverseAttrs")
class ReverseAttrs:
    axis: int | None = None


@attrs_class("relay.attrs.ReverseSequenceAttrs")
class ReverseSequenceAttrs:
    seq_axis: int = 1
    batch_axis: int = 0


@attrs_class("relay.attrs.StridedSliceAttrs")
class StridedSliceAttrs:
    begin: Ints | None
    end: Ints | None
    strides: Ints | None
    slice_mode: str = "end"
    axes: Ints | None


@attrs_class("relay.attrs.SliceLikeAttrs")
class SliceLikeAttrs:
    axes: Ints | None


@attrs_class("relay.attrs.OneHotAttrs")
class OneHotAttrs:
    depth: int = 1
    axis: int = -1
    dtype: str | None = None


@attrs_class("relay.attrs.LayoutTransformAttrs")
class LayoutTransformAttrs:
    src_layout: str
    dst_layout: str


@attrs_class("relay.attrs.ShapeOfAttrs")
class ShapeOfAttrs:
    dtype: str | None = None


@attrs_class("relay.attrs.NdarraySizeAttrs")
class NdarraySizeAttrs:
    dtype: str | None = None


@attrs_class("relay.attrs.MeshgridAttrs")
class MeshgridAttrs:
    indexing: str = "ij"


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


def given_dtype(attrs: AnyValue, ctx: RelationContext) -> str:
    if attrs.dtype is None:
        ctx.fail("the attribute dtype must be given")
    dtype: str = attrs.dtype
    return dtype


def given_shape(attrs: AnyValue, ctx: RelationContext) -> tuple[Dim, ...]:
    if attrs.shape is None:
        ctx.fail("the attribute shape must be given")
    shape: tuple[Dim, ...] = attrs.shape
    return shape


def init(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    return TensorType(given_shape(attrs, ctx), given_dtype(attrs, ctx))


def full(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    need_scalar(types, 0, None, ctx)
    return TensorType(given_shape(attrs, ctx), attrs.dtype or tensor(types, 0, ctx).dtype)


def arange(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """The length is known where the attributes carry the three numbers as constants."""
    for i in range(3):
        ctx.unify(i, TensorType((), attrs.dtype))
    numbers = (attrs.start, attrs.stop, attrs.step)
    if not all(isinstance(n, Constant) for n in numbers):
        return TensorType((ANY,), attrs.dtype)
    start, stop, step = (float(n.data) for n in numbers)
    count = math.ceil((stop - start) / step) if step and math.isfinite((stop - start) / step) else 0
    if count <= 0:
        ctx.fail(f"from {start:g} to {stop:g} by {step:g} there is nothing")
    return TensorType((count,), attrs.dtype)


def transpose(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data = tensor(types, 0, ctx)
    rank = len(data.shape)
    if attrs.axes is None:
        return TensorType(data.shape[::-1], data.dtype)
    if len(attrs.axes) != rank:
        ctx.fail(f"axes={list(attrs.axes)} must name each of the {rank} dimensions of `{data!r}`")
    axes = [norm_axis(a, rank, ctx, "axes: axis") for a in attrs.axes]
    if len(set(axes)) != rank:
        ctx.fail(f"axes={list(attrs.axes)} names a dimension twice")
    return TensorType([data.shape[a] for a in axes], data.dtype)


def expand_dims(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data = tensor(types, 0, ctx)
    if attrs.num_newaxis < 0:
        ctx.fail(f"num_newaxis={attrs.num_newaxis} must not be negative")
    at = norm_axis(attrs.axis, len(data.shape) + 1, ctx)
    return TensorType((*data.shape[:at], *[1] * attrs.num_newaxis, *data.shape[at:]), data.dtype)


def squeeze(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data = tensor(types, 0, ctx)
    if attrs.axis is None:
        if not all(isinstance(d, int) for d in data.shape):
            ctx.fail(f"the attribute axis must be given for `{data!r}`, which has unknown extents")
        return TensorType([d for d in data.shape if d != 1], data.dtype)
    away = {norm_axis(a, len(data.shape), ctx) for a in attrs.axis}
    for a in sorted(away):
        if not same_dim(data.shape[a], 1):
            ctx.fail(f"axis {a} of `{data!r}` has the extent {data.shape[a]}; only 1 can be squeezed away", 0)
    return TensorType([d for i, d in enumerate(data.shape) if i not in away], data.dtype)


def tensors_of(types: Sequence[Type], arg: int, ctx: RelationContext) -> list[TensorType]:
    """The fields of a tuple of at least one tensor, all of one rank and element type."""
    ty = types[arg]
    if not isinstance(ty, TupleType):
        ctx.fail(f"must be a tuple of tensors, not `{ty!r}`", arg)
    assert isinstance(ty, TupleType)
    if not ty.fields:
        ctx.fail("must have at least one tensor", arg)
    first = ty.fields[0]
    found = []
    for i, field in enumerate(ty.fields):
        if not isinstance(field, TensorType) or not isinstance(first, TensorType):
            ctx.fail(f"field {i} of the tuple must be a tensor, not `{field!r}`", arg)
        assert isinstance(field, TensorType) and isinstance(first, TensorType)
        if len(field.shape) != len(first.shape):
            ctx.fail(f"field {i} is `{field!r}`, but field 0 is `{first!r}`: they differ in their dimensions", arg)
        if field.dtype != first.dtype:
            ctx.fail(f"field {i} is of {field.dtype}, but field 0 is of {first.dtype}", arg)
        found.append(field)
    return found


def concatenate(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    parts = tensors_of(types, 0, ctx)
    first = parts[0]
    axis = norm_axis(attrs.axis, len(first.shape), ctx)
    columns = list(zip(*[p.shape for p in parts]))
    joined = columns[axis]
    dynamic = any(d is ANY for d in joined)
    shape: list[Dim] = []
    for i, column in enumerate(columns):
        if i == axis:
            if all(isinstance(d, int) for d in column):
                shape.append(sum(d for d in column if isinstance(d, int)))
            else:
                shape.append(joined[0] if len(joined) == 1 else ANY)
            continue
        known = next((d for d in column if d is not ANY), ANY)
        if column.count(known) != len(column):
            for j, d in enumerate(column):
                if not same_dim(known, d):
                    ctx.fail(
                        f"field {j} is `{parts[j]!r}`, but field {column.index(known)} is "
                        f"`{parts[column.index(known)]!r}`: they differ along axis {i}, which is not the one joined",
                        0,
                    )
            known = known if dynamic else ANY
        shape.append(known)
    return TensorType(shape, first.dtype)


def stack(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    parts = tensors_of(types, 0, ctx)
    first = parts[0]
    at = norm_axis(attrs.axis, len(first.shape) + 1, ctx)
    for j, part in enumerate(parts):
        for i, (a, b) in enumerate(zip(first.shape, part.shape)):
            if i != at and not same_dim(a, b):
                ctx.fail(f"field {j} is `{part!r}`, but field 0 is `{first!r}`: they differ along axis {i}", 0)
    return TensorType((*first.shape[:at], len(parts), *first.shape[at:]), first.dtype)


def split(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    size = data.shape[axis]
    how = attrs.indices_or_sections
    extents: list[Dim]
    if isinstance(how, int):
        if how < 1:
            ctx.fail(f"indices_or_sections={how} must be positive")
        if isinstance(size, int) and size % how:
            ctx.fail(f"axis {axis} of `{data!r}` has {size} entries, which do not go into {how} equal parts", 0)
        extents = [div_dim(size, how)] * how
    else:
        if not isinstance(how, (list, tuple)) or not all(isinstance(i, int) for i in how):
            ctx.fail("indices_or_sections must be a number of parts or a list of the places to split at")
        bounds = [0, *how]
        if any(b <= a for a, b in itertools.pairwise(bounds)) or (isinstance(size, int) and bounds[-1] >= size):
            ctx.fail(
                f"indices_or_sections={list(how)} must grow from above 0 to below {size}, the extent of axis {axis}"
            )
        extents = [b - a for a, b in itertools.pairwise(bounds)]
        extents.append(add_dim(size, -bounds[-1]))
    parts: dict[Dim, TensorType] = {}
    for extent in extents:
        if extent not in parts:
            parts[extent] = TensorType((*data.shape[:axis], extent, *data.shape[axis + 1 :]), data.dtype)
    return TupleType([parts[extent] for extent in extents])


def take(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data, indices = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_int(indices, 1, ctx)
    if attrs.axis is None:
        return TensorType(indices.shape, data.dtype)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    batch = attrs.batch_dims + len(indices.shape) if attrs.batch_dims < 0 else attrs.batch_dims
    if batch > len(indices.shape) or batch > axis or batch < 0:
        ctx.fail(f"batch_dims={attrs.batch_dims} must be at most axis={axis} and the indices' {len(indices.shape)}")
    return TensorType((*data.shape[:axis], *indices.shape[batch:], *data.shape[axis + 1 :]), data.dtype)


def gather(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
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
    data, indices = tensor(types, 0, ctx), tensor(types, 1, ctx)
    depth = index_depth(indices, len(data.shape), ctx)
    for i in range(attrs.batch_dims):
        if not same_dim(data.shape[i], indices.shape[i + 1]):
            ctx.fail(f"has the batch extent {indices.shape[i + 1]}, but the data `{data!r}` has {data.shape[i]}", 1)
    return TensorType((*indices.shape[1:], *data.shape[depth + attrs.batch_dims :]), data.dtype)


def repeat(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
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
    data = tensor(types, 0, ctx)
    if any(r < 1 for r in attrs.reps):
        ctx.fail(f"reps={list(attrs.reps)} must be positive")
    rank = max(len(data.shape), len(attrs.reps))
    shape = (*[1] * (rank - len(data.shape)), *data.shape)
    reps = (*[1] * (rank - len(attrs.reps)), *attrs.reps)
    return TensorType([mul_dim(d, r) for d, r in zip(shape, reps)], data.dtype)


def reverse(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data = tensor(types, 0, ctx)
    if attrs.axis is None:
        ctx.fail("the attribute axis must be given")
    norm_axis(attrs.axis, len(data.shape), ctx)
    return data


def reverse_sequence(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data, lengths = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_rank(lengths, 1, 1, ctx)
    need_int(lengths, 1, ctx)
    batch = norm_axis(attrs.batch_axis, len(data.shape), ctx, "batch_axis")
    norm_axis(attrs.seq_axis, len(data.shape), ctx, "seq_axis")
    if not same_dim(lengths.shape[0], data.shape[batch]):
        ctx.fail(f"has {lengths.shape[0]} lengths, but the data `{data!r}` has {data.shape[batch]} sequences", 1)
    return data


def where(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    condition, x, y = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 2, ctx)
    if x.dtype != y.dtype:
        ctx.fail(f"is of {y.dtype}, but x is of {x.dtype}", 2)
    both = broadcast_shapes(x.shape, y.shape, ctx, 2)
    return TensorType(broadcast_shapes(condition.shape, both, ctx, 0), x.dtype)


def broadcast_to(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data = tensor(types, 0, ctx)
    shape = given_shape(attrs, ctx)
    must_broadcast_to(data.shape, shape, ctx)
    return TensorType(shape, data.dtype)


def must_broadcast_to(source: Sequence[Dim], target: Sequence[Dim], ctx: RelationContext) -> None:
    made = broadcast_shapes(source, target, ctx, 0)
    if len(made) != len(target) or not all(same_dim(a, b) for a, b in zip(made, target)):
        ctx.fail(f"cannot be broadcast from {shape_text(source)} to {shape_text(target)}", 0)


def broadcast_to_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data, like = equal_dtypes(types, ctx)
    must_broadcast_to(data.shape, like.shape, ctx)
    return like


def collapse_sum_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data, like = equal_dtypes(types, ctx)
    must_broadcast_to(like.shape, data.shape, ctx)
    return like


def strided_slice(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
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
    strides += [1] * (len(axes) - len(strides))
    if attrs.slice_mode == "size":
        strides = [1] * len(axes)
    if 0 in strides:
        ctx.fail(f"strides={list(attrs.strides)} must not be 0")
    for i in range(len(begin), len(axes)):
        begin.append(0 if strides[i] > 0 else INT64_MAX)
    if attrs.slice_mode == "size":
        end = [b + e if e >= 0 else INT64_MAX for b, e in zip(begin, end)]
    for i in range(len(end), len(axes)):
        end.append(0 if strides[i] < 0 else INT64_MAX)
    shape = list(data.shape)
    for axis, first, last, stride in zip(axes, begin, end, strides):
        size = shape[axis]
        if not isinstance(size, int):
            shape[axis] = ANY
            continue
        a, b = slice_bound(first, size, stride), slice_bound(last, size, stride)
        if (b - a) * stride < 0:
            ctx.fail(f"begin {first} and end {last} of axis {axis} (extent {size}) leave nothing by stride {stride}")
        shape[axis] = (abs(b - a) + abs(stride) - 1) // abs(stride)
    return TensorType(shape, data.dtype)


def slice_bound(index: int, size: int, stride: int) -> int:
    low, high = (-1, size - 1) if stride < 0 else (0, size)
    return min(max(index + size if index < 0 else index, low), high)


def slice_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
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


def one_hot(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    indices = tensor(types, 0, ctx)
    if attrs.depth < 1:
        ctx.fail(f"depth={attrs.depth} must be positive")
    at = norm_axis(attrs.axis, len(indices.shape) + 1, ctx)
    return TensorType((*indices.shape[:at], attrs.depth, *indices.shape[at:]), given_dtype(attrs, ctx))


def layout_transform(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data = tensor(types, 0, ctx)
    return TensorType(change_layout(data.shape, attrs.src_layout, attrs.dst_layout, ctx), data.dtype)


def shape_of(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data = tensor(types, 0, ctx)
    return TensorType((len(data.shape),) if data.shape else (), given_dtype(attrs, ctx))


def ndarray_size(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    tensor(types, 0, ctx)
    return TensorType((), given_dtype(attrs, ctx))


def argwhere(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    return TensorType((ANY, len(tensor(types, 0, ctx).shape)), "int32")


def meshgrid(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    ty = types[0]
    if not isinstance(ty, TupleType) or not ty.fields:
        ctx.fail(f"must be a tuple of at least one tensor, not `{ty!r}`", 0)
    assert isinstance(ty, TupleType)
    first = ty.fields[0]
    grid: list[Dim] = []
    for i, field in enumerate(ty.fields):
        if not isinstance(field, TensorType) or not isinstance(first, TensorType) or len(field.shape) > 1:
            ctx.fail(f"field {i} of the tuple must be a scalar or a vector, not `{field!r}`", 0)
        assert isinstance(field, TensorType) and isinstance(first, TensorType)
        if field.dtype != first.dtype:
            ctx.fail(f"field {i} is of {field.dtype}, but field 0 is of {first.dtype}", 0)
        grid.append(field.shape[0] if field.shape else 1)
    if attrs.indexing == "xy" and len(grid) >= 2:
        grid[:2] = grid[1::-1]
    assert isinstance(first, TensorType)
    return TupleType([TensorType(grid, first.dtype)] * len(grid))


def sequence_mask(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    data, lengths = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if attrs.axis not in (0, 1):
        ctx.fail(f"axis={attrs.axis} must be 0 or 1")
    if len(data.shape) < 2:
        ctx.fail(f"must have at least 2 dimensions, not `{data!r}`", 0)
    ctx.unify(1, TensorType((data.shape[1 - attrs.axis],), lengths.dtype))
    return data


def matrix_set_diag(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
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
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    window = attrs.window_shape
    if len(window) != len(data.shape) - axis or len(attrs.strides) != len(window) or any(s < 1 for s in attrs.strides):
        ctx.fail(f"window_shape and strides must have a positive number for each axis of `{data!r}` from {axis}")
    moved = [div_dim(add_dim(d, -(w - 1) + s - 1), s) for d, w, s in zip(data.shape[axis:], window, attrs.strides)]
    return TensorType((*data.shape[:axis], *moved, *window), data.dtype)


DATA = ("data",)

OPS = (
    Op("zeros", (), InitOpAttrs, init, E, 3),
    Op("ones", (), InitOpAttrs, init, E, 3),
    Op("full", ("fill_value",), InitOpAttrs, full, E, 3),
    Op("arange", ("start", "end", "step"), ArangeAttrs, arange, OPAQUE, 3, needs=()),
    Op("reshape", DATA, ReshapeAttrs, reshape, I, 3),
    Op("contrib_reverse_reshape", DATA, ReshapeAttrs, reverse_reshape, I, 10),
    Op("reshape_like", ("data", "shape_like"), ReshapeLikeAttrs, reshape_like, I, 3),
    Op("transpose", DATA, TransposeAttrs, transpose, I, 3),
    Op("expand_dims", DATA, ExpandDimsAttrs, expand_dims, B, 1),
    Op("squeeze", DATA, SqueezeAttrs, squeeze, I, 3),
    Op("concatenate", DATA, ConcatenateAttrs, concatenate, I, 1),
    Op("stack", DATA, StackAttrs, stack, I, 3),
    Op("split", DATA, SplitAttrs, split, I, 3),
    Op("take", ("data", "indices"), TakeAttrs, take, I, 3),
    Op("gather", ("data", "indices"), GatherAttrs, gather, I, 3),
    Op("gather_nd", ("data", "indices"), GatherNDAttrs, gather_nd, I, 3),
    Op("repeat", DATA, RepeatAttrs, repeat, B, 3),
    Op("tile", DATA, TileAttrs, tile, B, 3),
    Op("reverse", DATA, ReverseAttrs, reverse, I, 3),
    Op("reverse_sequence", ("data", "seq_lengths"), ReverseSequenceAttrs, reverse_sequence, I, 3),
    Op("where", ("condition", "x", "y"), None, where, B, 4),
    Op("broadcast_to", DATA, InitOpAttrs, broadcast_to, B, 4),
    Op("broadcast_to_like", ("data", "broadcast_type"), None, broadcast_to_like, B, 10),
    Op("collapse_sum_like", ("data", "collapse_type"), None, collapse_sum_like, OpPattern.COMM_REDUCE, 10),
    Op("strided_slice", DATA, StridedSliceAttrs, strided_slice, I, 4),
    Op("slice_like", ("data", "shape_like"), SliceLikeAttrs, slice_like, I, 10),
    Op(
        "one_hot",
        ("indices", "on_value", "off_value"),
        OneHotAttrs,
        one_hot,
        OpPattern.OUT_ELEMWISE_FUSABLE,
        10,
        needs=(0,),
    ),
    Op("layout_transform", DATA, LayoutTransformAttrs, layout_transform, I, 5),
    Op("shape_of", DATA, ShapeOfAttrs, shape_of, OPAQUE, 10),
    Op("ndarray_size", DATA, NdarraySizeAttrs, ndarray_size, I, 10),
    Op("argwhere", ("condition",), None, argwhere, OPAQUE, 10),
    Op("meshgrid", DATA, MeshgridAttrs, meshgrid, I, 3),
    Op("sequence_mask", ("data", "valid_length"), SequenceMaskAttrs, sequence_mask, I, 10),
    Op("matrix_set_diag", ("input", "diagonal"), MatrixSetDiagAttrs, matrix_set_diag, I, 10),
    Op("sliding_window", DATA, SlidingWindowAttrs, sliding_window, OPAQUE, 10),
    Op("invert_permutation", DATA, None, tensor_identity, I, 1),
)
