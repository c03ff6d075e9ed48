"""Parts and elements by their places: slices, gathers, updates, the largest elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn, runs
from relaylang.frontends.common.places import at_place
from relaylang.frontends.common.slices import FAR, slice_axes, slice_computed
from relaylang.frontends.paddle.node import LARGEST, Node, Tensors
from relaylang.ir import Expr


def from_front(b: Builder, places: Expr, x: Expr, axis: int) -> Expr:
    """Places on an axis without negative ones, which count from the end."""
    value = b.value(places)
    if value is not None and (value >= 0).all():
        return places
    extent = b.shape(x)[axis]
    end: Expr = (
        b.const(extent, b.dtype(places))
        if isinstance(extent, int)
        else b.cast(b.scalar(b.slice(b.shape_of(x), [axis], [axis + 1], [0])), b.dtype(places))
    )
    return b.op("where", b.op("less", places, b.const(0, b.dtype(places))), b.op("add", places, end), places)


def _bounds(n: Node, bound: Any, name: str, count: int, default: int) -> tuple[Expr, list[int | None]]:
    """The bounds of a slice, and those of them that are known."""
    b = n.b
    vector = n.vector(bound) if bound is not None else b.const(np.array(n.ints(name, [default] * count), np.int64))
    if b.shape(vector) != (count,):
        raise Malformed(f"its {name} do not have one number for each of its {count} axes")
    return vector, list(b.known(vector) or [None] * count)


def slice_(n: Node, x: Expr, starts: Any = None, ends: Any = None, strides: Any = None) -> Any:
    """`x[start:end:stride]` on some axes; the axes of `decrease_axis` lose their one element's axis."""
    b, rank = n.b, n.b.rank(x)
    axes = [a % rank for a in n.ints("axes")]
    if isinstance(x, list):
        raise Unsupported("it is a slice of a list of tensors")
    gone = [a % rank for a in n.ints("decrease_axis", [])]
    if len(set(axes)) != len(axes) or any(a not in axes for a in gone):
        raise Malformed(f"its axes are {axes[:8]}, and those that it removes {gone[:8]}")
    first, firsts = _bounds(n, starts, "starts", len(axes), 0)
    last, lasts = _bounds(n, ends, "ends", len(axes), FAR)
    step, steps = _bounds(n, strides, "strides", len(axes), 1)
    sliced = x
    known = [
        i for i in range(len(axes)) if steps[i] is not None and (firsts[i] is not None and (lasts[i] is not None or axes[i] in gone))
    ]
    cuts = []
    for i in known:
        begin, end, by = int(firsts[i] or 0), lasts[i], int(steps[i] or 0)
        if axes[i] in gone:
            end = begin + 1 if begin != -1 else FAR
        elif by < 0 and end == -1:  # the step that goes backwards ends before the first element
            end = -FAR
        cuts.append((axes[i], begin, int(end or 0), by))
    if cuts:
        sliced = slice_axes(b, sliced, *[[c[j] for c in cuts] for j in (1, 2, 0, 3)])
    open_ = [i for i in range(len(axes)) if i not in known]
    for i in [i for i in open_ if axes[i] in gone]:
        place = from_front(b, b.slice(first, [i], [i + 1], [0]), x, axes[i])
        sliced = b.op("take", sliced, place, axis=axes[i])
    rest = [i for i in open_ if axes[i] not in gone]
    if rest:
        parts = [b.op("take", v, b.const(np.array(rest)), axis=0) for v in (first, last, step)]
        sliced = slice_computed(b, sliced, parts[0], parts[1], [axes[i] for i in rest], parts[2])
    return b.squeeze(sliced, gone)


