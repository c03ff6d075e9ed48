"""The multiply-accumulate unit: convolution and depthwise convolution.

Accumulators are exact: bytes and halves times weights of 9 bits give sums that float64 holds without rounding.
"""

from __future__ import annotations

import math

import numpy as np

from relaylang.backends.ethosu.simulator.feature_maps import MOST, feature_map, ofm_extents
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.output import finish, scaled
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.simulator.weights import read_scales, read_weights
from relaylang.backends.ethosu.stream import Stream

#: `SET_IFM_UPSCALE`.
_NEAREST, _ZEROS = 1, 2
#: The most elements of a kernel.
_MOST_TAPS = 1 << 16
#: The most rows or columns of padding at a side.
_MOST_PADDING = 255
_PADS = ("TOP", "LEFT", "BOTTOM", "RIGHT")


class Window:
    """A kernel over an input: strides, dilation, padding, and the input that the output's extents need."""

    def __init__(self, state: State) -> None:
        word = state["KERNEL_STRIDE"]
        self.stride = (1 + (word >> 1 & 1) + 2 * (word >> 9 & 7), 1 + (word & 1) + 2 * (word >> 6 & 7))
        self.dilation = (1 + (word >> 4 & 1), 1 + (word >> 3 & 1))
        self.reach = (state["KERNEL_HEIGHT_M1"] + 1, state["KERNEL_WIDTH_M1"] + 1)
        self.kernel = tuple([(reach - 1) // dilation + 1 for reach, dilation in zip(self.reach, self.dilation)])
        if self.kernel[0] * self.kernel[1] > _MOST_TAPS:
            raise state.fault(f"has a kernel of {self.kernel[0]} x {self.kernel[1]}")
        self.pads = [state[f"IFM_PAD_{side}"] for side in _PADS]
        if max(self.pads) > _MOST_PADDING:
            raise state.fault(f"has a padding of {max(self.pads)} rows or columns")
        height, width, _ = ofm_extents(state)
        self.output = (height, width)
        self.upscale = state["IFM_UPSCALE"]
        factor = 2 if self.upscale else 1
        sizes = []
        for axis in (0, 1):
            size = (self.output[axis] - 1) * self.stride[axis] + self.reach[axis] - self.pads[axis] - self.pads[axis + 2]
            sizes.append(max(-(-size // factor), 0))  # a stripe may lie in the padding alone
        self.input = tuple(sizes)

    def read(self, state: State, memory: Memory, channels: int) -> tuple[np.ndarray, np.ndarray]:
        """The input without its zero point, with padding, as float64; and which elements are no padding."""
        ifm = feature_map(state, "IFM")
        values = (ifm.read(memory, (*self.input, channels)) - ifm.zero_point).astype(np.float64)  # type: ignore[arg-type]
        if self.upscale == _NEAREST:
            values = values.repeat(2, 0).repeat(2, 1)
        elif self.upscale == _ZEROS:
            spread = np.zeros((2 * values.shape[0], 2 * values.shape[1], channels))
            spread[::2, ::2] = values
            values = spread
        need = [(self.output[axis] - 1) * self.stride[axis] + self.reach[axis] for axis in (0, 1)]
        if math.prod(need) * channels > 2 * MOST:
            raise state.fault(f"has a padded input of {need[0]} x {need[1]} x {channels} elements")
        padded = np.zeros((*need, channels))
        inside = np.zeros(need, bool)
        top, left = self.pads[0], self.pads[1]
        rows, columns = (max(min(values.shape[axis], need[axis] - self.pads[axis]), 0) for axis in (0, 1))
        padded[top : top + rows, left : left + columns] = values[:rows, :columns]
        inside[top : top + rows, left : left + columns] = True
        return padded, inside

    def taps(self, values: np.ndarray) -> list[np.ndarray]:
        """The values under each element of the kernel, row by row, of the output's height and width."""
        out = []
        for y in range(self.kernel[0]):
            for x in range(self.kernel[1]):
                start = (y * self.dilation[0], x * self.dilation[1])
                stop = [start[axis] + (self.output[axis] - 1) * self.stride[axis] + 1 for axis in (0, 1)]
                out.append(values[start[0] : stop[0] : self.stride[0], start[1] : stop[1] : self.stride[1]])
        return out


def convolve(state: State, memory: Memory, stream: Stream, depthwise: bool) -> None:
    """`OP_CONV` and `OP_DEPTHWISE`."""
    window = Window(state)
    outputs = state["OFM_DEPTH_M1"] + 1
    inputs = state["IFM_DEPTH_M1"] + 1
    if depthwise and inputs != outputs:
        raise state.fault(f"has {inputs} input channels and {outputs} output channels")
    values, _ = window.read(state, memory, inputs)
    bits = 8 << (state["IFM_PRECISION"] >> 2 & 3)
    weights = read_weights(state, memory, stream, (outputs, *window.kernel, 1 if depthwise else inputs), depthwise, bits)  # type: ignore[arg-type]
    height, width = window.output
    total = np.zeros((height, width, outputs))
    for number, tap in enumerate(window.taps(values)):
        kernel = weights[:, number // window.kernel[1], number % window.kernel[1], :]
        if depthwise:
            total += tap * kernel[:, 0]
        else:
            total += (np.ascontiguousarray(tap).reshape(-1, inputs) @ kernel.T).reshape(total.shape)
    sums = total.astype(np.int64)
    if state["OFM_PRECISION"] >> 8 & 1:
        raise state.fault("scales all channels of a convolution alike, which the simulator does not do")
    scales = read_scales(state, memory, stream, outputs)
    sums += scales.bias
    finish(state, memory, scaled(sums, scales.multiplier, scales.shift, state["OFM_PRECISION"] >> 14 & 3))
