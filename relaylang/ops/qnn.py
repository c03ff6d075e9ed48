"""Quantised operators: tensors of whole numbers with a scale and a zero point, each a scalar or one a channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import Dim, IncompleteType, TensorType, TupleType, Type
from relaylang.ops.join import ConcatenateAttrs, concatenate
from relaylang.ops.nn_conv import Conv2DAttrs, Conv2DTransposeAttrs, conv2d, conv2d_transpose, conv2d_weight
from relaylang.ops.nn_dense import BatchMatmulAttrs, DenseAttrs, batch_matmul, dense
from relaylang.ops.nn_norm import LeakyReluAttrs, SoftmaxAttrs
from relaylang.ops.nn_pool import AvgPool2DAttrs, pool_shape
from relaylang.ops.record import Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.relations import broadcast
from relaylang.ops.scales import (
    CONV_RESULTS,
    DENSE_RESULTS,
    MATMUL_RESULTS,
    QUANTIZED,
    REALS,
    REQUANTIZED,
    channel_extent,
    is_scalar,
    one_or_each,
    out_dtype,
    per_channel,
    scalar_scales,
    single,
)
from relaylang.ops.shapes import axis_of, mul_dim, need_dtype, need_scalar, split_layout
from relaylang.ops.traits import Trait

E, B, I, F = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE, OpPattern.OUT_ELEMWISE_FUSABLE
OPAQUE = OpPattern.OPAQUE


@attrs_class("relay.attrs.QuantizeAttrs")
class QuantizeAttrs:
    out_dtype: str
    axis: int = -1


@attrs_class("relay.attrs.DequantizeAttrs")
class DequantizeAttrs(QuantizeAttrs):
    pass


@attrs_class("relay.attrs.RequantizeAttrs")
class RequantizeAttrs:
    axis: int = -1
    rounding: str = "None"
    compute_dtype: str = "None"
    out_dtype: str | None = None


@attrs_class("relay.attrs.BroadcastAttrs")
class BroadcastAttrs:
    lhs_axis: int = -1
    rhs_axis: int = -1


@attrs_class("relay.attrs.SimulatedQuantizeAttrs")
class SimulatedQuantizeAttrs:
    axis: int = -1


def quantize(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of float32 and any shape; output_scale (float32) and output_zero_point (int32) scalars or vectors
    along axis. The result has the data's shape and out_dtype: int8, uint8, int16, uint16 or int32.
    """
    data = tensor(types, 0, ctx)
    need_dtype(data, ("float32",), 0, ctx)
    extent = channel_extent(data, attrs.axis, not (is_scalar(types, 1) and is_scalar(types, 2)), ctx)
    per_channel(types, 1, "float32", extent, ctx)
    per_channel(types, 2, "int32", extent, ctx)
    return TensorType(data.shape, out_dtype(attrs, QUANTIZED, ctx))


