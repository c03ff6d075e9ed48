"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import Dim, TensorType, TupleType, Type, TypeVar
from relaylang.ops.nn_conv import SPATIAL, check_window, total_padding
from relaylang.ops.record import Ints, Op, OpPattern, Relation, RelationContext, String, attrs_class, tensor
from relaylang.ops.shapes import add_dim, axis_of, div_dim, split_factor, split_layout
from relaylang.ops.traits import Trait

F = OpPattern.OUT_ELEMWISE_FUSABLE


@attrs_class("relay.attrs.MaxPool1DAttrs")
class MaxPool1DAttrs:
    pool_size: Ints
    strides: Ints = (1,)
    dilation: Ints = (1,)
    padding: Ints = (0,)
    layout: str = "NCW"
    out_layout: String = ""
    ceil_mode: bool = False


@attrs_class("relay.attrs.MaxPool2DAttrs")
class MaxPool2DAttrs:
    pool_size: Ints
    strides: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding: Ints = (0, 0)
    layout: String = "NCHW"
    out_layout: String = ""
    ceil_mode: bool = False


@attrs_class("relay.attrs.MaxPool3DAttrs")
class MaxPool3DAttrs:
    pool_size: Ints
    strides: Ints = (1, 1, 1)
    dilation: Ints = (1, 1, 1)
    padding: Ints = (0, 0, 0)
    layout: str = "NCDHW"
    out_layout: String = ""
    ceil_mode: bool = False


@attrs_class("relay.attrs.AvgPool1DAttrs")
class AvgPool1DAttrs(MaxPool1DAttrs):
    count_include_pad: bool = False


@attrs_class("relay.attrs.AvgPool2DAttrs")
class AvgPool2DAttrs(MaxPool2DAttrs):
    count_include_pad: bool = False


@attrs_class("relay.attrs.AvgPool3DAttrs")
class AvgPool3DAttrs(MaxPool3DAttrs):
    count_include_pad: bool = False


@attrs_class("relay.attrs.AvgPool2DAttrs", in_metadata=True)
class AvgPool2DGradAttrs(AvgPool2DAttrs):
    pass


@attrs_class("relay.attrs.GlobalPool2DAttrs")
class GlobalPool2DAttrs:
    layout: String = "NCHW"
    out_layout: String = ""


@attrs_class("relay.attrs.AdaptivePool1DAttrs")
class AdaptivePool1DAttrs:
    output_size: Ints | None = ()
    layout: str = "NCW"
    out_layout: String = ""


@attrs_class("relay.attrs.AdaptivePool2DAttrs")
class AdaptivePool2DAttrs:
    output_size: Ints | None = ()
    layout: str = "NCHW"
    out_layout: String = ""


@attrs_class("relay.attrs.AdaptivePool3DAttrs")
class AdaptivePool3DAttrs:
    output_size: Ints | None = ()
    layout: str = "NCDHW"
    out_layout: String = ""


def spatial_axes(ty: TensorType, layout: str, rank: int, ctx: RelationContext) -> list[int]:
    """The positions of the spatial axes, which must be whole."""
    axes = []
    try:
        for letter in SPATIAL[rank]:
            axes.append(axis_of(layout, letter))
            if axes[-1] < 0 or split_factor(layout, letter) != 1:
                ctx.fail(f"layout={layout!r} must have an axis {letter} that is not split")
    except ValueError:
        ctx.fail(f"layout={layout!r} is not a layout")
    if len(split_layout(layout)) != len(ty.shape):
        ctx.fail(f"has {len(ty.shape)} dimensions, but the layout `{layout}` has {len(split_layout(layout))}", 0)
    return axes


def pooled(size: Dim, pad: int, window: int, dilation: int, stride: int, ceil: bool) -> Dim:
    """The extent of a pool's result along an axis."""
    reach = (window - 1) * dilation + 1
    if isinstance(size, TypeVar):
        return add_dim(div_dim(add_dim(size, pad - reach + (stride - 1 if ceil else 0)), stride), 1)
    if not isinstance(size, int):
        return size
    room = size + pad - reach
    return (room + stride - 1 if ceil else room) // stride + 1


