"""Sums of segments, sparse values, lookups in tables, distinct elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr


def _limits(dtype: str) -> tuple[float, float]:
    """The smallest and the largest number of an element type."""
    if "float" in dtype:
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def unsorted_segments(mode: str) -> Callable[[Node], Any]:
    """Rows with the same number are joined; rows with a negative number are left out."""

    def convert(n: Node) -> Any:
        b, x, numbers = n.b, n.x(0), n.x(1)
        count = n.ints(2, "the number of segments")[0]
        dtype, rank = b.dtype(x), b.rank(numbers)
        least, most = _limits(dtype)
        start = {"add": 0, "mul": 1, "max": least, "min": most}[mode]
        rest = b.static_shape(x)[rank:]
        # One more row takes the omitted values.
        base = b.op("full", b.const(start, dtype), shape=(count + 1, *rest), dtype=dtype)
        inside = b.op("greater_equal", numbers, 0)
        at = b.op("where", inside, numbers, b.const(count, b.dtype(numbers)))
        scattered = b.op("scatter_nd", base, b.unsqueeze(at, [0]), x, mode=mode)
        return b.slice(scattered, [0], [count], [0])

    return convert


def sparse_to_dense(n: Node) -> Any:
    """Places (none, a vector, or rows), the shape, values or one value, and the value of all other elements."""
    b = n.b
    places, values = n.x(0), n.x(2)
    shape = n.ints(1, "the shape of the result")
    if b.rank(places) < 2:
        places = b.reshape(places, [-1, 1]) if len(shape) == 1 else b.reshape(places, [1, -1])
    count = b.extent(places, 0, "the number of places")
    if b.rank(values) == 0:
        values = b.op("broadcast_to", values, shape=(count,))
    base = b.op("full", b.scalar(n.x(3)), shape=shape, dtype=b.dtype(values))
    return b.op("scatter_nd", base, b.transpose(places, (1, 0)), values, mode="update")


def unique(n: Node) -> Any:
    """The distinct elements in the order of their first places; and the number of each element among them."""
    b = n.b
    values, _, inverse, count = b.fields(b.op("unique", n.x(0), sorted=False, return_counts=False))
    zero, one = b.const(np.array([0])), b.const(np.array([1]))
    front = b.op("dyn.strided_slice", values, zero, b.cast(count, "int64"), one, begin=None, end=None, strides=None, axes=None)
    return [front, b.cast(inverse, n.out_dtype(1))]


def bucketize(n: Node) -> Any:
    """How many boundaries are not above an element."""
    b, x = n.b, n.x(0)
    boundaries = b.const(np.array(n.options["boundaries"], np.float32))
    return b.op("searchsorted", boundaries, b.cast(x, "float32"), right=True, dtype="int32")


def hashtable_lookup(n: Node) -> Any:
    """The rows of keys, 0 for keys that the table lacks; and whether it has them."""
    b, wanted, keys, rows = n.b, n.x(0), n.x(1), n.x(2)
    if not isinstance(rows, Expr) or n.outs[1].dtype != "uint8":
        raise Unsupported("its table has no numbers")
    same = b.op("equal", b.unsqueeze(wanted, [1]), b.unsqueeze(keys, [0]))
    is_known = b.op("any", same, axis=(1,))
    at = b.op("argmax", b.cast(same, "int32"), axis=(1,))
    picked = b.op("take", rows, at, axis=0)
    mask = b.unsqueeze(is_known, list(range(1, b.rank(rows))))
    return [b.op("where", mask, picked, b.const(0, b.dtype(rows))), b.cast(is_known, "uint8")]


def embedding_lookup_sparse(n: Node) -> Any:
    """Weighted rows of a table are added at sparse places; the option divides by the weights or their length."""
    b = n.b
    numbers, places, weights, table = n.x(0), n.x(1), n.x(3), n.real(4)
    front = n.ints(2, "the dense shape")[:-1]
    rank, depth = b.rank(table), b.static_shape(table)[1:]
    at = b.transpose(b.slice(places, [0], [len(front)], [1]), (1, 0))
    spread = list(range(1, rank))
    rows = b.op("multiply", b.op("take", table, numbers, axis=0), b.unsqueeze(weights, spread))
    sums = b.op("scatter_nd", b.op("zeros", shape=(*front, *depth), dtype="float32"), at, rows, mode="add")
    combiner = n.options.get("combiner", 0)
    if combiner == 0:
        return sums
    part = b.op("multiply", weights, weights) if combiner == 2 else weights
    total = b.op("scatter_nd", b.op("zeros", shape=front, dtype="float32"), at, part, mode="add")
    total = b.op("sqrt", total) if combiner == 2 else total
    total = b.op("where", b.op("equal", total, 0.0), b.const(1.0, "float32"), total)
    return b.op("divide", sums, b.unsqueeze(total, list(range(len(front), len(front) + len(depth)))))


RULES = (
    Rule("BUCKETIZE", bucketize),
    Rule("EMBEDDING_LOOKUP_SPARSE", embedding_lookup_sparse),
    Rule("HASHTABLE_LOOKUP", hashtable_lookup),
    Rule("SPARSE_TO_DENSE", sparse_to_dense),
    Rule("UNIQUE", unique),
    Rule("UNSORTED_SEGMENT_MAX", unsorted_segments("max")),
    Rule("UNSORTED_SEGMENT_MIN", unsorted_segments("min")),
    Rule("UNSORTED_SEGMENT_PROD", unsorted_segments("mul")),
    Rule("UNSORTED_SEGMENT_SUM", unsorted_segments("add")),
)
