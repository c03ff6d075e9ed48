"""Operators that take, put and order elements by their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common.boxes import choose
from relaylang.frontends.coreml.node import Node
from relaylang.ir import Expr


def _from_front(b: Builder, indices: Expr, extents: Any) -> Expr:
    """Indices without negative ones; `extents` broadcast to them."""
    value = b.value(indices)
    if value is not None and (value >= 0).all():
        return indices
    ends = b.cast(extents, b.dtype(indices))
    return b.op("where", b.op("less", indices, 0), b.op("add", indices, ends), indices)


def _extents(b: Builder, x: Expr, first: int, count: int) -> Any:
    """Some extents of a tensor: an array where they are known, else a vector."""
    own = b.shape(x)[first : first + count]
    if all(isinstance(d, int) for d in own):
        return np.array([int(d) for d in own if isinstance(d, int)])
    return b.slice(b.shape_of(x), [first], [first + count], [0])


def _along(b: Builder, x: Expr, indices: Expr, axis: int) -> Expr:
    extent = b.shape(x)[axis]
    return _from_front(b, indices, int(extent) if isinstance(extent, int) else b.scalar(_extents(b, x, axis, 1)))


def gather(n: Node, x: Expr, indices: Expr, axis: int = 0, batch_dims: int = 0, validate_indices: bool = False) -> Any:
    """The slices of an axis at some places."""
    b, at = n.b, int(axis % n.b.rank(x))
    if not 0 <= batch_dims <= min(at, b.rank(indices)):
        raise Malformed(f"it has {batch_dims} axes of batches before the axis {axis}")
    return b.op("take", x, _along(b, x, indices, at), axis=at, batch_dims=batch_dims)


def gather_along_axis(n: Node, x: Expr, indices: Expr, axis: int = 0, validate_indices: bool = False) -> Any:
    b, at = n.b, int(axis % n.b.rank(x))
    return b.op("gather", x, _along(b, x, indices, at), axis=at)


def _rows(b: Builder, x: Expr, indices: Expr, batch: int = 0) -> tuple[Expr, int]:
    """Indices whose first axis, not their last, goes over the axes of the data; and how many there are."""
    depth, rank = b.extent(indices, -1, "the last axis of the indices"), b.rank(indices)
    if batch + depth > b.rank(x):
        raise Malformed(f"its indices are of {batch + depth} axes, and its operand has {int(b.rank(x))}")
    positions = _from_front(b, indices, _extents(b, x, batch, depth))
    return b.transpose(positions, [rank - 1, *range(rank - 1)]), depth


def gather_nd(n: Node, x: Expr, indices: Expr, batch_dims: int = 0, validate_indices: bool = False) -> Any:
    rows, depth = _rows(n.b, x, indices, batch_dims)
    return n.b.op("gather_nd", x, rows, batch_dims=batch_dims, index_rank=depth)


def _joined(n: Node, mode: str, updates: Expr) -> tuple[str, Expr]:
    """How Relay joins updates with elements, and the updates in that form."""
    b = n.b
    if mode == "sub":
        return "add", b.op("negative", updates)
    if mode == "div" and "float" in b.dtype(updates):
        return "mul", b.op("divide", b.const(1.0, b.dtype(updates)), updates)
    if mode not in ("update", "add", "mul", "max", "min"):
        raise Unsupported(f"its mode is {mode[:40]!r}")
    return mode, updates


def scatter(
    n: Node, data: Expr, indices: Expr, updates: Expr, axis: int = 0, mode: str = "add", validate_indices: bool = False
) -> Any:
    """Slices of an axis joined with others at some places."""
    b, at = n.b, int(axis % n.b.rank(data))
    how, parts = _joined(n, mode, updates)
    rank, own = b.rank(data), b.rank(indices)
    places = b.unsqueeze(_along(b, data, indices, at), [0])
    if at == 0:
        return b.op("scatter_nd", data, places, parts, mode=how)
    order = [at, *[i for i in range(rank) if i != at]]
    width = b.rank(parts)
    first = b.transpose(parts, [*range(at, at + own), *range(at), *range(at + own, width)])
    scattered = b.op("scatter_nd", b.transpose(data, order), places, first, mode=how)
    return b.transpose(scattered, [order.index(i) for i in range(rank)])


def scatter_along_axis(
    n: Node, data: Expr, indices: Expr, updates: Expr, axis: int = 0, mode: str = "add", validate_indices: bool = False
) -> Any:
    b, at = n.b, int(axis % n.b.rank(data))
    how, parts = _joined(n, mode, updates)
    return b.op("scatter_elements", data, _along(b, data, indices, at), parts, axis=at, reduction=how)


def scatter_nd(n: Node, data: Expr, indices: Expr, updates: Expr, mode: str = "add", validate_indices: bool = False) -> Any:
    how, parts = _joined(n, mode, updates)
    return n.b.op("scatter_nd", data, _rows(n.b, data, indices)[0], parts, mode=how)


# ---- order


def argsort(n: Node, x: Expr, axis: int = -1, ascending: bool = False) -> Any:
    return n.b.op("argsort", x, axis=int(axis % n.b.rank(x)), is_ascend=ascending, dtype="int32")


def topk(
    n: Node,
    x: Expr,
    k: int = 1,
    axis: int = -1,
    ascending: bool = False,
    sort: bool = True,
    return_indices: bool = True,
    output_indices_dtype: str = "int32",
) -> Any:
    """The largest elements along an axis, or the smallest ones, and their places."""
    b, at = n.b, int(axis % n.b.rank(x))
    extent = b.shape(x)[at]
    count = int(extent) if k == -1 and isinstance(extent, int) else k
    if count < 1 or (isinstance(extent, int) and count > extent):
        raise Malformed(f"it takes {k} of {extent} elements")
    top = b.op("topk", x, k=count, axis=at, ret_type="both", is_ascend=ascending, dtype="int32")
    values, places = b.fields(top)
    return [values, places] if return_indices else [values]


def cumsum(n: Node, x: Expr, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Any:
    b, at = n.b, int(axis % n.b.rank(x))
    data = b.op("reverse", x, axis=at) if reverse else x
    sums = b.op("cumsum", data, axis=at, dtype=b.dtype(x), exclusive=exclusive)
    return b.op("reverse", sums, axis=at) if reverse else sums


def non_zero(n: Node, x: Expr) -> Any:
    """The places of elements that are not zero, one a row."""
    return n.b.cast(n.b.op("argwhere", x), "int32")


def non_maximum_suppression(
    n: Node,
    boxes: Expr,
    scores: Expr,
    iou_threshold: float,
    max_boxes: int,
    score_threshold: float | None = None,
    per_class_suppression: bool = False,
) -> Any:
    """At most `max_boxes` boxes of centre and extent for each example: boxes, scores of all classes, places, and how many.

    Rows behind them are 0, their places -1.
    """
    b = n.b
    batch, count = (b.extent(b.of_rank(boxes, 3), axis, "boxes") for axis in (0, 1))
    classes = b.extent(b.of_rank(scores, 3), 2, "scores")
    if per_class_suppression and classes > 1:
        raise Unsupported("it takes boxes of each class apart")
    if not 1 <= max_boxes < 1 << 20 or b.shape(scores)[1] != count:
        raise Malformed(f"it takes {max_boxes} of {count} boxes")
    rows: list[list[Expr]] = []
    for at in range(batch):
        own, marks = (b.cast(b.squeeze(b.slice(v, [at], [at + 1], [0]), [0]), "float32") for v in (boxes, scores))
        centre, half = (b.slice(own, [i], [i + 2], [1]) for i in (0, 2))
        half = b.op("multiply", half, 0.5)
        corners = b.concat([b.op("subtract", centre, half), b.op("add", centre, half)], 1)
        least = b.const(-np.inf if score_threshold is None else score_threshold, "float32")
        limit = b.const(iou_threshold, "float32")
        places, _, number = choose(b, corners, b.op("max", marks, axis=[1]), max_boxes, limit, least, 0.0)
        there = b.op("less", b.const(b.arrays.arange(max_boxes), "int32"), number)
        inside = b.unsqueeze(there, [1])
        picked = [b.op("take", v, places, axis=0) for v in (own, marks)]
        picked = [b.op("where", inside, v, b.const(0.0, "float32")) for v in picked]
        rows.append([*picked, b.op("where", there, places, b.const(-1, "int32")), number])
    columns = [b.op("stack", b.tuple(list(column)), axis=0) for column in zip(*rows)]
    return [b.cast(columns[0], b.dtype(boxes)), b.cast(columns[1], b.dtype(scores)), columns[2], columns[3]]


RULES = (
    Rule("argsort", argsort),
    Rule("cumsum", cumsum),
    Rule("gather", gather),
    Rule("gather_along_axis", gather_along_axis),
    Rule("gather_nd", gather_nd),
    Rule("non_maximum_suppression", non_maximum_suppression),
    Rule("non_zero", non_zero),
    Rule("scatter", scatter),
    Rule("scatter_along_axis", scatter_along_axis),
    Rule("scatter_nd", scatter_nd),
    Rule("topk", topk),
)
