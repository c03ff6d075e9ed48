"""The weights of contractions, packed in panels as wide as a block of results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.backends.cpu.arith import Arith
from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.lower.sums import Contraction, Sum, Weights, counts_of
from relaylang.kernels import ir
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.index import digits
from relaylang.kernels.nest import Buf
from relaylang.kernels.sizes import surely_less


@dataclass(frozen=True)
class Panels:
    """Packed weights: `count` panels of `size` elements for each group.

    The values that sums begin with, if any, take the first `head` elements of a panel. Such panels are whole vectors long.
    """

    buf: Buf
    count: int
    size: int
    head: int

    @property
    def several(self) -> bool:
        """Whether there may be more panels than one."""
        return not surely_less(self.count, 2)


def pack_panels(kernel: Kernel, c: Contraction, weights: Weights, arith: Arith, width: int) -> Panels:
    """The weights as [group][panel][head, then runs...][width][steps]. With halves, a vector is [steps][lanes]."""
    counts = counts_of(c.runs, arith.steps)
    groups, count = c.groups if c.group_weight != 0 else 1, -(-c.columns // width)
    head = width * SIZES[arith.total] // SIZES[arith.weight] if weights.begin else 0
    size = head + math.prod(counts) * width * arith.steps
    if head:
        # blocks read these values as aligned vectors
        vector = kernel.isa.of(arith.total).lanes * SIZES[arith.total] // SIZES[arith.weight]
        size = -(-size // vector) * vector

    def body(source: Buf, target: Buf) -> ir.Body:
        """One unit for each panel."""
        u, r, s, v = ir.Var("u"), ir.Var("r"), ir.Var("s"), ir.Var("v", arith.weight)
        p: ir.Expr = ir.Var("p") if arith.steps > 1 else ir.number(0)
        group, panel = digits(u, [groups, count])
        numbers = [ir.Var(f"k{n}") for n in range(len(counts) - 1)]
        step = ir.offset(counts, [*numbers, s])
        loops = [*((k.name, extent) for k, extent in zip(numbers, counts)), ("s", counts[-1]), ("r", width)]
        if arith.steps > 1:
            loops.append(("p", arith.steps))
        at = group * c.group_weight + ir.Var("j") * c.column_step + _offset(c.runs, [*numbers, s * arith.steps + p])
        value = weights.value(ir.load(source, at), ir.Var("j"))
        value = ir.cast(value, arith.weight)
        for test in _inside(c, arith, width, s * arith.steps + p):
            value = ir.select(test, value, ir.Const(0, arith.weight))
        lanes = kernel.isa.of(arith.registers).lanes
        place = (r // lanes * arith.steps + p) * lanes + r % lanes if arith.halves else r * arith.steps + p
        inner = [
            ir.Let("j", panel * width + r),
            ir.Let("v", value),
            ir.store(target, v, u * size + step * (width * arith.steps) + place + head),
        ]
        begin = ir.Let("begin", ir.Cast(ir.address(target, u * size, written=True), f"{arith.total}*"))
        if head:
            inner.append(ir.Reduce("sub", "begin", r, ir.cast(v, arith.total) * weights.begin))
        for name, extent in reversed(loops):
            inner = [ir.loop(name, 0, extent, inner)]
        if head:
            inner = [begin, ir.loop("r", 0, width, [ir.store(begin.var, ir.Const(0, arith.total), r)]), *inner]
        return [ir.loop("u", 0, groups * count, inner, ir.PARALLEL)]

    buf = kernel.packed(weights.tensor, groups * count * size, arith.weight, body, weights.extra, weights.as_is)
    return Panels(buf, count, size, head)


def _offset(runs: Sequence[Sequence[Sum]], numbers: Sequence[ir.Expr]) -> ir.Expr:
    """Where an element of the sum is in the weights, from its number in each run."""
    total = ir.number(0)
    for run, number in zip(runs, numbers):
        for axis, digit in zip(run, digits(number, [axis.extent for axis in run])):
            total = total + digit * axis.weight
    return total


def _inside(c: Contraction, arith: Arith, width: int, number: ir.Expr) -> list[ir.Expr]:
    """The conditions under which a place of a panel has an element, where that is not everywhere."""
    extent = math.prod(axis.extent for axis in c.runs[-1])
    within: list[ir.Expr] = [ir.Var("j") < c.columns] if c.columns % width != 0 else []
    return [*within, number < extent] if extent % arith.steps else within
