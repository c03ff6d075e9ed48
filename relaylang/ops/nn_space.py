"""Layers that pad data, move it between space and channels or batch, and make images larger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import ANY, Dim, TensorType, Type
from relaylang.ops.record import Ints, NestedInts, Op, OpPattern, RelationContext, String, attrs_class, tensor
from relaylang.ops.shapes import (
    add_dim,
    change_layout,
    divided,
    mul_dim,
    need_pixels,
    product,
)

DATA, I = ("data",), OpPattern.INJECTIVE


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


def pad_pairs(name: str, pairs: NestedInts, count: int, ctx: RelationContext) -> list[tuple[int, int]]:
    if len(pairs) != count or not all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
        shown = [list(p) if isinstance(p, tuple) else p for p in pairs]
        ctx.fail(f"{name}={shown} must have {count} pairs of numbers, one for each padded dimension")
    return [(int(p[0]), int(p[1])) for p in pairs]


def pad(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, pad_value a scalar. The result has its element type. Each extent grows by the two
    numbers of its pair in pad_width.
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
    """Takes data of any shape. The result has its element type. Each extent grows by the two numbers of its pair in
    pad_width.
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
    """Takes data (n, c, h, w) in the attribute layout. The result is (n, c / block_size ** 2, h * block_size, w *
    block_size) of its element type.
    """
    data, block = tensor(types, 0, ctx), attrs.block_size
    n, c, h, w = change_layout(data.shape, attrs.layout, "NCHW", ctx)
    depth = divided(c, block * block, f"block_size={block}: {block * block}", ctx)
    out = [n, depth, mul_dim(h, block), mul_dim(w, block)]
    return TensorType(change_layout(out, "NCHW", attrs.layout, ctx), data.dtype)


def space_to_depth(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in the attribute layout. The result is (n, c * block_size ** 2, h / block_size, w /
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
    """Takes data (n, s..., r...), a spatial axis s for each number b of block_shape. The result is (n * product of b,
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
    """Takes data (n, s..., r...), a spatial axis s for each number b of block_shape. The result is (n / product of b, s
    * b - crops ..., r...) of its element type.
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


def scaled(dim: Dim, scale: float, ctx: RelationContext) -> Dim:
    if not 0 < scale < math.inf:
        ctx.fail(f"a scale of {scale} must be positive")
    if scale == int(scale):
        return mul_dim(dim, int(scale))
    return round(dim * scale) if isinstance(dim, int) else ANY


def upsampling(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in the attribute layout. The result is (n, c, h * scale_h, w * scale_w), rounded, of its
    element type.
    """
    data = tensor(types, 0, ctx)
    shape = change_layout(data.shape, attrs.layout, "NCHW", ctx)
    need_pixels(data.shape, attrs.layout, "NCHW", ctx)
    shape[2:] = [scaled(shape[2], attrs.scale_h, ctx), scaled(shape[3], attrs.scale_w, ctx)]
    return TensorType(change_layout(shape, "NCHW", attrs.layout, ctx), data.dtype)


def upsampling3d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, d, h, w) in the attribute layout. The result is (n, c, d * scale_d, h * scale_h, w * scale_w),
    rounded, of its element type.
    """
    data = tensor(types, 0, ctx)
    shape = change_layout(data.shape, attrs.layout, "NCDHW", ctx)
    need_pixels(data.shape, attrs.layout, "NCDHW", ctx)
    scales = (attrs.scale_d, attrs.scale_h, attrs.scale_w)
    shape[2:] = [scaled(d, s, ctx) for d, s in zip(shape[2:], scales)]
    return TensorType(change_layout(shape, "NCDHW", attrs.layout, ctx), data.dtype)


OPS = (
    Op(
        "nn.pad",
        ("data", "pad_val"),
        PadAttrs,
        pad,
        I,
        2,
        needs=(0,),
        doc="Filled up at the edges with a number or what stands there.",
        python="(data, pad_width, pad_value=0, pad_mode='constant')",
    ),
    Op(
        "nn.mirror_pad",
        DATA,
        MirrorPadAttrs,
        mirror_pad,
        I,
        2,
        doc="Filled up with its mirror image at the edges.",
        python="(data, pad_width, mode='SYMMETRIC')",
    ),
    Op(
        "nn.depth_to_space",
        DATA,
        SubPixelAttrs,
        depth_to_space,
        I,
        5,
        doc="Channels laid out in blocks of the spatial axes.",
        python="(..., block_size)",
    ),
    Op(
        "nn.space_to_depth",
        DATA,
        SubPixelAttrs,
        space_to_depth,
        I,
        5,
        doc="Blocks of the spatial axes laid out along the channels.",
        python="(data, block_size, layout='NCHW')",
    ),
    Op(
        "nn.space_to_batch_nd",
        DATA,
        SpaceToBatchNDAttrs,
        space_to_batch_nd,
        I,
        5,
        doc="Padded, and blocks of the spatial axes laid out along the batch.",
        python="(..., block_shape, pad_value=0)",
    ),
    Op(
        "nn.batch_to_space_nd",
        DATA,
        BatchToSpaceNDAttrs,
        batch_to_space_nd,
        I,
        5,
        doc="The batch laid out in blocks of the spatial axes, then cropped.",
        python="(..., block_shape)",
    ),
    Op(
        "nn.upsampling",
        DATA,
        UpSamplingAttrs,
        upsampling,
        I,
        2,
        doc="A larger image, by the nearest pixel, linear or cubic.",
        python="(..., scale_h=1, scale_w=1)",
    ),
    Op(
        "nn.upsampling3d",
        DATA,
        UpSampling3DAttrs,
        upsampling3d,
        I,
        2,
        doc="A larger volume, by the nearest element or linear.",
        python="(..., scale_d=1, scale_h=1, scale_w=1)",
    ),
)
