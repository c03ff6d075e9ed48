"""The writer of softmax: exponentials from tables, and a quotient digit by digit.

With d the distance from the largest number, E = 2^28 exp(-scale d) comes from four tables, a byte each. A first sum says
how far to shift each row's E, for a sum S of 30 bits. The quotient E / S then gets 8 binary digits, each by a
comparison. The last remainder rounds it. The result is the integer next to 256 E / S, whose error is below 2^-16.
"""
from __future__ import annotations

import math

import numpy as np

from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.partition.targets.ethos_u.softmax import Softmax

#: Bits of the largest exponential, of a sum at most, and of a quotient.
_TOP, _SUM, _DIGITS = 28, 30, 8


def softmax(w: Writer, layer: Softmax, at: Composite) -> Value:
    graph = w.graph
    perm, x = w.any_order(at.source, layer.axis)
    shape, numbers = x.shape, x.shape[-1]
    rows = math.prod(shape[:-1])
    largest = graph.max_pool2d(graph.reshape(x, (1, rows, numbers, 1)), (1, numbers), (1, 1), (0, 0, 0, 0))
    x = graph.reshape(x, (1, rows, 1, numbers))
    distance = graph.binary("SUB", w.converted(largest, "int32"), w.converted(x, "int32"))
    exponential = _exponential(w, w.converted(distance, "int8", output_zp=-128), layer.scale)
    spare = (numbers - 1).bit_length() + _TOP - (_SUM - 1)
    if spare > 0:
        exponential = _shifted(w, exponential, spare)
    quotient = _quotient(w, exponential, graph.reduce_sum(exponential, 3))
    out = w.converted(quotient, "int8", output_zp=-128)
    return Value(at.dtype, {perm: graph.reshape(out, shape)})


def _exponential(w: Writer, distance: Tensor, scale: float) -> Tensor:
    """`2^28 exp(-scale d)` of distances less 128."""
    values = np.round(np.exp(-scale * np.arange(256, dtype=np.float64)) * 2.0**_TOP).astype(np.int64)
    total = None
    for byte in range((_TOP + 8) // 8):
        entries = ((values >> 8 * byte & 255) - 128).astype(np.int8)
        part = w.graph.rescale(
            w.graph.table(distance, entries), "int32", np.array([1 << 30]), np.array([30 - 8 * byte]), input_zp=-128
        )
        total = part if total is None else w.graph.binary("ADD", total, part)
    assert total is not None
    return total


def _shifted(w: Writer, x: Tensor, spare: int) -> Tensor:
    """Each row shifted right by at most `spare` bits, so far that its sum has 30 bits."""
    coarse = w.graph.reduce_sum(w.graph.shift_right(x, w.number(spare)), 3)
    zeros = w.graph.unary("CLZ", coarse)
    # A coarse sum of `_SUM - 1` bits has 3 zeros in front, and then `spare` bits have to go.
    excess = w.graph.binary("SUB", w.number(32 - (_SUM - 1) + spare), zeros)
    return w.graph.shift_right(x, w.graph.binary("MAXIMUM", excess, w.number(0)))


def _quotient(w: Writer, rest: Tensor, total: Tensor) -> Tensor:
    """The integer next to `256 rest / total`, halves up, where `rest <= total < 2^30`."""
    graph = w.graph
    quotient = None
    for _ in range(_DIGITS):
        less, missing = _compared(w, rest, total)
        rest = graph.binary("SUB", less, graph.multiply(missing, total))
        quotient = missing if quotient is None else graph.binary("ADD", graph.binary("ADD", quotient, quotient), missing)
    assert quotient is not None
    _, missing = _compared(w, rest, total)
    return graph.binary("ADD", graph.binary("ADD", quotient, missing), w.number(1 << _DIGITS))


def _compared(w: Writer, rest: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """`2 rest - total`, and -1 where that is negative, else 0."""
    less = w.graph.binary("SUB", w.graph.binary("ADD", rest, rest), total)
    negative = w.graph.binary("MINIMUM", less, w.number(0))
    return less, w.graph.binary("MAXIMUM", negative, w.number(-1))


WRITERS: dict[type, Write] = {Softmax: softmax}
