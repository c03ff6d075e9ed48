"""The multiply-accumulate unit: convolution and depthwise convolution.

Accumulators are exact: bytes and halves times weights of 9 bits give sums that float64 holds without rounding.
"""

from __future__ import annotations

import math

import numpy as np

from relaylang.backends.ethosu.simulator.accumulators import accumulated
from relaylang.backends.ethosu.simulator.feature_maps import MOST, feature_map, ofm_extents
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.output import finish
from relaylang.backends.ethosu.simulator.scales import apply_scales
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.simulator.weights import read_weights

#: `SET_IFM_UPSCALE`.
_NEAREST, _ZEROS = 1, 2
#: The most elements of a kernel.
_MOST_TAPS = 1 << 16
#: The most rows or columns of padding at a side.
_MOST_PADDING = 255
#: The flag of `OP_CONV` for weights that are a tensor.
_WEIGHTS_IFM2 = 1
_PADS = ("TOP", "LEFT", "BOTTOM", "RIGHT")


class Window:
    """A kernel over an input: strides, dilation, padding, and the input that the output's extents need."""

    def __init__(self, state: State) -> None:
        def of_axes(field: str, end: str = "") -> tuple[int, int]:
            y, x = (state.field("KERNEL_STRIDE", f"{field}_{axis}{end}") for axis in "yx")
            return y, x

        low, high, dilation = of_axes("stride", "_lsb"), of_axes("stride", "_msb"), of_axes("dilation")
        self.stride = (1 + low[0] + 2 * high[0], 1 + low[1] + 2 * high[1])
        self.dilation = (1 + dilation[0], 1 + dilation[1])
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


def convolve(state: State, memory: Memory) -> None:
    """`OP_CONV` and `OP_DEPTHWISE`."""
    depthwise = state.command.name == "OP_DEPTHWISE"
    window = Window(state)
    outputs = state["OFM_DEPTH_M1"] + 1
    inputs = state["IFM_DEPTH_M1"] + 1
    if depthwise and inputs != outputs:
        raise state.fault(f"has {inputs} input channels and {outputs} output channels")
    values, _ = window.read(state, memory, inputs)
    if has_given_weights(state):
        weights = _second_operand(state, memory, window, outputs, inputs)
    else:
        weights = read_weights(state, memory, (outputs, *window.kernel, 1 if depthwise else inputs), depthwise)  # type: ignore[arg-type]
    height, width = window.output
    state.spend(height * width * outputs * math.prod(window.kernel) * (1 if depthwise else inputs))
    total = np.zeros((height, width, outputs))
    for number, tap in enumerate(window.taps(values)):
        kernel = weights[:, number // window.kernel[1], number % window.kernel[1], :]
        if depthwise:
            total += tap * kernel[:, 0]
        else:
            total += (np.ascontiguousarray(tap).reshape(-1, inputs) @ kernel.T).reshape(total.shape)
    sums = accumulated(state, memory, total.astype(np.int64))
    if sums is not None:
        finish(state, memory, apply_scales(state, memory, sums))


def has_given_weights(state: State) -> bool:
    """Whether the weights of the command that is executed now are a tensor."""
    return state.command.name == "OP_CONV" and bool(state.command.param & _WEIGHTS_IFM2)


def _second_operand(state: State, memory: Memory, window: Window, outputs: int, inputs: int) -> np.ndarray:
    """Weights that are a tensor: a column for each output channel."""
    if window.kernel != (1, 1):
        raise state.fault(f"takes a tensor for weights of a kernel of {window.kernel[0]} x {window.kernel[1]}")
    ifm2 = feature_map(state, "IFM2")
    values = ifm2.read(memory, (1, outputs, inputs)) - ifm2.zero_point
    return values.astype(np.float64).reshape(outputs, 1, 1, inputs)
