"""Operators on images: resizing, cropping, sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import Dim, TensorType, Type
from relaylang.ops.nn_conv import conv_window, total_padding
from relaylang.ops.record import Floats, Ints, Op, OpPattern, Relation, RelationContext, String, attrs_class, tensor
from relaylang.ops.shapes import add_dim, change_layout, mul_dim, need_images, need_pixels, need_rank, same_dim

INJECTIVE = OpPattern.INJECTIVE
#: Today's words for the methods of resizing.
METHODS = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


@attrs_class("relay.attrs.Resize1DAttrs")
class Resize1DAttrs:
    size: Ints | None = None
    roi: Floats | None = None
    layout: str = "NCW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = "round"
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: str | None = None


@attrs_class("relay.attrs.Resize2DAttrs")
class Resize2DAttrs:
    size: Ints | None = None
    roi: Floats | None = None
    layout: str = "NCHW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = "round"
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: str | None = None


@attrs_class("relay.attrs.Resize3DAttrs")
class Resize3DAttrs:
    size: Ints | None = None
    roi: Floats | None = None
    layout: str = "NCDHW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = "round"
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: str | None = None


@attrs_class("relay.attrs.CropAndResizeAttrs")
class CropAndResizeAttrs:
    crop_size: Ints | None = None
    layout: str = "NCHW"
    method: str = "bilinear"
    extrapolation_value: float = 0.0
    out_dtype: str | None = None


@attrs_class("relay.attrs.Dilation2DAttrs")
class Dilation2DAttrs:
    strides: Ints = (1, 1)
    padding: Ints = (0, 0)
    dilations: Ints = (1, 1)
    data_layout: str = "NCHW"
    kernel_layout: str = "IHW"
    out_dtype: str | None = None


@attrs_class("relay.attrs.AffineGridAttrs")
class AffineGridAttrs:
    target_shape: Ints


@attrs_class("relay.attrs.GridSampleAttrs")
class GridSampleAttrs:
    method: String = "bilinear"
    layout: String = "NCHW"
    padding_mode: String = "zeros"
    align_corners: bool = True


def resize(reference: str) -> Relation:
    """Resizing of the spatial axes of a reference layout (`NCHW`)."""
    rank = len(reference) - 2

    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data of a batch, channels and spatial axes in the attribute layout. The result has size for the spatial
        extents, and out_dtype or else the data's element type.
        """
        data = tensor(types, 0, ctx)
        if attrs.size is None or len(attrs.size) != rank:
            ctx.fail(f"size must have {rank} number{'s' * (rank != 1)}")
        if attrs.roi is None or len(attrs.roi) != 2 * rank:
            ctx.fail(f"roi must have {2 * rank} numbers")
        shape = change_layout(data.shape, attrs.layout, reference, ctx)
        if 0 not in attrs.size:
            need_pixels(data.shape, attrs.layout, reference, ctx)
        shape[2:] = attrs.size
        return TensorType(change_layout(shape, reference, attrs.layout, ctx), attrs.out_dtype or data.dtype)

    return rel


def crop_and_resize(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) or (n, h, w, c) by layout, boxes (k, 4), box_indices (k,). The result has k for n and
    crop_size for the spatial extents. Its element type is out_dtype, or else the data's.
    """
    data, boxes = tensor(types, 0, ctx), tensor(types, 1, ctx)
    tensor(types, 2, ctx)
    if attrs.crop_size is None or len(attrs.crop_size) != 2:
        ctx.fail("crop_size must have 2 numbers")
    if not boxes.shape:
        ctx.fail("must have a first dimension that counts the boxes", 1)
    shape = change_layout(data.shape, attrs.layout, "NCHW", ctx)
    need_images(shape[0], boxes.shape[0], ctx)
    if boxes.shape[0] != 0:
        need_pixels(data.shape, attrs.layout, "NCHW", ctx)
    shape = [boxes.shape[0], shape[1], *attrs.crop_size]
    return TensorType(change_layout(shape, "NCHW", attrs.layout, ctx), attrs.out_dtype or data.dtype)


def dilation2d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in data_layout, weight (c, kh, kw) in kernel_layout. The result is (n, c, ...), of
    out_dtype, or else of the data's element type. Each spatial extent is (extent + padding - dilations * (kernel - 1) -
    1) // strides + 1.
    """
    data, weight = tensor(types, 0, ctx), tensor(types, 1, ctx)
    shape = change_layout(data.shape, attrs.data_layout, "NCHW", ctx)
    kernel = change_layout(weight.shape, attrs.kernel_layout, "IHW", ctx, 1)
    if not {len(attrs.strides), len(attrs.dilations)} <= {2, 4} or min(*attrs.strides, *attrs.dilations) < 1:
        ctx.fail("strides and dilations must have 2 positive numbers, or 4, of which the first two count")
    if not same_dim(shape[1], kernel[0]):
        ctx.fail(f"has {kernel[0]} channels, but the data has {shape[1]}", 1)
    pads = total_padding(attrs.padding, 2, ctx)
    out: list[Dim] = [shape[0], kernel[0]]
    for i in range(2):
        reach = add_dim(mul_dim(add_dim(kernel[1 + i], -1), attrs.dilations[i]), 1)
        out.append(conv_window(shape[2 + i], pads[i], reach, attrs.strides[i], ctx))
    return TensorType(change_layout(out, "NCHW", attrs.data_layout, ctx), attrs.out_dtype or data.dtype)


