"""Normalisation, activation, padding and the other small layers of a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import ANY, Dim, TensorType, TupleType, Type
from relaylang.ops.record import Ints, NestedInts, Op, OpPattern, Relation, RelationContext, String, attrs_class, tensor
from relaylang.ops.relations import identity
from relaylang.ops.shapes import (
    add_dim,
    change_layout,
    divided,
    is_float_dtype,
    mul_dim,
    need_pixels,
    need_rank,
    norm_axis,
    product,
    same_dim,
)

E, B, I, F = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE, OpPattern.OUT_ELEMWISE_FUSABLE
OPAQUE = OpPattern.OPAQUE


@attrs_class("relay.attrs.BiasAddAttrs")
class BiasAddAttrs:
    axis: int = 1


@attrs_class("relay.attrs.SoftmaxAttrs")
class SoftmaxAttrs:
    axis: int = -1


@attrs_class("relay.attrs.BatchNormAttrs")
class BatchNormAttrs:
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attrs_class("relay.attrs.InstanceNormAttrs")
class InstanceNormAttrs:
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attrs_class("relay.attrs.LayerNormAttrs")
class LayerNormAttrs:
    axis: int = -1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attrs_class("relay.attrs.GroupNormAttrs")
class GroupNormAttrs:
    num_groups: int = 0
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attrs_class("relay.attrs.LRNAttrs")
class LRNAttrs:
    size: int = 5
    axis: int = 1
    bias: float = 2.0
    alpha: float = 0.0001
    beta: float = 0.75


@attrs_class("relay.attrs.L2NormalizeAttrs")
class L2NormalizeAttrs:
    eps: float
    axis: Ints | None


@attrs_class("relay.attrs.DropoutAttrs")
class DropoutAttrs:
    rate: float = 0.5


@attrs_class("relay.attrs.LeakyReluAttrs")
class LeakyReluAttrs:
    alpha: float = 0.25


@attrs_class("relay.attrs.PReluAttrs")
class PReluAttrs:
    axis: int = 1


@attrs_class("relay.attrs.PadAttrs")
class PadAttrs:
    pad_width: NestedInts
    pad_mode: String = "constant"


@attrs_class("relay.attrs.MirrorPadAttrs")
class MirrorPadAttrs:
    mode: str = "SYMMETRIC"
    pad_width: NestedInts


@attrs_class("relay.attrs.SubPixelAttrs")
class SubPixelAttrs:
    block_size: int = 1
    layout: str = "NCHW"
    mode: str = "DCR"


@attrs_class("relay.attrs.SpaceToBatchNDAttrs")
class SpaceToBatchNDAttrs:
    block_shape: Ints = (1, 1)
    paddings: NestedInts
    pad_value: float = 0.0


@attrs_class("relay.attrs.BatchToSpaceNDAttrs")
class BatchToSpaceNDAttrs:
    block_shape: Ints = (1, 1)
    crops: NestedInts


@attrs_class("relay.attrs.NLLLossAttrs")
class NLLLossAttrs:
    reduction: str = "mean"
    ignore_index: int


@attrs_class("relay.attrs.FIFOBufferAttrs")
class FIFOBufferAttrs:
    axis: int = 0


@attrs_class("relay.attrs.UpSamplingAttrs")
class UpSamplingAttrs:
    scale_h: float
    scale_w: float
    layout: String = "NCHW"
    method: String = "nearest_neighbor"
    align_corners: bool = False


@attrs_class("relay.attrs.UpSampling3DAttrs")
class UpSampling3DAttrs:
    scale_d: float
    scale_h: float
    scale_w: float
    layout: str = "NCDHW"
    method: str = "nearest_neighbor"
    coordinate_transformation_mode: str = "half_pixel"


def bias_add(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, bias a vector of its element type and the extent along axis; the result has the data's
    type.
    """
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    ctx.unify(1, TensorType((data.shape[axis],), data.dtype))
    return data


