"""Writers of convolutions and fully connected layers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from relaylang.backends.ethosu.emit.writer import CHANNELS_LAST, Composite, Value, Write, Writer, as_stored
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.partition.targets.ethos_u.convolutions import Conv


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


WRITERS: dict[type, Write] = {Conv: conv}
