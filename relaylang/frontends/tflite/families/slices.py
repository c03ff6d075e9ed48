"""Slices by constant and by computed bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.common.slices import FAR, slice_axes, slice_computed
from relaylang.frontends.tflite.families.shape import moved
from relaylang.frontends.tflite.node import Node
from relaylang.ir import ANY, Expr


def slice_(n: Node) -> Any:
    """A size of -1 goes to the end."""
    b, x, begin, size = n.b, n.x(0), n.x(1), n.x(2)
    rank = b.rank(x)
    firsts, sizes = b.known(begin) or [None] * rank, b.known(size) or [None] * rank
    known = [(f, s) for f, s in zip(firsts, sizes) if f is not None and s is not None]
    if len(known) == rank:
        ends = [FAR if s < 0 else f + s for f, s in known]
        return moved(n, slice_axes(b, x, [f for f, _ in known], ends, list(range(rank)), [1] * rank))
    begin, size = b.cast(begin, "int64"), b.cast(size, "int64")
    end = b.op("where", b.op("less", size, 0), b.const(FAR, "int64"), b.op("add", begin, size))
    cut = [i for i, (f, s, d) in enumerate(zip(firsts, sizes, b.shape(x))) if f != 0 or (s != -1 and (s is None or s != d))]
    parts = [b.op("take", v, b.const(np.array(cut)), axis=0) for v in (begin, end)]
    made = slice_computed(b, x, parts[0], parts[1], cut, None)
    return moved(n, n.refined(b.refine(made, [s if s is not None and s > 0 else None for s in sizes])))


@dataclass(frozen=True)
class _Cut:
    """The slice of one axis: bounds that are known, or vectors of one element."""

    axis: int
    first: int | Expr
    last: int | Expr
    step: int


def strided_slice(n: Node) -> Any:
    """numpy's indexing: bits of the masks stand for open ends, single elements, new axes and an ellipsis."""
    b, x, o = n.b, n.x(0), n.options
    steps = n.ints(3, "the steps")
    bit = {name: o.get(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    fixed = [i for i in range(len(steps)) if not bit["new_axis"] >> i & 1 and not bit["ellipsis"] >> i & 1]
    axis, place = 0, 0
    cuts: list[_Cut] = []
    removed, added = [], []
    for i, step in enumerate(steps):
        if bit["ellipsis"] >> i & 1:
            skipped = b.rank(x) - len(fixed)
            axis, place = axis + skipped, place + skipped
            continue
        if bit["new_axis"] >> i & 1:
            added.append(place)
            place += 1
            continue
        first, last = _bound(n, 1, i), _bound(n, 2, i)
        if o.get("offset"):  # the end counts from the begin
            both_known = isinstance(first, int) and isinstance(last, int)
            last = first + last if both_known else b.op("add", *[_vector(n, v) for v in (first, last)])  # type: ignore[operator]
        if bit["shrink_axis"] >> i & 1:
            cuts.append(_single(n, axis, first))
            removed.append(axis)
        else:
            low = (0 if step > 0 else FAR) if bit["begin"] >> i & 1 else first
            high = (FAR if step > 0 else -FAR) if bit["end"] >> i & 1 else last
            cuts.append(_Cut(axis, low, high, step))
            place += 1
        axis += 1
    return moved(n, b.unsqueeze(b.squeeze(_cut(n, x, cuts), removed), added))


def _bound(n: Node, index: int, at: int) -> int | Expr:
    """One bound: a number, or a vector of one element."""
    known = n.b.known(n.x(index))
    value = known[at] if known is not None else None
    return value if value is not None else n.b.cast(n.b.slice(n.x(index), [at], [at + 1], [0]), "int64")


def _vector(n: Node, bound: int | Expr) -> Expr:
    return bound if isinstance(bound, Expr) else n.b.const(np.array([bound], np.int64))


def _single(n: Node, axis: int, at: int | Expr) -> _Cut:
    """One element of an axis; -1 is the last."""
    b = n.b
    if isinstance(at, int):
        return _Cut(axis, at, at + 1 if at != -1 else FAR, 1)
    end = b.op("where", b.op("equal", at, -1), b.const(FAR, "int64"), b.op("add", at, 1))
    return _Cut(axis, at, end, 1)


def _cut(n: Node, x: Expr, cuts: list[_Cut]) -> Expr:
    b = n.b
    fixed = [(c.axis, c.first, c.last, c.step) for c in cuts if isinstance(c.first, int) and isinstance(c.last, int)]
    if fixed:
        axes, firsts, lasts, steps = (list(v) for v in zip(*fixed))
        if any(b.shape(x)[a] is ANY and s < 0 and f not in (FAR, -1) for a, f, _, s in fixed):
            raise Unsupported("it goes backwards on an axis of an unknown extent; --shape gives it")
        x = slice_axes(b, x, firsts, lasts, axes, steps)
    open_ = [c for c in cuts if not (isinstance(c.first, int) and isinstance(c.last, int))]
    if not open_:
        return x
    bounds = [
        b.concat([_vector(n, v) for v in column], 0)
        for column in ([c.first for c in open_], [c.last for c in open_])
    ]
    return slice_computed(b, x, bounds[0], bounds[1], [c.axis for c in open_], b.const(np.array([c.step for c in open_])))


RULES = (
    Rule("SLICE", slice_),
    Rule("STRIDED_SLICE", strided_slice),
)
