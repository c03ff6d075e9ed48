"""StableHLO's gather and scatter (https://openxla.org/stablehlo/spec#gather), for the formats that have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.hlo import axes_in
from relaylang.frontends.common.places import grid
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr


@dataclass(frozen=True)
class Numbers:
    """Which axes are which: of windows in the result or in the updates, and of the operand.

    `gone` are the operand's axes that windows lack, `batch` those that go along with `index_batch`, axes of the indices.
    `starts` are the operand's axes that an index vector names; the vector is the axis `vector` of the indices.
    """

    window: Sequence[int]
    gone: Sequence[int]
    starts: Sequence[int]
    vector: int
    batch: Sequence[int] = ()
    index_batch: Sequence[int] = ()

    def check(self, b: Builder, x: Expr, indices: Expr) -> None:
        """Raise `Malformed` where axes are missing or named twice."""
        rank, places = b.rank(x), b.rank(indices)
        axes_in(sorted([*self.gone, *self.batch]), rank, "the list of axes that windows lack")
        axes_in(self.starts, rank, "the list of axes that start indices name")
        if not 0 <= self.vector <= places:
            raise Malformed(f"the vector of an index is the axis {self.vector} of {places}")
        axes_in(self.index_batch, places, "the list of batch axes of the indices")
        if len(self.batch) != len(self.index_batch) or self.vector in self.index_batch or set(self.batch) & set(self.starts):
            raise Malformed("the batch axes of the operand and of the indices do not fit each other")
        length = 1 if self.vector == places else b.shape(indices)[self.vector]
        if isinstance(length, int) and length != len(self.starts):
            raise Malformed(f"an index has {length} elements for {len(self.starts)} axes")


class _Indices:
    """Start indices apart: `starts` gives the tensor of those of an axis; `rank` is the number of their batch axes."""

    def __init__(self, b: Builder, indices: Expr, numbers: Numbers) -> None:
        if numbers.vector == b.rank(indices):
            indices = b.unsqueeze(indices, [numbers.vector])
        if b.dtype(indices).startswith("uint"):
            indices = b.cast(indices, "int64")
        order = [numbers.vector, *[i for i in range(b.rank(indices)) if i != numbers.vector]]
        self.b = b
        self.numbers = numbers
        self.rows = b.transpose(indices, order)
        self.shape = list(b.shape(self.rows))[1:]
        self.rank = len(self.shape)
        self.dtype = b.dtype(indices)

    def start(self, axis: int) -> Expr:
        """The first places along an axis of the operand: (batch ...)."""
        at = list(self.numbers.starts).index(axis)
        return self.b.squeeze(self.b.slice(self.rows, [at], [at + 1], [0]), [0])

    def batch_axis(self, axis: int) -> int:
        """The batch axis of the indices that goes along with an axis of the operand."""
        at = self.numbers.index_batch[list(self.numbers.batch).index(axis)]
        return at - (at > self.numbers.vector)

    def places(self, axes: Sequence[int], starts: dict[int, Expr], sizes: Sequence[int]) -> Expr:
        """The position of each element along some axes of the operand: (axes, batch ..., windows of `sizes` ...)."""
        b, rows = self.b, []
        for i, axis in enumerate(axes):
            if axis in starts:
                row = b.unsqueeze(starts[axis], list(range(self.rank, self.rank + len(sizes))))
            elif axis in self.numbers.batch:
                at = self.batch_axis(axis)
                row = grid(b, [b.extent(self.rows, k + 1) if k == at else 1 for k in range(self.rank)], at, self.dtype)
                row = b.unsqueeze(row, list(range(self.rank, self.rank + len(sizes))))
            else:
                row = b.const(0, self.dtype)
            if sizes and sizes[i] != 1:
                row = b.op("add", row, grid(b, sizes, i, self.dtype, front=self.rank))
            rows.append(row)
        return b.op("stack", b.tuple(self._alike(rows, sizes)), axis=0)

    def _alike(self, rows: list[Expr], sizes: Sequence[int]) -> list[Expr]:
        """Rows in one shape."""
        b, shape = self.b, [*self.shape, *sizes]
        if all(b.shape(row) == tuple(shape) for row in rows):
            return rows
        if all(isinstance(d, int) for d in shape):
            return [b.op("broadcast_to", row, shape=shape) for row in rows]
        total = rows[0]
        for row in rows[1:]:
            total = b.op("add", total, row)
        return [b.op("add", b.op("multiply", total, 0), row) for row in rows]


def gather(b: Builder, x: Expr, indices: Expr, sizes: Sequence[int | None], numbers: Numbers) -> Expr:
    """A window at each start index, moved inwards where it would end outside. `sizes` are the windows' extents, None for one
    that is not known, and is the operand's."""
    numbers.check(b, x, indices)
    rank, n = int(b.rank(x)), numbers
    if len(sizes) != rank or any(sizes[a] != 1 for a in [*n.gone, *n.batch]):
        raise Malformed(f"the windows' extents {list(sizes)} do not fit {rank} axes, of which {[*n.gone, *n.batch]} have 1")
    first_indices = _Indices(b, indices, n)
    for axis in range(rank):
        extent, size = b.shape(x)[axis], sizes[axis]
        if isinstance(extent, int) and size is not None and not 0 <= size <= extent:
            raise Malformed(f"a window has the extent {size} along an axis of {extent}")
        if axis not in n.starts and axis not in n.batch and size is not None and size != extent:
            x = b.slice(x, [0], [size], [axis])
    starts = {axis: _held(b, first_indices.start(axis), x, axis, sizes[axis]) for axis in n.starts}
    moved = [*n.batch, *n.starts]
    order = [*moved, *[a for a in range(rank) if a not in moved]]
    x = b.transpose(x, order)
    windows = [int(sizes[a] or 0) for a in moved]
    if set(windows) == {1}:
        windows = []
    if not moved:
        gathered = b.op(
            "broadcast_to", b.unsqueeze(x, list(range(first_indices.rank))), shape=[*first_indices.shape, *b.static_shape(x)]
        )
    elif len(moved) == 1 and not windows and not n.batch:
        gathered = b.op("take", x, starts[moved[0]], axis=0)
    else:
        gathered = b.op("gather_nd", x, first_indices.places(moved, starts, windows))
    if not windows:
        gathered = b.unsqueeze(gathered, list(range(first_indices.rank, first_indices.rank + len(moved))))
    # Now it is (batch ..., the operand's axes in `order`).
    kept = [a for a in range(rank) if a not in n.gone and a not in n.batch]
    gathered = b.squeeze(gathered, [first_indices.rank + i for i, a in enumerate(order) if a not in kept])
    inner = [a for a in order if a in kept]
    count = first_indices.rank + len(kept)
    offsets = axes_in(n.window, count, "offset_dims")
    if len(offsets) != len(kept):
        raise Malformed(f"offset_dims has {len(offsets)} axes, and windows have {len(kept)}")
    windowed, outer = iter([first_indices.rank + inner.index(a) for a in kept]), iter(range(first_indices.rank))
    return b.transpose(gathered, [next(windowed) if a in offsets else next(outer) for a in range(count)])


