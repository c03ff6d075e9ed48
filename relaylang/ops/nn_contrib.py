"""Convolutions and products with a prepared weight (Winograd, matrix product, packed), and those of optical flow and
deformable windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import Dim, TensorType, Type
from relaylang.ops.nn_conv import SPATIAL, Conv2DAttrs, check_window, conv2d_blocks, conv_window, total_padding
from relaylang.ops.record import Integer, Ints, Op, OpPattern, Relation, RelationContext, String, attrs_class, tensor
from relaylang.ops.scales import one_or_each
from relaylang.ops.shapes import add_dim, change_layout, div_dim, mul_dim, need_rank, product, same_dim
from relaylang.ops.traits import Trait

F, OPAQUE = OpPattern.OUT_ELEMWISE_FUSABLE, OpPattern.OPAQUE


@attrs_class("relay.attrs.Conv2DWinogradAttrs")
class Conv2DWinogradAttrs:
    tile_size: int
    strides: Ints = (1, 1)
    padding: Ints = (0, 0)
    dilation: Ints = (1, 1)
    groups: int = 1
    channels: Integer | None = None
    kernel_size: Ints | None = None
    data_layout: String = "NCHW"
    kernel_layout: String = "OIHW"
    out_layout: String = ""
    out_dtype: str | None = None


@attrs_class("relay.attrs.Conv3DWinogradAttrs")
class Conv3DWinogradAttrs:
    tile_size: int
    strides: Ints = (1, 1, 1)
    padding: Ints = (0, 0, 0)
    dilation: Ints = (1, 1, 1)
    groups: int = 1
    channels: Integer | None = None
    kernel_size: Ints | None = None
    data_layout: str = "NCDHW"
    kernel_layout: str = "OIDHW"
    out_layout: str = ""
    out_dtype: str | None = None


@attrs_class("relay.attrs.ConvWinogradWeightTransformAttrs")
class ConvWinogradWeightTransformAttrs:
    tile_size: int


@attrs_class("relay.attrs.Conv2DWinogradNNPACKWeightTransformAttrs")
class Conv2DWinogradNNPACKWeightTransformAttrs:
    convolution_algorithm: int
    out_dtype: str | None = None


@attrs_class("relay.attrs.ConvGemmWeightTransformAttrs")
class ConvGemmWeightTransformAttrs:
    tile_N: int
    tile_K: int


@attrs_class("relay.attrs.DensePackAttrs")
class DensePackAttrs:
    units: Integer | None
    out_dtype: str | None = None
    weight_layout: String = "NC"


@attrs_class("relay.attrs.DensePackAttrs", in_metadata=True)
class FloatDensePackAttrs:
    units: Integer | None = None
    out_dtype: str | None = None
    weight_layout: String = "NC"


@attrs_class("relay.attrs.CorrelationAttrs")
class CorrelationAttrs:
    kernel_size: int = 1
    max_displacement: int = 1
    stride1: int = 1
    stride2: int = 1
    padding: Ints = (0, 0)
    is_multiply: bool = True
    layout: String = "NCHW"


@attrs_class("relay.attrs.DeformableConv2DAttrs")
class DeformableConv2DAttrs:
    strides: Ints = (1, 1)
    padding: Ints = (0, 0)
    dilation: Ints = (1, 1)
    deformable_groups: int = 1
    groups: int = 1
    channels: Integer | None = None
    kernel_size: Ints | None = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str | None = None


def window_extents(shape: Sequence[Dim], kernel: Sequence[Dim], attrs: AnyValue, ctx: RelationContext) -> list[Dim]:
    """The spatial extents of a convolution's result, for a shape in the order N, C, space."""
    rank = len(shape) - 2
    pads = total_padding(attrs.padding, rank, ctx)
    out: list[Dim] = []
    for i in range(rank):
        reach = add_dim(mul_dim(add_dim(kernel[i], -1), attrs.dilation[i]), 1)
        out.append(conv_window(shape[2 + i], pads[i], reach, attrs.strides[i], ctx))
    return out