def pool_shape(rank: int, data: TensorType, attrs: AnyValue, ctx: RelationContext, dilated: bool = True) -> TensorType:
    """The type of a pool's result; without the attribute dilation, unless `dilated`."""
    check_window(attrs, rank, ("pool_size", "strides", "dilation") if dilated else ("pool_size", "strides"), ctx)
    dilation = attrs.dilation if dilated else (1,) * rank
    axes = spatial_axes(data, attrs.layout, rank, ctx)
    pads = total_padding(attrs.padding, rank, ctx)
    shape = list(data.shape)
    for i, axis in enumerate(axes):
        shape[axis] = pooled(shape[axis], pads[i], attrs.pool_size[i], dilation[i], attrs.strides[i], attrs.ceil_mode)
    return TensorType(shape, data.dtype)


def pool(rank: int) -> Relation:
    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data of a batch, channels and spatial axes in the attribute layout (NCW, NCHW, NCDHW). The result has
        its element type. Each spatial extent is (extent + padding - dilation * (pool_size - 1) - 1) // strides + 1,
        rounded up where ceil_mode.
        """
        return pool_shape(rank, tensor(types, 0, ctx), attrs, ctx)

    return rel


def global_pool(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in the attribute layout. The result is (n, c, 1, 1) of its element type."""
    data = tensor(types, 0, ctx)
    shape = list(data.shape)
    for axis in spatial_axes(data, attrs.layout, 2, ctx):
        shape[axis] = 1
    return TensorType(shape, data.dtype)


def adaptive_pool(rank: int) -> Relation:
    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data of a batch, channels and spatial axes in the attribute layout. The result has its element type and
        output_size for the spatial extents, which stay where it is not given.
        """
        data = tensor(types, 0, ctx)
        axes = spatial_axes(data, attrs.layout, rank, ctx)
        size = attrs.output_size or ()
        if len(size) > 1 and len(size) != rank:
            ctx.fail(f"output_size={list(size)} must have {rank} numbers, one for all, or none")
        shape = list(data.shape)
        for i, axis in enumerate(axes):
            if size:
                shape[axis] = size[i] if len(size) > 1 else size[0]
        return TensorType(shape, data.dtype)

    return rel


def pool_grad(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes the gradient of a pool's result and its data (n, c, h, w) in the attribute layout. The result has the
    data's type. TVM's own builder gives no dilation.
    """
    data = types[1]
    if isinstance(data, TensorType) and isinstance(types[0], TensorType):
        ctx.unify(0, pool_shape(2, data, attrs, ctx, dilated=bool(attrs.dilation)))
    return tensor(types, 1, ctx) if isinstance(types[1], TupleType) else types[1]


DATA = ("data",)

