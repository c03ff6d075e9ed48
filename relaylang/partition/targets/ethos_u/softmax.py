"""Softmax for the Ethos-U, read from its calls: quantized numbers, real ones in between, and quantized again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant, TensorType
from relaylang.partition.fixed_point import make_rescale
from relaylang.partition.targets.ethos_u.parts import (
    BYTES,
    Output,
    constant,
    feature_type,
    in_range,
    op_name,
    scalar,
    scales,
)

_MOST = 4096
#: The most bits behind the point of an output scale of bytes.
_MOST_BITS = 12


@dataclass(frozen=True)
class Softmax:
    """Probabilities along an axis, over `unit / 2^bits` and plus `zero_point`; the exponents are `scale` apart.

    `unit` is at least 1 and below 2.
    """

    axis: int
    scale: float
    unit: float
    bits: int
    zero_point: int
    dtype: str


@dataclass(frozen=True)
class IntegerSoftmax:
    """The integers of `qnn.softmax` along an axis, then `out`.

    A number that lies `d` below the largest has the power `bases[d] << (most - shifts[d])`. Here `most` is the largest shift.
    """

    axis: int
    bases: np.ndarray
    shifts: np.ndarray
    out: Output


def read_softmax(calls: Sequence[Call]) -> Softmax | IntegerSoftmax:
    """qnn.softmax, or softmax of real numbers between quantised ones."""
    return _read_integers(calls[0]) if len(calls) == 1 else _read_real(calls)


def _read_integers(call: Call) -> IntegerSoftmax:
    """The powers of two of arXiv 2207.01405, for each distance from the largest number."""
    source = feature_type(call.args[0], dtypes=BYTES)
    axis, numbers = _axis(call, source)
    input_scale, output_scale = scales(call.args[1], "its input scale"), scales(call.args[3], "its output scale")
    if input_scale.size != 1 or output_scale.size != 1:
        raise Unsupported("a scale differs between channels")
    if not 2.0**-17 < input_scale.flat[0] < 1:
        raise Unsupported(f"its input scale {input_scale.flat[0]:g}; scales from 2^-16 to 1/2 are taken")
    unit = math.floor(float(np.float32(1) / input_scale.flat[0]) + 0.5)
    if not 2 <= unit < 1 << 16:
        raise Unsupported(f"its input scale {input_scale.flat[0]:g}; scales from 2^-16 to 1/2 are taken")
    apart = -np.arange(256)
    power = apart + (apart >> 1) - (apart >> 4)
    shifts = np.minimum(-power // unit, 20)
    bases = (power + shifts * unit >> 1) + unit
    if numbers * int((np.abs(bases) << int(shifts.max()) - shifts).max()) >= 1 << 30:
        raise Unsupported("its sums may leave the range of int32")
    zero_point = in_range(scalar(call.args[4], "its output zero point"), "int8", "the output zero point")
    rescale = make_rescale(np.array(1 / 128, np.float32), output_scale.flat[0], zero_point, np.array([128]))
    return IntegerSoftmax(axis, bases, shifts, Output("int8", rescale, None))


def _read_real(calls: Sequence[Call]) -> Softmax:
    """qnn.dequantize [multiply by a constant] nn.softmax qnn.quantize"""
    first, *factors, softmax, last = calls
    source = feature_type(first.args[0])
    input_scale, output_scale = scales(first.args[1], "its input scale"), scales(last.args[1], "its output scale")
    if input_scale.size != 1 or output_scale.size != 1:
        raise Unsupported("a scale differs between channels")
    scalar(first.args[2], "its input zero point")
    dtype = feature_type(last, "its result").dtype
    zero_point = in_range(scalar(last.args[2], "its output zero point"), dtype, "the output zero point")
    half, exponent = math.frexp(float(output_scale.flat[0]))
    bits, most = 1 - exponent, 16 if dtype == "int16" else _MOST_BITS
    if not 0 < half < 1 or not 1 <= bits <= most:
        raise Unsupported(f"its output scale {output_scale.flat[0]:g}; scales from 2^-{most} to 1 are taken")
    scale = float(input_scale.flat[0])
    for call in factors:
        values = [constant(arg, "its factor") for arg in call.args if isinstance(arg, Constant)]
        if op_name(call) != "multiply" or not values or values[0].size != 1:
            raise Unsupported("a factor differs between numbers")
        scale *= float(values[0].flat[0])
    if not np.isfinite(scale) or scale <= 0:
        raise Unsupported("its scale is not a positive finite number")
    return Softmax(_axis(softmax, source)[0], scale, 2 * half, bits, zero_point, dtype)


def _axis(call: Call, source: TensorType) -> tuple[int, int]:
    """The axis of the probabilities, and how many there are."""
    if not 1 <= len(source.shape) <= 4:
        raise Unsupported(f"an input of {len(source.shape)} axes; 1 to 4 are taken")
    axis = int(call.attrs.axis) % len(source.shape)
    numbers = int(source.shape[axis])  # type: ignore[arg-type]
    if not 1 <= numbers <= _MOST:
        raise Unsupported(f"probabilities of {numbers} numbers; at most {_MOST} are taken")
    return axis, numbers
