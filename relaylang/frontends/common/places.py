"""The places of elements: numbers along axes, and updates at a place."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.frontends.common.builder import Builder
from relaylang.ir import Expr


def counted(b: Builder, count: int, dtype: str = "int32") -> Expr:
    """The numbers from 0 to before a count."""
    return b.arange(b.const(0, dtype), b.const(count, dtype), b.const(1, dtype), dtype)


def grid(b: Builder, shape: Sequence[int], axis: int, dtype: str = "int32", front: int = 0) -> Expr:
    """The index of each element along an axis of a shape, which broadcasts; `front` axes come before the shape's."""
    places = [1] * (front + len(shape))
    places[front + axis] = shape[axis]
    return b.reshape_exactly(counted(b, shape[axis], dtype), places)


def at_place(b: Builder, x: Expr, update: Expr, place: Expr) -> Expr:
    """A tensor with an update, whose first element goes to a place (a vector)."""
    part, dtype = b.static_shape(update), b.dtype(place)
    rows = []
    for axis in range(len(part)):
        start = b.op("take", place, b.const(axis, "int32"), axis=0)
        rows.append(b.op("broadcast_to", b.op("add", grid(b, part, axis, dtype), start), shape=part))
    updated: Expr = b.op("scatter_nd", x, b.op("stack", b.tuple(rows), axis=0), update, mode="update")
    return updated


__all__ = ["at_place", "counted", "grid"]
