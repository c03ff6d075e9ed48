"""Products of numbers of a few bits, as counts of bits in packed words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, Type
from relaylang.ops.nn_conv import check_window, conv_window, total_padding
from relaylang.ops.record import Integer, Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import change_layout, div_dim

F = OpPattern.OUT_ELEMWISE_FUSABLE


@attrs_class("relay.attrs.BitPackAttrs")
class BitPackAttrs:
    bits: int = 1
    pack_axis: int = 1
    bit_axis: int = -1
    pack_type: str | None = None
    name: str = "BitPack"


@attrs_class("relay.attrs.BinaryConv2DAttrs")
class BinaryConv2DAttrs:
    strides: Ints = (1, 1)
    padding: Ints = (0, 0)
    kernel_size: Ints = (3, 3)
    channels: Integer | None = None
    activation_bits: int = 1
    weight_bits: int = 1
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    pack_dtype: str | None = None
    out_dtype: str | None = None
    unipolar: bool = True


@attrs_class("relay.attrs.BinaryDenseAttrs")
class BinaryDenseAttrs:
    units: Integer | None
    data_bits: int = 1
    weight_bits: int = 1
    pack_dtype: str | None = None
    out_dtype: str | None = None
    unipolar: bool = True


def bitpack(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of whole numbers. The result has the attribute pack_type, pack_axis divided by its bits, and an axis
    of bits inserted at bit_axis.
    """
    data = tensor(types, 0, ctx)
    if attrs.pack_type is None:
        ctx.fail("the attribute pack_type must be given")
    width = int("".join(c for c in attrs.pack_type if c.isdigit()) or 0)
    if not width or not attrs.pack_type.startswith(("int", "uint")):
        ctx.fail(f"pack_type={attrs.pack_type!r} must be an unsigned integer type")
    rank = len(data.shape)
    shape = list(data.shape)
    if attrs.bits < 1:
        ctx.fail(f"bits={attrs.bits} must be positive")
    if not 0 <= attrs.pack_axis < rank:
        ctx.fail(f"pack_axis={attrs.pack_axis} is out of range for a tensor of {rank} dimensions", 0)
    if 0 <= attrs.pack_axis < rank:
        shape[attrs.pack_axis] = div_dim(data.shape[attrs.pack_axis], width)
    if 0 <= attrs.bit_axis <= rank:
        shape.insert(attrs.bit_axis, attrs.bits)
    return TensorType(shape, attrs.pack_type)


def bitserial_conv2d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) in data_layout, weight packed or not. The result is (n, channels, ...) of out_dtype. Each
    spatial extent is (extent + padding - kernel_size) // strides + 1.
    """
    data = tensor(types, 0, ctx)
    if attrs.channels is None:
        ctx.fail("the attribute channels must be given")
    if attrs.out_dtype is None:
        ctx.fail("the attribute out_dtype must be given")
    check_window(attrs, 2, ("strides", "kernel_size"), ctx)
    shape = change_layout(data.shape, attrs.data_layout, "NCHW", ctx)
    pads = total_padding(attrs.padding, 2, ctx)
    for i in range(2):
        shape[2 + i] = conv_window(shape[2 + i], pads[i], attrs.kernel_size[i], attrs.strides[i], ctx)
    shape[1] = attrs.channels
    return TensorType(change_layout(shape, "NCHW", attrs.data_layout, ctx), attrs.out_dtype)


def bitserial_dense(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (..., n), weight (units, n) or packed. The result is (..., units) of out_dtype, or else of the data's
    element type.
    """
    data = tensor(types, 0, ctx)
    if not data.shape:
        ctx.fail("must have at least one dimension", 0)
    if attrs.units is None:
        ctx.fail("the attribute units must be given")
    weight = types[1]
    if isinstance(weight, TensorType) and len(weight.shape) == 2:
        for axis, (want, have) in enumerate(zip((attrs.units, data.shape[-1]), weight.shape)):
            if isinstance(want, int) and isinstance(have, int) and want != have:
                ctx.fail(f"must have an extent of {want} at axis {axis}, not {have}", 1)
    return TensorType((*data.shape[:-1], attrs.units), attrs.out_dtype or data.dtype)


OPS = (
    Op(
        "nn.bitpack",
        ("data",),
        BitPackAttrs,
        bitpack,
        OpPattern.INJECTIVE,
        2,
        doc="The bits of whole numbers gathered in words.",
        takes="integer",
        python="(..., bit_axis=2, pack_type='uint32')",
        example='fn (%x: Tensor[(1, 32, 8, 8), int32]) { nn.bitpack(%x, bits=2, pack_axis=1, bit_axis=4, pack_type="uint32") }',
    ),
    Op(
        "nn.bitserial_conv2d",
        ("data", "weight"),
        BinaryConv2DAttrs,
        bitserial_conv2d,
        F,
        2,
        needs=(0,),
        doc="2-D convolution of numbers of few bits, by their bits.",
        takes="integer integer",
        python="(data, weight, strides=(1, 1), padding=(0, 0), channels=None, kernel_size=(3, 3), "
        "activation_bits=1, weight_bits=1, data_layout='NCHW', kernel_layout='OIHW', pack_dtype='uint32', "
        "out_dtype='int16', unipolar=True)",
        example="fn (%x: Tensor[(1, 32, 8, 8), int32], %w: Tensor[(4, 32, 3, 3), int32]) { "
        'nn.bitserial_conv2d(%x, %w, channels=4, kernel_size=[3, 3], activation_bits=2, pack_dtype="uint32", '
        'out_dtype="int32") }',
    ),
    Op(
        "nn.bitserial_dense",
        ("data", "weight"),
        BinaryDenseAttrs,
        bitserial_dense,
        F,
        1,
        needs=(0,),
        doc="Product with a transposed weight of numbers of few bits, by their bits.",
        takes="integer integer",
        python="(..., units=None, pack_dtype='uint32', out_dtype='int16')",
    ),
)
