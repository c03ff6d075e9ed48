"""Lookup tables: 256 numbers, or 512 pairs of base and slope between which a function is linear."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relaylang.backends.ethosu.simulator.memory import INTERNAL, Memory
from relaylang.backends.ethosu.simulator.state import State

_PAIRS = 512


class Table(NamedTuple):
    """A kind of table: the numbers that it takes, and those that it gives."""

    given: np.dtype
    found: np.dtype

    @property
    def has_pairs(self) -> bool:
        return self.given.itemsize == 2

    @property
    def size(self) -> int:
        """Its bytes."""
        return _PAIRS * 4 if self.has_pairs else 256 * self.found.itemsize


def _kind(given: str, found: str) -> Table:
    return Table(np.dtype(f"<{given}"), np.dtype(f"<{found}"))


#: The tables of the U85, by `activation_function`.
_U85 = {
    1: _kind("u1", "u1"), 4: _kind("i1", "i1"), 5: _kind("i1", "i2"), 7: _kind("i1", "i4"),
    8: _kind("i2", "i2"), 9: _kind("i2", "i4"), 10: _kind("i2", "i2"), 11: _kind("i2", "i2"),
}  # fmt: skip
#: `activation_function` of the U55 and U65: no function, and the first of eight tables.
_NONE, _FIRST = 0, 16


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
    else:
        of_pairs = dtype.itemsize == 2 and not is_narrow
        sign = dtype.kind
        kind = _kind(f"{sign}{2 if of_pairs else 1}", dtype.str[1:]) if _FIRST <= function < _FIRST + 8 else None
        at = 256 * (function - _FIRST)
    if kind is None:
        raise state.fault(f"has the activation function {function}, which the simulator does not know")
    return kind, 0 if kind.has_pairs else at


def looked_up(state: State, memory: Memory, values: np.ndarray, kind: Table, at: int) -> np.ndarray:
    """The entries of a table for some numbers."""
    limits = np.iinfo(kind.given)
    if values.size and not (limits.min <= values.min() and values.max() <= limits.max):
        raise state.fault(f"looks up numbers of {values.min()} to {values.max()} in a table for {kind.given.name}")
    place = values - limits.min
    content = memory.read(INTERNAL, at + np.arange(kind.size))
    if not kind.has_pairs:
        return content.view(kind.found).astype(np.int64)[place]
    pairs = content.view("<i2").reshape(_PAIRS, 2).astype(np.int64)
    base, slope = pairs[place >> 7, 0], pairs[place >> 7, 1]
    if kind.found.itemsize == 4:
        return (base << 7) + slope * (place & 127)
    return np.clip(base + ((slope * (place & 127) + 64) >> 7), -32768, 32767)
