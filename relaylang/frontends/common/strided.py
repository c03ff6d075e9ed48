"""Slices that operands state: by begins and sizes, and numpy's indexing by masks of bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.slices import FAR, slice_axes, slice_computed
from relaylang.ir import Expr, is_static


def slice_by_size(b: Builder, x: Expr, begin: Expr, size: Expr) -> Expr:
    """The part of a tensor from a place on. A size of -1 goes to the end."""
    rank = b.rank(x)
    firsts, sizes = b.known(begin) or [None] * rank, b.known(size) or [None] * rank
    known = [(f, s) for f, s in zip(firsts, sizes) if f is not None and s is not None]
    if len(known) == rank:
        ends = [FAR if s < 0 else f + s for f, s in known]
        return slice_axes(b, x, [f for f, _ in known], ends, list(range(rank)), [1] * rank)
    begin, size = b.cast(begin, "int64"), b.cast(size, "int64")
    end = b.op("where", b.op("less", size, 0), b.const(FAR, "int64"), b.op("add", begin, size))
    cut = [i for i, (f, s, d) in enumerate(zip(firsts, sizes, b.shape(x))) if f != 0 or (s != -1 and (s is None or s != d))]
    parts = [b.op("take", v, b.const(np.array(cut)), axis=0) for v in (begin, end)]
    sliced = slice_computed(b, x, parts[0], parts[1], cut, None)
    return b.refine(sliced, [s if s is not None and s > 0 else None for s in sizes])


@dataclass(frozen=True)
class _Cut:
    """The slice of one axis: bounds that are known, or vectors of one element."""

    axis: int
    first: int | Expr
    last: int | Expr
    step: int


def strided_slice(
    b: Builder, x: Expr, begin: Expr, end: Expr, steps: Sequence[int], masks: Mapping[str, int], from_begin: bool = False
) -> Expr:
    """numpy's indexing: bits of the masks stand for open ends, single elements, new axes and an ellipsis.

    `masks` has "begin", "end", "ellipsis", "new_axis" and "shrink_axis". The ends count from the begins where `from_begin`.
    """
    fixed = [i for i in range(len(steps)) if not masks["new_axis"] >> i & 1 and not masks["ellipsis"] >> i & 1]
    if len(fixed) > b.rank(x):
        raise Malformed(f"it indexes {len(fixed)} axes of an operand that has {int(b.rank(x))}")
    axis, place = 0, 0
    cuts: list[_Cut] = []
    removed, added = [], []
    for i, step in enumerate(steps):
        if masks["ellipsis"] >> i & 1:
            skipped = b.rank(x) - len(fixed)
            axis, place = axis + skipped, place + skipped
            continue
        if masks["new_axis"] >> i & 1:
            added.append(place)
            place += 1
            continue
        first, last = _bound(b, begin, i), _bound(b, end, i)
        if from_begin:
            both_known = isinstance(first, int) and isinstance(last, int)
            last = first + last if both_known else b.op("add", *[_vector(b, v) for v in (first, last)])  # type: ignore[operator]
        if masks["shrink_axis"] >> i & 1:
            cuts.append(_single(b, axis, first))
            removed.append(axis)
        else:
            low = (0 if step > 0 else FAR) if masks["begin"] >> i & 1 else first
            high = (FAR if step > 0 else -FAR) if masks["end"] >> i & 1 else last
            cuts.append(_Cut(axis, low, high, step))
            place += 1
        axis += 1
    return b.unsqueeze(b.squeeze(_cut(b, x, cuts), removed), added)


def _bound(b: Builder, bounds: Expr, at: int) -> int | Expr:
    """One bound: a number, or a vector of one element."""
    known = b.known(bounds)
    if at >= (len(known) if known is not None else b.extent(bounds, 0, "the number of bounds")):
        raise Malformed(f"it has no bound {at}")
    value = known[at] if known is not None else None
    return value if value is not None else b.cast(b.slice(bounds, [at], [at + 1], [0]), "int64")


def _vector(b: Builder, bound: int | Expr) -> Expr:
    return bound if isinstance(bound, Expr) else b.const(np.array([bound], np.int64))


def _single(b: Builder, axis: int, at: int | Expr) -> _Cut:
    """One element of an axis; -1 is the last."""
    if isinstance(at, int):
        return _Cut(axis, at, at + 1 if at != -1 else FAR, 1)
    end = b.op("where", b.op("equal", at, -1), b.const(FAR, "int64"), b.op("add", at, 1))
    return _Cut(axis, at, end, 1)


def _cut(b: Builder, x: Expr, cuts: list[_Cut]) -> Expr:
    fixed = [(c.axis, c.first, c.last, c.step) for c in cuts if isinstance(c.first, int) and isinstance(c.last, int)]
    if fixed:
        axes, firsts, lasts, steps = (list(v) for v in zip(*fixed))
        if any(not is_static(b.shape(x)[a]) and s < 0 and f not in (FAR, -1) for a, f, _, s in fixed):
            raise Unsupported("it goes backwards on an axis of an unknown extent; --shape gives it")
        x = slice_axes(b, x, firsts, lasts, axes, steps)
    open_ = [c for c in cuts if not (isinstance(c.first, int) and isinstance(c.last, int))]
    if not open_:
        return x
    bounds = [b.concat([_vector(b, v) for v in column], 0) for column in ([c.first for c in open_], [c.last for c in open_])]
    return slice_computed(b, x, bounds[0], bounds[1], [c.axis for c in open_], b.const(np.array([c.step for c in open_])))


__all__ = ["slice_by_size", "strided_slice"]
