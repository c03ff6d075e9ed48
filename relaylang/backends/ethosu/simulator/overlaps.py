"""Outputs that lie on inputs of their own operation: no block may write what a later one reads.

Each block reads its inputs, and is written then. So an output may take the place of an operand of the same shape. It may
also lie on an input of one block. Weights and scales are read for all blocks. A chain of operations has the blocks of its
last one. Inputs of operations with other blocks count as read to the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relaylang.backends.ethosu.simulator.accumulators import block_of, stay_inside
from relaylang.backends.ethosu.simulator.feature_maps import Extents, FeatureMap, feature_map, is_chained, ofm_extents
from relaylang.backends.ethosu.simulator.inputs import Input, Use, inputs_of, sums_channels
from relaylang.backends.ethosu.simulator.macs import Window
from relaylang.backends.ethosu.simulator.memory import Memory, Traffic, meeting, name_of
from relaylang.backends.ethosu.simulator.output import stored_extents
from relaylang.backends.ethosu.simulator.state import State


class _Grid(NamedTuple):
    """The blocks of an output in their order: channels change fastest, then columns."""

    output: Extents
    block: Extents

    @property
    def counts(self) -> Extents:
        height, width, channels = (-(-extent // size) for extent, size in zip(self.output, self.block))
        return height, width, channels

    @property
    def last(self) -> int:
        """The number of the last block."""
        height, width, channels = self.counts
        return height * width * channels - 1

    def number(self, places: tuple[np.ndarray, ...]) -> np.ndarray:
        """The numbers of blocks by their places along the axes."""
        _, width, channels = self.counts
        y, x, c = places
        return np.asarray((y * width + x) * channels + c)


class _Tensor(NamedTuple):
    """A tensor with the number of a block for each of its elements, or one for all."""

    fm: FeatureMap
    extents: Extents
    grid: _Grid
    numbers: np.ndarray

    def bytes(self, grid: _Grid) -> tuple[np.ndarray, np.ndarray]:
        """The addresses, and the number for each, in the blocks of an operation that ends the chain."""
        numbers = self.numbers if grid == self.grid else np.asarray(grid.last)
        at = self.fm.addresses(self.extents)[..., None] + np.arange(self.fm.dtype.itemsize)
        return at.ravel(), np.broadcast_to(np.broadcast_to(numbers, self.extents)[..., None], at.shape).ravel()


class Overlaps:
    """What the operations of a chain have read so far."""

    def __init__(self) -> None:
        self._read: list[_Tensor] = []

    def follow(self, state: State, memory: Memory) -> None:
        """An operation has run. Raises `RelayError` where a block of it writes what a later one reads."""
        grid = _Grid(ofm_extents(state), block_of(state))
        self._read += [_last_readers(state, i, grid) for i in inputs_of(state)]
        if is_chained(state, "OFM"):
            return
        if not stay_inside(state) and meeting(memory.traffic.reads, memory.traffic.writes) is not None:
            met = self._overwritten(_first_writers(state, grid), memory.traffic)
            if met is not None:
                raise state.fault(f"writes byte {met[1]:#x} of {name_of(met[0])}, which a later block of it reads")
        self._read = []

    def _overwritten(self, output: _Tensor, traffic: Traffic) -> tuple[int, int] | None:
        """A byte that a block writes before another one reads it: its region and address."""
        at, numbers = output.bytes(output.grid)
        low = int(at.min())
        first = np.full(int(at.max()) - low + 1, output.grid.last)
        first[at - low] = numbers
        region, last = output.fm.region, output.grid.last
        reads = [tensor.bytes(output.grid) for tensor in self._read if tensor.fm.region == region]
        reads += [(at, np.full(len(at), last)) for number, at in traffic.constants if number == region]
        for at, numbers in reads:
            inside = (at >= low) & (at < low + len(first))
            at, numbers = at[inside], numbers[inside]
            early = at[first[at - low] < numbers]
            if early.size:
                return region, int(early.min())
        return None


def _first_writers(state: State, grid: _Grid) -> _Tensor:
    """The output. With axes in another order, the first block may write all."""
    ofm, stored = feature_map(state, "OFM"), stored_extents(state, grid.output)
    if stored is not None:
        return _Tensor(ofm, stored, grid, np.asarray(0))
    return _Tensor(ofm, grid.output, grid, grid.number(_axes(*(np.arange(n) // size for n, size in zip(*grid)))))


def _last_readers(state: State, tensor: Input, grid: _Grid) -> _Tensor:
    """An input, with the last blocks that read its elements."""
    ends = [np.asarray([count - 1]) for count in grid.counts]
    places = ends
    if tensor.use == Use.SAME:
        places = [end if n == 1 else np.arange(n) // size for n, size, end in zip(tensor.extents, grid.block, ends)]
    elif tensor.use == Use.WINDOW:
        window, channels = Window(state), np.arange(tensor.extents[2])
        places = [*_under_kernel(window, grid), ends[2] if sums_channels(state) else channels // grid.block[2]]
    elif tensor.use == Use.WEIGHTS:
        rows = np.arange(tensor.extents[1]) // grid.block[2]
        numbers = grid.number((ends[0], ends[1], rows[:, None]))
        return _Tensor(feature_map(state, tensor.name), tensor.extents, grid, numbers)
    return _Tensor(feature_map(state, tensor.name), tensor.extents, grid, grid.number(_axes(*places)))


def _under_kernel(window: Window, grid: _Grid) -> list[np.ndarray]:
    """Rows and columns of blocks: the last ones whose windows begin at or before the input's rows and columns."""
    factor, last_blocks = 2 if window.upscale else 1, []
    for axis in (0, 1):
        place = np.arange(1, window.input[axis] + 1) * factor - 1 + window.pads[axis]
        last_blocks.append(np.minimum(place // window.stride[axis], window.output[axis] - 1) // grid.block[axis])
    return last_blocks


def _axes(y: np.ndarray, x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers along axes, to be combined."""
    return y[:, None, None], x[:, None], c
