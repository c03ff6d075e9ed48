"""Runs of equal elements: the most frequent element along an axis, and the first element of each run; counts in bins."""

from __future__ import annotations

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.slices import pad
from relaylang.ir import Expr


def mode(b: Builder, x: Expr, axis: int) -> tuple[Expr, Expr]:
    """The most frequent element along an axis, the least of several, and its last place (int64). The axis stays, with extent 1."""
    extent = b.extent(x, axis)
    if not extent:
        raise Malformed("it has the mode of no elements")
    ordered, places = b.op("sort", x, axis=axis), b.op("argsort", x, axis=axis, dtype="int64")
    at = b.const(b.arrays.arange(extent).reshape([-1 if a == axis else 1 for a in range(b.rank(x))]))
    differ = b.op("not_equal", b.slice(ordered, [1], [extent], [axis]), b.slice(ordered, [0], [extent - 1], [axis]))
    start = b.op("multiply", _behind(b, b.cast(differ, "int64"), axis, 1), at)
    for bit in range((extent - 1).bit_length()):  # the greatest start so far
        start = b.op("maximum", start, _behind(b, b.slice(start, [0], [extent - (1 << bit)], [axis]), axis, 1 << bit))
    best = b.op("argmax", b.op("subtract", at, start), axis=(axis,), keepdims=True)
    return b.op("gather", ordered, best, axis=axis), b.op("gather", places, best, axis=axis)


def _behind(b: Builder, x: Expr, axis: int, count: int) -> Expr:
    """Whole numbers behind zeros along an axis."""
    return pad(b, x, [(count if a == axis else 0, 0) for a in range(b.rank(x))], value=b.const(0, "int64"))


def first_of_runs(b: Builder, x: Expr, axis: int | None) -> tuple[Expr, Expr, Expr]:
    """The first of each run of equal slices along an axis (of elements for None), the run of each, and the runs' lengths (int64)."""
    axis_ = axis or 0
    if axis is None:
        x = b.op("reshape", x, newshape=[-1])
    extent = b.extent(x, axis_, "the axis of runs")
    if not extent:
        raise Malformed("it has the runs of no elements")
    differ = b.op("not_equal", b.slice(x, [1], [extent], [axis_]), b.slice(x, [0], [extent - 1], [axis_]))
    others = tuple(a for a in range(b.rank(x)) if a != axis_)
    differ = b.op("any", differ, axis=others) if others else differ
    begins = b.concat([b.const(np.ones(1, bool)), differ], 0)
    places = b.cast(b.squeeze(b.op("argwhere", begins), [1]), "int64")
    runs = b.op("subtract", b.op("cumsum", b.cast(begins, "int64"), axis=0), 1)
    ends = b.concat([b.slice(places, [1], [extent], [0]), b.const(np.array([extent]))], 0)
    lengths = b.op("subtract", ends, places)
    return b.op("take", x, places, axis=axis_), runs, lengths


def histogram(b: Builder, x: Expr, bins: int, least: float, most: float, weights: Expr | None = None) -> Expr:
    """How many elements are in each of some bins of one width, or the sums of their weights. int64, or of the weights.

    The last bin holds its upper end. Bounds that are equal are the least and the greatest element.
    """
    if bins < 1 or not least <= most or not np.isfinite([least, most]).all():
        raise Malformed(f"it has {bins} bins from {least} to {most}")
    start = b.const(b.arrays.zeros(bins, np.dtype(b.dtype(weights) if weights is not None else "int64")))
    dtype = b.dtype(x) if "float" in b.dtype(x) else "float64"
    x = b.op("reshape", b.cast(x, dtype), newshape=[-1])
    low, high = b.const(least, dtype), b.const(most, dtype)
    if least == most:
        low, high = b.op("min", x), b.op("max", x)
        alike = b.cast(b.op("equal", low, high), dtype)
        low, high = b.op("subtract", low, alike), b.op("add", high, alike)
    inside = b.op("logical_and", b.op("greater_equal", x, low), b.op("less_equal", x, high))
    share = b.op("divide", b.op("multiply", b.op("subtract", x, low), float(bins)), b.op("subtract", high, low))
    at = b.cast(b.op("floor", b.op("where", inside, share, b.const(0.0, dtype))), "int64")
    at = b.op("minimum", at, bins - 1)
    parts = b.cast(inside, "int64") if weights is None else b.op("reshape", weights, newshape=[-1])
    parts = parts if weights is None else b.op("where", inside, parts, b.const(0, b.dtype(parts)))
    counts: Expr = b.op("scatter_elements", start, at, parts, axis=0, reduction="add")
    return counts


def bincount(b: Builder, x: Expr, weights: Expr | None, least: int) -> Expr:
    """How often each whole number from 0 on is in a vector, or the sum of its weights: at least `least` numbers.

    The counts go up to the largest number, so a computed vector has an open number of them.
    """
    if not 0 <= least < 1 << 31:
        raise Malformed(f"its result has at least {least} elements")
    x, dtype = b.cast(b.of_rank(x, 1), "int64"), b.dtype(weights) if weights is not None else "int64"
    largest = b.op("max", b.concat([b.const(np.array([least - 1])), x], 0), axis=[0], keepdims=True)
    b.arrays.reserve(int(known.max()) + 1 if (known := b.value(largest)) is not None else least)
    start = b.op("dyn.full", b.const(0, dtype), b.op("add", largest, 1), dtype=dtype)
    counts: Expr = b.op("scatter_elements", start, x, b.op("ones_like", x) if weights is None else weights, axis=0, reduction="add")
    return counts


__all__ = ["bincount", "first_of_runs", "histogram", "mode"]