def _held(b: Builder, start: Expr, x: Expr, axis: int, size: int | None) -> Expr:
    """The first places of windows along an axis, moved inwards where the windows would end outside."""
    if size is None:
        raise Unsupported("the extent of its windows is not known along an axis of indices")
    extent = b.shape(x)[axis]
    clamped: Expr
    if isinstance(extent, int):
        clamped = b.op("clip", start, a_min=0.0, a_max=float(extent - size))
    else:
        last = b.scalar(b.slice(b.shape_of(x), [axis], [axis + 1], [0]))
        last = b.op("subtract", b.cast(last, b.dtype(start)), size)
        clamped = b.op("minimum", b.op("maximum", start, 0), last)
    return clamped


def scatter(b: Builder, x: Expr, indices: Expr, updates: Expr, mode: str, numbers: Numbers) -> Expr:
    """Windows of updates are joined with the data, by a mode of `scatter_nd`. A window that is not inside changes nothing."""
    numbers.check(b, x, indices)
    rank, n = int(b.rank(x)), numbers
    first_indices = _Indices(b, indices, n)
    count = b.rank(updates)
    windows = axes_in(n.window, count, "update_window_dims")
    kept = [a for a in range(rank) if a not in n.gone and a not in n.batch]
    if len(windows) != len(kept) or count != first_indices.rank + len(windows):
        raise Malformed(f"the updates have {len(windows)} axes of windows, and the operand {len(kept)}")
    extents = b.static_shape(x)
    inner = dict(zip(kept, windows))
    sizes = [b.extent(updates, inner[a]) if a in inner else 1 for a in range(rank)]
    if any(size > extent for size, extent in zip(sizes, extents)):
        raise Malformed(f"windows of the extents {sizes} do not fit {list(extents)}")
    if rank == 0:
        x, extents, sizes = b.unsqueeze(x, [0]), b.static_shape(b.unsqueeze(x, [0])), [1]
    moved = [*n.batch, *n.starts, *[a for a in range(rank) if a not in [*n.batch, *n.starts] and sizes[a] != extents[a]]]
    moved = moved or [0]
    order = [*moved, *[a for a in range(max(rank, 1)) if a not in moved]]
    outer = [a for a in range(count) if a not in windows]
    updates = b.transpose(updates, [*outer, *[inner[a] for a in order if a in inner]])
    front = [b.extent(updates, i, "the number of updates") for i in range(len(outer))]
    parts = [sizes[a] for a in moved]
    single = all(size == 1 for size in parts)
    updates = b.reshape_exactly(updates, [*front, *([] if single else parts), *[sizes[a] for a in order if a not in moved]])
    starts = {a: first_indices.start(a) for a in n.starts}
    places = first_indices.places(moved, starts, [] if single else parts)
    x = b.transpose(x, order)
    if starts:
        fits = _fits(b, starts, extents, sizes)
        known = b.value(fits)
        if known is None or not known.all():
            return _beside(b, x, places, updates, fits, [extents[a] for a in order], mode, order)
    scattered = b.op("scatter_nd", x, places, updates, mode=mode)
    scattered = b.transpose(scattered, [order.index(a) for a in range(len(order))])
    return scattered if rank else b.squeeze(scattered, [0])


