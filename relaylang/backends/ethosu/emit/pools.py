"""Writers of pooling layers."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.emit.writer import CHANNELS_LAST, Composite, Sides, Value, Write, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.partition.fixed_point import unscaled
from relaylang.partition.targets.ethos_u.pools import AvgPool, Pool, RoundedPool


def pool(w: Writer, layer: Pool, at: Composite) -> Value:
    """A maximum over windows."""
    perm = CHANNELS_LAST[layer.layout]
    x = w.fit(w.in_order(at.source, perm), layer.pad)
    x, pad = w.padded(x, layer.pad, int(np.iinfo(x.dtype).min), layer.stride)
    out = w.graph.max_pool2d(x, layer.kernel, layer.stride, pad)
    if max(layer.stride) > 3:  # Vela splits the pool, and has a rescale that it joins write all parts to one place
        out = w.held(out)
    return Value(at.source.dtype, {perm: out})


def rounded(w: Writer, layer: RoundedPool, at: Composite) -> Value:
    window, offset = layer.window, at.source.offset
    perm = CHANNELS_LAST[window.layout]
    x, pad = w.padded(w.fit(w.in_order(at.source, perm), window.pad), window.pad, layer.input_zp - offset)
    zero_points = layer.input_zp - offset, layer.output_zp - offset
    out = w.graph.avg_pool2d(x, window.kernel, *zero_points, stride=window.stride, pad=pad)
    return Value(layer.dtype, {perm: out})


def average(w: Writer, layer: AvgPool, at: Composite) -> Value:
    window = layer.window
    perm = CHANNELS_LAST[window.layout]
    x = w.fit(w.in_order(at.source, perm), window.pad)
    x, pad = w.padded(x, window.pad, -at.source.offset, window.stride)
    return Value(layer.out.dtype, {perm: averaged(w, x, pad, layer, at.source)})


def averaged(w: Writer, x: Tensor, pad: Sides, layer: AvgPool, source: Value) -> Tensor:
    """Sums of NHWC whose rescale rounds down, and up where sums can be negative; see the layer's file.

    Vela takes convolutions with equal weights for one, though their biases differ. So each direction has its own weight.
    """
    graph, window, channels = w.graph, layer.window, x.shape[3]

    def divided(weight: int, rounding: int, dtype: str) -> Tensor:
        total = graph.conv2d(
            x,
            np.full((*window.kernel, channels, 1), weight, np.int8),
            np.full(channels, weight // 2 * rounding, np.int32),
            pad=pad,
            stride=window.stride,
            dilation=(1, 1),
            input_zp=-source.offset,
            weight_zp=0,
            depthwise=True,
        )
        return w.rescale(total, layer.division(weight), dtype)

    n = layer.numbers
    if layer.signed:
        up = graph.binary("MINIMUM", divided(4, n - 1, "int32"), w.number(0))
        average = graph.binary("MAXIMUM", divided(2, 1 - n, "int32"), up)
        average = w.rescale(average, unscaled(), source.dtype)
    else:
        average = divided(2, 1 - n, source.dtype)
    return w.finish(average, layer.out, layer.out_input_zp - source.offset)


WRITERS: dict[type, Write] = {Pool: pool, AvgPool: average, RoundedPool: rounded}
