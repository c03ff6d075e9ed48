"""Elements by position: gathering, selecting by tensors and masks, diagonals, searching."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule
from relaylang.frontends.common.nn import broadcast_extents
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def from_front(b: Builder, positions: Expr, x: Expr, axis: int) -> Expr:
    """Positions on an axis counted from the front; negative ones count from the end."""
    value = b.value(positions)
    positions = b.cast(positions, "int64")
    if value is not None and (value >= 0).all():
        return positions
    extent = b.shape(x)[axis]
    size = b.const(extent, "int64") if isinstance(extent, int) else b.scalar(b.slice(b.shape_of(x), [axis], [axis + 1], [0]))
    counted: Expr = b.op("where", b.op("less", positions, 0), b.op("add", positions, size), positions)
    return counted


def index_select(n: Node) -> Any:
    b, x = n.b, n.x()
    rows = b.op("take", x, b.reshape(n.x("index"), [-1]), axis=n.int("dim") % max(b.rank(x), 1)) if b.rank(x) else x
    return rows


def gather(n: Node) -> Any:
    """The other axes of the positions may be shorter than those of the data."""
    b, x, positions = n.b, n.x(), n.x("index")
    if not b.rank(x):
        return x if not b.rank(positions) else b.op("broadcast_to", x, shape=b.static_shape(positions))
    axis = n.int("dim") % b.rank(x)
    positions = b.cast(positions, "int64")
    have, wanted = b.shape(x), b.shape(positions)
    if 0 in wanted:
        return b.const(b.arrays.zeros(b.static_shape(positions)), b.dtype(x))
    cut = [i for i in range(b.rank(x)) if i != axis and have[i] != wanted[i] and isinstance(wanted[i], int)]
    if cut:
        x = b.slice(x, [0] * len(cut), [b.extent(positions, i) for i in cut], cut)
    return b.op("gather", x, positions, axis=axis)


def take_along(n: Node) -> Any:
    """gather with broadcasting of the axes beside `dim`; without `dim`, of the flat tensor."""
    b, x, positions = n.b, n.x(), n.x("indices")
    if not n.has("dim"):
        return b.op("take", b.op("reshape", x, newshape=[-1]), b.op("reshape", positions, newshape=[-1]), axis=0)
    axis = n.int("dim") % b.rank(x)
    shapes = [list(b.static_shape(t)) for t in (x, positions)]
    both = [shapes[1][i] if i == axis else max(p, q) for i, (p, q) in enumerate(zip(*shapes))]
    x = b.op("broadcast_to", x, shape=[shapes[0][i] if i == axis else d for i, d in enumerate(both)])
    return b.op("gather", x, from_front(b, b.op("broadcast_to", positions, shape=both), x, axis), axis=axis)


def take(n: Node) -> Any:
    b = n.b
    flat = b.op("reshape", n.x(), newshape=[-1])
    return b.op("take", flat, from_front(b, n.x("index"), flat, 0), axis=0)


class Selection:
    """Tensors of positions on some axes: the axes, the positions as one shape, and the order that puts the axes first."""

    def __init__(self, b: Builder, x: Expr, given: list[Any]) -> None:
        self.places: list[int] = []
        rows: list[Expr] = []
        axis = 0
        for entry in given:
            if entry is None:
                axis += 1
                continue
            for positions in _columns(b, entry) if b.dtype(entry) in ("bool", "uint8") else [entry]:
                self.places.append(axis)
                rows.append(from_front(b, positions, x, axis))
                axis += 1
        self.rank = max(b.rank(p) for p in rows)
        rest = [a for a in range(b.rank(x)) if a not in self.places]
        self.order = [*self.places, *rest]
        neighbours = self.places == list(range(self.places[0], self.places[0] + len(self.places)))
        self.first = self.places[0] if neighbours else 0
        self.one = rows[0] if len(rows) == 1 else None
        zeros = [b.op("multiply", p, 0) for p in rows] if len(rows) > 1 else []
        zero = reduce(lambda p, q: b.op("add", p, q), zeros) if zeros else None
        self.rows = [p if zero is None else b.op("add", p, zero) for p in rows]
        self.rest = b.rank(x) - len(self.places)

    def stacked(self, b: Builder) -> Expr:
        """All positions, with an axis for the axes of the data in front."""
        stack: Expr = b.op("stack", b.tuple(self.rows), axis=0)
        return stack

    def back(self) -> list[int]:
        """The order that puts the axes of the positions to their place in the result."""
        rank, first = self.rank, self.first
        return [*range(rank, rank + first), *range(rank), *range(rank + first, rank + self.rest)]


def _columns(b: Builder, mask: Expr) -> list[Expr]:
    """The positions of a mask's true elements on each of its axes."""
    places = b.cast(b.op("argwhere", b.cast(mask, "bool")), "int64")
    return [b.squeeze(b.slice(places, [i], [i + 1], [1]), [1]) for i in range(b.rank(mask))]


