"""The order of weights in a stream.

This is by blocks of output channels, blocks of input channels, parts of the kernel, and microblocks. Places without a weight
hold zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

#: Rows and columns of the largest part of a kernel.
_LARGEST_PART = 8


class Order(NamedTuple):
    """What the order depends on: the weights' extents (output, row, column, input), the operation, and the accelerator.

    `block` and `micro` are the output channels of a block and of a microblock, `bits` those of the input.
    """

    extents: tuple[int, int, int, int]
    block: int
    micro: int
    bits: int
    dilation: tuple[int, ...]
    stride: tuple[int, ...]
    depthwise: bool
    kernel_first: bool
    sparse: bool
    macs: int
    cores: int
    is_u85: bool

    def indices(self, k: np.ndarray, y: np.ndarray, x: np.ndarray, i: np.ndarray) -> np.ndarray:
        """The indices of weights, -1 where there is none. A negative row stands for padding."""
        outputs, height, width, inputs = self.extents
        return np.where((k < outputs) & (i < inputs) & (y >= 0), ((k * height + y) * width + x) * inputs + i, -1)

    def parts(self, is_transposed: bool) -> Iterator[tuple[int, int, int, int]]:
        """The parts of the kernel: first row and column, rows and columns. `is_transposed`: column by column."""
        _, height, width, _ = self.extents
        tall, wide = (_LARGEST_PART // dilation for dilation in self.dilation)
        starts = [(top, left) for top in range(0, height, tall) for left in range(0, width, wide)]
        for top, left in sorted(starts, key=lambda start: start[::-1]) if is_transposed else starts:
            yield top, left, min(height - top, tall), min(width - left, wide)

    @property
    def input_block(self) -> int:
        """The input channels of a block."""
        if self.kernel_first or (self.bits == 16 and not self.is_u85):
            return 16
        if not self.is_u85 or self.bits == 32 or (self.macs <= 256 and self.micro == 16 and not self.sparse):
            return 32
        return 128 if self.sparse and self.bits == 8 else 64


@lru_cache(maxsize=64)
def places(order: Order, core: int, is_fast: bool) -> np.ndarray:
    """The index into weights of each place in a core's stream; -1 where there is none.

    The fast form has one stream: the cores take turns at each group of elements.
    """
    if not order.is_u85:
        return _row(_u55_parts(order, core))
    if not is_fast:
        return _row(_u85_parts(order, core))
    turns = zip(*[_u85_parts(order, core) for core in range(order.cores)])
    groups = ([part.reshape(part.shape[0] * part.shape[1] // _together(order), -1) for part in parts] for parts in turns)
    return _row(np.stack(parts, 1) for parts in groups)


def _row(parts: Iterator[np.ndarray]) -> np.ndarray:
    return np.concatenate([part.ravel() for part in parts] or [np.zeros(0, np.int64)])


def _u55_parts(order: Order, core: int) -> Iterator[np.ndarray]:
    """The U55 and U65: the output channels of two cores take turns, and each core has its own blocks."""
    o = order
    outputs, _, _, all_inputs = o.extents
    count = len(range(core, outputs, o.cores))
    block = max(1, (o.block + o.cores - 1 - core) // o.cores)
    across = o.input_block
    multiple = 4 if o.depthwise or o.bits == 8 else 2
    micro = 8
    output, inner = np.arange(o.micro), np.arange(1 if o.depthwise else micro)
    for first_output in range(0, count, block):
        depth = min(block, count - first_output)
        for first_input in range(0, 1 if o.depthwise else all_inputs, across):
            if o.depthwise:
                inputs = micro
            else:
                inputs = min(across, all_inputs - first_input) if o.kernel_first else across
            for top, left, rows, columns in o.parts(False):
                elements = rows * columns
                if o.kernel_first or o.depthwise:
                    elements += -elements % multiple
                element = np.arange(elements)
                y, x = element // columns, element % columns
                y, x = np.where(y < rows, top + y, -1)[:, None, None, None], left + x[:, None, None, None]
                outer = range(0, inputs, micro) if o.kernel_first else (0,)
                within = np.arange(0, 1 if o.kernel_first else inputs, micro)
                for part in outer:
                    for start in range(0, depth, o.micro):
                        # axes: element of the kernel, microblock of inputs, output, input
                        i = first_input + part + within[:, None, None] + inner[None, None, :]
                        k = first_output + start + output[None, :, None]
                        yield o.indices(np.where(k < count, core + o.cores * k, outputs), y, x, i)


#: The U85 deals out the output channels of a microblock to cores in groups.
_GROUP = 4


def _together(o: Order) -> int:
    """The elements of a kernel that the U85 computes together."""
    if o.depthwise:
        return 10
    if o.kernel_first:
        return 10 if o.bits == 16 or o.sparse else 5
    return 1


def _walk(order: Order, rows: int, columns: int) -> list[tuple[int, int]]:
    """Elements of a part of a kernel in the U85's order: by phase of strides, from both sides in turn."""
    vertical, horizontal = order.stride if order.kernel_first or order.depthwise else (1, 1)
    elements = []
    for phase_y in range(vertical):
        for phase_x in range(horizontal):
            for turn, y in enumerate(range(phase_y, rows, vertical)):
                line = range(phase_x, columns, horizontal)
                elements += [(y, x) for x in (reversed(line) if turn % 2 else line)]
    return elements


def _padded(order: Order, elements: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The elements in groups that are computed together. -1 stands for padding, of which a depthwise group has more."""
    together, extra = _together(order), 0
    if order.depthwise and (order.bits == 16 or order.macs > 256):
        extra = 2 if order.macs <= 512 else 6
    groups = []
    for start in range(0, len(elements), together):
        group = elements[start : start + together]
        groups += group + [(-1, 0)] * (together - len(group) + extra)
    return groups


def _u85_parts(order: Order, core: int) -> Iterator[np.ndarray]:
    """The U85. The first axes of each part are the microblocks of outputs, and the elements of the kernel with padding."""
    o = order
    outputs, _, _, inputs = o.extents
    across = o.input_block
    step = 1 if o.depthwise else 16 if o.sparse else 8
    deep = 1 if o.depthwise else 8 if o.kernel_first and o.bits == 16 and not o.sparse else across
    starts = list(range(0, 1 if o.depthwise else inputs, across))
    groups = np.arange(core * _GROUP, o.micro, _GROUP * o.cores)
    channel = (groups[:, None] + np.arange(_GROUP)).ravel()
    # axes: microblock of outputs, element of the kernel, microblock of inputs, output, input
    inner = (np.arange(0, deep, step)[:, None, None] + np.arange(step))[None, None]
    for turn, first_output in enumerate(range(0, outputs, o.block)):
        depth = min(o.block, outputs - first_output)
        micros = first_output + np.arange(0, depth, o.micro)[:, None, None, None, None]
        for first_input in reversed(starts) if turn % 2 else starts:
            for top, left, rows, columns in o.parts(True):
                elements = _padded(o, _walk(o, rows, columns))
                y, x = (np.asarray(axis)[None, :, None, None, None] for axis in zip(*elements))
                for outer in range(0, 1 if o.depthwise else min(across, inputs - first_input), deep):
                    k, i = micros + channel[:, None], first_input + outer + inner
                    yield o.indices(k, np.where(y < 0, -1, top + y), left + x, i)
