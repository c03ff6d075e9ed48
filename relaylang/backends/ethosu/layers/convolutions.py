"""Convolutions and fully connected layers for the Ethos-U."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.backends.ethosu.layers.movement import read_pad
from relaylang.backends.ethosu.layers.operands import (
    RANGES,
    Output,
    clamp_of,
    constant,
    feature_type,
    in_range,
    narrow,
    op_name,
    scalar,
    spread_of,
    tail,
    tensor_of,
)
from relaylang.backends.ethosu.layers.windows import check_steps, exact_padding, nchw, padding4, pair
from relaylang.backends.ethosu.layers.writer import CHANNELS_LAST, Composite, Value, Writer, as_stored
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.partition.fixed_point import shifted

_MAX_ABS_WEIGHTS = 127 * 65536
_MAX_EXTENT = 65536
#: The most elements of a kernel.
_MOST_TAPS = 4096
#: The accelerator's own dilation.
_MOST_DILATION = 2


@dataclass(frozen=True)
class Conv:
    """A convolution or a fully connected layer: weight OHWI (depthwise HWCM), int64 bias, sum, then `out`.

    `pad` is (top, left, bottom, right). It may be negative at the end, where the last rows or columns are never read.
    A transposed convolution takes as much away from its result. Of a grouped one, each output has the inputs of its group.
    """

    weight: np.ndarray
    bias: np.ndarray
    pad: tuple[int, int, int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    depthwise: bool
    input_zp: int
    weight_zp: int
    layout: str
    out: Output
    groups: int = 1
    transposed: bool = False


def read_conv(calls: Sequence[Call]) -> Conv:
    """[nn.pad] qnn.conv2d [nn.bias_add | add] [[nn.relu] qnn.requantize [clip | nn.relu | cast]*]"""
    calls = list(calls)
    outer = calls.pop(0) if op_name(calls[0]) == "nn.pad" else None
    conv = calls.pop(0)
    attrs = conv.attrs
    source = feature_type((outer or conv).args[0])
    input_zp, weight, weight_zp = _factors(conv, source)
    layout = _layout(conv)
    _, c, h, w = nchw(source.shape, layout)
    depthwise = c > 1 and attrs.groups == c
    weight = _arranged(weight, attrs.kernel_layout, c if depthwise else 0)
    kh, kw = weight.shape[:2] if depthwise else weight.shape[1:3]
    channels = weight.shape[2] * weight.shape[3] if depthwise else weight.shape[0]
    pad = padding4(attrs.padding)
    if outer is not None:
        pad = tuple(a + b for a, b in zip(pad, _outer_pad(outer, layout, input_zp)))  # type: ignore[assignment]
    stride, dilation = pair(attrs.strides), pair(attrs.dilation)
    _, _, oh, ow = nchw(tensor_of(conv, "its result").shape, layout)
    pad = exact_padding((h, w), (oh, ow), (kh, kw), pad, stride, dilation)
    if max(dilation) > _MOST_DILATION and (max(stride) > 1 or 1 in (oh, ow) or attrs.groups > 1):
        weight = _spread_out(weight, weight_zp, dilation, 0 if depthwise else 1)
        (kh, kw), dilation = weight.shape[:2] if depthwise else weight.shape[1:3], (1, 1)
    _check_kernel(kh, kw)
    if depthwise:
        check_steps(stride, channels)
    channel_axis = layout.index("C")
    bias = _bias(calls, channels, channel_axis, 4)
    return _sum_layer(
        calls,
        weight,
        weight_zp,
        bias,
        channels,
        channel_axis,
        conv,
        input_zp,
        pad=pad,
        stride=stride,
        dilation=dilation,
        depthwise=depthwise,
        layout=layout,
        groups=1 if depthwise else attrs.groups,
    )


def _spread_out(weight: np.ndarray, zero_point: int, dilation: tuple[int, int], axis: int) -> np.ndarray:
    """The weight of an undilated kernel, which has zeros between; rows are along `axis`, columns follow.

    Vela makes parts of a kernel whose dilation is larger than the accelerator's. It pads these parts wrongly with strides or
    for a group of channels. A single part is transposed wrongly.
    """
    shape = list(weight.shape)
    places: list[slice] = [slice(None)] * len(shape)
    for i, step in zip((axis, axis + 1), dilation):
        shape[i] = (shape[i] - 1) * step + 1
        places[i] = slice(None, None, step)
    if shape[axis] * shape[axis + 1] > _MOST_TAPS:
        raise Unsupported(f"a dilated kernel of {shape[axis]} x {shape[axis + 1]}; at most {_MOST_TAPS} elements")
    full = np.full(shape, zero_point, weight.dtype)
    full[tuple(places)] = weight
    return full


def read_transposed(calls: Sequence[Call]) -> Conv:
    """qnn.conv2d_transpose, then the calls that may stand behind a convolution."""
    conv, *rest = calls
    attrs = conv.attrs
    source = feature_type(conv.args[0])
    input_zp, weight, weight_zp = _factors(conv, source)
    layout = _layout(conv)
    if attrs.groups != 1:
        raise Unsupported(f"a transposed convolution of {attrs.groups} groups")
    if pair(attrs.dilation) != (1, 1):
        raise Unsupported("a dilated transposed convolution")
    weight = _arranged(weight, attrs.kernel_layout)
    channels, kh, kw, _ = weight.shape
    _check_kernel(kh, kw)
    top, left, bottom, right = padding4(attrs.padding)
    extra = pair(attrs.output_padding)
    pad = (top, left, bottom - extra[0], right - extra[1])
    if max(pad[0], pad[2]) >= kh or max(pad[1], pad[3]) >= kw:
        raise Unsupported("a padding as wide as the kernel")
    channel_axis = layout.index("C")
    bias = _bias(rest, channels, channel_axis, 4)
    return _sum_layer(
        rest,
        weight,
        weight_zp,
        bias,
        channels,
        channel_axis,
        conv,
        input_zp,
        pad=pad,
        stride=pair(attrs.strides),
        dilation=(1, 1),
        depthwise=False,
        layout=layout,
        transposed=True,
    )


def _factors(call: Call, source: TensorType) -> tuple[int, np.ndarray, int]:
    """The input's zero point, the weight and its zero point, of a product whose sums are int32."""
    input_zp = in_range(scalar(call.args[2], "its input zero point"), source.dtype, "the input zero point")
    weight = constant(call.args[1], "its weight")
    if weight.dtype.name not in ("int8", "uint8"):
        raise Unsupported(f"its weight is {weight.dtype.name}, the accelerator takes int8 and uint8")
    weight_zp = in_range(scalar(call.args[3], "its kernel zero point"), weight.dtype.name, "the kernel zero point")
    sums = tensor_of(call, "its result").dtype
    if sums != "int32" and (source.dtype, sums) != ("int16", "int64"):
        raise Unsupported(f"out_dtype {sums}; the accelerator sums in int32, and int16 numbers in int64, too")
    return input_zp, weight, weight_zp