def _fits(b: Builder, starts: dict[int, Expr], extents: Sequence[int], sizes: Sequence[int]) -> Expr:
    """Whether each window is inside."""
    fits: Expr | None = None
    for axis, start in starts.items():
        last = b.op("less_equal", start, b.const(extents[axis] - sizes[axis], b.dtype(start)))
        inside = b.op("logical_and", b.op("greater_equal", start, 0), last)
        fits = inside if fits is None else b.op("logical_and", fits, inside)
    assert fits is not None
    return fits


def _beside(
    b: Builder, x: Expr, places: Expr, updates: Expr, fits: Expr, extents: Sequence[int], mode: str, order: Sequence[int]
) -> Expr:
    """One more row takes the windows that do not fit."""
    rank = b.rank(places) - 1
    fits = b.unsqueeze(fits, [0, *range(b.rank(fits) + 1, rank + 1)])
    count = b.extent(places, 0)
    beside = b.const(np.array([extents[0], *[0] * (count - 1)], b.dtype(places)).reshape([-1] + [1] * rank))
    padded = b.op("nn.pad", x, b.const(0, b.dtype(x)), pad_width=[[0, 1], *[[0, 0]] * (len(extents) - 1)])
    scattered = b.op("scatter_nd", padded, b.op("where", fits, places, beside), updates, mode=mode)
    return b.transpose(b.slice(scattered, [0], [extents[0]], [0]), [order.index(a) for a in range(len(order))])


__all__ = ["Numbers", "gather", "scatter"]
