"""Packed sequences: the steps of sequences of several lengths behind each other, the longest sequence first.

The packed data has a row for each step of each sequence. The batch sizes tell how many sequences have each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.torch.families.shape import computed_slice
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


@dataclass(frozen=True)
class Sequences:
    """Sequences of a batch: `sizes` (steps) tells how many have each step, 0 behind the longest one."""

    b: Builder
    sizes: Expr
    batch: int

    @property
    def steps(self) -> int:
        return self.b.extent(self.sizes, 0, "the batch sizes")

    def mask(self) -> Expr:
        """Which sequences have which step: (steps, batch)."""
        mask: Expr = self.b.op("less", self.b.const(self.b.arrays.arange(self.batch)[None]), self.b.unsqueeze(self.sizes, [1]))
        return mask

    def lengths(self) -> Expr:
        """The number of steps of each sequence."""
        lengths: Expr = self.b.op("sum", self.b.cast(self.mask(), "int64"), axis=[0])
        return lengths

    def packed(self, x: Expr) -> Expr:
        """The rows of the steps of (steps, batch, ...)."""
        b, rest = self.b, list(self.b.static_shape(x, "the sequences"))[2:]
        flat = b.reshape_exactly(x, [self.steps * self.batch, *rest])
        mask = b.op("reshape", self.mask(), newshape=[-1])
        value = b.value(mask)
        places = b.const(np.flatnonzero(value)) if value is not None else b.squeeze(b.op("argwhere", mask), [1])
        rows: Expr = b.op("take", flat, places, axis=0)
        return rows

    def padded(self, data: Expr, value: float = 0.0) -> Expr:
        """The packed data as (steps, batch, ...), with a value behind the end of each sequence."""
        b = self.b
        before = b.op("cumsum", self.sizes, axis=0, exclusive=True)
        places = b.op("add", b.unsqueeze(before, [1]), b.const(b.arrays.arange(self.batch)[None]))
        rows = b.op("take", data, places, axis=0, mode="clip")
        mask = b.unsqueeze(self.mask(), list(range(2, b.rank(rows))))
        padded: Expr = b.op("where", mask, rows, b.const(value, b.dtype(data)))
        return padded


def sequences(b: Builder, sizes: Expr, batch: Any = None) -> Sequences:
    """The sequences of batch sizes. `batch` is their number, where an operand tells it. Raises `Unsupported`."""
    noted = b.notes.get(sizes)
    if isinstance(noted, Sequences):
        return noted
    known = b.known(b.of_rank(sizes, 1))
    batch = known[0] if known and known[0] is not None else batch
    if not isinstance(batch, int):
        raise Unsupported("its batch sizes must be constants, or come from pack_padded_sequence")
    return Sequences(b, b.cast(sizes, "int64"), batch)


def pack(n: Node) -> Any:
    """The packed data and the batch sizes of a padded tensor."""
    b, x = n.b, n.x("input")
    lengths = b.cast(b.of_rank(n.x("lengths"), 1), "int64")
    x = b.transpose(x, [1, 0, *range(2, b.rank(x))]) if n.get("batch_first") else x
    steps, batch = b.static_shape(x, "the sequences")[:2]
    known = b.value(lengths)
    if known is not None and known.size:
        if (np.diff(known) > 0).any() or known.min() < 1 or known.max() > steps:
            raise Malformed(f"the lengths {known.tolist()[:8]} must fall from {steps} at most to 1 at least")
        steps = int(known.max())
        x = b.slice(x, [0], [steps], [0])
    alive = b.op("less", b.const(b.arrays.arange(steps)[:, None]), b.unsqueeze(lengths, [0]))
    packing = Sequences(b, b.op("sum", b.cast(alive, "int64"), axis=[1]), batch)
    sizes = packing.sizes
    if known is None:
        longest = b.scalar(b.slice(lengths, [0], [1], [0]))
        sizes = computed_slice(n, sizes, 0, 0, longest, 1)
    b.notes[sizes] = packing
    return [packing.packed(x), sizes]


def pad(n: Node) -> Any:
    """The padded tensor and the lengths of packed data."""
    b, data, sizes = n.b, n.x("data"), n.x("batch_sizes")
    packing = sequences(b, sizes)
    fill = float(n.get("padding_value", 0.0))
    padded = packing.padded(data, fill)
    total = n.get("total_length", -1)
    if isinstance(total, Expr) and b.value(total) is None:
        rows = b.arange(b.const(0, "int64"), b.cast(b.scalar(total), "int64"), b.const(1, "int64"), "int64")
        alive = b.unsqueeze(b.op("less", rows, packing.steps), list(range(1, b.rank(padded))))
        padded = b.op("where", alive, b.op("take", padded, rows, axis=0, mode="clip"), b.const(fill, b.dtype(padded)))
    elif (total := n.int("total_length", -1)) > packing.steps:
        widths = [[0, total - packing.steps], *[[0, 0]] * (b.rank(padded) - 1)]
        padded = b.op("nn.pad", padded, b.const(fill, b.dtype(padded)), pad_width=widths)
    elif total > 0:
        padded = b.slice(padded, [0], [total], [0])
    elif b.shape(sizes)[0] != packing.steps:  # as long as the longest sequence, which is computed
        padded = computed_slice(n, padded, 0, 0, b.scalar(b.shape_of(sizes)), 1)
    padded = b.transpose(padded, [1, 0, *range(2, b.rank(padded))]) if n.get("batch_first") else padded
    return [padded, packing.lengths()]


RULES = (Rule("aten._pack_padded_sequence", pack), Rule("aten._pad_packed_sequence", pad))

__all__ = ["RULES", "Sequences", "sequences"]
