"""Weight streams and tables of scales.

A stream is compressed (see `codec`) and has the accelerator's order. This is by blocks of output channels, blocks of input
channels, parts of the kernel, and micro-blocks. Places without a weight hold zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from relaylang.backends.ethosu.simulator.codec import Damaged, decode
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.stream import Stream

#: Rows and columns of the largest part of a kernel.
_LARGEST_PART = 8
#: Bytes of a channel's bias (40 bits), multiplier (32) and shift (6).
_ENTRY = 10


class Order(NamedTuple):
    """What the order of a weight stream depends on. Depths are of one core."""

    outputs: int
    height: int
    width: int
    inputs: int
    block: int
    output_micro: int
    input_micro: int
    bits: int
    part_height: int
    part_width: int
    depthwise: bool
    kernel_first: bool


@lru_cache(maxsize=64)
def _places(order: Order) -> np.ndarray:
    """The index into weights (output, row, column, input) of each place in a stream; -1 where there is none."""
    return np.concatenate([part.ravel() for part in _parts(order)])


def _parts(order: Order) -> Iterator[np.ndarray]:
    o = order
    across = 16 if o.kernel_first or o.bits == 16 else 32
    multiple = 4 if o.depthwise or o.bits == 8 else 2
    output, inner = np.arange(o.output_micro), np.arange(1 if o.depthwise else o.input_micro)
    for first_output in range(0, o.outputs, o.block):
        depth = min(o.block, o.outputs - first_output)
        for first_input in range(0, 1 if o.depthwise else o.inputs, across):
            if o.depthwise:
                inputs = o.input_micro
            else:
                inputs = min(across, o.inputs - first_input) if o.kernel_first else across
            for top in range(0, o.height, o.part_height):
                rows = min(o.height - top, o.part_height)
                for left in range(0, o.width, o.part_width):
                    columns = min(o.width - left, o.part_width)
                    elements = rows * columns
                    if o.kernel_first or o.depthwise:
                        elements += -elements % multiple
                    element = np.arange(elements)
                    y, x = element // columns, element % columns
                    outer = range(0, inputs, o.input_micro) if o.kernel_first else (0,)
                    within = np.arange(0, 1 if o.kernel_first else inputs, o.input_micro)
                    for micro in outer:
                        for start in range(0, depth, o.output_micro):
                            # axes: element of the kernel, micro-block of inputs, output, input
                            i = first_input + micro + within[:, None, None] + inner[None, None, :]
                            k = first_output + start + output[None, :, None]
                            valid = (i < o.inputs) & (k < o.outputs) & (y < rows)[:, None, None, None]
                            place = ((k * o.height + top + y[:, None, None, None]) * o.width + left + x[:, None, None, None])
                            yield np.where(valid, place * o.inputs + i, -1)


def _core_streams(stream: Stream, name: str) -> list[tuple[str, str]]:
    """The registers of address and length of each core's stream."""
    return [(f"{name}{core or ''}_BASE", f"{name}{core or ''}_LENGTH") for core in range(stream.cores)]


def _content(state: State, memory: Memory, region: str, base: str, length: str) -> np.ndarray:
    at = state.address(base)
    if at % 16:
        raise state.fault(f"has {base} at {at:#x}, which is not a multiple of 16")
    return memory.read(state[region], memory.span(state[region], at, state.address(length)))


def read_weights(state: State, memory: Memory, stream: Stream, extents: tuple[int, int, int, int], depthwise: bool,
                 bits: int) -> np.ndarray:  # fmt: skip
    """The weights, of axes output, row, column, input, as float64. `extents` are theirs, the kernel without dilation."""
    outputs, height, width, inputs = extents
    stride = state["KERNEL_STRIDE"]
    small = stream.macs // stream.cores == 32
    weights = np.zeros((outputs, height, width, inputs))
    block = state["OFM_BLK_DEPTH_M1"] + 1
    cores = stream.cores
    for core, (base, length) in enumerate(_core_streams(stream, "WEIGHT")):
        count = len(range(core, outputs, cores))
        if not count:
            continue
        order = Order(
            count, height, width, inputs, max(1, (block + cores - 1 - core) // cores), 4 if small else 8, 8, bits,
            _LARGEST_PART >> (stride >> 4 & 1), _LARGEST_PART >> (stride >> 3 & 1), depthwise, bool(stride >> 2 & 1),
        )  # fmt: skip
        raw = _content(state, memory, "WEIGHT_REGION", base, length)
        try:
            values = np.asarray(decode(raw.tobytes()), np.int16)
        except Damaged as problem:
            raise state.fault(f"has a weight stream that cannot be decoded: {problem}") from None
        places = _places(order)
        if len(values) < len(places):
            raise state.fault(f"has a weight stream of {len(values)} values, and needs {len(places)}")
        kept = places >= 0
        part = np.zeros(count * height * width * inputs)
        part[places[kept]] = values[: len(places)][kept]
        weights[core::cores] = part.reshape(count, height, width, inputs)
    return weights


class Scales(NamedTuple):
    """A bias, a multiplier and a shift to the right for each output channel."""

    bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray


def read_scales(state: State, memory: Memory, stream: Stream, channels: int) -> Scales:
    """The table of scales."""
    table = np.zeros((channels, 3), np.int64)
    for core, (base, length) in enumerate(_core_streams(stream, "SCALE")):
        count = len(range(core, channels, stream.cores))
        if not count:
            continue
        raw = _content(state, memory, "SCALE_REGION", base, length)
        if len(raw) < count * _ENTRY:
            raise state.fault(f"has a table of scales of {len(raw)} bytes for {count} channels")
        entries = raw[: count * _ENTRY].reshape(count, _ENTRY).astype(np.int64)
        bias = (entries[:, :5] << (8 * np.arange(5))).sum(1)
        bias -= (bias >> 39 & 1) << 40
        multiplier = (entries[:, 5:9] << (8 * np.arange(4))).sum(1)
        table[core :: stream.cores] = np.stack([bias, multiplier, entries[:, 9] & 0x3F], 1)
    return Scales(table[:, 0], table[:, 1], table[:, 2])