def _layout(call: Call) -> str:
    layout: str = call.attrs.data_layout
    if layout not in ("NCHW", "NHWC"):
        raise Unsupported(f"data layout {layout}; NCHW and NHWC are taken")
    if call.attrs.out_layout not in ("", layout):
        raise Unsupported(f"out_layout {call.attrs.out_layout} differs from data_layout {layout}")
    return layout


def _check_kernel(kh: int, kw: int) -> None:
    if kh * kw > _MOST_TAPS or kh > 64:
        raise Unsupported(f"a kernel of {kh} x {kw}; at most 64 rows and {_MOST_TAPS} elements")


def read_dense(calls: Sequence[Call]) -> Conv:
    """qnn.dense [nn.bias_add | add] [[nn.relu] qnn.requantize [clip | nn.relu | cast]*]"""
    calls = list(calls)
    dense = calls.pop(0)
    source = feature_type(dense.args[0])
    if len(source.shape) != 2:
        raise Unsupported(f"an input of {len(source.shape)} axes; a dense layer wants 2")
    feature_type(dense, "its result", ("int32", "int64"))
    input_zp, weight, weight_zp = _factors(dense, source)
    units = weight.shape[0]
    bias = _bias(calls, units, 1, 2)
    return _sum_layer(
        calls,
        weight.reshape(units, 1, 1, -1),
        weight_zp,
        bias,
        units,
        1,
        dense,
        input_zp,
        pad=(0, 0, 0, 0),
        stride=(1, 1),
        dilation=(1, 1),
        depthwise=False,
        layout="NC",
    )


