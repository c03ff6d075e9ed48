"""Tensors in memory: height, width, channels. They have up to four tiles; NHCWB16 has channels in bricks of 16."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.state import State

_BRICK = 16
#: The bits of an address. Strides that go back are large numbers.
_ADDRESS = (1 << 40) - 1
#: The most elements of a tensor.
MOST = 1 << 25
_INTEGERS = {(size, signed): np.dtype(f"<{'i' if signed else 'u'}{size}") for size in (1, 2, 4, 8) for signed in (False, True)}
#: `activation_storage`: four tiles, and a buffer of a chain of operations.
_TILES, _CHAINED = 0, 2

#: Height, width, channels.
Extents = tuple[int, int, int]


class FeatureMap(NamedTuple):
    """Where a tensor lies: the addresses of its four tiles, and strides in bytes along height, width and bricks.

    The tiles are upper left, upper right, lower left, lower right. `width0` columns are left; of the left columns `height0`
    rows are above, of the right ones `height1`. A chained one lies in the buffer `region` instead.
    """

    region: int
    bases: tuple[int, ...]
    height0: int
    height1: int
    width0: int
    strides: Extents
    bricks: bool
    dtype: np.dtype
    zero_point: int
    is_chained: bool = False

    def addresses(self, extents: Extents, start: Extents = (0, 0, 0)) -> np.ndarray:
        """The byte addresses of the elements in a box that begins at `start`."""
        y, x, c = (first + np.arange(extent) for first, extent in zip(start, extents))
        y, x = y[:, None], x[None, :]
        right, low0, low1 = x >= self.width0, y >= self.height0, y >= self.height1
        below = np.where(right, low1, low0)
        base = np.asarray(self.bases, np.int64)[right + 2 * below]
        row = y - below * np.where(right, self.height1, self.height0)
        column = x - right * self.width0
        size = self.dtype.itemsize
        if self.bricks:
            depth = c // _BRICK * self.strides[2] + c % _BRICK * size
            across = _BRICK * size
        else:
            depth = c * size
            across = self.strides[1]
        return (np.asarray(base + row * self.strides[0] + column * across)[:, :, None] + depth) & _ADDRESS

    def _places(self, memory: Memory, extents: Extents) -> np.ndarray:
        if math.prod(extents) > MOST:
            raise memory.state.fault(f"has a tensor of {' x '.join(map(str, extents))} elements")
        memory.state.spend(math.prod(extents))
        return self.addresses(extents)

    def read(self, memory: Memory, extents: Extents) -> np.ndarray:
        """The elements without the zero point taken off, as int64."""
        if self.is_chained:
            return memory.chained(self.region, extents)
        at = self._places(memory, extents)
        size = self.dtype.itemsize
        raw = memory.read(self.region, at[..., None] + np.arange(size))
        return raw.view(self.dtype)[..., 0].astype(np.int64)

    def write(self, memory: Memory, values: np.ndarray) -> None:
        """Store int64 values, which fit."""
        if self.is_chained:
            memory.chain(self.region, values)
            return
        at = self._places(memory, values.shape)  # type: ignore[arg-type]
        size = self.dtype.itemsize
        raw = np.ascontiguousarray(values.astype(self.dtype))[..., None].view(np.uint8)
        memory.write(self.region, at[..., None] + np.arange(size), raw)


def feature_map(state: State, name: str) -> FeatureMap:
    """The feature map that the registers of IFM, IFM2 or OFM describe."""
    register = f"{name}_PRECISION"
    size = 1 << state.field(register, "activation_precision")
    if size > (8 if state.is_u85 else 4):
        raise state.fault(f"has {name} elements of {size} bytes")
    is_signed = bool(state.field(register, "activation_type"))
    dtype = _INTEGERS[size, is_signed]
    zero = state.signed(f"{name}_ZERO_POINT") if is_signed else state[f"{name}_ZERO_POINT"]
    storage = state.field(register, "activation_storage")
    if is_chained(state, name):
        return FeatureMap(state[f"{name}_REGION"], (), 0, 0, 0, (0, 0, 0), False, dtype, zero, True)
    if storage != _TILES:
        raise state.fault(f"has {name} in the storage {storage}, which the simulator does not know")
    bricks = bool(state.field(register, "activation_format"))
    aligned = _BRICK if bricks else size
    bases = tuple([state.aligned(f"{name}_BASE{i}", aligned) for i in range(4)])
    packed = "X" if bricks else "C"  # the axis whose stride is known, whatever the register holds
    y, x, c = (state.aligned(f"{name}_STRIDE_{axis}", 1 if axis == packed else aligned) for axis in "YXC")
    return FeatureMap(
        state[f"{name}_REGION"],
        bases,
        state[f"{name}_HEIGHT0_M1"] + 1,
        state[f"{name}_HEIGHT1_M1"] + 1,
        state[f"{name}_WIDTH0_M1"] + 1,
        (y, x, c),
        bricks,
        dtype,
        zero,
    )


def is_chained(state: State, name: str) -> bool:
    """Whether a feature map lies in a buffer of a chain of operations."""
    return state.field(f"{name}_PRECISION", "activation_storage") == _CHAINED


def ofm_extents(state: State) -> Extents:
    """The extents of the output."""
    return state["OFM_HEIGHT_M1"] + 1, state["OFM_WIDTH_M1"] + 1, state["OFM_DEPTH_M1"] + 1