OPS = (
    Op(
        "nn.max_pool1d",
        DATA,
        MaxPool1DAttrs,
        pool(1),
        F,
        2,
        doc="The largest element of each 1-D window.",
        traits={Trait.POOL, Trait.LARGEST},
        python="(..., pool_size=(1,))",
    ),
    Op(
        "nn.max_pool2d",
        DATA,
        MaxPool2DAttrs,
        pool(2),
        F,
        2,
        doc="The largest element of each 2-D window.",
        traits={Trait.POOL, Trait.LARGEST},
        python="(..., pool_size=(1, 1))",
    ),
    Op(
        "nn.max_pool3d",
        DATA,
        MaxPool3DAttrs,
        pool(3),
        F,
        2,
        doc="The largest element of each 3-D window.",
        traits={Trait.POOL, Trait.LARGEST},
        python="(..., pool_size=(1, 1, 1))",
    ),
    Op(
        "nn.avg_pool1d",
        DATA,
        AvgPool1DAttrs,
        pool(1),
        F,
        2,
        doc="The mean of each 1-D window.",
        takes="number",
        traits={Trait.POOL, Trait.AVERAGE},
        python="(..., pool_size=(1,))",
    ),
    Op(
        "nn.avg_pool2d",
        DATA,
        AvgPool2DAttrs,
        pool(2),
        F,
        2,
        doc="The mean of each 2-D window.",
        takes="number",
        traits={Trait.POOL, Trait.AVERAGE},
        python="(..., pool_size=(1, 1))",
    ),
    Op(
        "nn.avg_pool3d",
        DATA,
        AvgPool3DAttrs,
        pool(3),
        F,
        2,
        doc="The mean of each 3-D window.",
        takes="number",
        traits={Trait.POOL, Trait.AVERAGE},
        python="(..., pool_size=(1, 1, 1))",
    ),
    Op(
        "nn.global_max_pool2d",
        DATA,
        GlobalPool2DAttrs,
        global_pool,
        F,
        2,
        doc="The largest element over the spatial axes.",
        traits={Trait.GLOBAL_POOL, Trait.LARGEST},
    ),
    Op(
        "nn.global_avg_pool2d",
        DATA,
        GlobalPool2DAttrs,
        global_pool,
        F,
        2,
        doc="The mean over the spatial axes.",
        takes="number",
        traits={Trait.GLOBAL_POOL, Trait.AVERAGE},
    ),
    Op(
        "nn.adaptive_max_pool1d",
        DATA,
        AdaptivePool1DAttrs,
        adaptive_pool(1),
        F,
        10,
        doc="The largest element of each of a number of 1-D windows.",
        traits={Trait.ADAPTIVE_POOL, Trait.LARGEST},
        python="(..., output_size=None)",
    ),
    Op(
        "nn.adaptive_max_pool2d",
        DATA,
        AdaptivePool2DAttrs,
        adaptive_pool(2),
        F,
        10,
        doc="The largest element of each of a number of 2-D windows.",
        traits={Trait.ADAPTIVE_POOL, Trait.LARGEST},
        python="(..., output_size=None)",
    ),
    Op(
        "nn.adaptive_max_pool3d",
        DATA,
        AdaptivePool3DAttrs,
        adaptive_pool(3),
        F,
        10,
        doc="The largest element of each of a number of 3-D windows.",
        traits={Trait.ADAPTIVE_POOL, Trait.LARGEST},
        python="(..., output_size=None)",
    ),
    Op(
        "nn.adaptive_avg_pool1d",
        DATA,
        AdaptivePool1DAttrs,
        adaptive_pool(1),
        F,
        10,
        doc="The mean of each of a number of 1-D windows.",
        takes="number",
        traits={Trait.ADAPTIVE_POOL, Trait.AVERAGE},
        python="(..., output_size=None)",
    ),
    Op(
        "nn.adaptive_avg_pool2d",
        DATA,
        AdaptivePool2DAttrs,
        adaptive_pool(2),
        F,
        10,
        doc="The mean of each of a number of 2-D windows.",
        takes="number",
        traits={Trait.ADAPTIVE_POOL, Trait.AVERAGE},
        python="(..., output_size=None)",
    ),
    Op(
        "nn.adaptive_avg_pool3d",
        DATA,
        AdaptivePool3DAttrs,
        adaptive_pool(3),
        F,
        10,
        doc="The mean of each of a number of 3-D windows.",
        takes="number",
        traits={Trait.ADAPTIVE_POOL, Trait.AVERAGE},
        python="(..., output_size=None)",
    ),
    Op(
        "nn.max_pool2d_grad",
        ("data", "grad"),
        MaxPool2DAttrs,
        pool_grad,
        F,
        2,
        needs=(),
        doc="The gradient of max pooling.",
        takes="number same",
        python="(out_grad, data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout='NCHW', out_layout='', ceil_mode=False)",
        example="fn (%grad: Tensor[(1, 3, 4, 4), float32], %x: Tensor[(1, 3, 8, 8), float32]) { "
        "nn.max_pool2d_grad(%grad, %x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]) }",
    ),
    Op(
        "nn.avg_pool2d_grad",
        ("data", "grad"),
        AvgPool2DGradAttrs,
        pool_grad,
        F,
        2,
        needs=(),
        doc="The gradient of average pooling.",
        takes="number same",
        python="(out_grad, data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout='NCHW', out_layout='', "
        "ceil_mode=False, count_include_pad=False)",
        example="fn (%grad: Tensor[(1, 3, 4, 4), float32], %x: Tensor[(1, 3, 8, 8), float32]) { "
        "nn.avg_pool2d_grad(%grad, %x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]) }",
    ),
)