def _sum_layer(
    calls: Sequence[Call],
    weight: np.ndarray,
    weight_zp: int,
    bias: np.ndarray,
    channels: int,
    channel_axis: int,
    product: Call,
    input_zp: int,
    **geometry: Any,
) -> Conv:
    """The common end of convolution and dense: the bounds of the sums of `product`, and the operators applied to them."""
    dtype, sums_dtype = tensor_of(product.args[0], "its input").dtype, tensor_of(product, "its result").dtype
    centred = weight.astype(np.int64) - weight_zp
    axes = (0, 1) if geometry["depthwise"] else (1, 2, 3)
    sums = np.abs(centred).sum(axis=axes).reshape(-1)
    if int(sums.max(initial=0)) > _MAX_ABS_WEIGHTS:
        raise Unsupported("a channel's weights add up to more than 127 * 65536")
    if max(weight.shape) > _MAX_EXTENT:
        raise Unsupported(f"more than {_MAX_EXTENT} channels")
    behind = [c for c in calls if op_name(c) == "qnn.requantize"][:1]
    if behind:
        bias = bias - _channel_values(behind[0].args[2], channels, "its input zero point")
        axis = behind[0].attrs.axis
        rank = len(tensor_of(behind[0], "its result").shape)
        if np.ndim(constant(behind[0].args[1], "its input scale")) == 1 and axis % rank != channel_axis:
            if constant(behind[0].args[1], "its input scale").size > 1:
                raise Unsupported(f"scales along axis {axis}; the accelerator has one for each output channel")
    bounds = sums * spread_of(dtype, input_zp) + np.abs(bias)
    out = out_of_sums(calls, bounds, dtype, sums_dtype, channel_axis)
    return Conv(weight=weight, bias=bias, input_zp=input_zp, weight_zp=weight_zp, out=out, **geometry)


def out_of_sums(calls: Sequence[Call], bounds: np.ndarray, dtype: str, sums: str, channel_axis: int = -1) -> Output:
    """The calls behind sums of the type `sums`, up to `bounds`, of products of numbers of the type `dtype`."""
    if calls and op_name(calls[0]) == "multiply":
        out = _shifted_out(calls, bounds, channel_axis)
        if dtype != "int16" and out.rescale is not None and np.any(bounds >= 1 << min(31, *[s - 1 for s in out.rescale.shifts])):
            raise Unsupported("its sums may leave the range in which a TOSA rescale is defined")
        return out
    if sums != "int32" and not any(op_name(call) == "qnn.requantize" for call in calls):
        raise Unsupported(f"sums of {sums} are taken only in front of a requantize")
    # Sums of products of int16 numbers are doubled on their way to int32.
    if int(bounds.max(initial=0)) >= 1 << (30 if dtype == "int16" else 31):
        raise Unsupported(f"its sums may leave the range of {'30 bits' if dtype == 'int16' else 'int32'}")
    return tail(calls, bounds)


def _shifted_out(calls: Sequence[Call], bounds: np.ndarray, channel_axis: int) -> Output:
    """multiply, add and right_shift of int64 sums by constants, then limits and a cast."""
    product, _, shift = calls[:3]
    rank = len(tensor_of(product, "its result").shape)
    factor, half, bits = (_along_channels(call, bounds.size, channel_axis, rank) for call in calls[:3])
    if tensor_of(shift, "its result").dtype != "int64":
        raise Unsupported("sums of int32 are taken only in front of a requantize")
    rescale = shifted(factor, bits, bounds)
    if not np.array_equal(half, 1 << bits - 1):
        raise Unsupported("the shift to the right behind its sums does not round halves up")
    low, high, dtype = narrow(calls[3:], *RANGES["int32"], "int32")
    if tensor_of(calls[-1], "its result").dtype != dtype:
        raise Unsupported("sums of int64 are taken only in front of a cast")
    return Output(dtype, rescale, clamp_of(low, high, dtype))


