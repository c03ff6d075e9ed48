"""Contractions as data: which results there are, what each of them sums up, and in which steps.

    out[group][row][column] = sum over k of data[group][row + k] * weight[group][column][k]

Rows are positions in the data, along any number of axes. The sum runs over axes of the data, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylang.backends.cpu.kernel import Tensor
from relaylang.kernels import ir
from relaylang.kernels.sizes import has_sizes


@dataclass(frozen=True)
class Rows:
    """An axis of rows: its extent, and its step in the data.

    It runs over the result's axes from `first` to `last`.
    """

    extent: int
    step: int
    first: int
    last: int


@dataclass(frozen=True)
class Sum:
    """An axis of the sum: its extent, and its steps in the data and in the weights."""

    extent: int
    data: int
    weight: int


#: The lower and the higher 8 bits of weights. Both are multiplied by the same data; the latter's sums count 256 times.
LIMBS = Sum(2, 0, 0)


@dataclass(frozen=True)
class Contraction:
    """A sum of products.

    `rows` are the axes of rows from outside in. `columns` results of each group lie along the result's axis `column`, in
    the weights `column_step` apart. `groups` have steps `group_data` in the data, and `group_weight` in the weights (0:
    they share them). They run over the result's axis `group`; without one, over parts of the axis `column`.
    """

    rows: Sequence[Rows]
    columns: int
    column: int
    column_step: int
    sums: Sequence[Sum]
    groups: int = 1
    group_data: int = 0
    group_weight: int = 0
    group: int | None = None

    @property
    def depth(self) -> int:
        """The products of one result."""
        return math.prod(axis.extent for axis in self.sums)

    @property
    def limbs(self) -> bool:
        """Whether weights are read in two limbs, along the outermost axis of the sum."""
        return bool(self.sums) and self.sums[0] is LIMBS

    @property
    def runs(self) -> list[list[Sum]]:
        """The axes of the sum, in runs that are one in the data, from outside in."""
        runs: list[list[Sum]] = []
        for axis in self.sums:
            if axis.extent == 1:
                continue
            if runs and runs[-1][-1].data == axis.data * axis.extent:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        return runs if runs and runs[-1][-1] is not LIMBS else [*runs, [Sum(1, 1, 0)]]


@dataclass(frozen=True)
class Weights:
    """The weights: a tensor, and how each value in memory becomes one of the product: `value(element, column)`.

    `extra` are further tensors that this reads. `begin`, where given, is a constant that times a column's sum of weights is
    taken from its results. Weights that are read `as_is` lie at the steps of the contraction; others are
    contiguous.
    """

    tensor: Tensor
    value: Callable[[ir.Expr, ir.Expr], ir.Expr] = lambda element, column: element
    extra: Sequence[Tensor] = ()
    begin: int = 0
    as_is: bool = False


@dataclass(frozen=True)
class Steps:
    """A sum in steps of `width` neighbouring products: the count in each run, and their strides in the data.

    A kernel takes the runs from `inside` on at once, and `piece` steps of the innermost one. It writes out `unroll` steps.
    """

    counts: Sequence[int]
    strides: Sequence[int]
    width: int
    inside: int
    piece: int
    unroll: int

    @property
    def parts(self) -> list[tuple[str, int, int]]:
        """Loops around the kernel, from outside in: a name, a count, and the step in the data."""
        loops = [(f"k{n}", self.counts[n], self.strides[n]) for n in range(self.inside)]
        pieces = -(-self.counts[-1] // self.piece)
        return [*loops, ("k", pieces, self.strides[-1] * self.piece)] if pieces > 1 else loops


def steps_of(runs: Sequence[Sequence[Sum]], width: int, most: int, outside: int = 0, written_out: bool = True) -> Steps:
    """The steps of a sum. A kernel takes about `most` of them at once: whole inner runs, or a piece of the innermost.

    The first `outside` runs are no part of it. Some of the innermost steps may be `written_out`.
    """
    counts = counts_of(runs, width)
    strides = [run[-1].data for run in runs]
    strides[-1] *= width
    # A kernel's text has the distance of the steps that it writes out. It cannot be a size.
    several = (4, 8, 7, 6, 5, 3, 2) if written_out and not has_sizes(strides[-1:]) else ()
    unroll = next((n for n in several if counts[-1] % n == 0), 1)
    inside, piece = len(runs) - 1, counts[-1]
    if has_sizes(counts):
        inside = outside
    elif piece > most * 3 // 2:
        pieces = -(-piece // most)
        piece = -(-piece // pieces // unroll) * unroll
    else:
        while inside > outside and math.prod(counts[inside - 1 :]) <= most * 3 // 2:
            inside -= 1
    return Steps(counts, strides, width, inside, piece, unroll)


def counts_of(runs: Sequence[Sequence[Sum]], width: int) -> list[int]:
    """The steps of each run, where one step takes `width` products of the innermost."""
    counts = [math.prod(axis.extent for axis in run) for run in runs]
    counts[-1] = -(-counts[-1] // width)
    return counts