def index(n: Node) -> Any:
    """Tensors of positions on some axes: one axis is a take, several are a gather. A mask stands for its true elements."""
    b, x = n.b, n.x()
    positions = n.get("indices")
    if all(t is None for t in positions):
        return x
    chosen = Selection(b, x, positions)
    if chosen.one is not None:
        return b.op("take", x, chosen.one, axis=chosen.places[0])
    gathered = b.op("gather_nd", b.transpose(x, chosen.order), chosen.stacked(b))
    return b.transpose(gathered, chosen.back())


def masked_select(n: Node) -> Any:
    b = n.b
    x, mask = _broadcast(b, n.x(), n.x("mask"))
    places = b.squeeze(b.op("argwhere", b.op("reshape", mask, newshape=[-1])), [1])
    return b.op("take", b.op("reshape", x, newshape=[-1]), places, axis=0)


def _broadcast(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    if b.shape(x) == b.shape(y):
        return x, y
    shape = broadcast_extents(b, [x, y])
    return b.op("broadcast_to", x, shape=shape), b.op("broadcast_to", y, shape=shape)


def nonzero(n: Node) -> Any:
    b, x = n.b, n.x()
    return b.cast(b.op("argwhere", x), "int64")


def nonzero_columns(n: Node) -> Any:
    x = n.x()
    return _columns(n.b, n.b.op("not_equal", x, n.b.const(0, n.b.dtype(x))))


# ---- diagonals


def diagonal_places(b: Builder, rows: int, columns: int, offset: int) -> np.ndarray:
    """The positions of a diagonal in a flat matrix."""
    count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    first = offset if offset >= 0 else -offset * columns
    return first + b.arrays.arange(count) * (columns + 1)


def diagonal(n: Node) -> Any:
    b, x = n.b, n.x()
    rank = b.rank(x)
    axes = [n.int("dim1", 0) % rank, n.int("dim2", 1) % rank]
    x = b.transpose(x, [*[a for a in range(rank) if a not in axes], *axes])
    places = diagonal_places(b, b.extent(x, rank - 2), b.extent(x, rank - 1), n.int("offset", 0))
    return b.op("take", b.op("reshape", x, newshape=[0] * (rank - 2) + [-3]), b.const(places), axis=rank - 2)


def embedded(b: Builder, x: Expr, offset: int) -> Expr:
    """Vectors on diagonals of matrices of zeros, on two new axes behind."""
    count = b.extent(x, -1)
    size = count + abs(offset)
    places = b.arrays.zeros(size * size, np.int64)
    mask = b.arrays.zeros(size * size, bool)
    at = diagonal_places(b, size, size, offset)
    places[at], mask[at] = b.arrays.arange(count), True
    spread = b.op("take", x, b.const(places.reshape(size, size)), axis=b.rank(x) - 1)
    return b.op("where", b.const(mask.reshape(size, size)), spread, b.const(0, b.dtype(x)))


def diag_embed(n: Node) -> Any:
    b, x = n.b, n.x()
    matrices = embedded(b, x, n.int("offset", 0))
    rank = b.rank(matrices)
    axes = [n.int("dim1", -2) % rank, n.int("dim2", -1) % rank]
    if axes[0] == axes[1]:
        raise Malformed(f"the arguments dim1 and dim2 are the same axis {axes[0]}")
    rest = iter(range(rank - 2))
    order = [rank - 2 if i == axes[0] else rank - 1 if i == axes[1] else next(rest) for i in range(rank)]
    return b.transpose(matrices, order)


def diag(n: Node) -> Any:
    """The diagonal of a matrix, or a matrix with the vector as its diagonal."""
    b, x = n.b, n.x()
    offset = n.int("diagonal" if "diagonal" in n.call.args else "offset", 0)
    if b.rank(x) == 1 or n.call.target.startswith("aten.diagflat"):
        return embedded(b, b.op("reshape", x, newshape=[-1]), offset)
    places = diagonal_places(b, b.extent(x, 0), b.extent(x, 1), offset)
    return b.op("take", b.op("reshape", x, newshape=[-1]), b.const(places), axis=0)


def trace(n: Node) -> Any:
    b = n.b
    x = b.cast(n.x(), n.result_dtype())
    places = diagonal_places(b, b.extent(x, 0), b.extent(x, 1), 0)
    return b.op("sum", b.op("take", b.op("reshape", x, newshape=[-1]), b.const(places), axis=0))


def triangle_indices(upper: bool) -> Any:
    def convert(n: Node) -> Any:
        rows, columns, offset = n.int("row"), n.int("col"), n.int("offset", 0)
        indices = np.triu_indices(rows, offset, columns) if upper else np.tril_indices(rows, offset, columns)
        return n.b.const(np.stack(indices), n.result_dtype())

    return convert


# ---- searching


def search_sorted(n: Node) -> Any:
    """The places where values belong in sorted rows. `bucketize` has the operands in the other order."""
    b = n.b
    if n.call.target.startswith("aten.bucketize"):
        rows, values, right = n.x("boundaries"), n.x(), bool(n.get("right", False))
    else:
        rows, values = n.x("sorted_sequence"), n.x()
        right = bool(n.get("right", False)) or n.get("side") == "right"
        if n.has("sorter"):
            rows = gather(n.replaced({"self": rows, "index": n.x("sorter"), "dim": -1}))
    dtype = "int32" if n.get("out_int32") else "int64"
    kinds = [b.dtype(rows), b.dtype(values)]
    kind = max(kinds, key=lambda k: ("float" in k, k))
    rows, values = b.cast(rows, kind), b.cast(values, kind)
    if b.rank(rows) == 1:
        flat = b.op("searchsorted", rows, b.op("reshape", values, newshape=[-1]), right=right, dtype=dtype)
        return b.reshape_to(flat, b.shape_of(values), allow_zero=True)
    return b.op("searchsorted", rows, values, right=right, dtype=dtype)


def one_hot(n: Node) -> Any:
    b, x = n.b, n.x()
    classes = n.int("num_classes", -1)
    if classes < 0:
        value = b.need(x, "the classes, or their number,")
        classes = int(value.max()) + 1
    return b.op("one_hot", x, b.const(1, "int64"), b.const(0, "int64"), depth=classes, axis=-1, dtype="int64")


def is_in(n: Node) -> Any:
    """Whether elements are among those of a vector: each is compared with each."""
    b = n.b
    x = n.get("elements", n.get("element"))
    among = n.get("test_elements", n.get("test_element"))
    x, among = (v if isinstance(v, Expr) else b.const(v, "int64" if isinstance(v, int) else "float32") for v in (x, among))
    flat = b.op("reshape", b.cast(among, b.dtype(x)), newshape=[-1])
    is_member = b.op("any", b.op("equal", b.unsqueeze(x, [-1]), flat), axis=[-1])
    return b.op("logical_not", is_member) if n.get("invert") else is_member


def expand_rows(n: Node) -> Any:
    """`repeat_interleave`: each element several times; counts that differ must be constants."""
    b = n.b
    if n.overload == "Tensor":
        counts = b.need(n.x("repeats"), "the repeats").reshape(-1)
        return b.const(b.arrays.repeat(b.arrays.arange(counts.size), counts))
    x, dim, repeats = n.x(), n.get("dim"), n.get("repeats")
    if dim is None:
        x, dim = b.op("reshape", x, newshape=[-1]), 0
    axis = dim % b.rank(x)
    if not isinstance(repeats, Expr):
        return b.op("repeat", x, repeats=n.int("repeats"), axis=axis)
    counts = b.need(repeats, "the repeats").reshape(-1)
    if counts.size == 1:
        return b.op("repeat", x, repeats=int(counts[0]), axis=axis)
    return b.op("take", x, b.const(b.arrays.repeat(b.arrays.arange(counts.size), counts)), axis=axis)


def eye(n: Node) -> Any:
    rows = n.int("n")
    return n.b.const(n.b.arrays.eye(rows, n.int("m", rows)), n.dtype() or n.result_dtype())


def unfold_axis(n: Node) -> Any:
    """Windows along an axis; their elements are on a new axis behind."""
    b, x = n.b, n.x()
    if not b.rank(x):
        return b.reshape(x, [n.int("size")])
    axis = n.int("dimension") % b.rank(x)
    size, step = n.int("size"), n.int("step")
    if step < 1 or size < 0:
        raise Malformed(f"its windows have {size} elements and lie {step} apart")
    count = (b.extent(x, axis) - size) // step + 1
    b.arrays.reserve((count, size))
    places = b.arrays.arange(count)[:, None] * step + b.arrays.arange(size)
    windows = b.op("take", x, b.const(places.astype(np.int64)), axis=axis)
    rank = b.rank(x)
    return b.transpose(windows, [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1])


def strided_places(b: Builder, sizes: list[int], strides: list[int], offset: int) -> np.ndarray:
    """The places of a strided view in its flat tensor."""
    places = b.arrays.full(sizes, offset, np.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides)):
        places += (b.arrays.arange(size) * stride).reshape([-1 if i == axis else 1 for i in range(len(sizes))])
    return places


