"""Elements by index: gathering, scattering, selecting."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def _from_front(b: Builder, indices: Expr, data: Expr, axis: int) -> Expr:
    """Indices into an axis without negative ones."""
    value = b.value(indices)
    size = b.shape(data)[axis]
    if value is not None and (value >= 0).all():
        return indices
    dtype = b.dtype(indices)
    end: Any = size if isinstance(size, int) else _extent(b, data, axis, dtype)
    return b.op("where", b.op("less", indices, 0), b.op("add", indices, end), indices)


def _extent(b: Builder, x: Expr, axis: int, dtype: str) -> Expr:
    return b.scalar(b.slice(b.shape_of(x, dtype), [axis], [axis + 1], [0]))


def gather(n: Node, x: Expr, indices: Expr) -> Any:
    b = n.b
    axis = n.int("axis", 0) % b.rank(x)
    value = b.value(indices)
    if value is not None and (value >= 0).all():
        return b.op("take", x, indices, axis=axis)
    if value is not None and isinstance(b.shape(x)[axis], int):
        return b.op("take", x, _from_front(b, indices, x, axis), axis=axis)
    # The rest of a division by the extent turns negative indices.
    return b.op("take", x, indices, axis=axis, mode="wrap")


def gather_elements(n: Node, x: Expr, indices: Expr) -> Any:
    b = n.b
    axis = n.int("axis", 0) % b.rank(x)
    have, wanted = b.shape(x), b.shape(indices)
    indices = _from_front(b, indices, x, axis)
    cut = [i for i in range(b.rank(x)) if i != axis and have[i] != wanted[i] and isinstance(wanted[i], int)]
    if cut:
        x = b.slice(x, [0] * len(cut), [b.extent(indices, i) for i in cut], cut)
    return b.op("gather", x, indices, axis=axis)


def _first_axis(b: Builder, x: Expr) -> Expr:
    """ONNX's last axis of indices is Relay's first."""
    rank = b.rank(x)
    return b.transpose(x, [rank - 1, *range(rank - 1)])


def _indices_nd(b: Builder, x: Expr, indices: Expr, batch: int) -> Expr:
    """Indices into several axes without negative ones."""
    depth = b.extent(indices, -1, "the last axis of the indices")
    value = b.value(indices)
    if value is not None and (value >= 0).all():
        return indices
    shape = b.shape(x)[batch : batch + depth]
    dtype = b.dtype(indices)
    if all(isinstance(d, int) for d in shape):
        ends: Expr = b.const(np.array(shape), dtype)
    else:
        ends = b.slice(b.shape_of(x, dtype), [batch], [batch + depth], [0])
    return b.op("where", b.op("less", indices, 0), b.op("add", indices, ends), indices)


def gather_nd(n: Node, x: Expr, indices: Expr) -> Any:
    b, batch = n.b, n.int("batch_dims", 0)
    rows = _first_axis(b, _indices_nd(b, x, indices, batch))
    return b.op("gather_nd", x, rows, batch_dims=batch, index_rank=b.extent(indices, -1))


def scatter_elements(n: Node, x: Expr, indices: Expr, updates: Expr) -> Any:
    b = n.b
    axis = n.int("axis", 0) % b.rank(x)
    mode = {"none": "update"}.get(n.string("reduction", "none"), n.string("reduction", "none"))
    return b.op("scatter_elements", x, _from_front(b, indices, x, axis), updates, axis=axis, reduction=mode)


def scatter_nd(n: Node, x: Expr, indices: Expr, updates: Expr) -> Any:
    b = n.b
    mode = {"none": "update"}.get(n.string("reduction", "none"), n.string("reduction", "none"))
    return b.op("scatter_nd", x, _first_axis(b, _indices_nd(b, x, indices, 0)), updates, mode=mode)


def compress(n: Node, x: Expr, condition: Expr) -> Any:
    b = n.b
    if not n.has("axis"):
        x = b.op("reshape", x, newshape=[-1])
    axis = n.int("axis", 0) % b.rank(x)
    value = b.value(condition)
    if value is not None:
        places: Expr = b.const(np.flatnonzero(value).astype(np.int64))
    else:
        places = b.squeeze(b.op("argwhere", condition), [1])
    return b.op("take", x, places, axis=axis)


def non_zero(n: Node, x: Expr) -> Any:
    b = n.b
    if b.rank(x) == 0:
        places = b.op("argwhere", b.op("reshape", x, newshape=[1]))
        return b.cast(b.op("reshape", b.slice(places, [0], [0], [1]), newshape=[0, -1], allowzero=True), "int64")
    return b.cast(b.transpose(b.op("argwhere", x), [1, 0]), "int64")


def one_hot(n: Node, indices: Expr, depth: Expr, values: Expr) -> Any:
    """Indices from -depth on; those outside set nothing."""
    b = n.b
    axis = n.int("axis", -1)
    axis = -1 if axis in (-1, b.rank(indices)) else axis % (b.rank(indices) + 1)
    if "float" in b.dtype(indices):
        indices = b.cast(indices, "int64")
    known = b.known(depth) if "float" not in b.dtype(depth) else None
    if known is None and b.value(depth) is not None:
        known = [int(b.need(depth, "the depth").reshape(-1)[0])]
    off, on = (b.scalar(b.slice(values, [i], [i + 1], [0])) for i in (0, 1))
    dtype = b.dtype(values)
    if known and known[0] is not None:
        value = b.value(indices)
        if value is None or (value < 0).any():
            indices = b.op("where", b.op("less", indices, 0), b.op("add", indices, known[0]), indices)
        return b.op("one_hot", indices, on, off, depth=known[0], axis=axis, dtype=dtype)
    count = b.scalar(b.cast(depth, b.dtype(indices)))
    indices = b.op("where", b.op("less", indices, 0), b.op("add", indices, count), indices)
    return b.op("dyn.one_hot", indices, on, off, count, axis=axis, dtype=dtype)


def eye_like(n: Node, x: Expr) -> Any:
    b, k = n.b, n.int("k", 0)
    dtype = n.dtype("dtype", b.dtype(x))
    shape = b.shape(x)
    if all(isinstance(d, int) for d in shape):
        rows, columns = b.static_shape(x)
        return b.const(b.arrays.eye(rows, columns, k), dtype)
    ends = [_extent(b, x, i, "int64") for i in (0, 1)]
    zero, one = b.const(np.int64(0)), b.const(np.int64(1))
    row, column = (b.op("arange", zero, end, one, start=zero, stop=end, step=one, dtype="int64") for end in ends)
    return b.cast(b.op("equal", b.unsqueeze(b.op("add", row, k), [1]), b.unsqueeze(column, [0])), dtype)


def trilu(n: Node, x: Expr, k: Expr | None = None) -> Any:
    b = n.b
    k = b.const(0, "int64") if k is None else b.scalar(k)
    return b.op("trilu", x, k, upper=bool(n.int("upper", 1)))


RULES = (
    Rule("Compress", compress),
    Rule("EyeLike", eye_like),
    Rule("Gather", gather),
    Rule("GatherElements", gather_elements),
    Rule("GatherND", gather_nd),
    Rule("NonZero", non_zero),
    Rule("OneHot", one_hot),
    Rule("Scatter", scatter_elements),
    Rule("ScatterElements", scatter_elements),
    Rule("ScatterND", scatter_nd),
    Rule("Trilu", trilu),
)
