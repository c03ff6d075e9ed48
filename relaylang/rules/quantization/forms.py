"""The one form that biases, averages and convolutions of one dimension get before quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import typed_constant
from relaylang.ops import Trait, having
from relaylang.ops.build import op_call
from relaylang.ops.record import Op

#: Functions of a channel's elements for which f(sx) = s f(x), where s is positive.
_SCALES = frozenset({"nn.relu", "nn.leaky_relu", "mean", "nn.pad", *having(Trait.LARGEST), *having(Trait.AVERAGE)})
#: Operators that give the same elements another shape.
_SHAPES = ("reshape", "squeeze", "expand_dims", "nn.batch_flatten")


def channel_axis(call: Call) -> int:
    """The axis of a product's output channels in its result."""
    attrs: Any = call.attrs
    layout = (getattr(attrs, "out_layout", "") or getattr(attrs, "data_layout", "")) if attrs is not None else ""
    return int(layout.index("C")) if "C" in layout else -1


def output_axis(product: Call) -> int | None:
    """The axis of a product's weight that has the result's channels; None where there is none."""
    assert isinstance(product.op, Op)
    attrs: Any = product.attrs
    shape, out = static_shape(product.args[1].checked_type), static_shape(product.checked_type)
    if shape is None:
        return None
    if not hasattr(attrs, "kernel_layout"):
        return 0 if product.op.name == "nn.dense" and not getattr(attrs, "transpose_b", False) else None
    axis = int(attrs.kernel_layout.index("O"))
    return axis if out is not None and shape[axis] == out[channel_axis(product)] else None


def input_axis(product: Call, axis: int) -> int | None:
    """The axis of a product's weight that has the channels of the data, which are the data's `axis`; None for other axes."""
    attrs: Any = product.attrs
    out = output_axis(product)
    shape = static_shape(product.args[0].checked_type)
    if out is None or shape is None:
        return None
    if not hasattr(attrs, "kernel_layout"):
        return 1 if axis == len(shape) - 1 else None
    if attrs.data_layout.find("C") != axis:
        return None
    if attrs.groups == 1:
        return int(attrs.kernel_layout.index("I"))
    channels = static_shape(product.checked_type)
    each = channels is not None and channels[channel_axis(product)] == shape[axis]
    return out if attrs.groups == shape[axis] and each else None


def channel_behind(call: Call, axis: int) -> int | None:
    """The axis of channels behind a call whose data have theirs at `axis`; None where positive factors of channels do not pass."""
    assert isinstance(call.op, Op)
    attrs: Any = call.attrs
    name, before, after = call.op.name, static_shape(call.args[0].checked_type), static_shape(call.checked_type)
    if before is None or after is None:
        return None
    if name == "transpose":
        axes = [a % len(before) for a in attrs.axes] if attrs.axes else [*range(len(before))][::-1]
        return axes.index(axis)
    if name in _SHAPES:  # the channels are the one axis that has elements
        places = [i for i, n in enumerate(after) if n != 1]
        return places[0] if [n for n in before if n != 1] == [before[axis]] and len(places) == 1 else None
    if name not in _SCALES:
        return None
    if name == "nn.pad":
        fill = call.args[1]
        with_zeros = isinstance(fill, Constant) and not fill.data.any()
        return axis if with_zeros and not any(attrs.pad_width[axis]) else None
    if name == "mean":
        return _behind_mean(attrs, len(before), axis)
    layout = getattr(attrs, "layout", "")
    return axis if not layout or layout.find("C") == axis else None


def _behind_mean(attrs: Any, rank: int, axis: int) -> int | None:
    """The axis of a mean that an axis of its data is; None where it is averaged."""
    gone = {a % rank for a in attrs.axis or range(rank)}
    if attrs.exclude or axis in gone:
        return None
    return axis if attrs.keepdims else axis - sum(a < axis for a in gone)


def _along_channels(constant: np.ndarray, rank: int, axis: int) -> np.ndarray | None:
    """The vector of a constant that is broadcast to a tensor of this rank, where it varies along the axis alone."""
    shape = (1,) * (rank - constant.ndim) + constant.shape
    if len(shape) != rank or any(n != 1 for i, n in enumerate(shape) if i != axis % rank):
        return None
    return constant.reshape(-1)


def bias_of(call: Expr, product: Call) -> tuple[Expr, np.ndarray] | None:
    """What a call adds a vector of the product's channels to, and the vector; None for other calls."""
    ty = product.checked_type
    if not isinstance(call, Call) or not isinstance(call.op, Op) or not isinstance(ty, TensorType):
        return None
    rank, axis = len(ty.shape), channel_axis(product)
    if not rank or call.checked_type != ty:
        return None
    if call.op.name == "nn.bias_add" and isinstance(call.args[1], Constant):
        if call.attrs.axis % rank != axis % rank:
            return None
        return call.args[0], call.args[1].data
    if call.op.name == "add":
        for x, c in (call.args, call.args[::-1]):
            if isinstance(c, Constant) and (vector := _along_channels(c.data, rank, axis)) is not None:
                return x, vector
    return None


def with_bias(product: Expr, bias: Expr, axis: int) -> Call:
    """The sum of a product and a vector along an axis."""
    return op_call("nn.bias_add", [product, bias], axis=axis)


def as_mean(call: Call) -> Call | None:
    """An average over all space as a mean, whose integer form is an exact sum; None for other calls."""
    assert isinstance(call.op, Op)
    if call.op.name != "nn.global_avg_pool2d" or not call.attrs.layout.isalpha():
        return None
    axes = [i for i, c in enumerate(call.attrs.layout) if c in "HW"]
    return op_call("mean", [call.args[0]], axis=axes, keepdims=True)


def in_two_dimensions(call: Call) -> Call | None:
    """A convolution of one dimension as one of two, along a first axis of one row; None for other calls.

    The extents of the data must be known.
    """
    assert isinstance(call.op, Op)
    if call.op.name != "nn.conv1d":
        return None
    a: Any = call.attrs
    if not isinstance(call.args[1], Constant):
        return None
    if (a.data_layout, a.kernel_layout, a.out_layout) not in (("NCW", "OIW", ""), ("NCW", "OIW", "NCW")):
        return None
    left, right = (*a.padding, *a.padding)[:2]
    weight = call.args[1].data[:, :, None, :]
    conv = op_call(
        "nn.conv2d",
        [op_call("expand_dims", [call.args[0]], axis=2), typed_constant(weight)],
        strides=(1, *a.strides),
        padding=(0, left, 0, right),
        dilation=(1, *a.dilation),
        groups=a.groups,
        channels=a.channels,
        kernel_size=(1, weight.shape[3]),
    )
    conv.span = call.span
    return op_call("squeeze", [conv], axis=[2])


__all__ = [
    "as_mean",
    "bias_of",
    "channel_axis",
    "channel_behind",
    "in_two_dimensions",
    "input_axis",
    "output_axis",
    "with_bias",
]
