"""Operators that arrange elements: axes moved, parts joined and cut, grids and ranges; and questions about extents."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common.nn import broadcast_extents, broadcast_to
from relaylang.frontends.torch.families import arithmetic, indexing, shape
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr

Convert = Callable[[Node], Any]


def move_axes(n: Node) -> Any:
    b, x = n.b, n.x()
    rank = b.rank(x)
    sources, targets = ([a % rank for a in n.ints(name)] for name in ("source", "destination"))
    order = [a for a in range(rank) if a not in sources]
    for target, source in sorted(zip(targets, sources)):
        order.insert(target, source)
    return b.transpose(x, order)


def swap_axes(n: Node) -> Any:
    b, x = n.b, n.x()
    rank = b.rank(x)
    names = ("axis0", "axis1") if "axis0" in n.call.args else ("dim0", "dim1")
    i, j = (n.int(name) % max(rank, 1) for name in names)
    order = list(range(rank))
    if rank:
        order[i], order[j] = order[j], order[i]
    return b.transpose(x, order)


def turn_matrices(n: Node) -> Any:
    rank = n.b.rank(n.x())
    return n.b.transpose(n.x(), [*range(rank - 2), rank - 1, rank - 2])


def narrow(n: Node) -> Any:
    """A part from a place on; the place may be computed."""
    b, x = n.b, n.x()
    axis, start, length = n.int("dim") % b.rank(x), n.get("start"), n.get("length")
    if not isinstance(start, Expr) and start < 0:
        start += b.extent(x, axis)
    if isinstance(start, Expr) or isinstance(length, Expr):
        first = b.cast(start, "int64")
        sliced = shape.computed_slice(n, x, axis, first, b.op("add", first, length), 1)
        return sliced if isinstance(length, Expr) else b.refine(sliced, [length if i == axis else None for i in range(b.rank(x))])
    return b.slice(x, [start], [start + length], [axis])


def tile(n: Node) -> Any:
    """Copies along each axis; missing counts in front are 1. A count may be computed."""
    b, x = n.b, n.x()
    counts = n.vector("dims" if "dims" in n.call.args else "repeats")
    if isinstance(counts, Expr):
        more = b.extent(counts, 0) - b.rank(x)
        tiled = b.op("dyn.tile", b.unsqueeze(x, range(more)) if more > 0 else x, counts, reps=None)
        known = b.known(counts) or [None] * b.rank(tiled)
        extents = [*[1] * max(more, 0), *b.shape(x)]
        return b.refine(tiled, [d * c if isinstance(d, int) and c is not None else None for d, c in zip(extents, known)])
    if 0 in counts:
        counts = [1] * (b.rank(x) - len(counts)) + list(counts)
        have = [1] * (len(counts) - b.rank(x)) + list(b.static_shape(x))
        return b.const(b.arrays.zeros([d * c for d, c in zip(have, counts)]), b.dtype(x))
    return b.op("tile", x, reps=counts)


def broadcast_tensors(n: Node) -> Any:
    b, tensors = n.b, n.get("tensors")
    extents = broadcast_extents(b, tensors)
    return [b.op("broadcast_to", t, shape=list(extents)) for t in tensors]


def like_other(n: Node) -> Any:
    return n.b.reshape_to(n.x(), n.b.shape_of(n.x("other")), allow_zero=True)


def at_least(rank: int) -> Convert:
    """New axes so that there are so many."""

    def one(b: Builder, x: Expr) -> Expr:
        have = b.rank(x)
        if rank == 3 and have == 2:
            return b.unsqueeze(x, [2])
        if rank == 3 and have == 1:
            return b.unsqueeze(x, [0, 2])
        return b.unsqueeze(x, list(range(rank - have))) if have < rank else x

    def convert(n: Node) -> Any:
        if n.overload == "Sequence":
            return [one(n.b, t) for t in n.get("tensors")]
        return one(n.b, n.x())

    return convert


def stacked_along(axis: int) -> Convert:
    """hstack, vstack and dstack."""

    def convert(n: Node) -> Any:
        b, tensors = n.b, n.get("tensors")
        if axis == 0:
            tensors = [b.unsqueeze(t, list(range(2 - b.rank(t)))) if b.rank(t) < 2 else t for t in tensors]
        elif axis == 1:
            tensors = [t if b.rank(t) else b.unsqueeze(t, [0]) for t in tensors]
            return b.concat(tensors, min(b.rank(tensors[0]) - 1, 1))
        else:
            short = {0: [0, 1, 2], 1: [0, 2], 2: [2]}
            tensors = [b.unsqueeze(t, short.get(b.rank(t), [])) for t in tensors]
        return b.concat(tensors, axis)

    return convert


def column_stack(n: Node) -> Any:
    b = n.b
    tensors = [t if b.rank(t) > 1 else b.reshape(t, [-1, 1]) for t in n.get("tensors")]
    return b.concat(tensors, 1)


def tensor_split(n: Node) -> Any:
    """At positions, or in so many parts, of which the first are longer by one."""
    b, x = n.b, n.x()
    axis = n.int("dim", 0) % b.rank(x)
    name = n.call.target.split(".")[1]
    if name in ("hsplit", "vsplit", "dsplit"):
        axis = {"hsplit": min(b.rank(x) - 1, 1), "vsplit": 0, "dsplit": 2}[name]
    extent = b.extent(x, axis, "the axis that is split")
    name = "tensor_indices_or_sections"
    places = b.need(n.x(name), "the places where it is split") if n.has(name) else None
    if "indices" in n.call.args or (places is not None and places.ndim):
        positions = n.ints("indices") if places is None else places.tolist()
        cuts = [min(c if c >= 0 else c + extent, extent) for c in positions]
        bounds = [0, *cuts, extent]
    else:
        count = n.int("sections") if places is None else int(places)
        sizes = [extent // count + (i < extent % count) for i in range(count)]
        bounds = [0, *np.cumsum(sizes).tolist()]
    return [b.slice(x, [first], [max(last, first)], [axis]) for first, last in pairwise(bounds)]


def flipped(axis: int) -> Convert:
    return lambda n: n.b.op("reverse", n.x(), axis=axis)


def rotate(n: Node) -> Any:
    """A quarter turn `k` times in a plane."""
    b, x = n.b, n.x()
    dims = n.ints("dims", [0, 1])
    if len(dims) != 2:
        raise Malformed(f"the argument dims has {len(dims)} numbers; it must have 2")
    first, second = (a % b.rank(x) for a in dims)
    order = list(range(b.rank(x)))
    order[first], order[second] = order[second], order[first]
    turns = n.int("k", 1) % 4
    if turns == 2:
        return b.op("reverse", b.op("reverse", x, axis=first), axis=second)
    if turns == 0:
        return x
    if turns == 1:
        return b.transpose(b.op("reverse", x, axis=second), order)
    return b.op("reverse", b.transpose(x, order), axis=second)


def mesh_grid(n: Node) -> Any:
    b, tensors = n.b, n.get("tensors")
    count = len(tensors)
    swap = n.get("indexing", "ij") == "xy" and count > 1
    order = [1, 0, *range(2, count)] if swap else list(range(count))
    sizes = [b.op("reshape", t, newshape=[-1]) for t in tensors]
    grid_shape = b.concat([b.shape_of(sizes[i]) for i in order], 0)
    grids = []
    for i, t in enumerate(sizes):
        axis = order.index(i)
        grids.append(broadcast_to(b, b.unsqueeze(t, [a for a in range(count) if a != axis]), grid_shape))
    return grids


def cartesian(n: Node) -> Any:
    b, tensors = n.b, n.get("tensors")
    if len(tensors) == 1:
        return tensors[0]
    return b.op("stack", b.tuple([b.op("reshape", g, newshape=[-1]) for g in mesh_grid(n)]), axis=1)


def block_diagonal(n: Node) -> Any:
    """Matrices on the diagonal of a larger one."""
    b = n.b
    parts = [b.unsqueeze(t, list(range(2 - b.rank(t)))) for t in n.get("tensors")]
    width = sum(b.extent(p, 1) for p in parts)
    rows, at = [], 0
    for p in parts:
        own = b.extent(p, 1)
        zero = b.const(0, b.dtype(p))
        rows.append(b.op("nn.pad", p, zero, pad_width=[[0, 0], [at, width - at - own]], pad_mode="constant"))
        at += own
    return b.concat(rows, 0)


def spaced(power: bool) -> Convert:
    """Numbers in equal steps from one end to the other; with `power`, their powers of a base."""

    def convert(n: Node) -> Any:
        b, steps, dtype = n.b, n.int("steps"), n.dtype() or n.result_dtype()
        start, end = n.get("start"), n.get("end")
        if isinstance(start, Expr) or isinstance(end, Expr):
            return _computed_steps(n, start, end, steps, dtype, power)
        if "int" in dtype and not power:
            return b.const(_whole_steps(b, int(start), int(end), steps), dtype)
        numbers = b.arrays.linspace(start, end, steps)
        numbers = float(n.get("base", 10.0)) ** numbers if power else numbers
        return b.const(np.trunc(numbers).astype(np.int64) if "int" in dtype else numbers, dtype)

    return convert


def _whole_steps(b: Builder, start: int, end: int, steps: int) -> np.ndarray:
    """Whole numbers: the ends lose their fractions first, and each half counts from its own end."""
    step, places = (end - start) / max(steps - 1, 1), b.arrays.arange(steps)
    front, back = start + step * places, end - step * places[::-1]
    return np.trunc(np.where(places < steps // 2, front, back)) if steps > 1 else b.arrays.full(steps, start)


def _computed_steps(n: Node, start: Any, end: Any, steps: int, dtype: str, power: bool) -> Expr:
    b, kind = n.b, dtype if "float" in dtype else "float64"
    is_integer = "int" in dtype
    start, end = (b.cast(v, "int64") if is_integer and isinstance(v, Expr) else int(v) if is_integer else v for v in (start, end))
    first, last = (b.cast(v, kind) for v in (start, end))
    places = b.arrays.arange(steps)
    step = b.op("divide", b.op("subtract", last, first), float(max(steps - 1, 1)))
    front = b.op("add", first, b.op("multiply", step, b.const(places, kind)))
    back = b.op("subtract", last, b.op("multiply", step, b.const(places[::-1].copy(), kind)))
    numbers = b.op("where", b.const(places < max(steps // 2, 1)), front, back)
    numbers = b.op("power", b.const(n.get("base", 10.0), kind), numbers) if power else numbers
    return b.cast(numbers, dtype)


def number_of(n: Node) -> Any:
    """The number of elements."""
    b, x = n.b, n.x()
    extents = b.shape(x)
    known = [int(d) for d in extents if isinstance(d, int)]
    if len(known) == len(extents):
        return int(np.prod(known, dtype=np.int64))
    return b.op("prod", b.shape_of(x))


def offset(n: Node) -> Any:
    """Where a tensor's memory begins; values have their own."""
    return 0


