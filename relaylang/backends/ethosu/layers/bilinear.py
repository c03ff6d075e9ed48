"""Resizes for the Ethos-U: the nearest pixel, or a mean of neighbours.

A mean is a sum of neighbours in an image that has each pixel `factor` times. Along each axis the sum has small whole
weights. Where factors are powers of two, Relay's float32 numbers are exact, and so are the sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.operands import (
    BYTES,
    RANGES,
    Output,
    check_exact,
    feature_type,
    in_range,
    op_name,
    scalar,
    spread_of,
    tensor_of,
)
from relaylang.backends.ethosu.layers.picks import Nearest, along, checked_layout, nearest, read_nearest
from relaylang.backends.ethosu.layers.windows import nchw
from relaylang.backends.ethosu.layers.writer import CHANNELS_LAST, Composite, Value, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Expr
from relaylang.partition.fixed_point import IDENTITY, Rescale

_FACTORS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Neighbours:
    """Each pixel `factor` times; the result at k is the sum of `weights` times the pixels from k - `before` on."""

    factor: int
    weights: tuple[int, ...]
    before: int
    count: int

    @property
    def total(self) -> int:
        return sum(self.weights)


@dataclass(frozen=True)
class Bilinear:
    """Means of the numbers less `input_zp`, then `out`; halves away from zero, or all cut towards zero if `cuts`."""

    layout: str
    down: Neighbours
    across: Neighbours
    input_zp: int
    signed: bool
    cuts: bool
    out: Output


def read_resize(calls: Sequence[Call]) -> Nearest | Bilinear:
    """image.resize2d or nn.upsampling, of stored numbers or between qnn.dequantize and qnn.quantize."""
    if len(calls) == 1 and calls[0].attrs.method == "nearest_neighbor":
        return read_nearest(calls)
    call = calls[len(calls) // 2]
    source = feature_type(calls[0].args[0], dtypes=BYTES)
    dtype = feature_type(calls[-1], "its result", BYTES).dtype
    if call.attrs.method not in ("linear", "bilinear"):
        raise Unsupported(f"method {call.attrs.method}")
    layout = checked_layout(call)
    olds = nchw(source.shape, layout)[2:]
    news = nchw(tensor_of(call, "its result").shape, layout)[2:]
    down, across = (_neighbours(_mode(call), old, new) for old, new in zip(olds, news))
    numbers = down.total * across.total
    input_zp = output_zp = 0
    if len(calls) > 1:
        input_zp = _zero_point(calls[0].args[2], source.dtype)
        output_zp = _zero_point(calls[-1].args[2], dtype)
        check_exact(calls[0].args[1], calls[-1].args[1], spread_of(source.dtype, input_zp) * numbers)
    rescale = Rescale((IDENTITY[0],), (IDENTITY[1] + int(math.log2(numbers)),), output_zp)
    signed = RANGES[source.dtype][0] < input_zp
    return Bilinear(layout, down, across, input_zp, signed, len(calls) == 1, Output(dtype, rescale, None))


def _zero_point(expr: Expr, dtype: str) -> int:
    return in_range(scalar(expr, "a zero point"), dtype, "a zero point")


def _mode(call: Call) -> str:
    if op_name(call) == "nn.upsampling":
        return "align_corners" if call.attrs.align_corners else "asymmetric"
    return str(call.attrs.coordinate_transformation_mode)


def _neighbours(mode: str, old: int, new: int) -> Neighbours:
    """The neighbours of one axis, by the places that a mode gives to the new pixels."""
    if mode == "align_corners":
        factor, rest = divmod(new - 1, old - 1) if old > 1 else (1, new - 1)
    else:
        factor, rest = divmod(new, old)
    if rest or factor not in _FACTORS:
        raise Unsupported(f"{old} pixels become {new}; the factors 1, 2, 4 and 8 are taken")
    if factor == 1:
        return Neighbours(1, (1,), 0, new)
    if mode == "half_pixel":
        return Neighbours(factor, (1, *(2,) * (factor - 1), 1), factor // 2, new)
    if mode in ("asymmetric", "align_corners"):
        return Neighbours(factor, (1,) * factor, 0, new)
    raise Unsupported(f"coordinate_transformation_mode {mode}")


def resize(w: Writer, layer: Nearest | Bilinear, at: Composite) -> Value:
    if isinstance(layer, Nearest):
        return nearest(w, layer, at)
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