def prepared(rank: int) -> Relation:
    """A convolution whose weight has a form of the backend's own, so that only the attributes give the result's type."""
    reference = "NC" + SPATIAL[rank]

    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data of a batch, channels and spatial axes in data_layout, weight in a form that another operator made.
        The result is (n, channels, ...) in out_layout, or else in data_layout, as of the convolution with kernel_size.
        Its element type is out_dtype, or else the data's.
        """
        data = tensor(types, 0, ctx)
        if attrs.kernel_size is None or attrs.channels is None:
            ctx.fail("the attributes channels and kernel_size must be given: they do not follow from the weight's type")
        check_window(attrs, rank, ("strides", "dilation", "kernel_size"), ctx)
        shape = change_layout(data.shape, attrs.data_layout, reference, ctx)
        change_layout([1] * (rank + 2), "OI" + SPATIAL[rank], attrs.kernel_layout, ctx, 1)
        shape = [shape[0], attrs.channels, *window_extents(shape, attrs.kernel_size, attrs, ctx)]
        out = change_layout(shape, reference, attrs.out_layout or attrs.data_layout, ctx)
        return TensorType(out, attrs.out_dtype or data.dtype)

    return rel


def winograd_weight_2d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes weight (channels, c, kh, kw). The result is (kh + tile_size - 1, kw + tile_size - 1, channels, c) of its
    element type.
    """
    weight = tensor(types, 0, ctx)
    need_rank(weight, 4, 0, ctx)
    channels, depth, *kernel = weight.shape
    return TensorType((*[add_dim(k, attrs.tile_size - 1) for k in kernel], channels, depth), weight.dtype)


def winograd_weight_3d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes weight (channels, c, kd, kh, kw). The result is (td, th, tw, channels, c) of its element type, with t = k +
    tile_size - 1. Where kd is not from 3 to 7, it is (th, tw, kd, channels, c).
    """
    weight = tensor(types, 0, ctx)
    need_rank(weight, 5, 0, ctx)
    channels, inputs, *kernel = weight.shape
    if not isinstance(kernel[0], int):
        ctx.fail(f"must have a known depth, not `{weight!r}`", 0)
    tiles = [add_dim(k, attrs.tile_size - 1) for k in kernel]
    assert isinstance(kernel[0], int)
    shape = tiles if 2 < kernel[0] < 8 else [*tiles[1:], kernel[0]]
    return TensorType((*shape, channels, inputs), weight.dtype)


def winograd_weight_nnpack(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes weight (channels, c, kh, kw). The result is (channels, c, 8, 8) of out_dtype, or else of its element type."""
    weight = tensor(types, 0, ctx)
    need_rank(weight, 4, 0, ctx)
    return TensorType((*weight.shape[:2], 8, 8), attrs.out_dtype or weight.dtype)