def set_value(n: Node, x: Expr, values: Expr | None = None, starts: Any = None, ends: Any = None, steps: Any = None) -> Any:
    """`x[start:end:step] = values` on some axes. Computed starts hold for axes of one element."""
    b, rank = n.b, n.b.rank(x)
    axes, dtype = [a % rank for a in n.ints("axes")], b.dtype(x)
    gone, new = [a % rank for a in n.ints("decrease_axes", [])], n.ints("none_axes", [])
    update = b.cast(values, dtype) if values is not None else _constant_values(n, dtype)
    shape = list(b.static_shape(x))
    count = len(axes)
    (first, firsts), (_, lasts), (_, by) = (
        _bounds(n, v, name, count, d) for v, name, d in ((starts, "starts", 0), (ends, "ends", FAR), (steps, "steps", 1))
    )
    places = [np.arange(0)] * rank
    for axis in range(rank):
        extent = shape[axis]
        if axis not in axes:
            begin, end, step = 0, extent, 1
        else:
            i = axes.index(axis)
            if firsts[i] is None and axis not in gone:
                raise Unsupported("it sets elements from a computed place on")
            begin = firsts[i] or 0
            end, step = (begin + 1 if begin != -1 else FAR, 1) if axis in gone else (lasts[i], by[i])  # type: ignore[assignment]
            if end is None or not step:
                raise Unsupported("it sets elements up to a computed place")
        places[axis] = b.arrays.arange(extent)[slice(begin, end, step)]
    extents = [len(p) for p in places]
    if 0 in extents:
        return x
    update = b.squeeze(update, [a for a in new if a < b.rank(update) and b.shape(update)[a] == 1]) if new else update
    kept = [i for i in range(rank) if i not in gone]
    if b.rank(update) > len(kept):
        lead = b.rank(update) - len(kept)
        update = b.squeeze(update, list(range(lead)))
    update = b.op("broadcast_to", update, shape=[extents[i] for i in kept])
    update = b.reshape_exactly(update, extents)
    if any(firsts[axes.index(a)] is None for a in gone):
        starts_of: list[Expr] = [b.const(np.array([p[0]], np.int64)) for p in places]
        for axis in gone:
            i = axes.index(axis)
            if firsts[i] is None:
                starts_of[axis] = from_front(b, b.slice(first, [i], [i + 1], [0]), x, axis)
        return at_place(b, x, update, b.concat(starts_of, 0))
    if extents == shape and all((p == b.arrays.arange(len(p))).all() for p in places):
        return update
    b.arrays.reserve([rank, *extents], "the places that it sets")
    rows = np.stack(np.broadcast_arrays(*np.ix_(*places))).astype(np.int64)
    return b.op("scatter_nd", x, b.const(rows), update, mode="update")


def _constant_values(n: Node, dtype: str) -> Expr:
    """The values of an assignment that are attributes."""
    names = ["values", "fp32_values", "int32_values", "int64_values", "bool_values", "fp64_values"]
    filled = [name for name in names if n.operation.attributes.get(name)]
    if not filled:
        raise Malformed("it has no values")
    values, shape = n.values(filled[0], dtype), n.ints("shape", [1])
    if any(d < 0 for d in shape) or int(np.prod(shape)) != values.size:
        raise Malformed(f"it has {values.size} values, and the shape {shape[:8]}")
    return n.b.const(values.reshape(shape))


# ---- gathers


def _flat_places(n: Node, index: Expr) -> Expr:
    """Places as a vector, which older programs have as a column."""
    b = n.b
    return b.op("reshape", index, newshape=[-1]) if b.rank(index) > 1 else index


def gather(n: Node, x: Expr, index: Expr, axis: Any = None) -> Any:
    place = n.number(axis, "its axis", n.int("axis", 0)) % n.b.rank(x)
    return n.b.op("take", x, from_front(n.b, _flat_places(n, index), x, place), axis=place)


def index_select(n: Node, x: Expr, index: Expr) -> Any:
    axis = n.axis(x, "axis", 0)
    return n.b.op("take", x, from_front(n.b, index, x, axis), axis=axis)


def gather_nd(n: Node, x: Expr, index: Expr) -> Any:
    b, rank = n.b, n.b.rank(index)
    depth = b.extent(index, rank - 1, "the last axis of its places")
    return b.op("gather_nd", x, b.transpose(_around(n, x, index), [rank - 1, *range(rank - 1)]), batch_dims=0, index_rank=depth)


def _around(n: Node, x: Expr, index: Expr) -> Expr:
    """Places on several axes without negative ones."""
    b = n.b
    depth = b.extent(index, b.rank(index) - 1)
    if depth > b.rank(x):
        raise Malformed(f"its places have {depth} numbers, and its operand {int(b.rank(x))} axes")
    value = b.value(index)
    if value is not None and (value >= 0).all():
        return index
    ends = b.cast(b.slice(b.shape_of(x), [0], [depth], [0]), b.dtype(index))
    return b.op("where", b.op("less", index, b.const(0, b.dtype(index))), b.op("add", index, ends), index)


