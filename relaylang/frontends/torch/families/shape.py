"""Operators that move elements or make tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, slices
from relaylang.frontends.common.nn import broadcast_to
from relaylang.frontends.torch.node import Node, on_axes
from relaylang.ir import Expr

_END = (1 << 63) - 1
#: A range with fewer numbers is a constant.
_RANGE = 1 << 16


def view(n: Node) -> Any:
    b, x = n.b, n.x()
    name = "shape" if "shape" in n.call.args else "size"
    size = n.vector(name)
    if isinstance(size, Expr):
        return b.reshape_to(x, size, allow_zero=True)
    if 0 in size:
        return b.op("reshape", x, newshape=size, allowzero=True)
    return b.reshape(x, size)


def flatten(n: Node) -> Any:
    b, x = n.b, n.x()
    rank = b.rank(x)
    if rank == 0:
        return b.reshape(x, [1])
    first, last = n.int("start_dim", 0) % rank, n.int("end_dim", -1) % rank
    if last == rank - 1:
        return b.op("reshape", x, newshape=[0] * first + [-1])
    shape = b.shape_of(x)
    parts = [b.slice(shape, [0], [first], [0])] if first else []
    return b.reshape_to(x, b.concat([*parts, b.const(np.array([-1])), b.slice(shape, [last + 1], [rank], [0])], 0))


def unflatten(n: Node) -> Any:
    b, x = n.b, n.x()
    axis = n.int("dim") % b.rank(x)
    sizes = n.ints("sizes")
    have = b.shape(x)
    if all(isinstance(d, int) for d in have):
        if -1 in sizes:
            sizes[sizes.index(-1)] = int(have[axis]) // max(-math.prod(sizes), 1)
        return b.reshape_exactly(x, [*have[:axis], *sizes, *have[axis + 1 :]])
    rest = [b.extent(x, i) for i in range(axis + 1, b.rank(x))]
    return b.op("reshape", x, newshape=[0] * axis + sizes + rest)


def permute(n: Node) -> Any:
    rank = n.b.rank(n.x())
    return n.b.transpose(n.x(), [d % rank for d in n.ints("dims")])


def transpose(n: Node) -> Any:
    b, x = n.b, n.x()
    rank = b.rank(x)
    if rank < 2:
        return x
    order = list(range(rank))
    i, j = n.int("dim0", 0) % rank, n.int("dim1", 1) % rank
    order[i], order[j] = order[j], order[i]
    return b.transpose(x, order)


def unsqueeze(n: Node) -> Any:
    return n.b.unsqueeze(n.x(), n.ints("dim"))


def squeeze(n: Node) -> Any:
    b, x = n.b, n.x()
    rank = b.rank(x)
    axes = [a % max(rank, 1) for a in n.ints("dim") if rank] if n.has("dim") else list(range(rank))
    return b.squeeze(x, [a for a in axes if b.shape(x)[a] == 1])


def expand(n: Node) -> Any:
    """-1 keeps an extent."""
    b, x = n.b, n.x()
    size = n.get("size")
    if not size:
        return x
    behind = len(size) - b.rank(x)
    have = b.shape_of(x)
    parts = []
    for i, s in enumerate(size):
        if not isinstance(s, Expr) and s == -1:
            parts.append(b.slice(have, [i - behind], [i - behind + 1], [0]))
        else:
            parts.append(b.reshape(s, [1]) if isinstance(s, Expr) else b.const(np.array([s], np.int64)))
    known = [b.known(p) for p in parts]
    expanded = broadcast_to(b, x, b.concat(parts, 0))
    return b.refine(expanded, [k[0] if k else None for k in known])


def cat(n: Node) -> Any:
    b = n.b
    tensors = [t for t in n.get("tensors") if b.shape(t) != (0,)] or n.get("tensors")[:1]
    if not tensors:
        raise Malformed("it joins no tensors")
    return b.concat(tensors, n.int("dim", 0) % b.rank(tensors[0]))


def stack(n: Node) -> Any:
    return n.b.op("stack", n.b.tuple(n.get("tensors")), axis=n.int("dim", 0))


def slice_(n: Node) -> Any:
    """A slice along one axis; ends that depend on extents are computed."""
    b, x = n.b, n.x()
    axis = n.int("dim", 0) % b.rank(x)
    start, end, step = n.get("start"), n.get("end"), n.int("step", 1)
    start, end = 0 if start is None else start, _END if end is None else end
    if isinstance(start, Expr) or isinstance(end, Expr):
        return computed_slice(n, x, axis, start, end, step)
    if (start, step) == (0, 1) and end >= (1 << 31):
        return x
    return b.slice(x, [start], [min(end, (1 << 31) - 1)], [axis], [step])


def computed_slice(n: Node, x: Expr, axis: int, start: Any, end: Any, step: int) -> Any:
    b, rank = n.b, n.b.rank(x)
    vectors = []
    for value, other in ((start, 0), (end, (1 << 31) - 1), (step, 1)):
        cells: list[Expr] = [b.const(np.array([other], np.int64))] * rank
        cells[axis] = b.reshape(value, [1]) if isinstance(value, Expr) else b.const(np.array([min(value, (1 << 31) - 1)], np.int64))
        vectors.append(b.concat(cells, 0))
    sliced = b.op("dyn.strided_slice", x, *vectors)
    return b.refine(sliced, [int(d) if isinstance(d, int) and i != axis else None for i, d in enumerate(b.shape(x))])


def select(n: Node) -> Any:
    b, x = n.b, n.x()
    axis, index = n.int("dim") % b.rank(x), n.get("index")
    if isinstance(index, Expr):
        return b.op("take", x, index, axis=axis)
    if index < 0 and not isinstance(b.shape(x)[axis], int):
        return b.squeeze(b.slice(x, [index], [(1 << 31) - 1] if index == -1 else [index + 1], [axis]), [axis])
    at = index if index >= 0 else index + b.extent(x, axis)
    return b.squeeze(b.slice(x, [at], [at + 1], [axis]), [axis])


def split(n: Node) -> Any:
    b, x = n.b, n.x()
    axis = n.int("dim", 0) % b.rank(x)
    lengths = n.get("split_sizes", n.get("split_size"))
    if isinstance(lengths, list) and any(isinstance(size, Expr) for size in lengths):
        return _split_at_run_time(n, x, axis, lengths)
    sizes = n.ints("split_sizes") if isinstance(lengths, list) and "split_sizes" in n.call.args else None
    extent = b.extent(x, axis, "the axis that is split") if sizes is None else sum(sizes)
    if sizes is None:
        step = n.ints("split_size")
        sizes = step if len(step) > 1 else [min(step[0], extent - i) for i in range(0, extent, step[0])]
    ends = np.cumsum(sizes).tolist()
    return [b.slice(x, [e - s], [e], [axis]) for e, s in zip(ends, sizes)]


def _split_at_run_time(n: Node, x: Expr, axis: int, sizes: list[Any]) -> Any:
    """Parts whose extents depend on data or on unknown extents. The sizes add up to the extent, so a single part is the whole."""
    if len(sizes) == 1:
        return [x]
    b, parts = n.b, []
    start: Expr = b.const(0, "int64")
    for size in sizes:
        end = b.op("add", start, b.cast(size, "int64"))
        part = computed_slice(n, x, axis, start, end, 1)
        parts.append(part if isinstance(size, Expr) else b.refine(part, [size if i == axis else None for i in range(b.rank(x))]))
        start = end
    return parts


def chunk(n: Node) -> Any:
    b, x = n.b, n.x()
    axis = n.int("dim", 0) % b.rank(x)
    extent = b.extent(x, axis)
    step = -(-extent // n.int("chunks"))
    return [b.slice(x, [i], [min(i + step, extent)], [axis]) for i in range(0, extent, step)]


def unbind(n: Node) -> Any:
    b, x = n.b, n.x()
    axis = n.int("dim", 0) % b.rank(x)
    return [b.squeeze(b.slice(x, [i], [i + 1], [axis]), [axis]) for i in range(b.extent(x, axis))]


def item(n: Node) -> Any:
    """`getitem` of a list of results."""
    values = [n.scope.resolve(a) for a in n.call.args.values()]
    return values[0][values[1]]


def pad(n: Node) -> Any:
    """Pairs of widths from the last axis on."""
    b, x = n.b, n.x()
    widths = n.ints("pad" if "pad" in n.call.args else "padding")
    if len(widths) % 2 or len(widths) > 2 * b.rank(x):
        raise Malformed(f"it has {len(widths)} widths; it must have two for each axis, of at most {b.rank(x)}")
    pairs = [(0, 0)] * b.rank(x)
    for i in range(len(widths) // 2):
        pairs[-1 - i] = (widths[2 * i], widths[2 * i + 1])
    kind = n.call.target
    mode = "reflect" if "reflection" in kind else "replicate" if "replication" in kind else n.get("mode", "constant")
    if "circular" in kind:
        mode = "circular"
    value = b.cast(n.get("value") or 0, b.dtype(x))
    if mode == "replicate" and min(widths) < 0:
        return _clamped(b, x, pairs)
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return slices.pad(b, x, pairs, names[mode], value)


def _clamped(b: Builder, x: Expr, pairs: list[tuple[int, int]]) -> Any:
    """Edges that are repeated at one end and cut at the other; the elements that are repeated are those before the cut."""
    for axis, (before, after) in enumerate(pairs):
        if (before, after) != (0, 0):
            extent = b.extent(x, axis)
            places = np.clip(b.arrays.arange(-before, extent + after), 0, extent - 1)
            x = b.op("take", x, b.const(places), axis=axis)
    return x


def full(n: Node) -> Any:
    b = n.b
    dtype = n.dtype() or n.result_dtype()
    value = {
        "aten.zeros": 0,
        "aten.ones": 1,
        "aten.empty": 0,
        "aten.new_empty": 0,
        "aten.new_zeros": 0,
        "aten.new_ones": 1,
    }.get(n.call.target.rsplit(".", 1)[0], n.get("fill_value"))
    size = n.vector("size")
    scalar = value if isinstance(value, Expr) else b.const(value, dtype)
    if isinstance(size, Expr):
        return b.refine(b.op("dyn.full", b.cast(scalar, dtype), size, dtype=dtype), b.known(size) or [])
    shape: list[int] = size
    return b.op("full", b.cast(scalar, dtype), shape=shape, dtype=dtype)


def arange(n: Node) -> Any:
    b, dtype = n.b, n.dtype() or n.result_dtype()
    start, end, step = n.get("start", 0), n.get("end"), n.get("step", 1)
    if not any(isinstance(v, Expr) for v in (start, end, step)):
        if "int" in dtype:
            start, end, step = int(start), int(end), int(step)
        count = max(math.ceil((end - start) / step), 0)
        if count < _RANGE:
            return b.const(start + step * b.arrays.arange(count), dtype)
    first, last, by = (b.cast(v, dtype) for v in (start, end, step))
    return b.arange(first, last, by, dtype)


def scalar_tensor(n: Node) -> Any:
    value = n.get("s", n.get("data"))
    return n.b.cast(value, n.result_dtype()) if isinstance(value, Expr) else n.b.const(value, n.dtype() or n.result_dtype())


def triangle(upper: bool) -> Any:
    def convert(n: Node) -> Any:
        return n.b.op("trilu", n.x(), n.b.const(n.get("diagonal", 0), "int64"), upper=upper)

    return convert


def flip(n: Node) -> Any:
    x = n.x()
    for axis in n.ints("dims"):
        x = n.b.op("reverse", x, axis=axis)
    return x


def roll(n: Node) -> Any:
    """Elements that leave at one end come in at the other; without axes, of the flat tensor."""
    b, data = n.b, n.x()
    axes = n.ints("dims", [])
    if 0 in b.shape(data):
        return data
    x = data if axes else b.op("reshape", data, newshape=[-1])
    for shift, axis in zip(n.ints("shifts"), axes or [0]):
        extent = b.extent(x, axis)
        at = (-shift) % extent
        if at:
            x = b.concat([b.slice(x, [at], [extent], [axis]), b.slice(x, [0], [at], [axis])], axis % b.rank(x))
    return x if axes else b.reshape_to(x, b.shape_of(data))


def extent(n: Node) -> Any:
    """An extent of a tensor: a number where it is known."""
    b, x = n.b, n.x()
    rank = b.rank(x)
    axes = [n.int("dim") % rank] if n.has("dim") else list(range(rank))
    extents = []
    for axis in axes:
        known = b.shape(x)[axis]
        extents.append(int(known) if isinstance(known, int) else b.scalar(b.slice(b.shape_of(x), [axis], [axis + 1], [0])))
    return extents[0] if n.has("dim") else extents


_VIEWS = ("view", "reshape", "_unsafe_view", "view_copy")
_FULLS = ("zeros", "ones", "empty", "full", "new_zeros", "new_ones", "new_full")
_PADS = (
    "pad",
    "constant_pad_nd",
    "_pad_circular",
    *(f"{kind}_pad{d}d" for kind in ("reflection", "replication") for d in (1, 2, 3)),
)
RULES = (
    *(Rule(f"aten.{name}", view) for name in _VIEWS),
    *(Rule(f"aten.{name}", full) for name in _FULLS),
    *(Rule(f"aten.{name}", pad) for name in _PADS),
    Rule("_operator.getitem", item),
    Rule("aten.arange", arange),
    Rule("aten.cat", cat),
    Rule("aten.chunk", chunk),
    Rule("aten.expand", expand),
    Rule("aten.expand_as", lambda n: broadcast_to(n.b, n.x(), n.b.shape_of(n.x("other")))),
    Rule("aten.flatten", flatten),
    Rule("aten.flip", on_axes(flip)),
    Rule("aten.permute", permute),
    Rule("aten.roll", on_axes(roll)),
    Rule("aten.scalar_tensor", scalar_tensor),
    Rule("aten.select", select),
    Rule("aten.slice", slice_),
    Rule("aten.split", split),
    Rule("aten.split_with_sizes", split),
    Rule("aten.squeeze", squeeze),
    Rule("aten.stack", stack),
    Rule("aten.size", extent),
    Rule("aten.sym_size", extent),
    Rule("aten.t", transpose),
    Rule("aten.transpose", transpose),
    Rule("aten.tril", triangle(False)),
    Rule("aten.triu", triangle(True)),
    Rule("aten.unbind", unbind),
    Rule("aten.unflatten", unflatten),
    Rule("aten.unsqueeze", unsqueeze),
)