def gemm_weight(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes weight (kh, kw, c, channels) as a matrix of (kh * kw * c, channels), in tiles filled up with zeros. The
    result is (channels / tile_N, rows / tile_K, tile_K, tile_N) of its element type. For 8-bit weights it is (...,
    tile_N, tile_K).
    """
    weight = tensor(types, 0, ctx)
    need_rank(weight, 4, 0, ctx)
    columns, rows = attrs.tile_N, attrs.tile_K
    if columns <= 0 or rows <= 0:
        ctx.fail(f"tile_N={columns} and tile_K={rows} must be positive")
    total, channels = product(weight.shape[:3]), weight.shape[3]
    down = div_dim(mul_dim(div_dim(add_dim(total, 4 * rows - 1), 4 * rows), 4 * rows), rows)
    across = div_dim(add_dim(channels, columns - 1), columns)
    inner = (columns, rows) if weight.dtype in ("int8", "uint8") else (rows, columns)
    return TensorType((across, down, *inner), weight.dtype)


def packed_dense(ranks: tuple[int, ...], typed: bool) -> Relation:
    """A product with a weight of (units / tile, inputs, tile); `typed`: the result's element type must be given."""

    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data (m, n), weight (units / tile, n, tile). The result is (m, units) of out_dtype. Only
        nn.contrib_dense_pack defaults to the data's element type.
        """
        data, weight = tensor(types, 0, ctx), tensor(types, 1, ctx)
        need_rank(data, 2, 0, ctx)
        if len(weight.shape) not in ranks:
            ctx.fail(f"must have {' or '.join(map(str, ranks))} dimensions, not `{weight!r}`", 1)
        if typed and attrs.out_dtype is None:
            ctx.fail("the attribute out_dtype must be given")
        units = mul_dim(weight.shape[0], weight.shape[2])
        inputs = mul_dim(weight.shape[1], weight.shape[3] if len(weight.shape) == 4 else 1)
        if not same_dim(data.shape[1], inputs):
            ctx.fail(f"takes {inputs} inputs, but the data has {data.shape[1]}", 1)
        if len(types) > 2:
            one_or_each(types, 2, data.shape[0], "zero points", ctx)
            one_or_each(types, 3, units, "zero points", ctx)
        return TensorType((data.shape[0], units), attrs.out_dtype or data.dtype)

    return rel


def correlation(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data1 and data2 (n, c, h, w). The result is (n, k * k, h', w') of the first's element type, with k = 2 *
    (max_displacement // stride2) + 1. It has a channel for each displacement, a place for each patch of the first.
    """
    first, second = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_rank(first, 4, 0, ctx)
    need_rank(second, 4, 1, ctx)
    if attrs.kernel_size < 1 or attrs.kernel_size % 2 == 0:
        ctx.fail(f"kernel_size={attrs.kernel_size} must be an odd number")
    if attrs.max_displacement < 0:
        ctx.fail(f"max_displacement={attrs.max_displacement} must not be negative")
    if attrs.stride1 <= 0 or attrs.stride2 <= 0:
        ctx.fail(f"stride1={attrs.stride1} and stride2={attrs.stride2} must be positive")
    pads = total_padding(attrs.padding, 2, ctx)
    border = attrs.max_displacement + (attrs.kernel_size - 1) // 2
    around = 2 * (attrs.max_displacement // attrs.stride2) + 1
    places = [
        div_dim(add_dim(extent, pad - 2 * border + attrs.stride1 - 1), attrs.stride1)
        for extent, pad in zip((first.shape[2], second.shape[3]), pads)
    ]
    return TensorType((first.shape[0], around * around, *places), first.dtype)


def deformable_conv2d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (n, c, h, w) in data_layout, weight (channels, c / groups, kh, kw) in kernel_layout, and offset. The
    offset is (n, 2 * deformable_groups * kh * kw, oh, ow) of the data's element type. The result is (n, channels, oh,
    ow), as of nn.conv2d, of out_dtype, or else of the data's element type.
    """
    data = tensor(types, 0, ctx)
    check_window(attrs, 2, ("strides", "dilation", "kernel_size"), ctx)
    if attrs.groups < 1:
        ctx.fail(f"groups={attrs.groups} must be positive")
    shape = change_layout(data.shape, attrs.data_layout, "NCHW", ctx)
    depth = div_dim(shape[1], attrs.groups)
    if attrs.kernel_size is not None and attrs.channels is not None:
        weight: list[Dim] = [attrs.channels, depth, *attrs.kernel_size]
        ctx.unify(2, TensorType(change_layout(weight, "OIHW", attrs.kernel_layout, ctx, 2), data.dtype))
    else:
        if not isinstance(types[2], TensorType):
            return None
        weight = change_layout(types[2].shape, attrs.kernel_layout, "OIHW", ctx, 2)
        if not same_dim(depth, weight[1]):
            ctx.fail(f"takes {weight[1]} input channels, but the data has {shape[1]} in {attrs.groups} groups", 2)
        if attrs.channels is not None and not same_dim(attrs.channels, weight[0]):
            ctx.fail(f"makes {weight[0]} output channels, but channels={attrs.channels}", 2)
        if attrs.kernel_size is not None and not all(map(same_dim, attrs.kernel_size, weight[2:])):
            ctx.fail(f"has a kernel of {weight[2:]}, but kernel_size={list(attrs.kernel_size)}", 2)
    out = window_extents(shape, weight[2:], attrs, ctx)
    moves = mul_dim(product(weight[2:]), 2 * attrs.deformable_groups)
    ctx.unify(1, TensorType(change_layout([shape[0], moves, *out], "NCHW", attrs.data_layout, ctx, 1), data.dtype))
    out_shape = change_layout([shape[0], weight[0], *out], "NCHW", attrs.out_layout or attrs.data_layout, ctx)
    return TensorType(out_shape, attrs.out_dtype or data.dtype)


ARGS = ("data", "weight")
PREFIX = "nn.contrib_conv2d_"
QUANTISED = ("input_zero_point", "weight_zero_point", "input_scale", "weight_scale")

OPS = (
    Op(
        "nn.contrib_conv2d_winograd_without_weight_transform",
        ARGS,
        Conv2DWinogradAttrs,
        prepared(2),
        F,
        10,
        needs=(0,),
        doc="2-D convolution with a weight in Winograd form.",
        takes="float float",
        python="(..., out_dtype='')",
        example="fn (%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(6, 6, 3, 4), float32]) { "
        "nn.contrib_conv2d_winograd_without_weight_transform(%x, %w, tile_size=4, channels=4, "
        "kernel_size=[3, 3]) }",
    ),
    Op(
        "nn.contrib_conv2d_winograd_weight_transform",
        ARGS[1:],
        ConvWinogradWeightTransformAttrs,
        winograd_weight_2d,
        F,
        10,
        doc="A 2-D convolution's weight in Winograd form.",
        takes="float",
    ),
    Op(
        "nn.contrib_conv2d_winograd_nnpack_weight_transform",
        ARGS[1:],
        Conv2DWinogradNNPACKWeightTransformAttrs,
        winograd_weight_nnpack,
        OPAQUE,
        10,
        doc="A 2-D convolution's weight in NNPACK's Winograd form.",
        python="(..., out_dtype='')",
    ),
    Op(
        "nn.contrib_conv2d_gemm_without_weight_transform",
        ARGS,
        Conv2DAttrs,
        prepared(2),
        F,
        10,
        needs=(0,),
        doc="2-D convolution by a matrix product with a weight in tiles.",
        python="(..., out_dtype='')",
        example="fn (%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(1, 7, 4, 4), float32]) { "
        "nn.contrib_conv2d_gemm_without_weight_transform(%x, %w, channels=4, kernel_size=[3, 3], "
        'data_layout="NHWC", kernel_layout="HWIO") }',
    ),
    Op(
        "nn.contrib_conv2d_gemm_weight_transform",
        ("weights",),
        ConvGemmWeightTransformAttrs,
        gemm_weight,
        F,
        10,
        doc="A 2-D convolution's weight in tiles for a matrix product.",
    ),
    Op(
        "nn.contrib_conv3d_winograd_without_weight_transform",
        ARGS,
        Conv3DWinogradAttrs,
        prepared(3),
        F,
        10,
        needs=(0,),
        doc="3-D convolution with a weight in Winograd form.",
        takes="float float",
        python="(..., out_dtype='')",
        example="fn (%x: Tensor[(1, 3, 8, 8, 8), float32], %w: Tensor[(6, 6, 6, 3, 4), float32]) { "
        "nn.contrib_conv3d_winograd_without_weight_transform(%x, %w, tile_size=4, channels=4, "
        "kernel_size=[3, 3, 3]) }",
    ),
    Op(
        "nn.contrib_conv3d_winograd_weight_transform",
        ARGS[1:],
        ConvWinogradWeightTransformAttrs,
        winograd_weight_3d,
        F,
        10,
        doc="A 3-D convolution's weight in Winograd form.",
        takes="float",
    ),
    Op(
        "nn.contrib_conv2d_NCHWc",
        ARGS,
        Conv2DAttrs,
        conv2d_blocks,
        F,
        10,
        needs=(0,),
        doc="2-D convolution of channels in blocks.",
        traits={Trait.CONV, Trait.BLOCKED},
        of="nn.conv2d",
        python="nn.contrib_conv2d_nchwc(data, kernel, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, "
        "channels=None, kernel_size=None, data_layout='NCHW8c', kernel_layout='OIHW', out_layout='', "
        "out_dtype='')",
        example="fn (%x: Tensor[(1, 1, 8, 8, 4), float32], %w: Tensor[(2, 1, 3, 3, 4, 4), float32]) { "
        'nn.contrib_conv2d_NCHWc(%x, %w, channels=8, kernel_size=[3, 3], data_layout="NCHW4c", '
        'kernel_layout="OIHW4i4o", out_layout="NCHW4c") }',
    ),
    Op(
        "nn.contrib_depthwise_conv2d_NCHWc",
        ARGS,
        Conv2DAttrs,
        conv2d_blocks,
        F,
        10,
        needs=(0,),
        doc="2-D convolution of each channel by itself, of channels in blocks.",
        traits={Trait.CONV, Trait.BLOCKED},
        of="nn.conv2d",
        python="nn.contrib_depthwise_conv2d_nchwc(data, kernel, strides=(1, 1), padding=(0, 0), dilation=(1, 1), "
        "groups=1, channels=None, kernel_size=None, data_layout='NCHW8c', kernel_layout='OIHW', "
        "out_layout='', out_dtype='')",
        example="fn (%x: Tensor[(1, 2, 8, 8, 4), float32], %w: Tensor[(2, 1, 3, 3, 1, 4), float32]) { "
        "nn.contrib_depthwise_conv2d_NCHWc(%x, %w, groups=8, channels=8, kernel_size=[3, 3], "
        'data_layout="NCHW4c", kernel_layout="OIHW1i4o", out_layout="NCHW4c") }',
    ),
    Op(
        "nn.contrib_dense_pack",
        ARGS,
        FloatDensePackAttrs,
        packed_dense((3, 4), False),
        F,
        10,
        doc="Product with a weight in tiles.",
        traits={Trait.MATMUL, Trait.BLOCKED},
        of="nn.dense",
        python="(data, weight, weight_layout='NC', units=None, out_dtype='')",
        example="fn (%x: Tensor[(2, 8), float32], %w: Tensor[(1, 8, 4), float32]) { "
        'nn.contrib_dense_pack(%x, %w, units=4, weight_layout="NC4n") }',
    ),
    Op(
        "qnn.contrib_dense_pack",
        (*ARGS, *QUANTISED),
        DensePackAttrs,
        packed_dense((4,), True),
        F,
        11,
        needs=(0, 1),
        doc="Quantized product with a weight in tiles, to the sums before they are scaled.",
        takes="integer integer integer integer float float",
        traits={Trait.MATMUL, Trait.QUANTISED},
        of="nn.contrib_dense_pack",
        python="(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, "
        "kernel_layout: weight_layout = 'NC', units=None, out_dtype='int32')",
        example="fn (%x: Tensor[(2, 8), uint8], %w: Tensor[(1, 2, 4, 4), int8]) { "
        'qnn.contrib_dense_pack(%x, %w, 0, 0, 0.5f, 0.5f, units=4, out_dtype="int32") }',
    ),
    Op(
        "nn.correlation",
        ("data1", "data2"),
        CorrelationAttrs,
        correlation,
        F,
        2,
        doc="How much patches of two images agree, for each displacement.",
        takes="float[n,c,h,w] same[n,c,h,w]",
        python="(..., kernel_size, max_displacement, stride1, stride2, padding, is_multiply, layout)",
    ),
    Op(
        "nn.deformable_conv2d",
        ("data", "offset", "weight"),
        DeformableConv2DAttrs,
        deformable_conv2d,
        F,
        5,
        needs=(0,),
        doc="2-D convolution at places that an offset moves.",
        takes="float same same",
        python="(..., out_dtype='')",
        example="fn (%x: Tensor[(1, 3, 8, 8), float32], %offset: Tensor[(1, 18, 6, 6), float32], "
        "%w: Tensor[(4, 3, 3, 3), float32]) { nn.deformable_conv2d(%x, %offset, %w, channels=4, "
        "kernel_size=[3, 3]) }",
    ),
)
