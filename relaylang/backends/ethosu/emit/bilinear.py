"""The writer of resizes that mix neighbours: pixels are repeated, and a depthwise convolution adds them."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.emit.picks import along
from relaylang.backends.ethosu.emit.writer import CHANNELS_LAST, Composite, Value, Write, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.partition.targets.ethos_u.bilinear import Bilinear, Neighbours


def bilinear(w: Writer, layer: Bilinear, at: Composite) -> Value:
    perm = CHANNELS_LAST[layer.layout]
    value = Value(at.source.dtype, {perm: w.in_order(at.source, perm)})
    for axis, neighbours in zip("HW", (layer.down, layer.across)):
        value = _surrounded(w, value, layer.layout.index(axis), neighbours)
    x = w.in_order(value, perm)
    weights = np.outer(layer.down.weights, layer.across.weights).astype(np.int8)
    total = w.graph.conv2d(
        x,
        np.repeat(weights[..., None, None], x.shape[3], axis=2),
        np.zeros(x.shape[3], np.int32),
        pad=(0, 0, 0, 0),
        stride=(1, 1),
        dilation=(1, 1),
        input_zp=layer.input_zp - at.source.offset,
        weight_zp=0,
        depthwise=True,
    )
    return Value(layer.out.dtype, {perm: w.finish(_rounded(w, total, layer), layer.out)})


def _surrounded(w: Writer, value: Value, axis: int, neighbours: Neighbours) -> Value:
    """Each pixel several times along an axis, and the ends so often that all results have their neighbours."""
    if neighbours.factor == 1:
        return value
    extent = value.shape[axis]
    value = along(w, value, {axis: tuple(np.repeat(np.arange(extent), neighbours.factor).tolist())})
    wanted = np.arange(neighbours.count + len(neighbours.weights) - 1) - neighbours.before
    return along(w, value, {axis: tuple(np.clip(wanted, 0, value.shape[axis] - 1).tolist())})


def _rounded(w: Writer, total: Tensor, layer: Bilinear) -> Tensor:
    """Sums that the rescale, which rounds halves up, rounds as Relay does."""
    parts = layer.down.total * layer.across.total
    if parts == 1:
        return total
    if layer.cuts:
        # floor(s / n) is the rescale of s - n / 2; a negative sum gets n - 1 more.
        rounded = w.graph.binary("SUB", total, w.number(parts // 2))
        return w.graph.binary("SUB", rounded, w.graph.multiply(_sign(w, total), w.number(parts - 1))) if layer.signed else rounded
    return w.graph.binary("ADD", total, _sign(w, total)) if layer.signed else total


def _sign(w: Writer, x: Tensor) -> Tensor:
    """-1 where a number is negative, else 0."""
    return w.graph.binary("MAXIMUM", w.graph.binary("MINIMUM", x, w.number(0)), w.number(-1))


WRITERS: dict[type, Write] = {Bilinear: bilinear}
