"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.extents import OpenExtent, combine
from relaylang.ir.types import Dim, TensorType, Type
from relaylang.ops.record import Integer, Ints, Op, OpPattern, RelationContext, String, attrs_class, make_attrs, tensor
from relaylang.ops.shapes import add_dim, change_layout, div_dim, divided, mul_dim, same_dim
from relaylang.ops.traits import Trait

F = OpPattern.OUT_ELEMWISE_FUSABLE


@attrs_class("relay.attrs.Conv1DAttrs")
class Conv1DAttrs:
    strides: Ints = (1,)
    padding: Ints = (0, 0)
    dilation: Ints = (1,)
    groups: int = 1
    channels: Integer | None = None
    kernel_size: Ints | None = None
    data_layout: String = "NCW"
    kernel_layout: String = "OIW"
    out_layout: String = ""
    out_dtype: str | None = None


@attrs_class("relay.attrs.Conv2DAttrs")
class Conv2DAttrs:
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


@attrs_class("relay.attrs.Conv3DAttrs")
class Conv3DAttrs:
    strides: Ints = (1, 1, 1)
    padding: Ints = (0, 0, 0)
    dilation: Ints = (1, 1, 1)
    groups: int = 1
    channels: Integer | None = None
    kernel_size: Ints | None = None
    data_layout: String = "NCDHW"
    kernel_layout: String = "OIDHW"
    out_layout: String = ""
    out_dtype: str | None = None


@attrs_class("relay.attrs.Conv1DTransposeAttrs")
class Conv1DTransposeAttrs:
    channels: Integer | None = None
    kernel_size: Ints | None = None
    strides: Ints = (1,)
    output_padding: Ints = (0,)
    padding: Ints = (0,)
    dilation: Ints = (1,)
    groups: int = 1
    data_layout: str = "NCW"
    kernel_layout: str = "IOW"
    out_layout: str = ""
    out_dtype: str | None = None


@attrs_class("relay.attrs.Conv2DTransposeAttrs")
class Conv2DTransposeAttrs:
    channels: Integer | None = None
    kernel_size: Ints | None = None
    strides: Ints = (1, 1)
    output_padding: Ints = (0, 0)
    padding: Ints = (0, 0)
    dilation: Ints = (1, 1)
    groups: int = 1
    data_layout: str = "NCHW"
    kernel_layout: str = "IOHW"
    out_layout: str = ""
    out_dtype: str | None = None


@attrs_class("relay.attrs.Conv3DTransposeAttrs")
class Conv3DTransposeAttrs:
    channels: Integer | None = None
    kernel_size: Ints | None = None
    strides: Ints = (1, 1, 1)
    output_padding: Ints = (0, 0, 0)
    padding: Ints = (0, 0, 0)
    dilation: Ints = (1, 1, 1)
    groups: int = 1
    data_layout: String = "NCDHW"
    kernel_layout: String = "IODHW"
    out_layout: String = ""
    out_dtype: str | None = None


SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def total_padding(padding: Ints, rank: int, ctx: RelationContext) -> list[int]:
    """The number added to each spatial axis. `padding` holds one number for all axes, one for each, or one for each
    side.
    """
    if len(padding) == 1:
        return [2 * padding[0]] * rank
    if len(padding) == rank:
        return [2 * p for p in padding]
    if len(padding) == 2 * rank:
        return [padding[i] + padding[i + rank] for i in range(rank)]
    ctx.fail(f"padding={list(padding)} must have 1, {rank} or {2 * rank} numbers")
    raise AssertionError


def check_window(attrs: AnyValue, rank: int, names: Sequence[str], ctx: RelationContext) -> None:
    """Refuse attributes of the spatial axes that do not have one number for each axis."""
    for name in names:
        value = getattr(attrs, name)
        if value is not None and len(value) != rank:
            ctx.fail(f"{name}={list(value)} must have {rank} number{'s' * (rank != 1)}")
    if any(s <= 0 for s in attrs.strides):
        ctx.fail(f"strides={list(attrs.strides)} must be positive")


