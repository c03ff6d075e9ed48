"""Operators that move elements: they reshape, slice, join, index and sort."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported, hlo, hlo_indices
from relaylang.frontends.common.hlo_indices import Numbers
from relaylang.frontends.stablehlo.bodies import keys_of, region_join
from relaylang.frontends.stablehlo.node import Node
from relaylang.ir import ANY, Expr
from relaylang.ir.extents import bounds, combine


def reshape(n: Node) -> Any:
    """An extent that the program leaves open takes the remaining elements."""
    b, x, shape = n.b, n.x(0), n.out().shape
    if None not in shape:
        return b.reshape_exactly(x, [int(d or 0) for d in shape])
    if shape.count(None) == 1 and 0 not in shape:
        return b.reshape(x, [-1 if d is None else d for d in shape])
    raise Unsupported("its result must have a known shape; --shape gives those of the inputs")


def broadcast(n: Node) -> Any:
    """New axes before the others."""
    sizes = n.ints("broadcast_sizes")
    rank = n.b.rank(n.x(0))
    return hlo.broadcast(n.b, n.x(0), list(range(len(sizes), len(sizes) + rank)), [*sizes, *n.b.static_shape(n.x(0))])


def concatenate(n: Node) -> Any:
    b, xs = n.b, n.xs()
    if not xs:
        raise Malformed("it has no operands")
    return b.concat(xs, n.int("dimension") % b.rank(xs[0]))


def slice_(n: Node) -> Any:
    b, x = n.b, n.x(0)
    rank = int(b.rank(x))
    begin, end = (n.ints(name, rank) for name in ("start_indices", "limit_indices"))
    strides = n.ints("strides", rank, 1)
    for axis, (first, last, step) in enumerate(zip(begin, end, strides)):
        extent = b.shape(x)[axis]
        if not 0 <= first <= last or step < 1 or (isinstance(extent, int) and last > extent):
            raise Malformed(f"it takes {first}:{last}:{step} of the axis {axis}, whose extent is {extent}")
    axes = [a for a in range(rank) if (begin[a], end[a], strides[a]) != (0, b.shape(x)[a], 1)]
    return b.slice(x, [begin[a] for a in axes], [end[a] for a in axes], axes, [strides[a] for a in axes]) if axes else x


def real_dynamic_slice(n: Node) -> Any:
    b, x = n.b, n.x(0)
    known = [b.known(n.x(i)) for i in (1, 2, 3)]
    rank = int(b.rank(x))
    if all(v is not None and len(v) == rank and None not in v for v in known):
        begin, end, strides = [[int(d or 0) for d in v or ()] for v in known]
        if any(s < 1 for s in strides) or any(not 0 <= i <= j for i, j in zip(begin, end)):
            raise Malformed(f"it takes the places {begin} to {end} by {strides}")
        return b.slice(x, begin, end, list(range(rank)), strides)
    return b.op("dyn.strided_slice", x, n.x(1), n.x(2), n.x(3))


def transpose(n: Node) -> Any:
    rank = n.b.rank(n.x(0))
    return n.b.transpose(n.x(0), hlo.axes_in(n.ints("permutation", rank), rank, "permutation"))


def reverse(n: Node) -> Any:
    x = n.x(0)
    for axis in hlo.axes_in(n.ints("dimensions"), n.b.rank(x), "dimensions"):
        x = n.b.op("reverse", x, axis=axis)
    return x


def pad(n: Node) -> Any:
    """The padding is attributes, or the further operands of dynamic_pad."""
    if n.op.name == "stablehlo.dynamic_pad":
        if any(None in (n.b.known(n.x(i)) or [None]) for i in (2, 3)):
            return _padded_by_computed(n)
        low, high, inner = (n.b.need_ints(n.x(i), "the padding") for i in (2, 3, 4))
    else:
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        low, high, inner = (n.ints(name, n.b.rank(n.x(0)), 0) for name in names)
    return hlo.padded(n.b, n.x(0), n.x(1), low, high, inner)


def _padded_by_computed(n: Node) -> Any:
    """Padding at the ends by extents that are computed of names."""
    b, x, rank = n.b, n.x(0), n.b.rank(n.x(0))
    low, high = (b.elements(n.x(i)) or [ANY] * rank for i in (2, 3))
    if any(n.b.need_ints(n.x(4), "the padding inside")) or not len(low) == len(high) == rank:
        raise Unsupported("the padding must be a constant")
    if any(least is None or least < 0 for least, _ in map(bounds, (*low, *high))):
        raise Unsupported("the padding may be negative; --shape gives the extents of the inputs")
    widths = b.concat([b.unsqueeze(n.x(i), [1]) for i in (2, 3)], 1)
    shape = [d if d is ANY else combine("tir.Add", combine("tir.Add", d, i), j) for d, i, j in zip(b.shape(x), low, high)]
    return b.refine(b.op("dyn.nn.pad", x, widths, b.scalar(n.x(1))), shape)


def iota(n: Node) -> Any:
    return hlo.iota(n.b, n.out_shape(), n.int("iota_dimension", 0), n.out().dtype)


def dynamic_iota(n: Node) -> Any:
    """Numbers along one axis; the other axes repeat them."""
    b, axis, out = n.b, n.int("iota_dimension", 0), n.out()
    known = b.known(n.x(0))
    if known is not None and None not in known:
        return hlo.iota(b, [int(d or 0) for d in known], axis, out.dtype)
    if not 0 <= axis < len(out.shape):
        raise Malformed(f"it counts along the axis {axis} of {len(out.shape)}")
    count = b.scalar(b.slice(b.cast(n.x(0), "int64"), [axis], [axis + 1], [0]))
    row = b.cast(b.arange(b.const(0, "int64"), count, b.const(1, "int64"), "int64"), out.dtype)
    row = b.refine(row, [(b.elements(n.x(0)) or [ANY] * len(out.shape))[axis]])
    numbers = row if len(out.shape) == 1 else hlo.broadcast_computed(b, row, [axis], n.x(0))
    b.notes[numbers] = hlo.Iota(axis)
    return numbers


def get_dimension_size(n: Node) -> Any:
    b, x = n.b, n.x(0)
    axis = n.int("dimension") % b.rank(x)
    return b.scalar(b.slice(b.shape_of(x, "int32"), [axis], [axis + 1], [0]))


def dynamic_slice(n: Node) -> Any:
    return hlo.dynamic_slice(n.b, n.x(0), n.xs(1), n.ints("slice_sizes", n.b.rank(n.x(0))))


def dynamic_update_slice(n: Node) -> Any:
    return hlo.dynamic_update_slice(n.b, n.x(0), n.x(1), n.xs(2))


# ---- indices


def _gathered(n: Node, sizes: list[int | None]) -> Any:
    numbers = Numbers(
        n.ints("offset_dims", default=[]),
        n.ints("collapsed_slice_dims", default=[]),
        n.ints("start_index_map", default=[]),
        n.int("index_vector_dim", 0),
        n.ints("operand_batching_dims", default=[]),
        n.ints("start_indices_batching_dims", default=[]),
    )
    return hlo_indices.gather(n.b, n.x(0), n.x(1), sizes, numbers)


def gather(n: Node) -> Any:
    return _gathered(n, [*n.ints("slice_sizes", n.b.rank(n.x(0)))])


def scatter(n: Node) -> Any:
    """Several operands have the same indices; the region joins those of each apart."""
    count = len(n) // 2
    if count < 1 or len(n) != 2 * count + 1:
        raise Malformed(f"it has {len(n)} operands")
    numbers = Numbers(
        n.ints("update_window_dims", default=[]),
        n.ints("inserted_window_dims", default=[]),
        n.ints("scatter_dims_to_operand_dims", default=[]),
        n.int("index_vector_dim", 0),
        n.ints("input_batching_dims", default=[]),
        n.ints("scatter_indices_batching_dims", default=[]),
    )
    if count > 1:
        region = n.region(0)
        if len(region.ops) == 1 and region.ops[0].operands == region.parameters[count:]:
            return [hlo_indices.scatter(n.b, n.x(i), n.x(count), n.x(count + 1 + i), "update", numbers) for i in range(count)]
        raise Unsupported("its region joins several operands")
    join, x, updates = region_join(n), n.x(0), n.x(2)
    if n.b.dtype(x) == "bool" and join.op in ("logical_or", "logical_and"):
        mode = "max" if join.op == "logical_or" else "min"
        parts = [n.b.cast(v, "uint8") for v in (x, updates)]
        return n.b.cast(hlo_indices.scatter(n.b, parts[0], n.x(1), parts[1], mode, numbers), "bool")
    if not join.mode:
        raise Unsupported("its region joins by something else than add, multiply, maximum, minimum or replacement")
    return hlo_indices.scatter(n.b, x, n.x(1), updates, join.mode, numbers)


def torch_index_select(n: Node) -> Any:
    b = n.b
    if n.int("batch_dims", 0):
        raise Unsupported("it has batch_dims")
    return b.op("take", n.x(0), n.x(1), axis=n.int("dim") % b.rank(n.x(0)))


# ---- orders


def sort(n: Node) -> Any:
    """By the order of some operands, which the region compares; the others go along."""
    b, xs = n.b, n.xs()
    axis = n.int("dimension", -1) % b.rank(xs[0])
    keys = keys_of(n, n.region(0))
    if keys is None or len(n.region(0).parameters) != 2 * len(xs):
        raise Unsupported("its region compares something else than the elements of some operands")
    if len(xs) == 1 and keys[0][1]:
        return b.op("sort", xs[0], axis=axis, is_ascend=True)
    order: Expr | None = None
    for key, rising in reversed(keys):
        column = xs[key] if order is None else b.op("gather", xs[key], order, axis=axis)
        column = b.cast(column, "uint8") if b.dtype(column) == "bool" else column
        own = b.op("argsort", column, axis=axis, is_ascend=rising, dtype="int32")
        order = own if order is None else b.op("gather", order, own, axis=axis)
    assert order is not None
    return [b.op("gather", x, order, axis=axis) for x in xs]


def top_k(n: Node) -> Any:
    """The greatest elements along the last axis, and their places."""
    b, x = n.b, n.x(0)
    k, last = n.int("k"), b.rank(x) - 1
    if not 1 <= k <= b.extent(x, last):
        raise Malformed(f"it takes {k} of {b.extent(x, last)} elements")
    return b.fields(b.op("topk", x, k=k, axis=last, ret_type="both", is_ascend=False, dtype="int32"))


RULES = tuple(
    [
        Rule(f"stablehlo.{name}", function)
        for name, function in (
            ("broadcast", broadcast),
            ("broadcast_in_dim", lambda n: hlo.broadcast(n.b, n.x(0), n.ints("broadcast_dimensions", default=[]), n.out_shape())),
            ("concatenate", concatenate),
            (
                "dynamic_broadcast_in_dim",
                lambda n: hlo.broadcast_computed(n.b, n.x(0), n.ints("broadcast_dimensions", default=[]), n.x(1)),
            ),
            ("dynamic_gather", lambda n: _gathered(n, n.b.known(n.x(2)) or [None] * n.b.rank(n.x(0)))),
            ("dynamic_iota", dynamic_iota),
            ("dynamic_pad", pad),
            ("dynamic_reshape", lambda n: n.b.reshape_to(n.x(0), n.x(1), allow_zero=True)),
            ("dynamic_slice", dynamic_slice),
            ("dynamic_update_slice", dynamic_update_slice),
            ("gather", gather),
            ("get_dimension_size", get_dimension_size),
            ("iota", iota),
            ("pad", pad),
            ("real_dynamic_slice", real_dynamic_slice),
            ("reshape", reshape),
            ("reverse", reverse),
            ("scatter", scatter),
            ("slice", slice_),
            ("sort", sort),
            ("torch_index_select", torch_index_select),
            ("transpose", transpose),
        )
    ]
    + [Rule("chlo.top_k", top_k)]
)