def take_along_axis(n: Node, x: Expr, index: Expr) -> Any:
    b, axis = n.b, n.axis(x, "axis", 0)
    index = from_front(b, index, x, axis)
    if tuple(b.shape(x)) != tuple(b.shape(index)):
        shapes = [list(b.static_shape(v)) for v in (x, index)]
        if len(shapes[0]) != len(shapes[1]):
            raise Malformed(f"its operands have {len(shapes[0])} and {len(shapes[1])} axes")
        wide = [max(p, q) for p, q in zip(*shapes)]
        b.arrays.reserve(wide, "spreading tensors", 0)
        grown = [[s[i] if i == axis else wide[i] for i in range(len(wide))] for s in shapes]
        x, index = (b.op("broadcast_to", v, shape=g) if s != g else v for v, s, g in zip((x, index), shapes, grown))
    return b.op("gather", x, index, axis=axis)


def put_along_axis(n: Node, x: Expr, index: Expr, values: Expr) -> Any:
    b, axis = n.b, n.axis(x, "axis", 0)
    kinds = {
        "assign": "update",
        "add": "add",
        "sum": "add",
        "mul": "mul",
        "multiply": "mul",
        "amax": "max",
        "amin": "min",
        "mean": "mean",
    }
    kind = n.text("reduce", "assign")
    if kind not in kinds or not n.bool("include_self", True):
        raise Unsupported(f"it puts values by {kind[:40]!r}, or without those that it replaces")
    shape = list(b.static_shape(index))
    spread = b.op("broadcast_to", b.cast(values, b.dtype(x)), shape=shape)
    return b.op("scatter_elements", x, from_front(b, index, x, axis), spread, axis=axis, reduction=kinds[kind])


def scatter(n: Node, x: Expr, index: Expr, updates: Expr) -> Any:
    """Rows by their places; without `overwrite`, rows of the same place are added, to zeros."""
    b = n.b
    places = b.op("expand_dims", _flat_places(n, index), axis=0)
    if n.bool("overwrite", True):
        return b.op("scatter_nd", x, places, updates, mode="update")
    zeros = b.op("zeros_like", updates)
    cleared = b.op("scatter_nd", x, places, zeros, mode="update")
    return b.op("scatter_nd", cleared, places, updates, mode="add")


def scatter_nd_add(n: Node, x: Expr, index: Expr, updates: Expr) -> Any:
    rank = n.b.rank(index)
    rows = n.b.transpose(_around(n, x, index), [rank - 1, *range(rank - 1)])
    return n.b.op("scatter_nd", x, rows, updates, mode="add")


def index_add(n: Node, x: Expr, index: Expr, values: Expr) -> Any:
    b, axis, rank = n.b, n.axis(x, "axis", 0), n.b.rank(x)
    order = [axis, *[i for i in range(rank) if i != axis]]
    places = b.op("expand_dims", from_front(b, index, x, axis), axis=0)
    added = b.op("scatter_nd", b.transpose(x, order), places, b.transpose(values, order), mode="add")
    return b.transpose(added, np.argsort(order).tolist())


def index_put(n: Node, x: Expr, indices: Tensors, values: Expr) -> Any:
    """`x[places] = values` for places on the first axes, or under one mask."""
    b, parts = n.b, n.list(indices)
    update = b.cast(values, b.dtype(x))
    add = n.bool("accumulate", False)
    if b.dtype(parts[0]) == "bool":
        if len(parts) > 1 or not all(d == 1 for d in b.shape(update)):
            raise Unsupported("it sets elements under a mask to several values")
        mask = b.unsqueeze(parts[0], list(range(b.rank(parts[0]), b.rank(x))))
        value = b.scalar(update)
        return b.op("where", mask, b.op("add", x, value) if add else value, x)
    shape = list(nn.broadcast_extents(b, parts))
    rows = [b.op("broadcast_to", from_front(b, p, x, i), shape=shape) for i, p in enumerate(parts)]
    update = b.op("broadcast_to", update, shape=[*shape, *b.static_shape(x)[len(parts) :]])
    return b.op("scatter_nd", x, b.op("stack", b.tuple(rows), axis=0), update, mode="add" if add else "update")


