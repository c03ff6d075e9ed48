"""The output unit: the zero point, limits, tables, the order of axes, and the store."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.simulator.feature_maps import Extents, FeatureMap, feature_map
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.simulator.tables import looked_up, table_of

#: `activation_clip_range` of the U55 and U65: the output's own range, and those of other types.
_RANGES = {0: None, 2: (0, 255), 3: (-128, 127), 5: (-32768, 32767)}
#: `activation_clip_range` of the U85: no limits.
_UNLIMITED = 1
#: `activation_transpose`: the axes of the operation, in the order of the stored tensor.
_ORDERS = {0: (0, 1, 2), 1: (1, 0, 2), 2: (0, 2, 1), 3: (1, 2, 0), 6: (2, 0, 1), 7: (2, 1, 0)}


def finish(state: State, memory: Memory, values: np.ndarray) -> None:
    """Add the zero point, limit, look up, and store. `values` are scaled."""
    ofm = feature_map(state, "OFM")
    clip = state.field("ACTIVATION", "activation_clip_range")
    if not state.is_u85 and clip not in _RANGES:
        raise state.fault(f"has an unknown range of limits, {clip}")
    forced = None if state.is_u85 else _RANGES[clip]
    table = table_of(state, ofm.dtype, forced is not None)
    values = values + ofm.zero_point
    if table is None or not table[0].point:  # others limit their numbers themselves
        if not state.is_u85:
            values = _limited(state, ofm, values, forced)
        else:
            ends = (np.iinfo(ofm.dtype).min, np.iinfo(ofm.dtype).max) if table is None else (table[0].low, table[0].high)
            values = _limited_on_u85(state, values, clip, *map(int, ends))
    if table is not None:
        values = looked_up(state, memory, values, *table)
    memory.output = _ordered(state, values)
    ofm.write(memory, memory.output)


def _limited(state: State, ofm: FeatureMap, values: np.ndarray, forced: tuple[int, int] | None) -> np.ndarray:
    """Values inside the limits. Numbers of 32 bits have none of their own."""
    if ofm.dtype.itemsize == 4 and forced is None:
        return np.clip(values, -(1 << 31), (1 << 31) - 1)
    signed = ofm.dtype.kind == "i" or (forced is not None and forced[0] < 0)
    low, high = _limits(state, signed)
    info = forced or (np.iinfo(ofm.dtype).min, np.iinfo(ofm.dtype).max)
    return np.clip(values, max(low, info[0]), min(high, info[1]))


def _limits(state: State, signed: bool) -> tuple[int, int]:
    low, high = (state.signed(f"ACTIVATION_{m}") if signed else state[f"ACTIVATION_{m}"] for m in ("MIN", "MAX"))
    return low, high


def _limited_on_u85(state: State, values: np.ndarray, clip: int, low: int, high: int) -> np.ndarray:
    """Values inside the limits; without these, narrow numbers lose their upper bits."""
    if clip == _UNLIMITED:
        wide = high - low >= 1 << 31
        return np.clip(values, low, high) if wide else (values - low & high - low) + low
    least, most = _limits(state, low < 0)
    if least > most:
        raise state.fault(f"has the limits {least} and {most}, in this order")
    return np.clip(values, max(least, low), min(most, high))


def stored_extents(state: State, extents: Extents) -> Extents | None:
    """The extents of the stored tensor, where its axes have another order or direction than those of the operation."""
    order = _order_of(state)
    if order == _ORDERS[0] and not state.field("OFM_PRECISION", "activation_reverse"):
        return None
    height, width, channels = (extents[axis] for axis in order)
    return height, width, channels


def _order_of(state: State) -> tuple[int, int, int]:
    transpose = state.field("OFM_PRECISION", "activation_transpose")
    if transpose not in _ORDERS:
        raise state.fault(f"has the unknown transposition {transpose}")
    return _ORDERS[transpose]


def _ordered(state: State, values: np.ndarray) -> np.ndarray:
    """Values in the order of the stored tensor: with one axis reversed, or with others in its place."""
    reverse = state.field("OFM_PRECISION", "activation_reverse")
    if reverse:
        values = np.flip(values, reverse - 1)
    return values.transpose(_order_of(state))
