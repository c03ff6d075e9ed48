"""Writers of convolutions and fully connected layers."""
from __future__ import annotations

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
    if layer.layout == "NC":
        x, weight = _matrix(w, source, weight)
    else:
        x = w.fit(w.in_order(source, perm), layer.pad)
    x, pad = w.padded(x, layer.pad, layer.input_zp - source.offset)
    out = graph.conv2d(
        x,
        weight,
        layer.bias,
        pad=pad,
        stride=layer.stride,
        dilation=layer.dilation,
        input_zp=layer.input_zp - source.offset,
        weight_zp=weight_zp,
        depthwise=depthwise,
    )
    out = w.finish(out, layer.out)
    if layer.layout == "NC":
        out = graph.reshape(out, (out.shape[1], out.shape[3]))
    return Value(layer.out.dtype, {perm: out})


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
