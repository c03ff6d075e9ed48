"""Softmax for the Ethos-U: quantized numbers, real ones in between, and quantized again.

With d the distance from the largest number, E = 2^28 exp(-scale d) comes from four tables, a byte each. A first sum says
how far to shift each row's E. A scaled sum S has 30 bits. The quotient E / S then gets its binary digits, each
by a comparison. The last remainder rounds it. With 8 digits the result is the integer next to
256 E / S, whose error is below 2^-16. Distances of int16 have 16 bits, and E is a product of two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.operands import (
    BYTES,
    Output,
    constant,
    feature_type,
    in_range,
    op_name,
    scalar,
    scales,
)
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant, TensorType
from relaylang.partition.fixed_point import Rescale, make_rescale, unscaled

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


#: Bits of the largest exponential, and of a scaled sum at most.
_TOP, _SUM = 28, 30


@dataclass(frozen=True)
class _Rows:
    """A tensor as rows along its last axis: the distances from a row's largest number. Those of bytes are less 128."""

    perm: tuple[int, ...]
    shape: tuple[int, ...]
    distance: Tensor

    @property
    def numbers(self) -> int:
        return self.shape[-1]

    def value(self, w: Writer, dtype: str, out: Tensor) -> Value:
        return Value(dtype, {self.perm: w.graph.reshape(out, self.shape)})


def _rows(w: Writer, at: Composite, axis: int) -> _Rows:
    perm, x = w.any_order(at.source, axis)
    rows = w.graph.reshape(x, (1, math.prod(x.shape[:-1]), 1, x.shape[-1]))
    distance = w.graph.binary("SUB", w.converted(_largest(w, rows), "int32"), w.converted(rows, "int32"))
    return _Rows(perm, x.shape, distance if x.dtype == "int16" else w.converted(distance, "int8", output_zp=-128))


def _largest(w: Writer, rows: Tensor) -> Tensor:
    """The largest number of each row."""
    _, count, _, numbers = rows.shape
    return w.graph.max_pool2d(w.graph.reshape(rows, (1, count, numbers, 1)), (1, numbers), (1, 1), (0, 0, 0, 0))


def softmax(w: Writer, layer: Softmax | IntegerSoftmax, at: Composite) -> Value:
    if isinstance(layer, IntegerSoftmax):
        return _integers(w, layer, at)
    rows = _rows(w, at, layer.axis)
    if at.source.dtype != "int16":
        exponential = _values(w, rows.distance, _exponentials(layer.scale))
    else:
        exponential = _wide_powers(w, rows.distance, layer.scale)
    most = _SUM if layer.unit == 1 else _SUM - 1
    spare = (rows.numbers - 1).bit_length() + _TOP - (most - 1)
    if spare > 0:
        exponential = _shifted(w, exponential, spare, most)
    total = w.graph.reduce_sum(exponential, 3)
    if layer.unit != 1:
        total = w.rescale(total, Rescale((round(layer.unit * (1 << 30)),), (30,), 0), "int32")
    rest, quotient = _quotient(w, exponential, total, layer.bits)
    _, missing = _compared(w, rest, total)
    quotient = w.graph.binary("ADD", w.graph.binary("ADD", quotient, missing), w.number(1))
    return rows.value(w, layer.dtype, w.rescale(quotient, unscaled(layer.zero_point), layer.dtype))


def _exponentials(scale: float) -> np.ndarray:
    return np.round(np.exp(-scale * np.arange(256)) * 2.0**_TOP)


