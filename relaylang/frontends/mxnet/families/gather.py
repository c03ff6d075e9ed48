"""Elements by their places, and sorted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr


def _places(b: Builder, index: Expr, extent: int, mode: str) -> Expr:
    """Indices as whole numbers from 0 on: those beyond an axis are held to its ends, or go round."""
    index = b.cast(b.op("trunc", index) if "float" in b.dtype(index) else index, "int32")
    if mode == "wrap":
        return b.op("floor_mod", index, extent)
    return b.op("clip", index, a_min=0.0, a_max=float(extent - 1))


def take(n: Node, x: Expr, index: Expr) -> Any:
    b = n.b
    axis = n.axis("axis", b.rank(x), 0)
    mode = n.choice("mode", "clip", ("clip", "wrap", "raise"))
    if mode == "raise":
        return b.op("take", x, b.cast(index, "int32"), axis=axis, mode="fast")
    return b.op("take", x, _places(b, index, b.extent(x, axis), mode), axis=axis, mode="fast")


def embedding(n: Node, index: Expr, weight: Expr) -> Any:
    b = n.b
    return b.op("take", weight, _places(b, index, b.extent(weight, 0, "the weight"), "clip"), axis=0, mode="fast")


def batch_take(n: Node, x: Expr, index: Expr) -> Any:
    b = n.b
    places = _places(b, index, b.extent(x, 1), "clip")
    return b.squeeze(b.op("gather", x, b.unsqueeze(places, [1]), axis=1), [1])


def pick(n: Node, x: Expr, index: Expr) -> Any:
    """An element along an axis for each place of the others."""
    b, rank = n.b, n.b.rank(x)
    if not n.has("axis") and "axis" in n.layer.attributes:
        raise Unsupported("it picks from all elements")
    axis = n.axis("axis", rank, -1)
    mode = n.choice("mode", "clip", ("clip", "wrap"))
    places = _places(b, index, b.extent(x, axis), mode)
    places = places if b.rank(places) == rank else b.unsqueeze(places, [axis])
    picked = b.op("gather", x, places, axis=axis)
    return picked if n.bool("keepdims") else b.squeeze(picked, [axis])


def gather_nd(n: Node, x: Expr, index: Expr) -> Any:
    """Negative places count from the end of their axes."""
    b = n.b
    index = b.cast(index, "int64")
    count = b.extent(index, 0, "the first axis of its places")
    if count > b.rank(x):
        raise Malformed(f"its places have {count} numbers for {b.rank(x)} axes")
    extents = np.array([b.extent(x, i) for i in range(count)], np.int64).reshape([-1] + [1] * (b.rank(index) - 1))
    index = b.op("where", b.op("less", index, 0), b.op("add", index, b.const(extents)), index)
    return b.op("gather_nd", x, index)


def scatter_nd(n: Node, x: Expr, index: Expr) -> Any:
    b = n.b
    shape = n.ints("shape")
    b.arrays.reserve(shape)
    zeros = b.op("zeros", shape=shape, dtype=b.dtype(x))
    return b.op("scatter_nd", zeros, b.cast(index, "int64"), x, mode="update")


def _flat(b: Builder, x: Expr, axis: int | None) -> tuple[Expr, int]:
    """The tensor and the axis; a vector of all elements where there is none."""
    return (b.reshape(x, [-1]), 0) if axis is None else (x, axis)


def _axis(n: Node, rank: int) -> int | None:
    """An axis, the last one by default; None for all elements."""
    if n.layer.attributes.get("axis") == "None":
        return None
    return n.axis("axis", rank, -1)


def sort(n: Node, x: Expr) -> Any:
    x, axis = _flat(n.b, x, _axis(n, n.b.rank(x)))
    return n.b.op("sort", x, axis=axis, is_ascend=n.bool("is_ascend", True))


def argsort(n: Node, x: Expr) -> Any:
    x, axis = _flat(n.b, x, _axis(n, n.b.rank(x)))
    dtype = n.dtype("dtype", "float32")
    return n.b.cast(n.b.op("argsort", x, axis=axis, is_ascend=n.bool("is_ascend", True), dtype="int32"), dtype)


def topk(n: Node, x: Expr) -> Any:
    b = n.b
    x, axis = _flat(b, x, _axis(n, b.rank(x)))
    kind = n.choice("ret_typ", "indices", ("value", "indices", "both", "mask"))
    count = n.int("k", 1)
    extent = b.extent(x, axis, "the axis of topk")
    count = extent if count < 1 else count
    if count > extent:
        raise Malformed(f"it takes {count} of {extent} elements")
    dtype = n.dtype("dtype", "float32")
    both = b.op("topk", x, k=count, axis=axis, ret_type="both", is_ascend=n.bool("is_ascend"), dtype="int32")
    values, places = b.fields(both)
    if kind == "mask":
        zeros = b.op("zeros_like", x)
        return b.op("scatter_elements", zeros, places, b.op("ones_like", values), axis=axis, reduction="update")
    return {"value": [values], "indices": [b.cast(places, dtype)], "both": [values, b.cast(places, dtype)]}[kind]


def unravel_index(n: Node, x: Expr) -> Any:
    b = n.b
    shape = n.ints("shape")
    places = b.op("unravel_index", b.cast(b.reshape(x, [-1]), "int64"), b.const(np.array(shape, np.int64)))
    have = b.static_shape(x, "the places")
    return b.cast(b.reshape_exactly(places, [len(shape), *have]), b.dtype(x))


def ravel_multi_index(n: Node, x: Expr) -> Any:
    b = n.b
    shape = n.ints("shape")
    weights = np.cumprod([1, *shape[:0:-1]])[::-1].astype(b.dtype(x))
    factors = b.const(weights.reshape([-1] + [1] * (b.rank(x) - 1)))
    return b.op("sum", b.op("multiply", x, factors), axis=[0])


RULES = (
    Rule("take", take),
    Rule("Embedding", embedding),
    Rule("batch_take", batch_take),
    Rule("pick", pick),
    Rule("gather_nd", gather_nd),
    Rule("scatter_nd", scatter_nd),
    Rule("sort", sort),
    Rule("argsort", argsort),
    Rule("topk", topk),
    Rule("_unravel_index", unravel_index),
    Rule("_ravel_multi_index", ravel_multi_index),
)