def as_strided(n: Node) -> Any:
    """Elements at computed places of the flat tensor, whose own elements lie in order."""
    b, x = n.b, n.x()
    sizes = n.ints("size")
    places = strided_places(b, sizes, n.ints("stride"), n.int("storage_offset", 0))
    count = math.prod(b.static_shape(x))
    if count == places.size and (places.reshape(-1) == b.arrays.arange(count)).all():
        return b.reshape_exactly(x, sizes)
    return b.op("take", b.op("reshape", x, newshape=[-1]), b.const(places), axis=0)


RULES = (
    Rule("aten._unsafe_index", index),
    Rule("aten.argwhere", nonzero),
    Rule("aten.as_strided", as_strided),
    Rule("aten.bucketize", search_sorted),
    Rule("aten.diag", diag),
    Rule("aten.diag_embed", diag_embed),
    Rule("aten.diagflat", diag),
    Rule("aten.diagonal", diagonal),
    Rule("aten.eye", eye),
    Rule("aten.gather", gather),
    Rule("aten.index", index),
    Rule("aten.index_select", index_select),
    Rule("aten.isin", is_in),
    Rule("aten.masked_fill", lambda n: n.b.op("where", n.x("mask"), n.b.cast(n.get("value"), n.b.dtype(n.x())), n.x())),
    Rule("aten.masked_select", masked_select),
    Rule("aten.nonzero", nonzero),
    Rule("aten.nonzero_numpy", nonzero_columns),
    Rule("aten.one_hot", one_hot),
    Rule("aten.repeat_interleave", expand_rows),
    Rule("aten.searchsorted", search_sorted),
    Rule("aten.take", take),
    Rule("aten.take_along_dim", take_along),
    Rule("aten.trace", trace),
    Rule("aten.tril_indices", triangle_indices(False)),
    Rule("aten.triu_indices", triangle_indices(True)),
    Rule("aten.unfold", unfold_axis),
    Rule("aten.unfold_copy", unfold_axis),
)

__all__ = ["RULES", "Selection", "diagonal_places", "from_front", "strided_places"]