def _along_channels(call: Call, channels: int, channel_axis: int, rank: int) -> np.ndarray:
    """The constant operand of a call, one int64 number for each channel."""
    constants = [a.data for a in call.args if isinstance(a, Constant)]
    if not constants:
        raise Unsupported("the bias is not a constant; give it with the parameters")
    value = constants[0]
    shape = (1,) * (rank - value.ndim) + value.shape
    if any(extent != 1 and axis != channel_axis for axis, extent in enumerate(shape)):
        raise Unsupported(f"an added constant of shape {value.shape} is no bias of the channels")
    return np.broadcast_to(value.astype(np.int64).reshape(-1), (channels,))


def _arranged(weight: np.ndarray, layout: str, depthwise: int = 0) -> np.ndarray:
    """The weight as OHWI, or as HWCM of `depthwise` channels."""
    if sorted(layout) != sorted("OIHW"):
        raise Unsupported(f"kernel layout {layout}")
    wanted = weight.transpose([layout.index(axis) for axis in ("HWOI" if depthwise else "OHWI")])
    return wanted.reshape(*wanted.shape[:2], depthwise, -1) if depthwise else wanted


def _bias(calls: list[Call], channels: int, channel_axis: int, rank: int) -> np.ndarray:
    """The int64 bias of each channel; takes its call off the list."""
    if not calls or op_name(calls[0]) not in ("nn.bias_add", "add"):
        return np.zeros(channels, np.int64)
    call = calls.pop(0)
    if op_name(call) == "nn.bias_add":
        value = constant(call.args[1], "the bias")
        if call.attrs.axis % rank != channel_axis:
            raise Unsupported(f"a bias along axis {call.attrs.axis}")
        return value.astype(np.int64).reshape(-1)
    return _along_channels(call, channels, channel_axis, rank)


def _channel_values(expr: Expr, channels: int, what: str) -> np.ndarray:
    value = constant(expr, what).astype(np.int64).reshape(-1)
    if value.size not in (1, channels):
        raise Unsupported(f"{what} has {value.size} values for {channels} channels")
    return np.broadcast_to(value, (channels,))


def _outer_pad(call: Call, layout: str, input_zp: int) -> tuple[int, int, int, int]:
    pad = read_pad([call])
    if pad.value != input_zp:
        raise Unsupported(f"it is padded with {pad.value}, not with the zero point {input_zp}")
    n, c, h, w = (pad.widths[layout.index(a)] for a in "NCHW")
    if any(n) or any(c):
        raise Unsupported("it is padded along batch or channels")
    return h[0], w[0], h[1], w[1]


def conv(w: Writer, layer: Conv, at: Composite) -> Value:
    """A convolution, regular or depthwise, or a fully connected layer as a convolution of one pixel a row."""
    graph, source = w.graph, at.source
    perm = CHANNELS_LAST[layer.layout]
    weight = np.ascontiguousarray(as_stored(layer.weight))
    weight_zp = layer.weight_zp - (128 if layer.weight.dtype == np.uint8 else 0)
    depthwise = layer.depthwise and weight.shape[3] == 1
    if layer.depthwise and not depthwise:
        weight = _full(weight, weight_zp)
    input_zp = layer.input_zp - source.offset
    if layer.layout == "NC":
        x, weight = _matrix(w, source, weight)
    else:
        x = w.in_order(source, perm)
    if layer.transposed:
        out = _transposed(w, x, weight, layer, input_zp, weight_zp)
        return Value(layer.out.dtype, {perm: w.finish(out, layer.out)})
    x, pad = w.padded(w.fit(x, layer.pad), layer.pad, input_zp, layer.stride)

    def convolved(x: Tensor, weight: np.ndarray, bias: np.ndarray) -> Tensor:
        return graph.conv2d(
            x,
            weight,
            bias,
            pad=pad,
            stride=layer.stride,
            dilation=layer.dilation,
            input_zp=input_zp,
            weight_zp=weight_zp,
            depthwise=depthwise,
        )

    if layer.groups > 1:
        out = _grouped(w, x, weight, layer, convolved)
    else:
        out = w.finish(convolved(x, weight, layer.bias), layer.out)
    if layer.layout == "NC":
        out = graph.reshape(out, (out.shape[1], out.shape[3]))
    return Value(layer.out.dtype, {perm: out})


