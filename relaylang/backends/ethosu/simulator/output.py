"""The output unit: scaling with its three kinds of rounding, the zero point, limits, tables, and the store."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.simulator.feature_maps import FeatureMap, feature_map
from relaylang.backends.ethosu.simulator.memory import INTERNAL, Memory
from relaylang.backends.ethosu.simulator.state import State

#: Kinds of rounding: halves up in two steps as TensorFlow Lite does, towards zero, halves up.
DOUBLE, TRUNCATE, NATURAL = 0, 1, 2
#: `SET_ACTIVATION`: no function, and the first of eight tables. Bits 12 to 14 have the range of the limits.
_NONE, _TABLE = 0, 16
_FORCED = {0: None, 2: (0, 255), 3: (-128, 127), 5: (-32768, 32767)}
#: Bits of the lower part of an accumulator, which is multiplied apart: the product has more than 64 bits.
_LOW = 20
_LARGEST = 1 << 62


def scaled(values: np.ndarray, multiplier: np.ndarray | int, shift: np.ndarray | int, rounding: int) -> np.ndarray:
    """`values * multiplier / 2^shift`, rounded. Values have up to 48 bits, multipliers 32, shifts 0 to 63."""
    m, s = np.asarray(multiplier, np.int64), np.asarray(shift, np.int64)
    high, low = (values >> _LOW) * m, (values & ((1 << _LOW) - 1)) * m
    # The product is high * 2^20 + low. Bits below 2^20 cannot reach the result where the shift is larger.
    large = s > _LOW
    product = np.clip(high, -_LARGEST >> _LOW, _LARGEST >> _LOW)  # a larger one exceeds all limits behind a small shift
    whole = np.where(large, high + (low >> _LOW), (product << _LOW) + low)
    rest = np.where(large, low & ((1 << _LOW) - 1), 0)
    by = np.where(large, s - _LOW, s)
    half = np.where(by > 0, np.int64(1) << np.maximum(by - 1, 0), 0)
    if rounding == NATURAL:
        return np.asarray((whole + half) >> by)
    if rounding == DOUBLE:
        extra = np.where(s > 31, np.where(values >= 0, 1, -1) << (30 - _LOW), 0)
        return np.asarray((whole + half + extra) >> by)
    down = whole >> by
    exact = (whole == down << by) & (rest == 0)
    return np.asarray(np.where((down < 0) & ~exact, down + 1, down))


def finish(state: State, memory: Memory, values: np.ndarray) -> None:
    """Add the zero point, limit, look up, and store. `values` are scaled."""
    ofm = feature_map(state, "OFM")
    activation = state["ACTIVATION"]
    function, forced = activation & 0xFF, _FORCED.get(activation >> 12 & 7, ())
    if forced == ():
        raise state.fault(f"has an unknown range of limits, {activation >> 12 & 7}")
    values = values + ofm.zero_point
    values = _limited(state, ofm, values, forced)  # type: ignore[arg-type]
    if _TABLE <= function < _TABLE + 8:
        values = _looked_up(memory, ofm, values, function - _TABLE, forced is not None)
    elif function != _NONE:
        raise state.fault(f"has the activation function {function}, which the simulator does not know")
    ofm.write(memory, values)


def _limited(state: State, ofm: FeatureMap, values: np.ndarray, forced: tuple[int, int] | None) -> np.ndarray:
    """Values inside the limits. Numbers of 32 bits have none of their own."""
    if ofm.dtype.itemsize == 4 and forced is None:
        return np.clip(values, -(1 << 31), (1 << 31) - 1)
    signed = ofm.dtype.kind == "i" or (forced is not None and forced[0] < 0)
    low, high = (state.signed(f"ACTIVATION_{m}") if signed else state[f"ACTIVATION_{m}"] for m in ("MIN", "MAX"))
    info = forced or (np.iinfo(ofm.dtype).min, np.iinfo(ofm.dtype).max)
    return np.clip(values, max(low, info[0]), min(high, info[1]))


def _looked_up(memory: Memory, ofm: FeatureMap, values: np.ndarray, table: int, narrow: bool) -> np.ndarray:
    """Entries of a table: 256 numbers, or 512 pairs of base and slope that 7 bits interpolate."""
    start = 256 * table
    size = ofm.dtype.itemsize
    if size == 2 and not narrow:
        raw = memory.read(INTERNAL, start + np.arange(512 * 4)).view("<i2").reshape(512, 2).astype(np.int64)
        place = values + 32768 if ofm.dtype.kind == "i" else values
        base, slope = raw[place >> 7, 0], raw[place >> 7, 1]
        return np.clip(base + ((slope * (place & 127) + 64) >> 7), -32768, 32767)
    entries = memory.read(INTERNAL, start + np.arange(256 * size)).view(ofm.dtype).astype(np.int64)
    return entries[values + 128 if ofm.dtype.kind == "i" else values]