def step(n: Node) -> Any:
    """Steps in memory of a tensor whose elements lie in order."""
    b, x = n.b, n.x()
    extents = b.static_shape(x)
    steps = [int(np.prod(extents[i + 1 :], dtype=np.int64)) for i in range(len(extents))]
    return steps[n.int("dim")] if n.has("dim") else steps


def one_number(n: Node) -> Any:
    """The element of a tensor that has one."""
    return n.b.op("reshape", n.x(), newshape=())


def empty_like(n: Node) -> Any:
    """Elements that nobody may read before they are written: zeros."""
    return n.b.op("zeros_like", n.b.cast(n.x(), n.dtype() or n.result_dtype()))


def empty(n: Node) -> Any:
    size = n.ints("size")
    return n.b.const(n.b.arrays.zeros(size), n.dtype() or n.result_dtype())


def flat(n: Node) -> Any:
    return n.b.op("reshape", n.x(), newshape=[-1])


def ranges(n: Node) -> Any:
    """`range`, whose end belongs to it."""
    start, end, by = n.get("start", 0), n.get("end"), n.get("step", 1)
    if any(isinstance(v, Expr) for v in (start, end, by)):
        raise Unsupported("its bounds are computed")
    return n.b.const(start + by * n.b.arrays.arange(int((end - start) / by) + 1), n.dtype() or n.result_dtype())