def _grouped(
    w: Writer, x: Tensor, weight: np.ndarray, layer: Conv, convolved: Callable[[Tensor, np.ndarray, np.ndarray], Tensor]
) -> Tensor:
    """A convolution for each group, with the channels of the group; their results are joined."""
    outputs, inputs = weight.shape[0] // layer.groups, weight.shape[3]
    parts = []
    for group in range(layer.groups):
        own = slice(group * outputs, (group + 1) * outputs)
        channels = w.graph.slice(x, (0, 0, 0, group * inputs), (*x.shape[:3], inputs))
        total = convolved(channels, np.ascontiguousarray(weight[own]), layer.bias[own])
        parts.append(w.finish(total, layer.out.of_channels(own)))
    return w.graph.concat(parts, 3)


def _transposed(w: Writer, x: Tensor, weight: np.ndarray, layer: Conv, input_zp: int, weight_zp: int) -> Tensor:
    """A transposed convolution. One of int16, or with strides other than 1 and 2, is a convolution of pixels spread out."""
    top, left, bottom, right = layer.pad
    if layer.stride in ((1, 1), (2, 2)) and x.dtype != "int16":
        return w.graph.transpose_conv2d(
            x, weight, layer.bias, pad=(-top, -bottom, -left, -right), stride=layer.stride, input_zp=input_zp, weight_zp=weight_zp
        )
    reach = weight.shape[1] - 1, weight.shape[2] - 1
    ends = reach[0] - bottom - layer.stride[0] + 1, reach[1] - right - layer.stride[1] + 1
    for axis, stride in ((1, layer.stride[0]), (2, layer.stride[1])):
        outer, inner = math.prod(x.shape[: axis + 1]), math.prod(x.shape[axis + 1 :])
        spread = w.pad(w.graph.reshape(x, (1, outer, 1, inner)), [(0, 0), (0, 0), (0, stride - 1), (0, 0)], input_zp)
        x = w.graph.reshape(spread, (*x.shape[:axis], x.shape[axis] * stride, *x.shape[axis + 1 :]))
    pad = (reach[0] - top, reach[1] - left, *ends)
    x, sides = w.padded(w.fit(x, pad), pad, input_zp)
    turned = np.ascontiguousarray(weight[:, ::-1, ::-1])
    return w.graph.conv2d(x, turned, layer.bias, pad=sides, stride=(1, 1), dilation=(1, 1), input_zp=input_zp, weight_zp=weight_zp)


def _matrix(w: Writer, source: Value, weight: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """A dense layer's input as (1, rows, 1, inputs) and its weight to match.

    A flattened NCHW tensor stays channels-last; the weight's columns are put in that order instead.
    """
    if source.flat is not None and not source.stored:
        x = w.in_order(source.flat, CHANNELS_LAST["NCHW"])
        rows, height, width, channels = x.shape
        columns = weight.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
        weight = np.ascontiguousarray(columns).reshape(weight.shape)
        return w.graph.reshape(x, (1, rows, 1, height * width * channels)), weight
    x = w.in_order(source)
    return w.graph.reshape(x, (1, x.shape[0], 1, x.shape[1])), weight


def _full(weight: np.ndarray, zero_point: int) -> np.ndarray:
    """The weight (OHWI) of a convolution that computes a depthwise one (HWCM) with several outputs for each channel.

    Vela splits such depthwise convolutions, and may give their outputs the order of a transposition that follows.
    """
    height, width, channels, several = weight.shape
    full = np.full((channels, several, height, width, channels), zero_point, np.int8)
    for channel in range(channels):
        full[channel, :, :, :, channel] = weight[:, :, channel].transpose(2, 0, 1)
    return full.reshape(channels * several, height, width, channels)
