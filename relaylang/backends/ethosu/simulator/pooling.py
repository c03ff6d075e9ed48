"""The pooling unit: maxima, averages and sums over channels."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.simulator.macs import Window
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.output import finish, scaled
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.simulator.weights import read_scales
from relaylang.backends.ethosu.stream import Stream

_MAX, _AVERAGE, _SUM = 0, 1, 2


def pool(state: State, memory: Memory, stream: Stream) -> None:
    """`OP_POOL`."""
    mode = state.command.param
    window = Window(state)
    channels = state["IFM_DEPTH_M1"] + 1
    outputs = state["OFM_DEPTH_M1"] + 1
    if outputs != (1 if mode == _SUM else channels):
        raise state.fault(f"has {channels} input channels and {outputs} output channels")
    values, inside = window.read(state, memory, channels)
    rounding = state["OFM_PRECISION"] >> 14 & 3
    whole = bool(state["OFM_PRECISION"] >> 8 & 1)
    if mode == _MAX:
        values[~inside] = -np.inf
        found = np.maximum.reduce(window.taps(values))
        if np.isneginf(found).any():
            raise state.fault("takes the maximum of padding alone")
        finish(state, memory, found.astype(np.int64))
        return
    if mode not in (_AVERAGE, _SUM):
        raise state.fault(f"has the pooling mode {mode}, which the simulator does not know")
    total = sum(window.taps(values), np.zeros((*window.output, channels))).astype(np.int64)
    if mode == _SUM:
        total = total.sum(2, keepdims=True)
    if mode == _AVERAGE and any(window.pads):
        if whole and state.scale("OFM_SCALE") != (1, 0):
            raise state.fault("scales an average over padding, which the accelerator cannot")
        count = sum(window.taps(inside.astype(np.int64)), np.zeros(window.output, np.int64))[..., None]
        finish(state, memory, _average(total, count, rounding))
    elif whole:
        multiplier, shift = state.scale("OFM_SCALE")
        finish(state, memory, scaled(total, multiplier, shift, rounding))
    else:
        scales = read_scales(state, memory, stream, outputs)
        finish(state, memory, scaled(total + scales.bias, scales.multiplier, scales.shift, rounding))


def _average(total: np.ndarray, count: np.ndarray, rounding: int) -> np.ndarray:
    """Sums over their numbers of elements, by the multiplier of 32 bits that Vela gives windows without padding."""
    bits = np.asarray([int(n - 1).bit_length() for n in range(int(count.max()) + 1)])[count]
    multiplier = ((np.int64(1) << (31 + bits)) + (np.int64(1) << bits)) // np.maximum(count, 1)
    return scaled(total, multiplier, 31 + bits, rounding)
