"""A tensor with some of its elements replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder
from relaylang.ir import Expr

#: An end beyond every extent.
_FAR = (1 << 31) - 1


def replace_slice(b: Builder, x: Expr, value: Expr, dim: int, start: Any, end: Any, step: int = 1) -> Expr:
    """x whose slice along an axis is `value`."""
    axis = dim % b.rank(x)
    start, end = 0 if start is None else start, _FAR if end is None else end
    extent = b.shape(x)[axis]
    if isinstance(start, Expr) or isinstance(end, Expr) or not isinstance(extent, int):
        return _computed(b, x, value, axis, start, end, step)
    places = range(*slice(start, end, step).indices(extent))
    if len(places) == extent:
        return value
    if not places:
        return x
    if step != 1:
        return b.op("strided_set", x, value, *_bounds(b, x, axis, places.start, places.stop, step))
    parts = [b.slice(x, [0], [places.start], [axis])] if places.start else []
    parts.append(value)
    if places.stop < extent:
        parts.append(b.slice(x, [places.stop], [extent], [axis]))
    return b.concat(parts, axis)


def _computed(b: Builder, x: Expr, value: Expr, axis: int, start: Any, end: Any, step: int) -> Expr:
    if isinstance(start, int) and start == 0 and isinstance(end, int) and end >= _FAR and step == 1:
        return value
    return b.op("strided_set", x, value, *_bounds(b, x, axis, start, end, step))


def _bounds(b: Builder, x: Expr, axis: int, *bounds: Any) -> list[Expr]:
    """Begin, end and stride as vectors of all axes."""
    vectors = []
    for bound, other in zip(bounds, (0, _FAR, 1)):
        cells: list[Expr] = [b.const(np.array([other], np.int64))] * b.rank(x)
        number = bound if isinstance(bound, Expr) else b.const(min(bound, _FAR), "int64")
        cells[axis] = b.reshape(b.cast(number, "int64"), [1])
        vectors.append(b.concat(cells, 0))
    return vectors


def replace_row(b: Builder, x: Expr, value: Expr, dim: int, index: Any) -> Expr:
    """x whose elements at one place of an axis are `value`, which lacks the axis."""
    axis = dim % b.rank(x)
    row = b.unsqueeze(value, [axis])
    if isinstance(index, Expr):
        return replace_slice(b, x, row, axis, index, b.op("add", index, 1))
    return replace_slice(b, x, row, axis, index, _FAR if index == -1 else index + 1)


__all__ = ["replace_row", "replace_slice"]