def embedding(n: Node, ids: Expr, weight: Expr) -> Any:
    """Rows of the weight; zeros for the place `padding_idx`."""
    b, gap = n.b, n.operation.attributes.get("padding_idx", -1)
    rows = b.op("take", weight, ids, axis=0)
    if not isinstance(gap, int) or not 0 <= gap < LARGEST:
        return rows
    empty = b.unsqueeze(b.op("equal", ids, b.const(gap, b.dtype(ids))), [b.rank(ids)])
    return b.op("where", empty, b.const(np.zeros((), b.dtype(weight))), rows)


def lookup_table(n: Node, weight: Expr, ids: Expr) -> Any:
    """Places have a last axis of one element."""
    rank = n.b.rank(ids)
    return embedding(n, n.b.squeeze(ids, [rank - 1]) if rank > 1 and n.b.shape(ids)[-1] == 1 else ids, weight)


def nonzero(n: Node, x: Expr) -> Any:
    return n.b.cast(n.b.op("argwhere", x), "int64")


def masked_select(n: Node, x: Expr, mask: Expr) -> Any:
    b = n.b
    shape = list(nn.broadcast_extents(b, [x, mask]))
    x, mask = (b.reshape_exactly(b.op("broadcast_to", v, shape=shape), [int(np.prod(shape))]) for v in (x, mask))
    return b.op("take", x, b.squeeze(b.op("argwhere", mask), [1]), axis=0)


# ---- the order of elements


def topk(n: Node, x: Expr, k: Any = None) -> Any:
    b, axis = n.b, n.axis(x, "axis", -1)
    how = {"axis": axis, "ret_type": "both", "is_ascend": not n.bool("largest", True), "dtype": "int64"}
    vector = n.vector(k) if k is not None else None
    if vector is not None and (b.known(vector) or [None])[0] is None:
        return b.fields(b.op("dyn.topk", x, b.scalar(vector), **how))
    count, extent = n.number(k, "its number of elements", n.int("k", 1)), b.shape(x)[axis]
    if count < 1 or (isinstance(extent, int) and count > extent):
        raise Malformed(f"it takes {count} of {extent} elements")
    return b.fields(b.op("topk", x, k=count, **how))


def argsort(n: Node, x: Expr) -> Any:
    b, axis, ascend = n.b, n.axis(x, "axis", -1), not n.bool("descending", False)
    order = b.op("argsort", x, axis=axis, is_ascend=ascend, dtype="int64")
    return [b.op("sort", x, axis=axis, is_ascend=ascend), order]


def _extreme(op: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, axis: Any = None) -> Any:
        b = n.b
        every = n.bool("flatten", False)
        x = b.op("reshape", x, newshape=[-1]) if every and b.rank(x) != 1 else x
        place = 0 if every else n.number(axis, "its axis", n.int("axis", -1)) % b.rank(x)
        index = b.op(op, x, axis=[place], keepdims=n.bool("keepdims", False) and not every)
        return b.cast(index, n.dtype("dtype", "int64"))

    return convert


def _with_index(op: str, place: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr) -> Any:
        b, axis, keep = n.b, n.axis(x, "dim", -1), n.bool("keepdim", False)
        return [b.op(op, x, axis=[axis], keepdims=keep), b.cast(b.op(place, x, axis=[axis], keepdims=keep), "int64")]

    return convert


def kthvalue(n: Node, x: Expr) -> Any:
    b, axis, k = n.b, n.axis(x, "axis", -1), n.int("k", 1)
    if not 1 <= k <= b.extent(x, axis):
        raise Malformed(f"it takes the element {k} of {b.extent(x, axis)}")
    smallest = [b.slice(v, [k - 1], [k], [axis]) for v in argsort(n, x)]
    return smallest if n.bool("keepdim", False) else [b.squeeze(v, [axis]) for v in smallest]


def cumsum(n: Node, x: Expr, axis: Any = None) -> Any:
    b = n.b
    x = b.op("reshape", x, newshape=[-1]) if n.bool("flatten", False) and b.rank(x) != 1 else x
    place = 0 if n.bool("flatten", False) else n.number(axis, "its axis", n.int("axis", -1)) % b.rank(x)
    turned = n.bool("reverse", False)
    x = b.op("reverse", x, axis=place) if turned else x
    sums = b.op("cumsum", x, axis=place, exclusive=n.bool("exclusive", False), dtype=b.dtype(x))
    return b.op("reverse", sums, axis=place) if turned else sums


