"""Pools of regions (RoiAlign) where `vision.roi_align` has other rules: half pixels, and the greatest weighted corner.

Relay makes a region at least one element wide and high. So a region of half pixels is cut into its cells, or into its
sampling points, each of which is a region for itself. Those of no extent become one element around a point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr

#: By so much places come nearer to 0, for float32 and float64: less than the type resolves. So those on the image's border
#: stay inside, and no cell of a whole extent has one more sampling point by rounding.
_NARROWER = 2.0**-25, 1e-12


@dataclass(frozen=True)
class Axis:
    """One axis of all regions, in elements of the image.

    The starts and the extents of cells have the shape (regions, 1). The number of a cell's sampling points is a number,
    or of this shape.

    Places have the regions' element type until they are complete, as in onnxruntime: one at the image's border is
    inside or outside by its last bit.
    """

    start: Expr
    cell: Expr
    cells: int
    points: int | Expr

    def centres(self, b: Builder, point: Expr | int) -> Expr:
        """The place of a sampling point in each cell: (regions, cells) of float64."""
        dtype = b.dtype(self.cell)
        middle = b.op("add", b.cast(point if isinstance(point, Expr) else b.const(point, "float64"), dtype), 0.5)
        count = self.points if isinstance(self.points, Expr) else b.const(self.points, dtype)
        share = b.op("divide", b.op("multiply", middle, self.cell), b.op("maximum", count, b.const(1, dtype)))
        return b.cast(b.op("add", self.starts(b), share), "float64")

    def starts(self, b: Builder) -> Expr:
        """Where each cell starts: (regions, cells)."""
        numbers = b.const(b.arrays.arange(self.cells)[None].astype(b.dtype(self.cell)))
        return b.op("add", self.start, b.op("multiply", numbers, self.cell))


def axes_of(b: Builder, rois: Expr, cells: tuple[int, int], scale: float, ratio: int, half: bool) -> list[Axis]:
    """The axes y and x of regions (regions, 4) of left, top, right and bottom. `ratio` 0 has a point for each element."""
    scaled = b.op("multiply", rois, scale)
    corners = b.op("subtract", scaled, 0.5) if half else scaled
    axes = []
    for first, count in ((1, cells[0]), (0, cells[1])):
        start, end = (b.slice(corners, [i], [i + 1], [1]) for i in (first, first + 2))
        extent = b.op("subtract", end, start)
        cell = b.op("divide", extent if half else b.op("maximum", extent, 1.0), float(count))
        axes.append(Axis(start, cell, count, ratio or b.op("ceil", cell)))
    return axes


def mean(b: Builder, x: Expr, batch: Expr, axes: list[Axis]) -> Expr:
    """The mean over the sampling points of each cell: (regions, channels, rows, columns)."""
    y, across = axes
    if isinstance(y.points, int):
        every = [(y.centres(b, i), across.centres(b, j)) for i, j in np.ndindex(b.arrays.reserve((y.points, y.points)))]
        values = [cells(b, x, batch, [_around(b, row), _around(b, column)]) for row, column in every]
        total = values[0]
        for value in values[1:]:
            total = b.op("add", total, value)
        return b.op("multiply", total, 1.0 / len(values))
    parts = []
    for axis in axes:
        small = b.op("less_equal", axis.cell, 1.0)
        first = b.cast(axis.starts(b), "float64")
        edges = [first, b.op("add", first, b.cast(axis.cell, "float64"))]
        point = _around(b, axis.centres(b, 0))[0]
        inward = 1 - (_NARROWER[1] if b.dtype(axis.cell) == "float64" else _NARROWER[0])
        start, end = [b.op("where", small, point, b.op("multiply", edge, inward)) for edge in edges]
        parts.append((start, end))
    some = b.op("logical_and", b.op("greater", y.cell, 0.0), b.op("greater", across.cell, 0.0))
    return b.op("where", b.unsqueeze(some, [2, 3]), cells(b, x, batch, parts), b.const(0.0, b.dtype(x)))


def whole_cells(
    b: Builder, rois: Expr, counts: tuple[int, int], scale: float, more: int, limits: tuple[int, int]
) -> tuple[list[tuple[Expr, Expr]], Expr]:
    """The whole elements that each cell of rounded regions touches: the parts for `cells`, and which cells are not empty,
    (regions, 1, rows, columns). A region is `more` elements larger than its corners are apart. Cells end before `limits`.
    """
    corners = b.op("round", b.op("multiply", rois, scale))
    if more:
        corners = b.op("add", corners, b.const(np.array([0, 0, more, more]), b.dtype(corners)))
    return cut_cells(b, corners, counts, 1.0, limits)


def cut_cells(
    b: Builder, corners: Expr, counts: tuple[int, int], least: float, limits: tuple[int, int]
) -> tuple[list[tuple[Expr, Expr]], Expr]:
    """As `whole_cells`, for regions of scaled corners, which are as large as `least` at least."""
    parts, some = [], []
    for first, count, limit in ((1, counts[0], limits[0]), (0, counts[1], limits[1])):
        start, end = (b.slice(corners, [i], [i + 1], [1]) for i in (first, first + 2))
        extent = b.op("maximum", b.op("subtract", end, start), least)
        size = b.op("divide", extent, float(count))
        numbers = b.arrays.arange(count)[None]
        whole = b.op("floor", start)  # which is the start itself where corners are rounded
        rest = b.op("subtract", start, whole)
        cuts = ("floor", numbers), ("ceil", numbers + 1)
        ends = [b.op(cut, b.op("add", b.op("multiply", size, b.const(at, b.dtype(size))), rest)) for cut, at in cuts]
        low, high = (b.op("clip", b.op("add", end, whole), a_min=0.0, a_max=float(limit)) for end in ends)
        parts.append((b.op("subtract", b.cast(low, "float64"), 0.5), b.op("subtract", b.cast(high, "float64"), 0.5)))
        some.append(b.op("greater", high, low))
    both = b.op("logical_and", b.unsqueeze(some[0], [2]), b.unsqueeze(some[1], [1]))
    return parts, b.unsqueeze(both, [1])


def by_cell(b: Builder, x: Expr, batch: Expr, size: tuple[int, int]) -> tuple[Expr, Expr]:
    """Images of which each has the channels of one cell, and the images of the cells of all regions."""
    rows, columns = size
    count, (channels, height, width) = rows * columns, [b.extent(x, axis) for axis in (1, 2, 3)]
    if channels % count:
        raise Malformed(f"{channels} channels do not divide into {rows} x {columns} cells")
    apart = b.transpose(b.reshape(x, [-1, channels // count, count, height, width]), [0, 2, 1, 3, 4])
    images = b.reshape(apart, [-1, channels // count, height, width])
    numbers = b.const(b.arrays.arange(count).reshape(1, rows, columns).astype(np.float64))
    first = b.op("multiply", b.cast(batch, "float64"), float(count))
    return images, b.op("add", b.unsqueeze(first, [1, 2]), numbers)


def _around(b: Builder, centre: Expr) -> tuple[Expr, Expr]:
    """The start and the end of an extent 0, which Relay makes one element, around a point."""
    start = b.op("subtract", centre, 0.5)
    return start, start


def cells(b: Builder, x: Expr, batch: Expr, parts: list[tuple[Expr, Expr]], mode: str = "avg") -> Expr:
    """The means of cells as regions of their own, from the starts and ends of rows and columns: (regions, channels, rows,
    columns). `mode` "max" gives the greatest sampling points. The numbers of images are those of regions (regions,), or of
    cells (regions, rows, columns).
    """
    rows, columns = b.extent(parts[0][0], 1), b.extent(parts[1][0], 1)
    grid = b.const(b.arrays.zeros((1, rows, columns)))
    (top, bottom), (left, right) = [[b.op("add", b.unsqueeze(v, [2 - i]), grid) for v in part] for i, part in enumerate(parts)]
    image = b.cast(batch if b.rank(batch) == 3 else b.unsqueeze(batch, [1, 2]), "float64")
    image = b.op("add", image, grid)
    rois = b.reshape(b.op("stack", b.tuple([image, left, top, right, bottom]), axis=3), [-1, 5])
    aligned = b.op("vision.roi_align", x, rois, pooled_size=[1, 1], spatial_scale=1.0, sample_ratio=-1, mode=mode)
    return b.transpose(b.reshape(aligned, [-1, rows, columns, b.extent(x, 1)]), [0, 3, 1, 2])


def greatest(b: Builder, x: Expr, batch: Expr, axes: list[Axis]) -> Expr:
    """The greatest weighted corner of the sampling points of each cell: (regions, channels, rows, columns)."""
    down, across = axes
    pixels = b.reshape(b.transpose(x, [0, 2, 3, 1]), [-1, b.extent(x, 1)])
    first = b.op("multiply", b.unsqueeze(b.cast(batch, "int64"), [1, 2]), b.extent(x, 2) * b.extent(x, 3))

    def value(i: Expr | int, j: Expr | int) -> Expr:
        """The greatest weighted corner of one point of each cell: (regions, rows, columns, channels)."""
        lines, places = _corners(b, down.centres(b, i), b.extent(x, 2)), _corners(b, across.centres(b, j), b.extent(x, 3))
        maximum: Expr | None = None
        for line, share in lines:
            row = b.op("add", first, b.unsqueeze(b.op("multiply", line, b.extent(x, 3)), [2]))
            for place, part in places:
                weight = b.op("multiply", b.unsqueeze(share, [2]), b.unsqueeze(part, [1]))
                corner = b.op("take", pixels, b.op("add", row, b.unsqueeze(place, [1])), axis=0)
                corner = b.op("multiply", corner, b.unsqueeze(b.cast(weight, b.dtype(x)), [3]))
                maximum = corner if maximum is None else b.op("maximum", maximum, corner)
        assert maximum is not None
        return maximum

    if isinstance(down.points, int) and isinstance(across.points, int):
        maximum = value(0, 0)
        for i, j in list(np.ndindex(b.arrays.reserve((down.points, across.points))))[1:]:
            maximum = b.op("maximum", maximum, value(i, j))
    else:
        maximum = _over_points(b, x, axes, value)
    return b.transpose(maximum, [0, 3, 1, 2])


def _corners(b: Builder, at: Expr, extent: int) -> list[tuple[Expr, Expr]]:
    """The two elements around each place, as int64, with their weights: 0 for places beyond the image."""
    inside = b.op("logical_and", b.op("greater_equal", at, -1.0), b.op("less_equal", at, float(extent)))
    held = b.op("clip", at, a_min=0.0, a_max=extent - 1.0)
    low = b.op("floor", held)
    high = b.op("minimum", b.op("add", low, 1.0), extent - 1.0)
    share, zero = b.op("subtract", held, low), b.const(0.0, "float64")
    weights = b.op("subtract", b.const(1.0, "float64"), share), share
    return [(b.cast(v, "int64"), b.op("where", inside, w, zero)) for v, w in zip((low, high), weights)]


def _over_points(b: Builder, x: Expr, axes: list[Axis], value: Callable[[Expr, Expr], Expr]) -> Expr:
    """The greatest value over the points of each cell, whose number is computed; 0 for cells without points."""
    counts = [axis.points for axis in axes if isinstance(axis.points, Expr)]
    counts = [b.cast(count, "float64") for count in counts]
    most = [b.op("max", b.concat([n, b.const(np.zeros((1, 1)))], 0)) for n in counts]
    zero, one = b.const(0.0, "float64"), b.const(1.0, "float64")
    shape = b.op("zeros_like", value(zero, zero))

    def turn(v: list[Expr]) -> list[Expr]:
        i, j, maximum = v
        inside = b.op("logical_and", b.op("less", i, counts[0]), b.op("less", j, counts[1]))
        maximum = b.op("where", b.unsqueeze(inside, [2, 3]), b.op("maximum", maximum, value(i, j)), maximum)
        last = b.op("greater_equal", b.op("add", j, one), most[1])
        return [b.op("add", i, b.cast(last, "float64")), b.op("where", last, zero, b.op("add", j, one)), maximum]

    least = b.op("add", shape, float(np.finfo(np.dtype(b.dtype(x))).min))
    begin = b.op("where", b.op("greater", most[1], zero), zero, most[0])
    maximum = while_loop(b, lambda v: b.op("less", v[0], most[0]), turn, [begin, zero, least], ["row", "column", "most"], "points")[2]
    some = b.op("logical_and", b.op("greater", counts[0], zero), b.op("greater", counts[1], zero))
    return b.op("where", b.unsqueeze(some, [2, 3]), maximum, b.const(0.0, b.dtype(x)))


__all__ = ["axes_of", "by_cell", "cells", "cut_cells", "greatest", "mean", "whole_cells"]
