"""Resizes for the Ethos-U, read from their calls: the nearest pixel, or a mean of neighbours.

A mean is a sum of neighbours in an image that has each pixel `factor` times. Along each axis the sum has small whole
weights. Where factors are powers of two, Relay's float32 numbers are exact, and so are the sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Expr
from relaylang.partition.fixed_point import IDENTITY, Rescale
from relaylang.partition.targets.ethos_u.parts import (
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
from relaylang.partition.targets.ethos_u.picks import Nearest, checked_layout, read_nearest
from relaylang.partition.targets.ethos_u.windows import nchw

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
