"""The resize unit of the U85: numbers at fractional places, the nearest or a mean of four."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relaylang.backends.ethosu.simulator.feature_maps import feature_map, ofm_extents
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.output import finish
from relaylang.backends.ethosu.simulator.scaling import scaled_by
from relaylang.backends.ethosu.simulator.state import State

#: `resize_mode`.
_BILINEAR, _NEAREST = 0, 2
#: Bits of results behind the point.
_POINT = 16


class _Axis(NamedTuple):
    """Where the output's places lie along an axis: those below and above, and the distance from the first of `parts`."""

    below: np.ndarray
    above: np.ndarray
    distance: np.ndarray
    parts: int

    @property
    def nearest(self) -> np.ndarray:
        return np.where(2 * self.distance >= self.parts, self.above, self.below)


def resize(state: State, memory: Memory) -> None:
    """`OP_RESIZE`."""
    mode = state.command.param
    if mode not in (_BILINEAR, _NEAREST):
        raise state.fault(f"has the mode {mode}, which the simulator does not know")
    height, width, channels = ofm_extents(state)
    extents = (state["KERNEL_HEIGHT_M1"] + 1, state["KERNEL_WIDTH_M1"] + 1, channels)
    ifm = feature_map(state, "IFM")
    values = ifm.read(memory, extents) - ifm.zero_point
    y, x = _axis(state, "Y", height, extents[0]), _axis(state, "X", width, extents[1])
    if mode == _NEAREST:
        sampled = values[y.nearest][:, x.nearest]
    else:
        down, across = y.distance[:, None, None], x.distance[None, :, None]
        rows = values[y.below] * (y.parts - down) + values[y.above] * down
        sampled = rows[:, x.below] * (x.parts - across) + rows[:, x.above] * across
    finish(state, memory, scaled_by(state, "OFM_SCALE", sampled << _POINT))


def _axis(state: State, name: str, outputs: int, inputs: int) -> _Axis:
    """The places of outputs along an axis. A step has a whole part, and a rest of `parts`."""
    parts = state[f"RESIZE_{name}_SCALE_N_M1"] + 1
    rests = state.payload(f"RESIZE_{name}")
    step = state.field(f"RESIZE_{name}", "one_step_int") * parts + (rests & 0x7FF)
    block = state["OFM_BLK_WIDTH_M1" if name == "X" else "OFM_BLK_HEIGHT_M1"]
    step_int, rest = divmod(block * step, parts)
    if (step_int, rest) != (state.field(f"RESIZE_{name}", "blk_step_int"), rests >> 16 & 0x7FF):
        raise state.fault(f"has steps along {name} that do not fit its blocks")
    offset = state.field(f"RESIZE_{name}_OFFSET", f"resize_{name.lower()}_offset")
    offset -= (offset & 0x800) << 1
    below, distance = np.divmod(np.arange(outputs) * step + offset, parts)
    return _Axis(np.clip(below, 0, inputs - 1), np.clip(below + 1, 0, inputs - 1), distance, parts)
