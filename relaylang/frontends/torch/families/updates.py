"""Elements put to positions: scattering, assignment by tensors and masks, slices that are replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.common.nn import broadcast_to
from relaylang.frontends.torch.families.indexing import Selection, diagonal_places, from_front, strided_places
from relaylang.frontends.torch.node import Node, on_axes
from relaylang.frontends.torch.updates import replace_row, replace_slice
from relaylang.ir import Expr

#: PyTorch's names of reductions to Relay's.
_MODES = {"add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min", None: "update"}


def _cut(b: Builder, source: Expr, positions: Expr) -> Expr:
    """The source's part that the positions cover."""
    have, wanted = b.shape(source), b.shape(positions)
    axes = [i for i in range(b.rank(source)) if have[i] != wanted[i] and isinstance(wanted[i], int)]
    return b.slice(source, [0] * len(axes), [b.extent(positions, i) for i in axes], axes) if axes else source


def _added(b: Builder, x: Expr) -> str:
    """The reduction that adds: for truth values, the larger one."""
    return "max" if b.dtype(x) == "bool" else "add"


def _sum(b: Builder, x: Expr, y: Expr) -> Expr:
    joined: Expr = b.op("logical_or" if b.dtype(x) == "bool" else "add", x, y)
    return joined


def scatter(n: Node) -> Any:
    """The source may be a tensor or one number, and larger than the positions."""
    b, x, positions = n.b, n.x(), n.x("index")
    source = n.get("src", n.get("value"))
    if isinstance(source, Expr) and b.rank(source) == b.rank(positions):
        source = _cut(b, b.cast(source, b.dtype(x)), positions)
    else:
        source = broadcast_to(b, b.cast(source, b.dtype(x)), b.shape_of(positions))
    mode = "add" if n.call.target.startswith("aten.scatter_add") else n.choice("reduce", None, _MODES)
    mode = _added(b, x) if mode == "add" else mode
    if not b.rank(x):
        x, positions, source = (b.reshape(t, [1]) for t in (x, positions, source))
        return b.scalar(b.op("scatter_elements", x, positions, source, axis=0, reduction=mode))
    return b.op("scatter_elements", x, positions, source, axis=n.int("dim") % b.rank(x), reduction=mode)


def _neutral(kind: str, dtype: str) -> Any:
    """What a reduction starts from."""
    if kind in ("sum", "mean"):
        return 0
    if kind == "prod":
        return 1
    if "float" in dtype:
        return -np.inf if kind == "amax" else np.inf
    info = np.iinfo(dtype)
    return info.min if kind == "amax" else info.max


def scatter_reduce(n: Node) -> Any:
    """Without `include_self`, the elements that are written start from the neutral number."""
    b, x, positions = n.b, n.x(), n.x("index")
    return _reduced(n, x, positions, _cut(b, n.x("src"), positions), n.int("dim"))


def index_reduce(n: Node) -> Any:
    b, x, source = n.b, n.x(), n.x("source")
    return _reduced(n, x, _rows(b, n.x("index"), source, n.int("dim")), source, n.int("dim"))


def _reduced(n: Node, x: Expr, positions: Expr, source: Expr, dim: int) -> Any:
    b, kind = n.b, n.choice("reduce", None, {"mean": "mean", **{name: name for name in _MODES if name is not None}})
    axis, dtype = dim % b.rank(x), b.dtype(x)
    own = bool(n.get("include_self", True))
    start = x
    if not own:
        neutral = broadcast_to(b, b.const(_neutral(kind, dtype), dtype), b.shape_of(positions))
        start = b.op("scatter_elements", x, positions, neutral, axis=axis)
    mode = "add" if kind == "mean" else _MODES[kind]
    reduced = b.op("scatter_elements", start, positions, source, axis=axis, reduction=mode)
    if kind != "mean":
        return reduced
    ones = broadcast_to(b, b.const(1, dtype), b.shape_of(positions))
    counts = b.op("ones_like" if own else "zeros_like", x)
    counts = b.op("scatter_elements", counts, positions, ones, axis=axis, reduction="add")
    counts = counts if own else b.op("maximum", counts, b.const(1, dtype))
    return b.op("divide" if "float" in dtype else "floor_divide", reduced, counts)


def _rows(b: Builder, positions: Expr, like: Expr, dim: int) -> Expr:
    """A vector of positions on an axis, for each element of a tensor."""
    axis = dim % b.rank(like)
    flat = b.unsqueeze(b.reshape(positions, [-1]), [i for i in range(b.rank(like)) if i != axis])
    return broadcast_to(b, flat, b.shape_of(like))