def _fits(name: str, value: AnyValue) -> list[str]:
    """The note with an attribute's value that a weight has."""
    return [f"`{name}={value}` fits this weight"]


def _groups(data: TensorType, attrs: AnyValue, weight: Sequence[Dim], ctx: RelationContext) -> list[str]:
    """The groups that a weight (channels, c / groups, ...) is for, where the call names none."""
    axes = SPATIAL.get(len(data.shape) - 2, "")
    channels = change_layout(data.shape, attrs.data_layout, "NC" + axes, ctx)[1]
    out, each = weight[:2]
    if not (isinstance(channels, int) and isinstance(out, int) and isinstance(each, int)):
        return []
    if attrs.groups != 1 or min(channels, out, each) < 1 or channels % each:
        return []
    groups = channels // each
    return [f"a weight of {each} of {channels} channels is for {groups} groups: add `groups={groups}`"] if out % groups == 0 else []


def _repairs(types: Sequence[Type], attrs: AnyValue, weight_shape: Sequence[Dim], reference: str, ctx: RelationContext) -> list[str]:
    """What may be meant by a weight of another shape than the attributes and the data give."""
    data, weight = types[0], types[1]
    if not isinstance(data, TensorType) or not isinstance(weight, TensorType) or len(weight.shape) != len(weight_shape):
        return []
    have = change_layout(weight.shape, attrs.kernel_layout, reference, ctx, 1)
    differs = [letter for letter, a, b in zip(reference, have, weight_shape) if a != b]
    axes = SPATIAL.get(len(data.shape) - 2, "")
    if differs == ["I"] and attrs.data_layout == "NC" + axes and have[reference.index("I")] == data.shape[-1]:
        return [f'the data has these channels in its last axis: write `data_layout="N{axes}C"`']
    if differs == ["I"] and (noted := _groups(data, attrs, have, ctx)):
        return noted
    if differs and set(differs) <= set(axes):
        return [f"`kernel_size={[have[reference.index(a)] for a in axes]}` takes this weight"]
    return [f"`channels={have[0]}` takes this weight"] if differs == ["O"] else []


def weight_type(
    types: Sequence[Type],
    attrs: AnyValue,
    channels: Dim,
    made: Sequence[Dim],
    reference: str,
    ctx: RelationContext,
) -> list[Dim] | None:
    """The weight's extents in its reference layout (`OIHW`, `IOHW`), which the attributes give or the argument has.

    `made` is the weight that the attributes give, where they name the channels and the kernel's size. None where it is
    not known.
    """
    weight = types[1]
    if attrs.kernel_size is not None and attrs.channels is not None:
        expected = change_layout(made, reference, attrs.kernel_layout, ctx, 1)
        dtype = weight.dtype if isinstance(weight, TensorType) else tensor(types, 0, ctx).dtype
        ctx.unify(1, TensorType(expected, dtype), lambda: _repairs(types, attrs, made, reference, ctx))
        return list(made)
    if not isinstance(weight, TensorType):
        return None
    return change_layout(weight.shape, attrs.kernel_layout, reference, ctx, 1)


def conv_window(size: Dim, pad: int, kernel: Dim, stride: int, ctx: RelationContext) -> Dim:
    """The extent of a sliding window's result along an axis."""
    if isinstance(size, int) and isinstance(kernel, int):
        return (size + pad - kernel) // stride + 1
    return add_dim(div_dim(combine("tir.Sub", add_dim(size, pad), kernel), stride), 1)


def _check_stated(attrs: AnyValue, kernel: Sequence[Dim], channels: Dim, ctx: RelationContext) -> None:
    """Refuse a weight whose kernel or output channels are others than the attributes say."""
    stated = list(attrs.kernel_size or ())
    for wanted, extent, letter in zip(stated, kernel, SPATIAL[len(kernel)]):
        if not same_dim(wanted, extent):
            ctx.fail(f"has a kernel of {extent} along {letter}, but kernel_size={stated}", 1, _fits("kernel_size", list(kernel)))
    if attrs.channels is not None and not same_dim(attrs.channels, channels):
        ctx.fail(f"makes {channels} output channels, but channels={attrs.channels}", 1, _fits("channels", channels))


