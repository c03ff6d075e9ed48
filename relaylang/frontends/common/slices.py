"""Slices and padding, with constant and computed bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.ir import Expr, is_static

#: A bound beyond every extent.
FAR = 2**31 - 1


def slice_axes(b: Builder, x: Expr, begin: Sequence[int], end: Sequence[int], axes: Sequence[int], strides: Sequence[int]) -> Expr:
    """`x[begin:end:stride]` on some axes with Python's meaning, also where nothing is left."""
    shape, rank = b.shape(x), b.rank(x)
    bounds = []
    for first, last, axis, step in zip(begin, end, axes, strides):
        size = shape[axis % rank]
        if step == 0:
            raise Unsupported("a slice has the step 0")
        if isinstance(size, int):
            places = range(*slice(first, last, step).indices(size))
            if len(places) == size and step == 1:
                continue
            first, last, step = _bounds(places, size)
        else:
            first, last = (max(min(v, FAR), -FAR) for v in (first, last))
            if (first, last, step) == (0, FAR, 1):
                continue
        bounds.append((axis % rank, first, last, step))
    if not bounds:
        return x
    made_axes, begins, ends, steps = (list(v) for v in zip(*bounds))
    return b.slice(x, begins, ends, made_axes, steps)


def _bounds(places: range, size: int) -> tuple[int, int, int]:
    """Bounds that Relay reads without doubt; -1 as an end would count from the end."""
    if not len(places):
        return 0, 0, 1
    end = places[-1] + (1 if places.step > 0 else -1)
    return places[0], end if end >= 0 else -size - 1, places.step


def slice_computed(b: Builder, x: Expr, begin: Expr, end: Expr, axes: Sequence[int], strides: Expr | None) -> Expr:
    """A slice whose bounds are vectors computed by the program; the extents of other axes stay known."""
    rank, count = b.rank(x), len(axes)
    axes = [a % rank for a in axes]
    strides = strides if strides is not None else b.const(b.arrays.ones(count, np.int64))
    full = [_spread(b, b.cast(v, "int64"), axes, rank, default) for v, default in ((begin, 0), (end, FAR), (strides, 1))]
    sliced = b.op("dyn.strided_slice", x, *full, begin=None, end=None, strides=None, axes=None)
    known = [None if i in axes else d if isinstance(d, int) else None for i, d in enumerate(b.shape(x))]
    steps = b.known(strides) or [None] * count
    firsts, lasts = b.known(begin) or [None] * count, b.known(end) or [None] * count
    for axis, first, last, step in zip(axes, firsts, lasts, steps):
        size = b.shape(x)[axis]
        if isinstance(size, int) and first is not None and last is not None and step:
            known[axis] = len(range(*slice(first, last, step).indices(size)))
    return b.refine(sliced, known)


def _spread(b: Builder, values: Expr, axes: Sequence[int], rank: int, default: int) -> Expr:
    """A number for each axis: those of a vector for `axes`, the default for others."""
    if list(axes) == list(range(rank)):
        return values
    place = {axis: i for i, axis in enumerate(axes)}
    parts = [
        b.slice(values, [place[i]], [place[i] + 1], [0]) if i in place else b.const(np.array([default], np.int64)) for i in range(rank)
    ]
    return b.concat(parts, 0)


def pad(b: Builder, x: Expr, pairs: Sequence[tuple[int, int]], mode: str = "constant", value: Expr | float = 0.0) -> Expr:
    """Padding of every axis. Negative numbers cut. `mode` is "constant", "edge", "reflect", "symmetric" or "wrap"."""
    cut = [(max(-p, 0), max(-q, 0)) for p, q in pairs]
    pairs = [(max(p, 0), max(q, 0)) for p, q in pairs]
    rank = b.rank(x)
    if any(p or q for p, q in cut):
        ends = [-q if q else FAR for _, q in cut]
        x = slice_axes(b, x, [p for p, _ in cut], ends, list(range(rank)), [1] * rank)
    if not any(p or q for p, q in pairs):
        return x
    if mode in ("wrap", "symmetric"):
        for axis, (before, after) in enumerate(pairs):
            x = _repeat(b, x, axis, before, after, mode) if before or after else x
        return x
    zero = value if isinstance(value, Expr) else b.const(value, b.dtype(x))
    return b.op("nn.pad", x, zero, pad_width=[list(p) for p in pairs], pad_mode=mode)


def _repeat(b: Builder, x: Expr, axis: int, before: int, after: int, mode: str) -> Expr:
    """The data again, or mirrored with its border, around itself."""
    size = b.extent(x, axis, "a padded axis")
    places = np.pad(b.arrays.arange(size), b.arrays.reserve((before, after)), mode=mode)  # type: ignore[call-overload]
    return b.op("take", x, b.const(places.astype(np.int32)), axis=axis)


def pad_computed(b: Builder, x: Expr, widths: Expr, mode: str, value: Expr) -> Expr:
    """Padding by numbers that the program computes: `widths` is (rank, 2)."""
    if mode not in ("constant", "edge", "reflect"):
        raise Unsupported(f"padding with mode {mode} must be by constants")
    padded = b.op("dyn.nn.pad", x, widths, value, pad_width=[], pad_mode=mode)
    known = b.known(widths) or [None] * (2 * b.rank(x))
    sizes = [
        d + p + q if is_static(d) and p is not None and q is not None else None
        for d, p, q in zip(b.shape(x), known[0::2], known[1::2])
    ]
    return b.refine(padded, sizes)


__all__ = ["FAR", "pad", "pad_computed", "slice_axes", "slice_computed"]