def index_add(n: Node) -> Any:
    b, x, source = n.b, n.x(), n.x("source")
    alpha = n.get("alpha", 1)
    source = source if alpha == 1 else b.op("multiply", source, b.const(alpha, b.dtype(source)))
    positions = _rows(b, n.x("index"), source, n.int("dim"))
    return b.op("scatter_elements", x, positions, source, axis=n.int("dim") % b.rank(x), reduction=_added(b, x))


def index_copy(n: Node) -> Any:
    b, x, source = n.b, n.x(), n.x("source")
    positions = _rows(b, from_front(b, n.x("index"), x, n.int("dim") % b.rank(x)), source, n.int("dim"))
    return b.op("scatter_elements", x, positions, source, axis=n.int("dim") % b.rank(x))


def index_fill(n: Node) -> Any:
    """One value for all rows at the positions."""
    b, x = n.b, n.x()
    axis = n.int("dim") % b.rank(x)
    positions = b.reshape(from_front(b, n.x("index"), x, axis), [-1])
    parts = [b.shape_of(positions) if i == axis else b.slice(b.shape_of(x), [i], [i + 1], [0]) for i in range(b.rank(x))]
    shape = b.concat(parts, 0)
    spread = broadcast_to(b, b.unsqueeze(positions, [i for i in range(b.rank(x)) if i != axis]), shape)
    source = broadcast_to(b, b.cast(n.get("value"), b.dtype(x)), shape)
    return b.op("scatter_elements", x, spread, source, axis=axis)


def index_put(n: Node) -> Any:
    """`x[positions] = values`; one value under one mask is a `where`."""
    b, x, values = n.b, n.x(), _values(n)
    indices = n.get("indices")
    masks = [t for t in indices if t is not None and b.dtype(t) in ("bool", "uint8")]
    add = bool(n.get("accumulate", False))
    if all(t is None for t in indices):
        return _sum(b, x, values) if add else broadcast_to(b, values, b.shape_of(x))
    if len(masks) == 1 and len([t for t in indices if t is not None]) == 1 and b.rank(values) == 0:
        before = next(i for i, t in enumerate(indices) if t is not None)
        behind = b.rank(x) - before - b.rank(masks[0])
        mask = b.unsqueeze(b.cast(masks[0], "bool"), range(b.rank(masks[0]), b.rank(masks[0]) + behind))
        return b.op("where", mask, _sum(b, x, values) if add else values, x)
    axis = next(i for i, t in enumerate(indices) if t is not None)
    if axis and not masks and len([t for t in indices if t is not None]) == b.rank(indices[axis]) == 1:
        # Rows of an axis behind the first: a transposition would copy the whole tensor.
        parts = [b.shape_of(indices[axis]) if i == axis else b.slice(b.shape_of(x), [i], [i + 1], [0]) for i in range(b.rank(x))]
        source = broadcast_to(b, values, b.concat(parts, 0))
        positions = _rows(b, from_front(b, indices[axis], x, axis), source, axis)
        return b.op("scatter_elements", x, positions, source, axis=axis, reduction=_added(b, x) if add else "update")
    chosen = Selection(b, x, indices)
    rows, turned = chosen.stacked(b), b.transpose(x, chosen.order)
    inner = b.slice(b.shape_of(rows), [1], [b.rank(rows)], [0])
    count = len(chosen.places)
    outer = [b.slice(b.shape_of(turned), [i], [i + 1], [0]) for i in range(count, b.rank(x))]
    shape = b.concat([*outer[: chosen.first], inner, *outer[chosen.first :]], 0)
    back = chosen.back()
    updates = b.transpose(broadcast_to(b, values, shape), np.argsort(back).tolist())
    updated = b.op("scatter_nd", turned, rows, updates, mode=_added(b, x) if add else "update")
    return b.transpose(updated, np.argsort(chosen.order).tolist())


def _values(n: Node) -> Expr:
    """The values of an assignment in the element type of the data; one element is a scalar."""
    b, values = n.b, n.x("values")
    values = b.cast(values, b.dtype(n.x()))
    return b.scalar(values) if all(d == 1 for d in b.shape(values)) else values


