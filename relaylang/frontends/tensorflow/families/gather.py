"""Rows by their numbers: gathers, scatters, segments and distinct elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr


def gather(n: Node, x: Expr, at: Expr) -> Any:
    return n.b.op("take", x, at, axis=0)


def _columns(b: Builder, at: Expr) -> Expr:
    """Positions with their axis first, as Relay wants them."""
    rank = b.rank(at)
    return b.transpose(at, [rank - 1, *range(rank - 1)])


def gather_nd(n: Node, x: Expr, at: Expr) -> Any:
    return n.b.op("gather_nd", x, _columns(n.b, at))


def scatter_nd(n: Node, at: Expr, updates: Expr, shape: Expr) -> Any:
    """Updates with the same position are added."""
    b = n.b
    zeros = b.op("zeros", shape=n.ints_of(shape, "the shape"), dtype=b.dtype(updates))
    return b.op("scatter_nd", zeros, _columns(b, at), updates, mode="add")


def scatter(mode: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, at: Expr, updates: Expr) -> Any:
        b = n.b
        if mode == "subtract":
            return b.op("scatter_nd", x, _columns(b, at), b.op("negative", updates), mode="add")
        return b.op("scatter_nd", x, _columns(b, at), updates, mode=mode)

    return convert


# ---- segments


def _ends(dtype: str) -> tuple[float, float]:
    """The smallest and the largest number of an element type."""
    if "float" in dtype:
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _segments(n: Node, x: Expr, numbers: Expr, count: int, mode: str, empty: float | None = None) -> Expr:
    """The rows of each segment as one; `empty` is the value of segments without rows where it is not the mode's own.

    Rows with a negative number are left out. `mode` is "add", "mul", "min" or "max".
    """
    b = n.b
    dtype, rank = b.dtype(x), b.rank(numbers)
    if count < 0:
        raise Malformed(f"it has {count} segments")
    if tuple(b.shape(x)[:rank]) != tuple(b.shape(numbers)):
        raise Malformed(f"its rows and their numbers have the extents {tuple(b.shape(x)[:rank])} and {tuple(b.shape(numbers))}")
    least, most = _ends(dtype)
    start = {"add": 0, "mul": 1, "max": least, "min": most}[mode]
    rest = b.static_shape(x)[rank:]
    # One more row takes the omitted values.
    base = b.op("full", b.const(start, dtype), shape=(count + 1, *rest), dtype=dtype)
    inside = b.op("logical_and", b.op("greater_equal", numbers, 0), b.op("less", numbers, count))
    at = b.op("where", inside, numbers, b.const(count, b.dtype(numbers)))
    reduced = b.slice(b.op("scatter_nd", base, b.unsqueeze(at, [0]), x, mode=mode), [0], [count], [0])
    if empty is None or empty == start:
        return reduced
    return b.op("where", b.op("greater", _counts(n, numbers, count, len(rest), "int32"), 0), reduced, b.const(empty, dtype))


def _counts(n: Node, numbers: Expr, count: int, axes: int, dtype: str) -> Expr:
    """The number of rows of each segment, with further axes of extent 1."""
    b = n.b
    ones = b.op("ones", shape=b.static_shape(numbers), dtype=dtype)
    return b.unsqueeze(_segments(n, ones, numbers, count, "add"), list(range(1, axes + 1)))


def _divided(n: Node, sums: Expr, numbers: Expr, count: int, root: bool) -> Expr:
    b = n.b
    have = b.op("maximum", _counts(n, numbers, count, b.rank(sums) - 1, b.dtype(sums)), 1)
    return b.op("divide", sums, b.op("sqrt", have) if root else have)


def unsorted(mode: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, numbers: Expr, count: Expr) -> Any:
        size = n.ints_of(count, "the number of segments")[0]
        return _segments(n, x, numbers, size, mode)

    return convert


def unsorted_mean(n: Node, x: Expr, numbers: Expr, count: Expr) -> Any:
    size = n.ints_of(count, "the number of segments")[0]
    return _divided(n, _segments(n, x, numbers, size, "add"), numbers, size, root=n.op == "UnsortedSegmentSqrtN")


def _sorted_count(n: Node, numbers: Expr) -> int:
    """The number of segments, which the last number tells."""
    at = n.ints_of(numbers, "the numbers of segments")
    return max(at, default=-1) + 1


def sorted_segments(mode: str) -> Callable[..., Any]:
    """Segments without rows are 0, and 1 for products."""

    def convert(n: Node, x: Expr, numbers: Expr) -> Any:
        return _segments(n, x, numbers, _sorted_count(n, numbers), mode, {"mul": 1}.get(mode, 0))

    return convert


def segment_mean(n: Node, x: Expr, numbers: Expr) -> Any:
    count = _sorted_count(n, numbers)
    return _divided(n, _segments(n, x, numbers, count, "add"), numbers, count, root=False)


def sparse_segments(how: str) -> Callable[..., Any]:
    """Chosen rows by segments: their sum, mean, or sum divided by the root of their number."""

    def convert(n: Node, x: Expr, at: Expr, numbers: Expr, count: Expr | None = None) -> Any:
        size = _sorted_count(n, numbers) if count is None else n.ints_of(count, "the number of segments")[0]
        sums = _segments(n, n.b.op("take", x, at, axis=0), numbers, size, "add")
        return sums if how == "sum" else _divided(n, sums, numbers, size, root=how == "root")

    return convert


def bincount(n: Node, x: Expr, size: Expr, weights: Expr) -> Any:
    """How often each number is there, or the sum of its weights. Numbers beyond the size are left out."""
    b = n.b
    count = n.ints_of(size, "the size")[0]
    flat = b.reshape(x, [-1])
    if 0 in b.static_shape(weights):
        weights = b.op("ones", shape=b.static_shape(flat), dtype=b.dtype(weights))
    return _segments(n, b.reshape(weights, [-1]), flat, count, "add")


def dense_bincount(n: Node, x: Expr, size: Expr, weights: Expr) -> Any:
    """As `bincount`, of each row of a matrix; or whether the numbers are there."""
    b = n.b
    count = n.ints_of(size, "the size")[0]
    dtype, binary = b.dtype(weights), n.bool("binary_output")
    if 0 in b.static_shape(weights) or binary:
        weights = b.op("ones", shape=b.static_shape(x), dtype=dtype)
    rows = b.extent(x, 0) if b.rank(x) == 2 else 1
    numbers = x
    if b.rank(x) == 2:
        inside = b.op("less", x, count)
        base = b.const((np.arange(b.arrays.reserve(rows)) * count)[:, None], b.dtype(x))
        numbers = b.op("where", inside, b.op("add", x, base), b.const(-1, b.dtype(x)))
    counted = _segments(n, weights, numbers, rows * count, "max" if binary else "add", 0 if binary else None)
    return b.reshape(counted, [rows, count]) if b.rank(x) == 2 else counted


# ---- distinct elements, places


def unique(n: Node, x: Expr, axis: Expr | None = None) -> Any:
    """The distinct elements in the order of their first places, the number of each element among them, and how often."""
    b = n.b
    if axis is not None and n.ints_of(axis, "the axis") not in ([], [0]):
        raise Unsupported("it compares slices of an axis")
    dtype = n.dtype("out_idx", "int32")
    counts = n.op.startswith("UniqueWithCounts")
    fields = b.fields(b.op("unique", b.of_rank(x, 1), sorted=False, return_counts=counts))
    values, inverse, count = fields[0], fields[2], fields[3]
    zero, one = b.const(np.array([0])), b.const(np.array([1]))

    def front(v: Expr) -> Expr:
        cut_front: Expr = b.op(
            "dyn.strided_slice", v, zero, b.cast(count, "int64"), one, begin=None, end=None, strides=None, axes=None
        )
        return cut_front

    results = [front(values), b.cast(inverse, dtype)]
    return [*results, b.cast(front(fields[4]), dtype)] if counts else results


def unravel_index(n: Node, at: Expr, shape: Expr) -> Any:
    return n.b.op("unravel_index", at, shape)


def bucketize(n: Node, x: Expr) -> Any:
    """How many boundaries are not above an element."""
    b = n.b
    boundaries = b.const(np.array(n.floats("boundaries", []), np.float32))
    return b.op("searchsorted", boundaries, b.cast(x, "float32"), right=True, dtype="int32")


# ---- sparse tensors


def sparse_to_dense(n: Node, places: Expr, shape: Expr, values: Expr, default: Expr) -> Any:
    """Places (none, a vector, or rows), the shape, values or one value, and the value of all other elements."""
    b = n.b
    sizes = n.ints_of(shape, "the shape of the result")
    if b.rank(places) < 2:
        places = b.reshape(places, [-1, 1]) if len(sizes) == 1 else b.reshape(places, [1, -1])
    count = b.extent(places, 0, "the number of places")
    if b.rank(values) == 0:
        values = b.op("broadcast_to", values, shape=(count,))
    base = b.op("full", b.scalar(default), shape=sizes, dtype=b.dtype(values))
    return b.op("scatter_nd", base, b.transpose(places, (1, 0)), values, mode="update")


def _dense(n: Node, places: Expr, values: Expr, sizes: list[int]) -> Expr:
    b = n.b
    zeros = b.op("zeros", shape=sizes, dtype=b.dtype(values))
    dense: Expr = b.op("scatter_nd", zeros, b.transpose(places, (1, 0)), values, mode="add")
    return dense


def sparse_matmul(n: Node, places: Expr, values: Expr, shape: Expr, y: Expr) -> Any:
    """A sparse matrix, laid out, times a dense one."""
    b = n.b
    x = _dense(n, places, values, n.ints_of(shape, "the shape of the sparse matrix"))
    x = b.transpose(x, (1, 0)) if n.bool("adjoint_a") else x
    y = b.transpose(y, (1, 0)) if n.bool("adjoint_b") else y
    return b.op("nn.matmul", x, y)


def sparse_add(n: Node, places: Expr, values: Expr, shape: Expr, y: Expr) -> Any:
    return n.b.op("add", _dense(n, places, values, n.ints_of(shape, "the shape of the sparse tensor")), y)


def sparse_reshape(n: Node, places: Expr, before: Expr, after: Expr) -> Any:
    return n.b.fields(n.b.op("sparse_reshape", places, before, after))


def fill_empty_rows(n: Node, places: Expr, values: Expr, shape: Expr, default: Expr) -> Any:
    """An entry in each row without one, which rows those are, and where the entries that were there went.

    Relay's own operator has values of int64 alone.
    """
    b = n.b
    rows, rank = int(b.need(shape, "the extents of the dense tensor").reshape(-1)[0]), b.extent(places, 1)
    if rows < 0 or rank < 1:
        raise Malformed(f"its dense tensor has {rows} rows and {rank} axes")
    places = b.cast(places, "int64")
    row = b.squeeze(b.slice(places, [0], [1], [1]), [1])
    numbers = b.arange(b.const(0, "int64"), b.scalar(b.slice(b.shape_of(places), [0], [1], [0])), b.const(1, "int64"), "int64")
    present = b.op("scatter_elements", b.const(b.arrays.zeros(rows, "int64")), row, b.op("ones_like", row), axis=0, reduction="add")
    empty = b.op("equal", present, b.const(0, "int64"))
    at = b.squeeze(b.op("argwhere", empty), [1])
    at = b.cast(at, "int64")
    zero = b.op("zeros_like", at)
    added = b.concat([b.unsqueeze(v, [1]) for v in (at, *[zero] * (rank - 1))], 1)
    # Entries of a row keep their order.
    keys = [b.op("multiply", v, b.const(1 << 32, "int64")) for v in (row, at)]
    order = b.op("argsort", b.concat([b.op("add", keys[0], numbers), keys[1]], 0), axis=0, dtype="int64")
    filled = b.op("take", b.reshape(default, [1]), zero, axis=0)
    entries = [b.op("take", b.concat(pair, 0), order, axis=0) for pair in ([places, added], [values, filled])]
    return [*entries, empty, b.op("take", b.op("argsort", order, axis=0, dtype="int64"), numbers, axis=0)]


RULES = (
    Rule("Bincount", bincount),
    Rule("Bucketize", bucketize),
    Rule("DenseBincount", dense_bincount),
    Rule("Gather", gather),
    Rule("GatherNd", gather_nd),
    Rule(
        "GatherV2", lambda n, x, at, axis: n.b.op("take", x, at, axis=n.axis_of(axis, n.b.rank(x)), batch_dims=n.int("batch_dims", 0))
    ),
    Rule("ScatterNd", scatter_nd),
    Rule("SegmentMax", sorted_segments("max")),
    Rule("SegmentMean", segment_mean),
    Rule("SegmentMin", sorted_segments("min")),
    Rule("SegmentProd", sorted_segments("mul")),
    Rule("SegmentSum", sorted_segments("add")),
    Rule("SparseFillEmptyRows", fill_empty_rows),
    Rule("SparseReshape", sparse_reshape),
    Rule("SparseSegmentMean", sparse_segments("mean")),
    Rule("SparseSegmentMeanWithNumSegments", sparse_segments("mean")),
    Rule("SparseSegmentSqrtN", sparse_segments("root")),
    Rule("SparseSegmentSqrtNWithNumSegments", sparse_segments("root")),
    Rule("SparseSegmentSum", sparse_segments("sum")),
    Rule("SparseSegmentSumWithNumSegments", sparse_segments("sum")),
    Rule("SparseTensorDenseAdd", sparse_add),
    Rule("SparseTensorDenseMatMul", sparse_matmul),
    Rule("SparseToDense", sparse_to_dense),
    Rule("TensorScatterAdd", scatter("add")),
    Rule("TensorScatterMax", scatter("max")),
    Rule("TensorScatterMin", scatter("min")),
    Rule("TensorScatterSub", scatter("subtract")),
    Rule("TensorScatterUpdate", scatter("update")),
    Rule("Unique", unique),
    Rule("UniqueV2", unique),
    Rule("UniqueWithCounts", unique),
    Rule("UnravelIndex", unravel_index),
    Rule("UnsortedSegmentMax", unsorted("max")),
    Rule("UnsortedSegmentMean", unsorted_mean),
    Rule("UnsortedSegmentMin", unsorted("min")),
    Rule("UnsortedSegmentProd", unsorted("mul")),
    Rule("UnsortedSegmentSqrtN", unsorted_mean),
    Rule("UnsortedSegmentSum", unsorted("add")),
)