def _stated_weight(
    weight: Type, attrs: AnyValue, channels: Dim, per_group: Dim, reference: str, ctx: RelationContext
) -> list[Dim] | None:
    """The weight's extents by the attributes, none where these are silent; None where the weight has to be known first."""
    if attrs.channels is None or attrs.kernel_size is None:
        return []
    if reference[0] == "G":
        return [attrs.groups, attrs.channels // attrs.groups, per_group, *attrs.kernel_size]
    # An extent that is found when a kernel runs is not taken to be the groups.
    if attrs.groups > 1 and not isinstance(channels, OpenExtent) and attrs.groups == channels and attrs.channels != attrs.groups:
        # The weight of a depthwise convolution may count its channels by input and multiplier.
        if not isinstance(weight, TensorType):
            return None
        if change_layout(weight.shape, attrs.kernel_layout, reference, ctx, 1)[0] == attrs.groups:
            return [channels, attrs.channels // attrs.groups, *attrs.kernel_size]
    return [attrs.channels, per_group, *attrs.kernel_size]


def conv(rank: int, types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Convolution over `rank` spatial axes."""
    data, weight = tensor(types, 0, ctx), types[1]
    axes = SPATIAL[rank]
    check_window(attrs, rank, ("strides", "dilation", "kernel_size"), ctx)
    shape = change_layout(data.shape, attrs.data_layout, "NC" + axes, ctx)
    grouped_kernel = attrs.groups > 1 and "G" in attrs.kernel_layout
    reference = "G" * grouped_kernel + "OI" + axes
    if attrs.groups < 1:
        ctx.fail(f"groups={attrs.groups} must be positive")
    if isinstance(shape[1], int) and shape[1] % attrs.groups:
        ctx.fail(f"groups={attrs.groups} does not divide the {shape[1]} channels of the data")
    per_group = div_dim(shape[1], attrs.groups) if attrs.groups > 1 else shape[1]
    weight_shape = _stated_weight(weight, attrs, shape[1], per_group, reference, ctx)
    if weight_shape is None:
        return None
    kernel = tuple(attrs.kernel_size or ())
    have = weight_type(types, attrs, shape[1], weight_shape, reference, ctx)
    if have is None:
        return None
    if weight_shape:
        channels: Dim = attrs.channels
    else:
        own = have[1:] if grouped_kernel else have
        channels = mul_dim(have[0], have[1]) if grouped_kernel else have[0]
        _check_stated(attrs, own[2:], channels, ctx)
        if not same_dim(per_group, own[1]):
            groups = f" in {attrs.groups} groups" if attrs.groups > 1 else ""
            noted = _groups(data, attrs, own, ctx)
            ctx.fail(f"takes {own[1]} input channels, but the data has {shape[1]}{groups}", 1, noted)
        kernel = tuple(own[2:])
    pads = total_padding(attrs.padding, rank, ctx)
    out: list[Dim] = [shape[0], channels]
    for i in range(rank):
        reach = add_dim(mul_dim(add_dim(kernel[i], -1), attrs.dilation[i]), 1)
        out.append(conv_window(shape[2 + i], pads[i], reach, attrs.strides[i], ctx))
    out = change_layout(out, "NC" + axes, attrs.out_layout or attrs.data_layout, ctx)
    return TensorType(out, attrs.out_dtype or data.dtype)


def conv_transpose(rank: int, types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Transposed convolution over `rank` spatial axes."""
    data = tensor(types, 0, ctx)
    axes = SPATIAL[rank]
    # TVM's importers give an output_padding of two numbers to the one-dimensional convolution, which takes the first
    more = () if rank == 1 and len(attrs.output_padding) > 1 else ("output_padding",)
    check_window(attrs, rank, ("strides", "dilation", "kernel_size", *more), ctx)
    shape = change_layout(data.shape, attrs.data_layout, "NC" + axes, ctx)
    grouped_kernel = attrs.groups > 1 and "G" in attrs.kernel_layout
    reference = "G" * grouped_kernel + "IO" + axes
    kernel = tuple(attrs.kernel_size or ())
    weight_shape: list[Dim] = []
    if attrs.channels is not None and attrs.kernel_size is not None:
        weight_shape = [shape[1], attrs.channels // attrs.groups, *kernel]
        if grouped_kernel:
            weight_shape = [attrs.groups, div_dim(shape[1], attrs.groups), *weight_shape[1:]]
    have = weight_type(types, attrs, shape[1], weight_shape, reference, ctx)
    if have is None:
        return None
    if weight_shape:
        channels: Dim = attrs.channels
    else:
        own = have[1:] if grouped_kernel else have
        channels = mul_dim(own[1], attrs.groups)  # TVM forgets the groups here, and computes with them
        _check_stated(attrs, own[2:], channels, ctx)
        if not same_dim(shape[1], mul_dim(own[0], have[0]) if grouped_kernel else own[0]):
            ctx.fail(f"takes {own[0]} input channels, but the data has {shape[1]}", 1)
        kernel = tuple(own[2:])
    pads = total_padding(attrs.padding, rank, ctx)
    out: list[Dim] = [shape[0], channels]
    for i in range(rank):
        size = shape[2 + i]
        if size == 0:
            ctx.fail(f"must have at least one entry along {axes[i]}, not `{data!r}`", 0)
        reach = add_dim(mul_dim(add_dim(kernel[i], -1), attrs.dilation[i]), 1)
        spread = mul_dim(add_dim(size, -1), attrs.strides[i])
        out.append(add_dim(add_dim(spread, reach), attrs.output_padding[i] - pads[i]))
    out = change_layout(out, "NC" + axes, attrs.out_layout or attrs.data_layout, ctx)
    return TensorType(out, attrs.out_dtype or data.dtype)


def conv2d_weight(data: TensorType, dtype: str, attrs: AnyValue, ctx: RelationContext) -> TensorType | None:
    """The type of a 2-D convolution's weight, where the attributes give the channels and the kernel's size."""
    if attrs.channels is None or attrs.kernel_size is None or len(attrs.kernel_size) != 2 or attrs.groups < 1:
        return None
    channels = change_layout(data.shape, attrs.data_layout, "NCHW", ctx)[1]
    if attrs.groups > 1 and (attrs.groups == channels != attrs.channels or "G" in attrs.kernel_layout):
        return None
    shape = [attrs.channels, div_dim(channels, attrs.groups), *attrs.kernel_size]
    return TensorType(change_layout(shape, "OIHW", attrs.kernel_layout, ctx, 1), dtype)


def own_layout(attrs: AnyValue, weight: Sequence[AnyValue]) -> AnyValue:
    """The attributes, with the blocks of a packed weight in their kernel_layout.

    The weight is (o, i, h, w, blocks of i, blocks of o). TVM leaves them out: `kernel_layout="OIHW"` beside a weight of
    6 dimensions.
    """
    layout = attrs.kernel_layout
    if len(layout) != 4 or not layout.isupper() or len(weight) != 6 or not all(isinstance(n, int) for n in weight[4:]):
        return attrs
    values = {name: getattr(attrs, name) for name in attrs.schema}
    return make_attrs(type(attrs), {**values, "kernel_layout": f"{layout}{weight[4]}i{weight[5]}o"})


def conv2d_blocks(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (n, c blocks, h, w, block) in data_layout and a weight. The weight is (channels, c / groups, kernel)
    in kernel_layout. Packed, it is (channel blocks, c blocks, kernel, block of c, block of channels). The result is in
    out_layout, or else in data_layout. Each spatial extent is (extent + padding - dilation * (kernel - 1) - 1) //
    strides + 1. The element type is out_dtype, or else the data's.
    """
    weight = types[1]
    return conv(2, types, own_layout(attrs, weight.shape) if isinstance(weight, TensorType) else attrs, ctx)


def conv1d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (n, c, w) in data_layout and weight (channels, c / groups, kernel) in kernel_layout. Where channels
    and kernel_size are given, the weight has the data's element type. The result is (n, channels, ...) in out_layout,
    or else in data_layout. Each spatial extent is (extent + padding - dilation * (kernel - 1) - 1) // strides + 1. The
    element type is out_dtype, or else the data's.
    """
    return conv(1, types, attrs, ctx)


def conv2d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (n, c, h, w) in data_layout and weight (channels, c / groups, kernel) in kernel_layout. Where channels
    and kernel_size are given, the weight has the data's element type. The result is (n, channels, ...) in out_layout,
    or else in data_layout. Each spatial extent is (extent + padding - dilation * (kernel - 1) - 1) // strides + 1. The
    element type is out_dtype, or else the data's.
    """
    return conv(2, types, attrs, ctx)


def conv3d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (n, c, d, h, w) in data_layout and weight (channels, c / groups, kernel) in kernel_layout. Where
    channels and kernel_size are given, the weight has the data's element type. The result is (n, channels, ...) in
    out_layout, or else in data_layout. Each spatial extent is (extent + padding - dilation * (kernel - 1) - 1) //
    strides + 1. The element type is out_dtype, or else the data's.
    """
    return conv(3, types, attrs, ctx)


def conv1d_transpose(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (n, c, w) in data_layout and weight (c, channels / groups, kernel) in kernel_layout. Where channels
    and kernel_size are given, the weight has the data's element type. The result is (n, channels, ...) in out_layout,
    or else in data_layout. Each spatial extent is strides * (extent - 1) + dilation * (kernel - 1) + 1 - padding +
    output_padding. The element type is out_dtype, or else the data's.
    """
    return conv_transpose(1, types, attrs, ctx)


def conv2d_transpose(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (n, c, h, w) in data_layout and weight (c, channels / groups, kernel) in kernel_layout. Where channels
    and kernel_size are given, the weight has the data's element type. The result is (n, channels, ...) in out_layout,
    or else in data_layout. Each spatial extent is strides * (extent - 1) + dilation * (kernel - 1) + 1 - padding +
    output_padding. The element type is out_dtype, or else the data's.
    """
    return conv_transpose(2, types, attrs, ctx)


def conv3d_transpose(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (n, c, d, h, w) in data_layout and weight (c, channels / groups, kernel) in kernel_layout. Where
    channels and kernel_size are given, the weight has the data's element type. The result is (n, channels, ...) in
    out_layout, or else in data_layout. Each spatial extent is strides * (extent - 1) + dilation * (kernel - 1) + 1 -
    padding + output_padding. The element type is out_dtype, or else the data's.
    """
    return conv_transpose(3, types, attrs, ctx)


def conv2d_backward_weight(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes grad (n, channels, oh, ow) in data_layout and data (n, c, h, w) in kernel_layout. The result is (channels,
    c / groups, kernel_size) in out_layout. Its element type is out_dtype, or else the gradient's.
    """
    grad, data = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if attrs.kernel_size is None:
        ctx.fail("the attribute kernel_size must be given")
    for name, numbers in (("strides", attrs.strides), ("dilation", attrs.dilation)):
        if len(numbers) not in (1, 2):
            ctx.fail(f"{name} must have 2 numbers, or one for both axes")
    if len(attrs.padding) not in (1, 2, 4):
        ctx.fail(f"padding={list(attrs.padding)} must have 1, 2 or 4 numbers")
    shape = change_layout(data.shape, attrs.kernel_layout, "NCHW", ctx, 1)
    gradient = change_layout(grad.shape, attrs.data_layout, "NCHW", ctx, 0)
    if not same_dim(shape[0], gradient[0]):
        ctx.fail(f"has a batch of {shape[0]}, but the gradient has one of {gradient[0]}", 1)
    divided(shape[1], attrs.groups, f"groups={attrs.groups}", ctx, 1)
    divided(gradient[1], attrs.groups, f"groups={attrs.groups}", ctx)
    if not isinstance(shape[1], int) or not isinstance(gradient[1], int):
        ctx.fail("must have a known number of channels", 1 if not isinstance(shape[1], int) else 0)
    per_group = div_dim(shape[1], attrs.groups)
    if shape[1] == gradient[1] == attrs.groups:
        if attrs.channels is None:
            ctx.fail("the attribute channels must be given for a depthwise convolution")
        per_group = attrs.channels // attrs.groups
    weight: list[Dim] = [gradient[1], per_group, *attrs.kernel_size]
    return TensorType(change_layout(weight, "OIHW", attrs.out_layout, ctx), attrs.out_dtype or grad.dtype)


ARGS = ("data", "weight")

OPS = (
    Op(
        "nn.conv1d",
        ARGS,
        Conv1DAttrs,
        conv1d,
        F,
        2,
        needs=(0,),
        doc="1-D convolution.",
        traits={Trait.CONV},
        python="(..., strides=1, padding=0, dilation=1, out_dtype='')",
    ),
    Op(
        "nn.conv2d",
        ARGS,
        Conv2DAttrs,
        conv2d,
        F,
        2,
        needs=(0,),
        doc="2-D convolution.",
        traits={Trait.CONV},
        python="(..., out_dtype='')",
    ),
    Op(
        "nn.conv3d",
        ARGS,
        Conv3DAttrs,
        conv3d,
        F,
        2,
        needs=(0,),
        doc="3-D convolution.",
        traits={Trait.CONV},
        python="(..., out_dtype='')",
    ),
    Op(
        "nn.conv1d_transpose",
        ARGS,
        Conv1DTransposeAttrs,
        conv1d_transpose,
        F,
        2,
        needs=(0,),
        doc="1-D transposed convolution, the gradient of a convolution's data.",
        traits={Trait.CONV_TRANSPOSE},
        python="(data, weight, strides=(1,), padding=(0,), dilation=(1,), groups=1, channels=None, "
        "kernel_size=None, data_layout='NCW', kernel_layout='IOW', out_layout='', output_padding=(0,), "
        "out_dtype='')",
    ),
    Op(
        "nn.conv2d_transpose",
        ARGS,
        Conv2DTransposeAttrs,
        conv2d_transpose,
        F,
        2,
        needs=(0,),
        doc="2-D transposed convolution, the gradient of a convolution's data.",
        traits={Trait.CONV_TRANSPOSE},
        python="(data, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, "
        "kernel_size=None, data_layout='NCHW', kernel_layout='IOHW', out_layout='', output_padding=(0, 0), "
        "out_dtype='')",
    ),
    Op(
        "nn.conv3d_transpose",
        ARGS,
        Conv3DTransposeAttrs,
        conv3d_transpose,
        F,
        2,
        needs=(0,),
        doc="3-D transposed convolution, the gradient of a convolution's data.",
        traits={Trait.CONV_TRANSPOSE},
        python="(data, weight, strides=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1, channels=None, "
        "kernel_size=None, data_layout='NCDHW', kernel_layout='IODHW', out_layout='', "
        "output_padding=(0, 0, 0), out_dtype='')",
    ),
    Op(
        "nn.conv2d_backward_weight",
        ("grad", "data"),
        Conv2DAttrs,
        conv2d_backward_weight,
        F,
        2,
        doc="The gradient of a 2-D convolution's weight.",
        takes="number same",
        python="(grad, data, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, "
        "kernel_size=None, grad_layout: data_layout = 'NCHW', data_layout: kernel_layout = 'NCHW', "
        "kernel_layout: out_layout = 'OIHW', out_dtype='')",
        example="fn (%grad: Tensor[(1, 4, 6, 6), float32], %x: Tensor[(1, 3, 8, 8), float32]) { "
        'nn.conv2d_backward_weight(%grad, %x, channels=4, kernel_size=[3, 3], kernel_layout="NCHW", '
        'out_layout="OIHW") }',
    ),
)