def _wide_powers(w: Writer, distance: Tensor, scale: float) -> Tensor:
    """E of distances in int32: the product of those of the upper and the lower 8 bits, in halves."""
    graph = w.graph
    # A shift rounds halves up; without a half it rounds down.
    upper = graph.shift_right(graph.binary("SUB", distance, w.number(128)), w.number(8))
    lower = graph.binary("SUB", distance, graph.multiply(upper, w.number(256)))
    parts = []
    for part, apart in ((upper, 256 * scale), (lower, scale)):
        place, powers = w.converted(part, "int8", output_zp=-128), _exponentials(apart).astype(np.int64)
        parts.append([_values(w, place, half) for half in (powers >> _TOP // 2, powers & (1 << _TOP // 2) - 1)])
    (high, low), (other_high, other_low) = parts
    middle = graph.binary("ADD", graph.multiply(high, other_low), graph.multiply(low, other_high))
    return graph.binary("ADD", graph.multiply(high, other_high), graph.shift_right(middle, w.number(_TOP // 2)))


def _integers(w: Writer, layer: IntegerSoftmax, at: Composite) -> Value:
    """`(2^30 // S * E) >> 23` of powers E and their sum S."""
    graph = w.graph
    rows = _rows(w, at, layer.axis)
    most = _values(w, _largest(w, rows.distance), layer.shifts)
    shifts = graph.binary("SUB", most, _values(w, rows.distance, layer.shifts))
    power = graph.shift_left(_values(w, rows.distance, layer.bases), shifts)
    total = graph.reduce_sum(power, 3)
    _, quotient = _quotient(w, w.number(1), total, 30)
    # A shift rounds halves up; without a half it rounds down.
    probability = graph.binary("SUB", graph.multiply(power, quotient), w.number(1 << 22))
    return rows.value(w, "int8", w.finish(graph.shift_right(probability, w.number(23)), layer.out))


def _values(w: Writer, distance: Tensor, values: np.ndarray) -> Tensor:
    """The value at each distance, in int32: a table for each of its bytes. The first byte of negative values has a sign."""
    values = values.astype(np.int64)
    signed = int(values.min()) < 0
    count = (int(np.abs(values).max()).bit_length() + signed + 7) // 8 or 1
    total = None
    for byte in range(count):
        is_first = signed and byte == count - 1
        zero = 0 if is_first else -128
        entries = values >> 8 * byte if is_first else (values >> 8 * byte & 255) + zero
        part = w.graph.rescale(
            w.graph.table(distance, entries.astype(np.int8)), "int32", np.array([1 << 30]), np.array([30 - 8 * byte]), input_zp=zero
        )
        total = part if total is None else w.graph.binary("ADD", total, part)
    assert total is not None
    return total


def _shifted(w: Writer, x: Tensor, spare: int, most: int) -> Tensor:
    """Each row shifted right by at most `spare` bits, so far that its sum has `most` bits."""
    coarse = w.graph.reduce_sum(w.graph.shift_right(x, w.number(spare)), 3)
    zeros = w.graph.unary("CLZ", coarse)
    # A coarse sum of `most - 1` bits has 33 - `most` zeros in front, and then `spare` bits have to go.
    excess = w.graph.binary("SUB", w.number(33 - most + spare), zeros)
    return w.graph.shift_right(x, w.graph.binary("MAXIMUM", excess, w.number(0)))


def _quotient(w: Writer, rest: Tensor, total: Tensor, digits: int) -> tuple[Tensor, Tensor]:
    """The remainder of `2^digits rest` over `total`, and the quotient, rounded down, where `rest <= total < 2^30`."""
    graph = w.graph
    quotient = None
    for _ in range(digits):
        less, missing = _compared(w, rest, total)
        rest = graph.binary("SUB", less, graph.multiply(missing, total))
        quotient = missing if quotient is None else graph.binary("ADD", graph.binary("ADD", quotient, quotient), missing)
    assert quotient is not None
    return rest, graph.binary("ADD", quotient, w.number((1 << digits) - 1))


def _compared(w: Writer, rest: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """`2 rest - total`, and -1 where that is negative, else 0."""
    less = w.graph.binary("SUB", w.graph.binary("ADD", rest, rest), total)
    negative = w.graph.binary("MINIMUM", less, w.number(0))
    return less, w.graph.binary("MAXIMUM", negative, w.number(-1))