def affine_grid(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, 2, 3); the result is (n, 2, target_shape) of its element type."""
    data = tensor(types, 0, ctx)
    if len(data.shape) != 3 or not same_dim(data.shape[1], 2) or not same_dim(data.shape[2], 3):
        ctx.fail(f"must have the shape (batch, 2, 3), not `{data!r}`", 0)
    if len(attrs.target_shape) != 2:
        ctx.fail("target_shape must have 2 numbers")
    return TensorType((data.shape[0], 2, *attrs.target_shape), data.dtype)


def grid_sample(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) and grid (n, 2, oh, ow). In three dimensions these are (n, c, d, h, w) and (n, 3, od, oh,
    ow). The result has the data's batch, channels and element type, and the grid's spatial extents.
    """
    data, grid = tensor(types, 0, ctx), tensor(types, 1, ctx)
    rank = len(data.shape)
    if rank not in (4, 5):
        ctx.fail(f"must have 4 or 5 dimensions, not `{data!r}`", 0)
    need_rank(grid, rank, 1, ctx)
    reference = "NCHW" if rank == 4 else "NCDHW"
    shape = change_layout(data.shape, attrs.layout, reference, ctx)
    need_pixels(data.shape, attrs.layout, reference, ctx)
    if not same_dim(shape[0], grid.shape[0]) or not same_dim(grid.shape[1], rank - 2):
        ctx.fail(f"must have the extents {shape[0]} and {rank - 2} at axes 0 and 1, not `{grid!r}`", 1)
    shape[2:] = grid.shape[2:]
    return TensorType(change_layout(shape, reference, attrs.layout, ctx), data.dtype)


DATA = ("data",)

OPS = (
    Op(
        "image.resize1d",
        DATA,
        Resize1DAttrs,
        resize("NCW"),
        INJECTIVE,
        5,
        doc="An image of another size, 1-D, by the nearest pixel, linear or cubic.",
        python="(..., size, rounding_method='')",
        example='fn (%x: Tensor[(1, 3, 8), float32]) { image.resize1d(%x, size=[16], layout="NCW", roi=[0f, 0f]) }',
    ),
    Op(
        "image.resize2d",
        DATA,
        Resize2DAttrs,
        resize("NCHW"),
        INJECTIVE,
        5,
        doc="An image of another size, 2-D, by the nearest pixel, linear or cubic.",
        python="(..., size, rounding_method='')",
        example="fn (%x: Tensor[(1, 3, 8, 8), float32]) { image.resize2d(%x, size=[16, 16], roi=[0f, 0f, 0f, 0f]) }",
    ),
    Op(
        "image.resize3d",
        DATA,
        Resize3DAttrs,
        resize("NCDHW"),
        INJECTIVE,
        5,
        doc="An image of another size, 3-D, by the nearest pixel, linear or cubic.",
        python="(..., size, rounding_method='')",
        example="fn (%x: Tensor[(1, 3, 4, 8, 8), float32]) { "
        'image.resize3d(%x, size=[8, 16, 16], layout="NCDHW", roi=[0f, 0f, 0f, 0f, 0f, 0f]) }',
    ),
    Op(
        "image.crop_and_resize",
        ("data", "boxes", "box_indices"),
        CropAndResizeAttrs,
        crop_and_resize,
        INJECTIVE,
        5,
        doc="Boxes cut out of images and brought to one size.",
        takes="tensor[_,_,_,_] float[n,4] integer[n]",
        python="(..., crop_size, layout, extrapolation_value=0)",
        example="fn (%x: Tensor[(1, 8, 8, 3), float32], %boxes: Tensor[(2, 4), float32], %indices: Tensor[(2), int32]) { "
        'image.crop_and_resize(%x, %boxes, %indices, crop_size=[4, 4], layout="NHWC", method="bilinear") }',
    ),
    Op(
        "image.dilation2d",
        ("data", "weight"),
        Dilation2DAttrs,
        dilation2d,
        OpPattern.OUT_ELEMWISE_FUSABLE,
        2,
        doc="The largest sum of data and weight in each 2-D window.",
        takes="number same",
        python="(..., out_dtype='')",
        example="fn (%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(3, 3, 3), float32]) { "
        "image.dilation2d(%x, %w, strides=[1, 1], dilations=[1, 1]) }",
    ),
    Op(
        "image.affine_grid",
        DATA,
        AffineGridAttrs,
        affine_grid,
        INJECTIVE,
        5,
        doc="The places in an image for each pixel of its affine transform.",
        takes="float",
        python="(..., target_shape=None)",
        example="fn (%x: Tensor[(1, 2, 3), float32]) { image.affine_grid(%x, target_shape=[8, 8]) }",
    ),
    Op(
        "image.grid_sample",
        ("data", "grid"),
        GridSampleAttrs,
        grid_sample,
        INJECTIVE,
        5,
        doc="An image's values at the places that a grid gives.",
        takes="float same",
        example="fn (%x: Tensor[(1, 3, 8, 8), float32], %grid: Tensor[(1, 2, 4, 4), float32]) { image.grid_sample(%x, %grid) }",
    ),
)