def cumprod(n: Node, x: Expr) -> Any:
    b, axis = n.b, n.axis(x, "dim", 0)
    turned = n.bool("reverse", False)
    x = b.op("reverse", x, axis=axis) if turned else x
    products = b.op("cumprod", x, axis=axis, exclusive=n.bool("exclusive", False), dtype=b.dtype(x))
    return b.op("reverse", products, axis=axis) if turned else products


def unique(n: Node, x: Expr) -> Any:
    """The distinct elements in their order, their first places, the place of each element among them, and their numbers."""
    b, dtype = n.b, n.dtype("dtype", "int64")
    if n.ints("axis", []) and b.rank(x) > 1:
        raise Unsupported("it compares slices along an axis")
    flat = b.op("reshape", x, newshape=[-1]) if b.rank(x) != 1 else x
    values, first, inverse, count, counts = b.fields(b.op("unique", flat, sorted=True, return_counts=True))
    zero, one, cut = b.const(np.array([0])), b.const(np.array([1])), b.cast(count, "int64")

    def front(v: Expr) -> Expr:
        cut_front: Expr = b.op("dyn.strided_slice", v, zero, cut, one, begin=None, end=None, strides=None, axes=None)
        return cut_front

    return [front(values), *[b.cast(v, dtype) for v in (front(first), inverse, front(counts))]]


def unique_consecutive(n: Node, x: Expr) -> Any:
    """The first element (or slice) of each run of equal ones, the run of each, and the runs' lengths."""
    axes, dtype = n.ints("axis", []), n.dtype("dtype", "int64")
    if len(axes) > 1:
        raise Malformed(f"it has the axes {axes[:8]}; it takes one")
    values, places, lengths = runs.first_of_runs(n.b, x, axes[0] % n.b.rank(x) if axes else None)
    return [values, n.b.cast(places, dtype), n.b.cast(lengths, dtype)]


def mode(n: Node, x: Expr) -> Any:
    """The most frequent element along an axis, and its last place."""
    axis = n.axis(x, "axis", -1)
    most = runs.mode(n.b, x, axis)
    return list(most) if n.bool("keepdim", False) else [n.b.squeeze(v, [axis]) for v in most]


def histogram(n: Node, x: Expr, weights: Expr | None = None) -> Any:
    """Counts of elements in bins of one width, or their share of the whole for each unit of width."""
    b, bins, least, most = n.b, n.int("bins", 100), float(n.float("min", 0)), float(n.float("max", 0))
    if n.bool("density", False):
        raise Unsupported("it gives densities")
    return runs.histogram(b, x, bins, least, most, weights)


RULES = (
    Rule("argmax", _extreme("argmax")),
    Rule("argmin", _extreme("argmin")),
    Rule("argsort", argsort),
    Rule("cumprod", cumprod),
    Rule("cumsum", cumsum),
    Rule("embedding", embedding),
    Rule("gather", gather),
    Rule("histogram", histogram),
    Rule("gather_nd", gather_nd),
    Rule("index_add", index_add),
    Rule("index_put", index_put),
    Rule("index_sample", lambda n, x, index: n.b.op("gather", x, index, axis=1)),  # of each row
    Rule("index_select", index_select),
    Rule("kthvalue", kthvalue),
    Rule("lookup_table", lookup_table),
    Rule("masked_select", masked_select),
    Rule("max_with_index", _with_index("max", "argmax")),
    Rule("min_with_index", _with_index("min", "argmin")),
    Rule("mode", mode),
    Rule("nonzero", nonzero),
    Rule("put_along_axis", put_along_axis),
    Rule("scatter", scatter),
    Rule("scatter_nd_add", scatter_nd_add),
    Rule("set_value", lambda n, x, starts=None, ends=None, steps=None: set_value(n, x, None, starts, ends, steps)),
    Rule("set_value_with_tensor", set_value),
    Rule("slice", slice_),
    Rule("strided_slice", slice_),
    Rule("take_along_axis", take_along_axis),
    Rule("topk", topk),
    Rule("unique", unique),
    Rule("unique_consecutive", unique_consecutive),
)