def put(n: Node) -> Any:
    b, x = n.b, n.x()
    flat = b.op("reshape", x, newshape=[-1])
    positions = b.op("reshape", from_front(b, n.x("index"), flat, 0), newshape=[-1])
    source = b.op("reshape", n.x("source"), newshape=[-1])
    updated = b.op("scatter_elements", flat, positions, source, axis=0, reduction=_added(b, x) if n.get("accumulate") else "update")
    return b.reshape_to(updated, b.shape_of(x))


def masked_scatter(n: Node) -> Any:
    """The first elements of the source, in order, where the mask is true."""
    b, x, mask = n.b, n.x(), n.x("mask")
    shape = b.shape_of(b.op("where", mask, x, x))
    x, mask = broadcast_to(b, x, shape), broadcast_to(b, mask, shape)
    order = b.op("cumsum", b.cast(b.op("reshape", mask, newshape=[-1]), "int64"), axis=0, dtype="int64")
    flat = b.op("take", b.op("reshape", n.x("source"), newshape=[-1]), b.op("subtract", order, 1), axis=0, mode="clip")
    return b.op("where", mask, b.reshape_to(flat, b.shape_of(x)), x)


def diagonal_scatter(n: Node) -> Any:
    b, x = n.b, n.x()
    rank = b.rank(x)
    axes = [n.int("dim1", 0) % rank, n.int("dim2", 1) % rank]
    order = [*[a for a in range(rank) if a not in axes], *axes]
    turned = b.transpose(x, order)
    places = diagonal_places(b, b.extent(turned, rank - 2), b.extent(turned, rank - 1), n.int("offset", 0))
    flat = b.op("reshape", turned, newshape=[0] * (rank - 2) + [-3])
    source = n.x("src")
    updated = b.op("scatter_elements", flat, _rows(b, b.const(places), source, -1), source, axis=rank - 2)
    return b.transpose(b.reshape_to(updated, b.shape_of(turned)), np.argsort(order).tolist())


def as_strided_scatter(n: Node) -> Any:
    """Elements of the flat tensor at computed places replaced."""
    b, x = n.b, n.x()
    places = strided_places(b, n.ints("size"), n.ints("stride"), n.int("storage_offset", 0)).reshape(-1)
    flat, source = b.op("reshape", x, newshape=[-1]), b.op("reshape", n.x("src"), newshape=[-1])
    return b.reshape_to(b.op("scatter_elements", flat, b.const(places), source, axis=0), b.shape_of(x))


def copy(n: Node) -> Any:
    """Another tensor's elements in the shape and element type of this one."""
    b, x = n.b, n.x()
    return broadcast_to(b, b.cast(n.x("src"), b.dtype(x)), b.shape_of(x))


def fill(n: Node) -> Any:
    b, x, value = n.b, n.x(), n.get("value")
    return b.op("full_like", x, b.cast(value, b.dtype(x)))


def zero(n: Node) -> Any:
    return n.b.op("zeros_like", n.x())


def fill_diagonal(n: Node) -> Any:
    b, x = n.b, n.x()
    shape = b.static_shape(x)
    if len(shape) != 2 or n.get("wrap"):
        raise Unsupported("the diagonal is that of a matrix")
    mask = b.arrays.eye(*shape, dtype=bool)
    return b.op("where", b.const(mask), b.const(n.get("fill_value"), b.dtype(x)), x)


RULES = (
    Rule("aten._index_put_impl", index_put),
    Rule("aten._unsafe_index_put", index_put),
    Rule("aten.as_strided_scatter", as_strided_scatter),
    Rule("aten.copy", copy),
    Rule("aten.diagonal_scatter", diagonal_scatter),
    Rule("aten.fill", fill),
    Rule("aten.fill_diagonal", fill_diagonal),
    Rule("aten.index_add", on_axes(index_add)),
    Rule("aten.index_copy", on_axes(index_copy)),
    Rule("aten.index_fill", on_axes(index_fill)),
    Rule("aten.index_put", index_put),
    Rule("aten.index_reduce", on_axes(index_reduce)),
    Rule("aten.masked_scatter", masked_scatter),
    Rule("aten.put", put),
    Rule("aten.scatter", scatter),
    Rule("aten.scatter_add", scatter),
    Rule("aten.scatter_reduce", on_axes(scatter_reduce)),
    Rule("aten.select_scatter", lambda n: replace_row(n.b, n.x(), n.x("src"), n.int("dim"), n.get("index"))),
    Rule(
        "aten.slice_scatter",
        lambda n: replace_slice(n.b, n.x(), n.x("src"), n.int("dim", 0), n.get("start"), n.get("end"), n.int("step", 1)),
    ),
    Rule("aten.zero", zero),
)