def prelu(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, alpha a vector of its element type and the extent along axis; the result has the data's
    type.
    """
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    ctx.unify(1, TensorType((data.shape[axis],), data.dtype))
    return data


def along_axis(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; axis is one of its axes. The result has the data's type."""
    data = tensor(types, 0, ctx)
    norm_axis(attrs.axis, len(data.shape), ctx)
    return data


def batch_flatten(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, d...); the result is (n, product of d) of its element type."""
    data = tensor(types, 0, ctx)
    if not data.shape:
        ctx.fail("must have at least one dimension", 0)
    return TensorType((data.shape[0], product(data.shape[1:])), data.dtype)


def dropout(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any type; the result is a tuple (output, mask) of two of that type."""
    data = tensor(types, 0, ctx)
    return TupleType((data, data))


def batch_norm(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; gamma, beta, moving_mean and moving_var are vectors of its element type and the extent
    along axis. The result is a tuple (output, mean, variance) of the data's type and two such vectors.
    """
    data = tensor(types, 0, ctx)
    vector = TensorType((data.shape[norm_axis(attrs.axis, len(data.shape), ctx)],), data.dtype)
    for i in range(1, 5):
        ctx.unify(i, vector)
    return TupleType((data, vector, vector))


def norm(min_rank: int) -> Relation:
    """The data's type; gamma and beta are vectors along `axis`."""

    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data of any shape (instance_norm, group_norm: with a batch and channels); gamma and beta are vectors
        of its element type and the extent along axis. The result has the data's type.
        """
        data = tensor(types, 0, ctx)
        if len(data.shape) < min_rank:
            ctx.fail(f"must have at least {min_rank} dimensions, not `{data!r}`", 0)
        channels = data.shape[norm_axis(attrs.axis, len(data.shape), ctx)]
        groups = getattr(attrs, "num_groups", 1)
        divided(channels, groups, f"num_groups={groups}", ctx)
        vector = TensorType((channels,), data.dtype)
        ctx.unify(1, vector)
        ctx.unify(2, vector)
        return data

    return rel


def pad_pairs(name: str, pairs: NestedInts, count: int, ctx: RelationContext) -> list[tuple[int, int]]:
    if len(pairs) != count or not all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
        shown = [list(p) if isinstance(p, tuple) else p for p in pairs]
        ctx.fail(f"{name}={shown} must have {count} pairs of numbers, one for each padded dimension")
    return [(int(p[0]), int(p[1])) for p in pairs]


def pad(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, pad_value a scalar; the result has its element type and each extent with the two
    numbers of its pair in pad_width added.
    """
    data = tensor(types, 0, ctx)
    pairs = pad_pairs("pad_width", attrs.pad_width, len(data.shape), ctx)
    shape = [add_dim(d, a + b) for d, (a, b) in zip(data.shape, pairs)]
    if any(isinstance(d, int) and d < 0 for d in shape):
        ctx.fail("pad_width takes more away than there is")
    if attrs.pad_mode != "constant":
        for axis, (old, new) in enumerate(zip(data.shape, shape)):
            if old == 0 and new != 0:
                ctx.fail(f"has no entries along axis {axis} to repeat at its ends", 0)
    return TensorType(shape, data.dtype)


def mirror_pad(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; the result has its element type and each extent with the two numbers of its pair in
    pad_width added.
    """
    data = tensor(types, 0, ctx)
    pairs = pad_pairs("pad_width", attrs.pad_width, len(data.shape), ctx)
    if any(a < 0 or b < 0 for a, b in pairs):
        ctx.fail("pad_width must not be negative")
    symmetric = attrs.mode.upper() == "SYMMETRIC"
    for axis, (extent, pair) in enumerate(zip(data.shape, pairs)):
        if isinstance(extent, int) and max(pair) > (extent if symmetric else extent - 1) and max(pair):
            ctx.fail(f"has {extent} entries along axis {axis}, of which {max(pair)} cannot be mirrored", 0)
    return TensorType([add_dim(d, a + b) for d, (a, b) in zip(data.shape, pairs)], data.dtype)


def depth_to_space(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in the attribute layout; the result is (n, c / block_size ** 2, h * block_size, w *
    block_size) of its element type.
    """
    data, block = tensor(types, 0, ctx), attrs.block_size
    n, c, h, w = change_layout(data.shape, attrs.layout, "NCHW", ctx)
    depth = divided(c, block * block, f"block_size={block}: {block * block}", ctx)
    out = [n, depth, mul_dim(h, block), mul_dim(w, block)]
    return TensorType(change_layout(out, "NCHW", attrs.layout, ctx), data.dtype)


def space_to_depth(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in the attribute layout; the result is (n, c * block_size ** 2, h / block_size, w /
    block_size) of its element type.
    """
    data, block = tensor(types, 0, ctx), attrs.block_size
    n, c, h, w = change_layout(data.shape, attrs.layout, "NCHW", ctx)
    sides = [divided(d, block, f"block_size={block}", ctx) for d in (h, w)]
    out = [n, mul_dim(c, block * block), *sides]
    return TensorType(change_layout(out, "NCHW", attrs.layout, ctx), data.dtype)


def block_axes(data: TensorType, attrs: AnyValue, ctx: RelationContext) -> int:
    blocks = len(attrs.block_shape)
    if len(data.shape) <= blocks:
        ctx.fail(f"must have more dimensions than block_shape has numbers ({blocks}), not `{data!r}`", 0)
    if any(b < 1 for b in attrs.block_shape):
        ctx.fail(f"block_shape={list(attrs.block_shape)} must be positive")
    return blocks


def space_to_batch_nd(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, s..., r...), a spatial axis s for each number b of block_shape; the result is (n * product of b,
    (s + paddings) / b ..., r...) of its element type.
    """
    data = tensor(types, 0, ctx)
    pairs = pad_pairs("paddings", attrs.paddings, block_axes(data, attrs, ctx), ctx)
    shape = list(data.shape)
    for i, (block, (before, after)) in enumerate(zip(attrs.block_shape, pairs), 1):
        shape[0] = mul_dim(shape[0], block)
        shape[i] = divided(add_dim(shape[i], before + after), block, f"block_shape={list(attrs.block_shape)}: {block}", ctx)
    return TensorType(shape, data.dtype)


def batch_to_space_nd(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, s..., r...), a spatial axis s for each number b of block_shape; the result is (n / product of b,
    s * b - crops ..., r...) of its element type.
    """
    data = tensor(types, 0, ctx)
    pairs = pad_pairs("crops", attrs.crops, block_axes(data, attrs, ctx), ctx)
    shape = list(data.shape)
    total = product(attrs.block_shape)
    if isinstance(total, int):
        shape[0] = divided(shape[0], total, f"block_shape={list(attrs.block_shape)}: {total}", ctx)
    for i, (block, (before, after)) in enumerate(zip(attrs.block_shape, pairs), 1):
        shape[i] = add_dim(mul_dim(shape[i], block), -before - after)
    return TensorType(shape, data.dtype)


def cross_entropy(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes predictions and targets (n, classes); the result is a scalar of the predictions' element type."""
    x, y = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_rank(x, 2, 0, ctx)
    need_rank(y, 2, 1, ctx)
    for axis, (a, b) in enumerate(zip(x.shape, y.shape)):
        if not same_dim(a, b):
            ctx.fail(f"has the extent {b} along axis {axis}, but the first argument `{x!r}` has {a}", 1)
    return TensorType((), x.dtype)


def nll_loss(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes predictions (n, classes, d...) and weights (classes,) of one floating-point type, targets (n, d...) of
    signed whole numbers. The result has the predictions' element type and is a scalar, or has the targets' shape where
    reduction is "none".
    """
    predictions, targets, weights = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 2, ctx)
    if len(predictions.shape) != len(targets.shape) + 1:
        ctx.fail(f"must have one dimension less than the predictions `{predictions!r}`, not `{targets!r}`", 1)
    need_rank(weights, 1, 2, ctx)
    if len(predictions.shape) < 2:
        ctx.fail(f"must have at least 2 dimensions, not `{predictions!r}`", 0)
    if not same_dim(predictions.shape[1], weights.shape[0]):
        ctx.fail(f"must have a weight for each of {predictions.shape[1]} classes, not `{weights!r}`", 2)
    if predictions.dtype != weights.dtype or not is_float_dtype(predictions.dtype):
        ctx.fail(f"must be of the predictions' floating-point type {predictions.dtype}, not {weights.dtype}", 2)
    for i, (a, b) in enumerate(zip((*predictions.shape[:1], *predictions.shape[2:]), targets.shape)):
        if not same_dim(a, b):
            ctx.fail(f"has the extent {b} along axis {i}, but the predictions `{predictions!r}` have {a}", 1)
    if not targets.dtype.startswith("int"):
        ctx.fail(f"must be of signed whole numbers, not of {targets.dtype}", 1)
    return TensorType(targets.shape if attrs.reduction == "none" else (), predictions.dtype)


def fifo_buffer(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes input and buffer of one rank and, but along axis, the same extents; along axis the buffer is not shorter.
    The result has the buffer's type.
    """
    data, buffer = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_rank(buffer, len(data.shape), 1, ctx)
    axis = norm_axis(attrs.axis, len(buffer.shape), ctx)
    for i, (a, b) in enumerate(zip(data.shape, buffer.shape)):
        if i != axis and not same_dim(a, b):
            ctx.fail(f"has the extent {b} along axis {i}, but the data `{data!r}` has {a}", 1)
        if i == axis and isinstance(a, int) and isinstance(b, int) and a > b:
            ctx.fail(f"must not be shorter than the data along axis {axis}, but {b} is less than {a}", 1)
    return buffer


def scaled(dim: Dim, scale: float, ctx: RelationContext) -> Dim:
    if not 0 < scale < math.inf:
        ctx.fail(f"a scale of {scale} must be positive")
    if not isinstance(dim, int):
        return ANY
    return round(dim * scale)


def lrn(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, axis one of its axes, size a positive number; the result has the data's type."""
    if attrs.size < 1:
        ctx.fail(f"size={attrs.size} must be positive")
    if isinstance(types[0], TensorType):
        norm_axis(attrs.axis, len(types[0].shape), ctx)
    return types[0]


def l2_normalize(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, axis different ones of its axes; the result has the data's type."""
    if isinstance(types[0], TensorType) and attrs.axis:
        axes = {norm_axis(a, len(types[0].shape), ctx) for a in attrs.axis}
        if len(axes) != len(attrs.axis):
            ctx.fail(f"axis=[{', '.join(map(str, attrs.axis))}] names a dimension twice")
    return types[0]


def leaky_relu(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; alpha is not negative. The result has the data's type."""
    if attrs.alpha < 0:
        ctx.fail(f"alpha={attrs.alpha} must not be negative")
    return types[0]


def upsampling(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in the attribute layout; the result is (n, c, h * scale_h, w * scale_w), rounded, of its
    element type.
    """
    data = tensor(types, 0, ctx)
    shape = change_layout(data.shape, attrs.layout, "NCHW", ctx)
    need_pixels(data.shape, attrs.layout, "NCHW", ctx)
    shape[2:] = [scaled(shape[2], attrs.scale_h, ctx), scaled(shape[3], attrs.scale_w, ctx)]
    return TensorType(change_layout(shape, "NCHW", attrs.layout, ctx), data.dtype)


def upsampling3d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, d, h, w) in the attribute layout; the result is (n, c, d * scale_d, h * scale_h, w * scale_w),
    rounded, of its element type.
    """
    data = tensor(types, 0, ctx)
    shape = change_layout(data.shape, attrs.layout, "NCDHW", ctx)
    need_pixels(data.shape, attrs.layout, "NCDHW", ctx)
    scales = (attrs.scale_d, attrs.scale_h, attrs.scale_w)
    shape[2:] = [scaled(d, s, ctx) for d, s in zip(shape[2:], scales)]
    return TensorType(change_layout(shape, "NCDHW", attrs.layout, ctx), data.dtype)


DATA = ("data",)
NORM_ARGS = ("data", "gamma", "beta")

OPS = (
    Op("nn.bias_add", ("data", "bias"), BiasAddAttrs, bias_add, B, 1, needs=(0,)),
    Op("nn.relu", DATA, None, identity, E, 1, needs=()),
    Op("nn.leaky_relu", DATA, LeakyReluAttrs, leaky_relu, E, 3, needs=()),
    Op("nn.prelu", ("data", "alpha"), PReluAttrs, prelu, B, 3, needs=(0,)),
    Op("nn.softmax", DATA, SoftmaxAttrs, along_axis, F, 1),
    Op("nn.log_softmax", DATA, SoftmaxAttrs, along_axis, F, 1),
    Op("nn.fast_softmax", DATA, SoftmaxAttrs, along_axis, F, 1),
    Op("nn.batch_flatten", DATA, None, batch_flatten, I, 2),
    Op("nn.dropout", DATA, DropoutAttrs, dropout, OPAQUE, 1),
    Op(
        "nn.batch_norm",
        ("data", "gamma", "beta", "moving_mean", "moving_var"),
        BatchNormAttrs,
        batch_norm,
        F,
        1,
        needs=(0,),
    ),
    Op("nn.instance_norm", NORM_ARGS, InstanceNormAttrs, norm(3), OPAQUE, 1, needs=(0,)),
    Op("nn.layer_norm", NORM_ARGS, LayerNormAttrs, norm(1), OPAQUE, 1, needs=(0,)),
    Op("nn.group_norm", NORM_ARGS, GroupNormAttrs, norm(1), OPAQUE, 1, needs=(0,)),
    Op("nn.lrn", DATA, LRNAttrs, lrn, OPAQUE, 2, needs=()),
    Op("nn.l2_normalize", DATA, L2NormalizeAttrs, l2_normalize, OPAQUE, 2, needs=()),
    Op("nn.pad", ("data", "pad_val"), PadAttrs, pad, I, 2, needs=(0,)),
    Op("nn.mirror_pad", DATA, MirrorPadAttrs, mirror_pad, I, 2),
    Op("nn.depth_to_space", DATA, SubPixelAttrs, depth_to_space, I, 5),
    Op("nn.space_to_depth", DATA, SubPixelAttrs, space_to_depth, I, 5),
    Op("nn.space_to_batch_nd", DATA, SpaceToBatchNDAttrs, space_to_batch_nd, I, 5),
    Op("nn.batch_to_space_nd", DATA, BatchToSpaceNDAttrs, batch_to_space_nd, I, 5),
    Op("nn.cross_entropy", ("x", "y"), None, cross_entropy, OPAQUE, 10),
    Op("nn.cross_entropy_with_logits", ("x", "y"), None, cross_entropy, OPAQUE, 10),
    Op("nn.nll_loss", ("predictions", "targets", "weights"), NLLLossAttrs, nll_loss, F, 10),
    Op("nn.fifo_buffer", ("data", "buffer"), FIFOBufferAttrs, fifo_buffer, OPAQUE, 3),
    Op("nn.upsampling", DATA, UpSamplingAttrs, upsampling, I, 2),
    Op("nn.upsampling3d", DATA, UpSampling3DAttrs, upsampling3d, I, 2),
)