def _of(module: Any, name: str) -> Convert:
    """A conversion of another file, by the operator's name."""
    return next(rule.convert for rule in module.RULES if rule.name == f"aten.{name}")


#: Operators that are others under a second name.
_SAME = {
    **{
        f"{name}_copy": _of(shape, name)
        for name in ("permute transpose t unsqueeze squeeze expand select slice split split_with_sizes unbind".split())
    },
    "alias_copy": _of(arithmetic, "alias"),
    "detach_copy": _of(arithmetic, "alias"),
    "as_strided_copy": _of(indexing, "as_strided"),
    "diagonal_copy": _of(indexing, "diagonal"),
    "concat": shape.cat,
    "concatenate": shape.cat,
    "unsafe_chunk": shape.chunk,
    "unsafe_split": shape.split,
    "unsafe_split_with_sizes": shape.split,
    "empty_permuted": empty,
    "empty_strided": empty,
    "new_empty": _of(shape, "empty"),
    "new_empty_strided": empty,
    "broadcast_to": shape.expand,
    "_reshape_alias": shape.view,
}
_RULES: dict[str, Convert] = {
    "_local_scalar_dense": one_number, "adjoint": turn_matrices, "atleast_1d": at_least(1), "atleast_2d": at_least(2),
    "atleast_3d": at_least(3), "block_diag": block_diagonal, "broadcast_tensors": broadcast_tensors,
    "cartesian_prod": cartesian, "column_stack": column_stack, "dsplit": tensor_split, "dstack": stacked_along(2),
    "empty_like": empty_like, "fliplr": flipped(1), "flipud": flipped(0), "hsplit": tensor_split, "hstack": stacked_along(1),
    "item": one_number, "linspace": spaced(False), "logspace": spaced(True), "mH": turn_matrices, "mT": turn_matrices,
    "meshgrid": mesh_grid, "moveaxis": move_axes, "movedim": move_axes, "narrow": narrow, "numel": number_of,
    "numpy_T": lambda n: n.b.transpose(n.x(), list(range(n.b.rank(n.x())))[::-1]),
    "range": ranges, "ravel": flat, "repeat": tile, "reshape_as": like_other, "rot90": rotate, "row_stack": stacked_along(0),
    "sym_is_contiguous": lambda n: True, "sym_numel": number_of, "sym_storage_offset": offset, "sym_stride": step,
    "swapaxes": swap_axes, "swapdims": swap_axes, "tensor_split": tensor_split, "tile": tile, "view_as": like_other,
    "vsplit": tensor_split, "vstack": stacked_along(0),
}  # fmt: skip

RULES = tuple(Rule(f"aten.{name}", convert) for name, convert in {**_SAME, **_RULES}.items())
