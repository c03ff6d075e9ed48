"""A layer: the steps that compute it, and what they read.

Each step changes one slot, a copy of the output's tile on the chip. The rules of operators append steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from relaylang.ir import Expr

#: The least and greatest number of a sum, and of a result.
FULL, INT8 = (-(1 << 31), (1 << 31) - 1), (-128, 127)
#: The numbers that change nothing.
_NEUTRAL = {"ADD": 0, "MUL": 1, "SHR": 0}


class Step(NamedTuple):
    """A step on the tile in slot `slot`.

    `operation` is one of the ALU's, with a second operand of the `kind` imm, vec or slot. Or it is `reset`, `load8` of a leaf,
    `load32` of a tensor, or the `gemm` or `pool` of this number.
    """

    operation: str
    slot: int
    kind: str = ""
    value: int = 0


class Window(NamedTuple):
    """How windows lie on an image: their extents, the steps between them, the rows above, the columns on the left.

    The output's extents tell the padding below and on the right.
    """

    size: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)

    @property
    def taps(self) -> int:
        return self.size[0] * self.size[1]


class Gemm(NamedTuple):
    """A convolution of leaf `leaf`, of shape `data`, by int8 weights (O, I, H, W). A dense layer has a window of one place."""

    leaf: int
    data: tuple[int, ...]
    window: Window
    weight: np.ndarray
    groups: int = 1

    def sources(self, block_in: int, block_out: int) -> list[range]:
        """The channels of the input that each block of output channels needs, in blocks. All ranges have one length."""
        outs, ins = self.weight.shape[0] // self.groups, self.weight.shape[1]
        firsts = range(0, self.weight.shape[0], block_out)
        ends = [min(first + block_out, self.weight.shape[0]) - 1 for first in firsts]
        needed = [(first // outs * ins // block_in, ((end // outs + 1) * ins - 1) // block_in + 1) for first, end in zip(firsts, ends)]
        count, blocks = max(end - begin for begin, end in needed), -(-self.data[1] // block_in)
        return [range(min(begin, blocks - count), min(begin, blocks - count) + count) for begin, _ in needed]


class Pool(NamedTuple):
    """A pool of leaf `leaf`, of shape `data`: MAX or ADD over windows."""

    leaf: int
    data: tuple[int, ...]
    window: Window
    operation: str


class Value(NamedTuple):
    """A value in a slot, and the least and greatest number that it may hold."""

    slot: int
    low: int
    high: int

    def between(self, low: int, high: int) -> Value:
        """The slot after arithmetic in 32 bits, which wraps."""
        return Value(self.slot, low, high) if FULL[0] <= low and high <= FULL[1] else Value(self.slot, *FULL)


@dataclass
class Layer:
    """A composite's steps. `leaves` are int8 tensors of the region, `tensors` int32 constants of the result's shape."""

    shape: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)
    slots: int = 0
    leaves: list[Expr] = field(default_factory=list)
    gemms: list[Gemm] = field(default_factory=list)
    pools: list[Pool] = field(default_factory=list)
    vectors: list[np.ndarray] = field(default_factory=list)
    tensors: list[np.ndarray] = field(default_factory=list)
    _free: list[int] = field(default_factory=list)

    def leaf(self, expr: Expr) -> int:
        """The number of an int8 tensor among the leaves."""
        number = next((n for n, known in enumerate(self.leaves) if known is expr), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(expr)
        return number

    def new(self) -> int:
        """A slot that nothing uses."""
        if self._free:
            return self._free.pop()
        self.slots += 1
        return self.slots - 1

    def zeros(self) -> int:
        """A new slot of zeros."""
        slot = self.new()
        self.steps.append(Step("reset", slot))
        return slot

    def copy(self, slot: int) -> int:
        """A new slot with the same numbers."""
        other = self.zeros()
        self.steps.append(Step("ADD", other, "slot", slot))
        return other

    def combine(self, operation: str, slot: int, kind: str, number: int) -> None:
        """A step with a second operand; a slot is free after it."""
        self.steps.append(Step(operation, slot, kind, number))
        if kind == "slot":
            self._free.append(number)

    def apply(self, operation: str, slot: int, values: Any) -> None:
        """A step with a constant: one number, one for each channel of shape (C,), or any that can be spread to the result.

        A step that changes nothing is left out, and two additions become one.
        """
        array = np.asarray(values, np.int64)
        if array.ndim == 1:
            array = array.reshape(-1, *[1] * (len(self.shape) - 2))
        if (array == _NEUTRAL.get(operation, FULL[1] + 1)).all():
            return
        last = self.steps[-1]
        if operation == "ADD" and last[:2] == ("ADD", slot) and last.kind in ("imm", "vec"):
            before = np.int64(last.value) if last.kind == "imm" else self.vectors[last.value].reshape(-1, *[1] * (len(self.shape) - 2))
            self.steps.pop()
            array = array + before
        self.combine(operation, slot, *self._spread(array))

    def _spread(self, value: np.ndarray) -> tuple[str, int]:
        """A constant operand: a number of the instruction, a vector over channels, or a tensor in a slot."""
        full = np.broadcast_to(value, self.shape).astype(np.int32)
        if (full == full.flat[0]).all() and -(1 << 15) <= full.flat[0] < 1 << 15:
            return "imm", int(full.flat[0])
        channels = np.moveaxis(full, 1, 0).reshape(full.shape[1], -1)
        if (channels == channels[:, :1]).all():
            vector = channels[:, 0]
            number = next((n for n, known in enumerate(self.vectors) if np.array_equal(known, vector)), len(self.vectors))
            if number == len(self.vectors):
                self.vectors.append(vector)
            return "vec", number
        slot = self.new()
        self.tensors.append(full)
        self.steps.append(Step("load32", slot, "tensor", len(self.tensors) - 1))
        return "slot", slot

    def limited(self, value: Value, low: int, high: int) -> Value:
        """A value between limits; a limit that its bounds keep anyway costs nothing."""
        if value.low < low:
            self.apply("MAX", value.slot, low)
        if value.high > high:
            self.apply("MIN", value.slot, high)
        return Value(value.slot, min(max(value.low, low), high), max(min(value.high, high), low))

    def finish(self, slot: int) -> None:
        """Put the result into the first slot, and leave out vectors that no step uses."""
        names = {slot: 0, 0: slot}
        used = sorted({step.value for step in self.steps if step.kind == "vec"})
        self.vectors = [self.vectors[number] for number in used]
        for at, step in enumerate(self.steps):
            value = names.get(step.value, step.value) if step.kind == "slot" else step.value
            value = used.index(step.value) if step.kind == "vec" else value
            self.steps[at] = step._replace(slot=names.get(step.slot, step.slot), value=value)


__all__ = ["FULL", "INT8", "Gemm", "Layer", "Pool", "Step", "Value", "Window"]
