"""The pooling unit: maxima, minima, their places, averages and sums."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.simulator.accumulators import accumulated
from relaylang.backends.ethosu.simulator.feature_maps import ofm_extents
from relaylang.backends.ethosu.simulator.macs import Window
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.output import finish
from relaylang.backends.ethosu.simulator.scales import apply_scales, are_global
from relaylang.backends.ethosu.simulator.scaling import Rounding, rounding, scaled, scaled_by
from relaylang.backends.ethosu.simulator.state import State

_U55 = ("MAX", "AVERAGE", "REDUCE_SUM")
_U85 = (*_U55, "SUM", "NONE", "MIN", "ARGMAX_X", "ARGMAX_Y")
#: A number that no tensor holds: padding, of which no maximum and no minimum is taken.
_FAR = 1 << 62
#: Bits below the place of a maximum, which hold its value.
_BELOW_PLACE = 16


def pool(state: State, memory: Memory) -> None:
    """`OP_POOL`."""
    mode = mode_of(state)
    channels, outputs = state["IFM_DEPTH_M1"] + 1, state["OFM_DEPTH_M1"] + 1
    if mode == "NONE":
        _sum_out(state, memory, np.zeros(ofm_extents(state), np.int64))
        return
    if outputs != (1 if mode == "REDUCE_SUM" else channels):
        raise state.fault(f"has {channels} input channels and {outputs} output channels")
    window = Window(state)
    state.spend(window.output[0] * window.output[1] * channels * window.kernel[0] * window.kernel[1])
    values, inside = window.read(state, memory, channels)
    if mode in ("MAX", "MIN"):
        _extreme_out(state, memory, window, values, inside, mode)
    elif mode in ("ARGMAX_X", "ARGMAX_Y"):
        finish(state, memory, scaled_by(state, "OFM_SCALE", _places(state, window, values, inside, mode)))
    else:
        total = sum(window.taps(values), np.zeros((*window.output, channels))).astype(np.int64)
        if mode == "AVERAGE" and (state.is_u85 or any(window.pads)):
            count = sum(window.taps(inside.astype(np.int64)), np.zeros(window.output, np.int64))[..., None]
            _average_out(state, memory, total, count)
        else:
            _sum_out(state, memory, total.sum(2, keepdims=True) if mode == "REDUCE_SUM" else total)


def mode_of(state: State) -> str:
    """The kind of pool of the command that is executed now."""
    modes = _U85 if state.is_u85 else _U55
    number = state.command.param & 7
    if number >= len(modes):
        raise state.fault(f"has the pooling mode {number}, which the simulator does not know")
    return modes[number]


def _extreme_out(state: State, memory: Memory, window: Window, values: np.ndarray, inside: np.ndarray, mode: str) -> None:
    worst, of = (-_FAR, np.maximum) if mode == "MAX" else (_FAR, np.minimum)
    values[~inside] = worst
    extremes = accumulated(state, memory, of.reduce(window.taps(values)).astype(np.int64), of)
    if extremes is None:
        return
    if (extremes == worst).any():
        raise state.fault("takes the maximum or minimum of padding alone")
    finish(state, memory, apply_scales(state, memory, extremes) if state.is_u85 else extremes)


def _places(state: State, window: Window, values: np.ndarray, inside: np.ndarray, mode: str) -> np.ndarray:
    """The first place of each maximum along an axis, in front of its value."""
    if window.kernel[0 if mode == "ARGMAX_X" else 1] != 1:
        raise state.fault(f"looks for maxima in a kernel of {window.kernel[0]} x {window.kernel[1]}")
    if not inside.all():
        raise state.fault("looks for maxima in padding")
    taps = np.asarray(window.taps(values))
    place = taps.argmax(0)
    value = np.take_along_axis(taps, place[None], 0)[0].astype(np.int64)
    return place << _BELOW_PLACE | value & ((1 << _BELOW_PLACE) - 1)


def _sum_out(state: State, memory: Memory, total: np.ndarray) -> None:
    sums = accumulated(state, memory, total)
    if sums is not None:
        finish(state, memory, apply_scales(state, memory, sums))


def _average_out(state: State, memory: Memory, total: np.ndarray, count: np.ndarray) -> None:
    """Sums over their numbers of elements."""
    multiplier, shift = state.scale("OFM_SCALE")
    if are_global(state) and multiplier != 1 << shift:
        raise state.fault("scales an average, which the simulator does not do")
    finish(state, memory, _average(total, count, rounding(state)))


def _average(total: np.ndarray, count: np.ndarray, kind: Rounding) -> np.ndarray:
    """Sums over their numbers of elements, by the multiplier of 32 bits that Vela gives windows without padding."""
    bits = np.asarray([int(n - 1).bit_length() for n in range(int(count.max()) + 1)])[count]
    multiplier = ((np.int64(1) << (31 + bits)) + (np.int64(1) << bits)) // np.maximum(count, 1)
    return scaled(total, multiplier, 31 + bits, kind)
