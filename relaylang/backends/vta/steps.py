"""The steps of a layer, and the slots that they use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: The least and greatest number of a sum.
FULL = (-(1 << 31), (1 << 31) - 1)


class Step(NamedTuple):
    """A step on the tile in slot `slot`.

    `operation` is one of the ALU's, with a second operand of the `kind` imm, vec or slot. Or it is `reset`, `load8` of a leaf,
    `load32` of a tensor, or the `gemm` or `pool` of this number.
    """

    operation: str
    slot: int
    kind: str = ""
    value: int = 0


class Gemm(NamedTuple):
    """A convolution of leaf `leaf`, of shape `data`, by int8 weights (O, I, H, W). A dense layer has a window of one place.

    `padding` are the rows above and the columns on the left; the output's extents tell the others.
    """

    leaf: int
    data: tuple[int, ...]
    weight: np.ndarray
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


class Pool(NamedTuple):
    """A pool of leaf `leaf`: MAX or ADD over windows."""

    leaf: int
    data: tuple[int, ...]
    operation: str
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


class Slots:
    """The slots of a layer: which are in use, and how many there are at most."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.count = 0
        self._free: list[int] = []

    def new(self) -> int:
        if self._free:
            return self._free.pop()
        self.count += 1
        return self.count - 1

    def free(self, slot: int) -> None:
        self._free.append(slot)

    def copy(self, slot: int) -> int:
        """A new slot with the same numbers."""
        other = self.new()
        self.steps += [Step("reset", other), Step("ADD", other, "slot", slot)]
        return other

    def rename(self, slot: int) -> None:
        """Exchange a slot with the first one in all steps."""
        other = {slot: 0, 0: slot}
        for number, step in enumerate(self.steps):
            value = other.get(step.value, step.value) if step.kind == "slot" else step.value
            self.steps[number] = step._replace(slot=other.get(step.slot, step.slot), value=value)


__all__ = ["FULL", "Gemm", "Pool", "Slots", "Step"]