def quantize_back(result: Type, types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> None:
    """A result of a known shape makes the data float32 of that shape."""
    if isinstance(result, TensorType):
        ctx.unify(0, TensorType(result.shape, "float32"))


def dequantize(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of int8, uint8, int16, uint16 or int32 and any shape. The input_scale (float32) and input_zero_point
    (int32) are scalars or vectors along axis. The result has the data's shape and out_dtype: float32 or float16.
    """
    data = tensor(types, 0, ctx)
    need_dtype(data, QUANTIZED, 0, ctx)
    extent: Dim = 1
    if not (single(types, 1) and single(types, 2)):
        extent = channel_extent(data, attrs.axis, True, ctx)
    per_channel(types, 1, "float32", extent, ctx)
    per_channel(types, 2, "int32", extent, ctx)
    return TensorType(data.shape, out_dtype(attrs, REALS, ctx))


def requantize(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of int8, uint8, int16, int32 or int64 and any shape. The input_scale (float32) and input_zero_point
    (int32) are scalars or vectors along axis. The output_scale (float32) and output_zero_point (int32) are scalars. The
    result has the data's shape and out_dtype: int8, uint8, int16 or int32.
    """
    data = tensor(types, 0, ctx)
    need_dtype(data, ("int8", "uint8", "int16", "int32", "int64"), 0, ctx)
    extent = channel_extent(data, attrs.axis, True, ctx)
    per_channel(types, 1, "float32", extent, ctx)
    per_channel(types, 2, "int32", extent, ctx)
    need_scalar(types, 3, "float32", ctx)
    need_scalar(types, 4, "int32", ctx)
    return TensorType(data.shape, out_dtype(attrs, REQUANTIZED, ctx))


def layout_axis(layout: str, letter: str, name: str, ctx: RelationContext) -> int:
    try:
        at = axis_of(layout, letter)
    except ValueError:
        at = -1
    if at < 0:
        ctx.fail(f"{name}={layout!r} must have an axis {letter}")
    return at


def weight_extent(ty: TensorType, axis: int, ctx: RelationContext) -> Dim:
    if axis >= len(ty.shape):
        ctx.fail(f"has too few dimensions for its layout: `{ty!r}`", 1)
    return ty.shape[axis]


def output_channels(ty: TensorType, layout: str) -> Dim:
    """The extents along O and the blocks of it, multiplied."""
    channels: Dim = 1
    for (letter, _), extent in zip(split_layout(layout), ty.shape):
        if letter in "Oo":
            channels = mul_dim(channels, extent)
    return channels


def known_weight(types: Sequence[Type], expected: TensorType | None, dtype: str | None, ctx: RelationContext) -> list[Type] | None:
    """The argument types with the weight's, which follows from the attributes where the element type is known."""
    if not isinstance(types[1], IncompleteType):
        return list(types)
    if expected is None or dtype is None:
        return None
    return [types[0], ctx.unify(1, expected), *types[2:]]


def qnn_conv2d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data and weight of int8, uint8 or int16 in the shapes of nn.conv2d. Zero points are of int32, the input's a
    scalar. Scales are of float32, the input's a scalar, the kernel's a scalar or a vector of channels. The result has
    the shape of nn.conv2d's and out_dtype: int16, int32 or int64.
    """
    data, hint = tensor(types, 0, ctx), ctx.dtype_hint(1)
    inferred = known_weight(types, conv2d_weight(data, hint or "", attrs, ctx), hint, ctx)
    if inferred is None:
        return None
    types = inferred
    weight = tensor(types, 1, ctx)
    need_dtype(data, ("int8", "uint8", "int16"), 0, ctx)
    need_dtype(weight, ("int8", "uint8", "int16"), 1, ctx)
    out_dtype(attrs, CONV_RESULTS, ctx)
    need_scalar(types, 2, "int32", ctx)
    need_scalar(types, 4, "float32", ctx)
    out_axis = layout_axis(attrs.kernel_layout, "O", "kernel_layout", ctx)
    channels: Dim | None = weight_extent(weight, out_axis, ctx)
    one_or_each(types, 3, output_channels(weight, attrs.kernel_layout), "zero points", ctx)
    if attrs.groups != 1:
        in_axis = layout_axis(attrs.kernel_layout, "I", "kernel_layout", ctx)
        data_axis = layout_axis(attrs.data_layout, "C", "data_layout", ctx)
        if data_axis >= len(data.shape):
            ctx.fail(f"has too few dimensions for its layout: `{data!r}`", 0)
        inner = weight_extent(weight, in_axis, ctx)
        if attrs.channels is not None and attrs.groups == data.shape[data_axis] and attrs.channels == inner:
            channels = mul_dim(inner, weight.shape[out_axis])
        else:
            channels = attrs.channels
    per_channel(types, 5, "float32", channels, ctx)
    return conv2d(types, attrs, ctx)


def qnn_conv2d_transpose(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data of int8, uint8, int16 or uint16 and weight of int8 or uint8 in the shapes of nn.conv2d_transpose. The
    input_zero_point (int32) and input_scale (float32) are single numbers. The kernel_zero_point (int32) and
    kernel_scale (float32) are scalars or vectors of channels. The result has the shape of nn.conv2d_transpose's and
    out_dtype: int16, int32 or int64.
    """
    data, weight = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_dtype(data, ("int8", "uint8", "int16", "uint16"), 0, ctx)
    need_dtype(weight, ("int8", "uint8"), 1, ctx)
    out_dtype(attrs, CONV_RESULTS, ctx)
    need_dtype(tensor(types, 3, ctx), ("int32",), 3, ctx)
    for arg in (2, 4):
        if not single(types, arg):
            ctx.fail(f"must be a scalar or a vector of one number, not `{types[arg]!r}`", arg)
    per_channel(types, 2, "int32", 1, ctx)
    per_channel(types, 4, "float32", 1, ctx)
    channels = weight_extent(weight, layout_axis(attrs.kernel_layout, "O", "kernel_layout", ctx), ctx)
    one_or_each(types, 3, output_channels(weight, attrs.kernel_layout), "zero points", ctx)
    if attrs.groups != 1:
        inner = weight_extent(weight, layout_axis(attrs.kernel_layout, "I", "kernel_layout", ctx), ctx)
        channels = mul_dim(inner, channels)
    per_channel(types, 5, "float32", channels, ctx)
    return conv2d_transpose(types, attrs, ctx)


def qnn_dense(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type | None:
    """Takes data (..., n) of int8, uint8, int16 or uint16, weight (units, n) of int8 or uint8. The input_zero_point
    (int32) and input_scale (float32) are scalars. The kernel_scale (float32) is a scalar or a vector of units. The
    result is (..., units) of out_dtype: int32 or int64.
    """
    data, hint = tensor(types, 0, ctx), ctx.dtype_hint(1)
    expected = TensorType((attrs.units, data.shape[-1]), hint or "") if attrs.units is not None and data.shape else None
    inferred = known_weight(types, expected, hint, ctx)
    if inferred is None:
        return None
    types = inferred
    need_dtype(tensor(types, 0, ctx), ("int8", "uint8", "int16", "uint16"), 0, ctx)
    need_dtype(tensor(types, 1, ctx), ("int8", "uint8"), 1, ctx)
    out_dtype(attrs, DENSE_RESULTS, ctx)
    need_scalar(types, 2, "int32", ctx)
    need_scalar(types, 4, "float32", ctx)
    weight = tensor(types, 1, ctx)
    per_channel(types, 5, "float32", weight.shape[0] if weight.shape and attrs.units is None else attrs.units, ctx)
    if weight.shape:
        one_or_each(types, 3, weight.shape[0], "zero points", ctx)
    return dense(types, attrs, ctx)


def qnn_batch_matmul(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes x and y of int8 or uint8 in the shapes of nn.batch_matmul. Zero points are scalars of int32, scales of
    float32. The result is (b, m, k) of int32.
    """
    need_dtype(tensor(types, 0, ctx), ("int8", "uint8"), 0, ctx)
    need_dtype(tensor(types, 1, ctx), ("int8", "uint8"), 1, ctx)
    out_dtype(attrs, MATMUL_RESULTS, ctx)
    need_scalar(types, 2, "int32", ctx)
    need_scalar(types, 3, "int32", ctx)
    need_scalar(types, 4, "float32", ctx)
    need_scalar(types, 5, "float32", ctx)
    return batch_matmul(types, attrs, ctx)


def qnn_broadcast(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes lhs and rhs of one element type, broadcast. Their scales (float32) and zero points (int32) are scalars or
    vectors along lhs_axis and rhs_axis. The output's are scalars. The result has the broadcast shape and their element
    type.
    """
    for side, axis in enumerate((attrs.lhs_axis, attrs.rhs_axis)):
        data = tensor(types, side, ctx)
        scale, zero = 2 + 2 * side, 3 + 2 * side
        if len(data.shape) > 1 and not -len(data.shape) <= axis < len(data.shape):
            ctx.fail(f"{'rhs' if side else 'lhs'}_axis={axis} is out of range for `{data!r}`", side)
        needed = not (is_scalar(types, scale) and is_scalar(types, zero))
        extent = channel_extent(data, axis if len(data.shape) > 1 else 0, needed, ctx)
        per_channel(types, scale, "float32", extent, ctx)
        per_channel(types, zero, "int32", extent, ctx)
    need_scalar(types, 6, "float32", ctx)
    need_scalar(types, 7, "int32", ctx)
    return broadcast(types, attrs, ctx)


def qnn_unary(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of int8 or uint8 and any shape; both scales (float32) and both zero points (int32) are scalars. The
    result has the data's type.
    """
    data = tensor(types, 0, ctx)
    need_dtype(data, ("int8", "uint8"), 0, ctx)
    scalar_scales(types, ctx)
    if getattr(attrs, "alpha", 0) < 0:
        ctx.fail(f"alpha={attrs.alpha} must not be negative")
    return data


def qnn_softmax(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of int8 and any shape; both scales (float32) and both zero points (int32) are scalars. The result has
    the data's type.
    """
    data = tensor(types, 0, ctx)
    need_dtype(data, ("int8",), 0, ctx)
    scalar_scales(types, ctx)
    return data


def qnn_avg_pool2d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in the attribute layout, of int8 or uint8. Both scales (float32) and both zero points
    (int32) are scalars. The result has the shape of nn.avg_pool2d's and the data's element type.
    """
    data = tensor(types, 0, ctx)
    need_dtype(data, ("int8", "uint8"), 0, ctx)
    scalar_scales(types, ctx)
    return pool_shape(2, data, attrs, ctx)


def qnn_concatenate(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data a tuple of tensors of whole numbers as of `concatenate`. Scales are a tuple of scalars (float32), zero
    points one of int32; the output's are scalars. The result is that of `concatenate`.
    """
    for arg, dtype in ((1, "float32"), (2, "int32")):
        ty = types[arg]
        if not isinstance(ty, TupleType):
            ctx.fail(f"must be a tuple of scalars, not `{ty!r}`", arg)
        assert isinstance(ty, TupleType)
        for i, field in enumerate(ty.fields):
            if not isinstance(field, TensorType) or field.shape or field.dtype != dtype:
                ctx.fail(f"field {i} of the tuple must be a scalar of {dtype}, not `{field!r}`", arg)
    need_scalar(types, 3, "float32", ctx)
    need_scalar(types, 4, "int32", ctx)
    result = concatenate(types, attrs, ctx)
    if isinstance(result, TensorType) and not result.dtype.startswith(("int", "uint")):
        ctx.fail(f"must be tensors of whole numbers, not of {result.dtype}", 0)
    return result


def simulated(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, and the number of an element type (a scalar). Scales and zero points are scalars or
    vectors along axis. The result has the data's type.
    """
    tensor(types, 1, ctx)
    data = tensor(types, 0, ctx)
    extent = channel_extent(data, attrs.axis, not (single(types, 2) and single(types, 3)), ctx)
    for arg, what in ((2, "scales"), (3, "zero points")):
        if not isinstance(types[arg], IncompleteType):
            one_or_each(types, arg, extent, what, ctx)
    return data


WEIGHTED = ("data", "weight", "input_zero_point", "weight_zero_point", "input_scale", "weight_scale")
OUTPUT = ("output_scale", "output_zero_point")
UNARY_ARGS = ("data", "scale", "zero_point", *OUTPUT)
BINARY_ARGS = ("lhs", "rhs", "lhs_scale", "lhs_zero_point", "rhs_scale", "rhs_zero_point", *OUTPUT)
INPUT_ARGS = ("data", "input_scale", "input_zero_point", *OUTPUT)

SUMS = "integer integer integer integer float float"
NUMBERS = "integer float integer float integer"


def through(name: str, of: str, doc: str, pattern: OpPattern = OPAQUE) -> Op:
    """The quantised form of a function of each element."""
    return Op(
        f"qnn.{name}",
        UNARY_ARGS,
        None,
        qnn_unary,
        pattern,
        11,
        doc=doc,
        takes=NUMBERS,
        traits={Trait.QUANTISED},
        of=of,
        python="(x, scale, zero_point, output_scale, output_zero_point)",
    )


def binary(name: str, of: str, doc: str) -> Op:
    """The quantised form of a function of two broadcast tensors."""
    takes = "integer integer float integer float integer float integer"
    return Op(
        f"qnn.{name}",
        BINARY_ARGS,
        BroadcastAttrs,
        qnn_broadcast,
        B,
        11,
        doc=doc,
        takes=takes,
        traits={Trait.QUANTISED},
        of=of,
    )


OPS = (
    Op(
        "qnn.quantize",
        ("data", *OUTPUT),
        QuantizeAttrs,
        quantize,
        E,
        11,
        back=quantize_back,
        doc="Quantized numbers from real ones: round(x / scale) + zero point, held in the element type.",
        takes="float float integer",
        traits={Trait.QUANTISE},
        python="(data, output_scale, output_zero_point, axis=-1, out_dtype='int8')",
    ),
    Op(
        "qnn.dequantize",
        ("data", "input_scale", "input_zero_point"),
        DequantizeAttrs,
        dequantize,
        E,
        11,
        doc="Real numbers from quantized ones: (x - zero point) * scale.",
        takes="integer float integer",
        traits={Trait.DEQUANTISE},
        python="(data, input_scale, input_zero_point, axis=-1, out_dtype='float32')",
    ),
    Op(
        "qnn.requantize",
        INPUT_ARGS,
        RequantizeAttrs,
        requantize,
        E,
        11,
        doc="Quantized numbers with another scale and zero point.",
        takes=NUMBERS,
        python="(..., out_dtype='int8')",
    ),
    Op(
        "qnn.conv2d",
        WEIGHTED,
        Conv2DAttrs,
        qnn_conv2d,
        F,
        11,
        needs=(0, 2, 3, 4, 5),
        doc="Quantized 2-D convolution, to the sums before they are scaled.",
        takes=SUMS,
        traits={Trait.CONV, Trait.QUANTISED},
        of="nn.conv2d",
        python="(data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale, kernel_size, "
        "channels, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, data_layout='NCHW', "
        "kernel_layout='OIHW', out_layout='', out_dtype='int32')",
    ),
    Op(
        "qnn.conv2d_transpose",
        WEIGHTED,
        Conv2DTransposeAttrs,
        qnn_conv2d_transpose,
        OPAQUE,
        11,
        doc="Quantized 2-D transposed convolution, to the sums before they are scaled.",
        takes=SUMS,
        traits={Trait.CONV_TRANSPOSE, Trait.QUANTISED},
        of="nn.conv2d_transpose",
        python="(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, strides=(1, 1), "
        "padding=(0, 0), dilation=(1, 1), groups=1, channels=None, kernel_size=None, data_layout='NCHW', "
        "kernel_layout='IOHW', out_layout='', output_padding=(0, 0), out_dtype='int32')",
        example="fn (%x: Tensor[(1, 3, 8, 8), int8], %w: Tensor[(3, 4, 3, 3), int8]) { "
        'qnn.conv2d_transpose(%x, %w, 0, 0, 0.5f, 0.5f, channels=4, kernel_size=[3, 3], kernel_layout="IOHW", '
        'out_dtype="int32") }',
    ),
    Op(
        "qnn.dense",
        WEIGHTED,
        DenseAttrs,
        qnn_dense,
        F,
        11,
        needs=(0, 2, 3, 4, 5),
        doc="Quantized product with a transposed weight, to the sums before they are scaled.",
        takes=SUMS,
        traits={Trait.MATMUL, Trait.QUANTISED},
        of="nn.dense",
        python="(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units, out_dtype='int32')",
    ),
    Op(
        "qnn.batch_matmul",
        ("x", "y", "x_zero_point", "y_zero_point", "x_scale", "y_scale"),
        BatchMatmulAttrs,
        qnn_batch_matmul,
        F,
        11,
        doc="Quantized product of batches of matrices, to the sums before they are scaled.",
        takes=SUMS,
        traits={Trait.MATMUL, Trait.QUANTISED},
        of="nn.batch_matmul",
        python="(x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype='int32')",
        example="fn (%x: Tensor[(1, 2, 3), int8], %y: Tensor[(1, 3, 4), int8]) { "
        'qnn.batch_matmul(%x, %y, 0, 0, 0.5f, 0.5f, out_dtype="int32") }',
    ),
    binary("add", "add", "Quantized sum of two tensors."),
    binary("subtract", "subtract", "Quantized difference of two tensors."),
    binary("mul", "multiply", "Quantized product of two tensors."),
    through("abs", "abs", "Quantized absolute values."),
    through("erf", "erf", "Quantized error function."),
    through("exp", "exp", "Quantized exponential function."),
    through("hardswish", "", "Quantized hard swish."),
    through("log", "log", "Quantized natural logarithm."),
    through("rsqrt", "rsqrt", "Quantized reciprocal square root."),
    through("sigmoid", "sigmoid", "Quantized sigmoid."),
    through("sqrt", "sqrt", "Quantized square root."),
    through("tanh", "tanh", "Quantized hyperbolic tangent.", E),
    Op(
        "qnn.softmax",
        UNARY_ARGS,
        SoftmaxAttrs,
        qnn_softmax,
        OPAQUE,
        11,
        doc="Quantized softmax along an axis.",
        takes=NUMBERS,
        traits={Trait.QUANTISED},
        of="nn.softmax",
        python="(x, scale, zero_point, output_scale, output_zero_point, axis=-1)",
    ),
    Op(
        "qnn.leaky_relu",
        INPUT_ARGS,
        LeakyReluAttrs,
        qnn_unary,
        OPAQUE,
        11,
        doc="Quantized leaky rectifier.",
        takes=NUMBERS,
        traits={Trait.QUANTISED},
        of="nn.leaky_relu",
        python="(x, alpha, input_scale, input_zero_point, output_scale, output_zero_point)",
    ),
    Op(
        "qnn.avg_pool2d",
        INPUT_ARGS,
        AvgPool2DAttrs,
        qnn_avg_pool2d,
        F,
        11,
        doc="Quantized average pooling.",
        takes=NUMBERS,
        traits={Trait.POOL, Trait.AVERAGE, Trait.QUANTISED},
        of="nn.avg_pool2d",
        python="(data, input_scale, input_zero_point, output_scale, output_zero_point, pool_size, strides, "
        "padding, dilation, ceil_mode=False, count_include_pad=True, layout='NHWC', out_layout='')",
    ),
    Op(
        "qnn.concatenate",
        ("data", "input_scales", "input_zero_points", *OUTPUT),
        ConcatenateAttrs,
        qnn_concatenate,
        I,
        11,
        doc="Quantized joining along an axis.",
        takes="any any any",
        traits={Trait.OF_TUPLE, Trait.QUANTISED},
        of="concatenate",
        python="(..., axis)",
        example="fn (%x: Tensor[(2, 3), int8], %y: Tensor[(2, 3), int8]) { "
        "qnn.concatenate((%x, %y), (0.5f, 0.25f), (0, 0), 0.5f, 0, axis=0) }",
    ),
    Op(
        "qnn.simulated_quantize",
        ("data", "out_dtype", *OUTPUT),
        SimulatedQuantizeAttrs,
        simulated,
        E,
        11,
        needs=(0, 1),
        doc="As qnn.quantize, with the element type as an argument and real numbers for all.",
        takes="float integer[] float integer",
        python="(data, output_scale, output_zero_point, axis=-1, out_dtype='int8')",
        example="fn (%x: Tensor[(2, 3), float32]) { qnn.simulated_quantize(%x, 1, 0.5f, 0) }",
        traits={Trait.PARTS_BROADCAST},
    ),
    Op(
        "qnn.simulated_dequantize",
        ("data", "in_dtype", "input_scale", "input_zero_point"),
        DequantizeAttrs,
        simulated,
        E,
        11,
        needs=(0, 1),
        doc="As qnn.dequantize, with the element type as an argument and real numbers for all.",
        takes="float integer[] float integer",
        python="(data, input_scale, input_zero_point, axis=-1, in_dtype='int8')",
        example='fn (%x: Tensor[(2, 3), float32]) { qnn.simulated_dequantize(%x, 1, 0.5f, 0, out_dtype="float32") }',
        traits={Trait.PARTS_BROADCAST},
    ),
)
