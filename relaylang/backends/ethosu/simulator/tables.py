"""Lookup tables: 256 numbers, or 512 pairs of base and slope between which a function is linear."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relaylang.backends.ethosu.simulator.curves import curve
from relaylang.backends.ethosu.simulator.memory import INTERNAL, Memory
from relaylang.backends.ethosu.simulator.state import State

_PAIRS = 512


class Table(NamedTuple):
    """A kind of table: the numbers that it takes and gives. A number's lowest bits say where it lies in a pair."""

    low: int
    high: int
    found: np.dtype
    fraction: int = 0
    #: Bits of the result behind the point, and the number that it gets. Values are wider than the output's limits.
    point: int = 0
    offset: int = 0
    #: The largest number of a function inside of the accelerator, which reads no table.
    most: int = 0

    @property
    def size(self) -> int:
        """Its bytes."""
        return _PAIRS * 4 if self.fraction else 256 * self.found.itemsize


def _bytes_to(dtype: str, signed: bool) -> Table:
    return Table(-128 if signed else 0, 127 if signed else 255, np.dtype(f"<{dtype}"))


_WORDS, _INTS = np.dtype("<i2"), np.dtype("<i4")
_LINEAR = Table(-(1 << 15), (1 << 15) - 1, _WORDS, 7)
#: The tables of the U85, by `activation_function`. Those of hyperbolic tangent and sigmoid hold sigmoid(i / 24) - 1/2.
_U85 = {
    1: _bytes_to("u1", False),
    4: _bytes_to("i1", True),
    5: _bytes_to("i2", True),
    7: _bytes_to("i4", True),
    8: _LINEAR,
    9: _LINEAR._replace(found=_INTS),
    10: Table(1 - (1 << 16), (1 << 16) - 1, _WORDS, 8, 8),
    11: Table(1 - (1 << 17), (1 << 17) - 1, _WORDS, 9, 10, 1 << 24),
}
#: `activation_function` of the U55 and U65: no function, functions inside, and the first of eight tables.
_NONE, _INSIDE, _FIRST = 0, {3: _U85[10]._replace(most=32767), 4: _U85[11]._replace(most=32766)}, 16


def table_of(state: State, dtype: np.dtype, is_narrow: bool) -> tuple[Table, int] | None:
    """The kind of table that an operation uses, and its byte; None where it has none.

    `dtype` is the output's. `is_narrow`: limits make its numbers bytes.
    """
    function = state.field("ACTIVATION", "activation_function")
    if function == _NONE:
        return None
    if state.is_u85:
        kind = _U85.get(function)
        at = kind.size * state.field("ACTIVATION", "table") if kind else 0
    elif function in _INSIDE:
        return _INSIDE[function], 0
    else:
        is_signed = dtype.kind == "i"
        if dtype.itemsize == 2 and not is_narrow:
            kind = _LINEAR if is_signed else _LINEAR._replace(low=0, high=(1 << 16) - 1)
        else:
            kind = _bytes_to(dtype.str[1:], is_signed)
        at = 256 * (function - _FIRST)
        if not 0 <= at < 8 * 256:
            kind = None
    if kind is None:
        raise state.fault(f"has the activation function {function}, which the simulator does not know")
    return kind, 0 if kind.fraction else at


def reads_table(state: State) -> bool:
    """Whether the operation that is executed now reads the memory for tables."""
    function = state.field("ACTIVATION", "activation_function")
    return function in _U85 if state.is_u85 else function >= _FIRST


def looked_up(state: State, memory: Memory, values: np.ndarray, kind: Table, at: int) -> np.ndarray:
    """The entries of a table for some numbers."""
    if kind.most:
        return _rounded(curve(values, kind.fraction, kind.most), values, kind)
    if kind.point:
        values = np.clip(values, kind.low, kind.high)
    if values.size and not (kind.low <= values.min() and values.max() <= kind.high):
        raise state.fault(f"looks up {values.min()} to {values.max()} in a table of {kind.low} to {kind.high}")
    place = values + (1 << 8 + kind.fraction if kind.point else -kind.low)
    content = memory.read(INTERNAL, at + np.arange(kind.size))
    if not kind.fraction:
        return content.view(kind.found).astype(np.int64)[place]
    pairs = content.view("<i2").reshape(_PAIRS, 2).astype(np.int64)
    base, slope = pairs[place >> kind.fraction].transpose(3, 0, 1, 2)
    interpolated = (base << kind.fraction) + slope * (place & ((1 << kind.fraction) - 1))
    return interpolated if kind.found == _INTS else _rounded(interpolated, values, kind)


def _rounded(interpolated: np.ndarray, values: np.ndarray, kind: Table) -> np.ndarray:
    """Numbers between entries as int16. Those of symmetric functions round halves away from the middle."""
    point = kind.point or kind.fraction
    half = (1 << point - 1) - (values < 0 if kind.point else 0)
    return np.clip((interpolated + kind.offset + half) >> point, -(1 << 15), (1 << 15) - 1)
