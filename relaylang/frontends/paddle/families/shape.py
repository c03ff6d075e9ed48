"""Operations that move elements: reshapes, transposes, joins, parts and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.slices import pad as padded
from relaylang.frontends.common.slices import slice_axes
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.ir import Expr, is_static


def reshape(n: Node, x: Expr, shape: Tensors) -> Any:
    """0 keeps an extent, and -1 takes the elements that are left."""
    b, wanted = n.b, n.vector(shape)
    known = b.known(wanted)
    if known is not None and None not in known:
        if known.count(-1) > 1 or any(d is not None and d < -1 for d in known):
            raise Malformed(f"its shape is {known[:8]}")
        have = b.shape(x)
        kept = [have[i] if d == 0 and i < len(have) else d for i, d in enumerate(known)]
        if all(isinstance(d, int) for d in have) and 0 in have:
            return b.op("reshape", x, newshape=[d if d != -1 else 0 for d in kept], allowzero=True)
    return b.reshape_to(x, wanted)


def transpose(n: Node, x: Expr) -> Any:
    perm, rank = n.ints("perm"), n.b.rank(x)
    if sorted(p % rank for p in perm) != list(range(rank)):
        raise Malformed(f"its perm is {perm[:8]}, and its operand has {int(rank)} axes")
    return n.b.transpose(x, [p % rank for p in perm])


def flatten(n: Node, x: Expr) -> Any:
    """The axes from `start_axis` to `stop_axis` as one."""
    b, rank = n.b, n.b.rank(x)
    if rank == 0:
        return b.reshape_exactly(x, [1])
    start, stop = n.axis(x, "start_axis", 1), n.axis(x, "stop_axis", -1)
    if start > stop:
        raise Malformed(f"it joins the axes from {start} to {stop}")
    shape = b.shape(x)
    if all(isinstance(d, int) for d in shape):
        return b.reshape_exactly(x, [*shape[:start], math.prod(shape[start : stop + 1]), *shape[stop + 1 :]])
    if all(map(is_static, (*shape[:start], *shape[stop + 1 :]))):
        return b.op("reshape", x, newshape=[*shape[:start], -1, *shape[stop + 1 :]])
    flat = x
    for _ in range(stop - start):
        flat = b.op("reshape", flat, newshape=[*[0] * start, -3, -2])
    return flat


def flatten2(n: Node, x: Expr) -> Any:
    """A matrix: the axes before `axis` are its rows."""
    b, axis, shape = n.b, n.int("axis", 1), n.b.shape(x)
    if not 0 <= axis <= len(shape):
        raise Malformed(f"its axis is {axis}, and its operand has {len(shape)} axes")
    sides = [shape[:axis], shape[axis:]]
    ends = [math.prod(side) if all(isinstance(d, int) for d in side) else -1 for side in sides]
    if ends.count(-1) > 1:
        raise Unsupported("its operand must have known extents; --shape gives them")
    return b.reshape_exactly(x, ends) if -1 not in ends else b.op("reshape", x, newshape=ends)


def squeeze(n: Node, x: Expr, axis: Any = None) -> Any:
    """Axes of another extent than 1 stay."""
    b, shape, rank = n.b, n.b.shape(x), n.b.rank(x)
    stated = [a % rank for a in n.numbers(axis, "its axes")] if axis is not None else []
    if not all(is_static(shape[a]) for a in stated or range(rank)):
        raise Unsupported("the extents of the axes that it removes must be known; --shape gives them")
    return b.squeeze(x, [a for a in dict.fromkeys(stated or range(rank)) if shape[a] == 1])


def unsqueeze(n: Node, x: Expr, axis: Tensors) -> Any:
    """Each axis is a place of the result that the axes before it have made."""
    expanded = x
    for place in n.numbers(axis, "its axes"):
        rank = n.b.rank(expanded) + 1
        if not -rank <= place < rank:
            raise Malformed(f"it puts an axis at {place} of a result that has {rank}")
        expanded = n.b.op("expand_dims", expanded, axis=place % rank)
    return expanded


def concat(n: Node, xs: Tensors, axis: Any = None) -> Any:
    parts = n.list(xs)
    parts = [n.b.reshape(p, [1]) if n.b.rank(p) == 0 else p for p in parts]
    place = n.number(axis, "its axis", n.int("axis", 0)) % n.b.rank(parts[0])
    ranks = {int(n.b.rank(p)) for p in parts}
    if len(ranks) > 1:
        raise Malformed(f"its operands have {', '.join(map(str, sorted(ranks)))} axes")
    return n.b.concat(parts, place)


def stack(n: Node, xs: Tensors) -> Any:
    parts = n.list(xs)
    rank = n.b.rank(parts[0]) + 1
    axis = n.int("axis", 0)
    if not -rank <= axis < rank:
        raise Malformed(f"its axis is {axis}, and its result has {rank}")
    return n.b.op("stack", n.b.tuple(parts), axis=axis % rank)


def split(n: Node, x: Expr, sections: Any = None, axis: Any = None) -> Any:
    """Parts of stated extents, one of which may be -1; or as many parts as `num` says."""
    b = n.b
    place = n.number(axis, "its axis", n.int("axis", 0)) % b.rank(x)
    sizes = n.numbers(sections, "the extents of its parts") if sections is not None else []
    if not sizes:
        return [_equal_parts(n, x, n.int("num"), place)]
    extent = b.extent(x, place)
    sizes = [extent - sum(s for s in sizes if s > 0) if s == -1 else s for s in sizes]
    if any(s < 0 for s in sizes) or sum(sizes) != extent:
        raise Malformed(f"its parts have the extents {sizes[:8]}, and its operand {extent}")
    cuts = np.cumsum(sizes)[:-1].tolist()
    return [b.fields(b.op("split", x, indices_or_sections=tuple(cuts), axis=place)) if cuts else [x]]


def _equal_parts(n: Node, x: Expr, count: int, axis: int) -> list[Expr]:
    b = n.b
    if count < 1 or b.extent(x, axis) % count:
        raise Malformed(f"an axis of {b.extent(x, axis)} elements does not form {count} parts")
    return b.fields(b.op("split", x, indices_or_sections=count, axis=axis)) if count > 1 else [x]


def unbind(n: Node, x: Expr) -> Any:
    """The slices along an axis, without it."""
    axis = n.axis(x, "axis", 0)
    count = n.b.extent(x, axis)
    return [[n.b.squeeze(part, [axis]) for part in _equal_parts(n, x, count, axis)] if count else []]


def tile(n: Node, x: Expr, times: Tensors) -> Any:
    b, counts = n.b, n.vector(times)
    known = b.known(counts)
    if known is None or None in known:
        return b.op("dyn.tile", x, counts, reps=None)
    if any(k is None or k < 0 for k in known):
        raise Malformed(f"it repeats its operand {known[:8]} times")
    shape = b.shape(x)
    if all(isinstance(d, int) for d in shape):
        b.arrays.reserve([math.prod(int(d) for d in shape), *[int(k or 0) for k in known]], "repeating a tensor", 0)
    return b.op("tile", x, reps=known) if known else x


def expand(n: Node, x: Expr, shape: Tensors) -> Any:
    """Broadcast to a shape. -1 keeps an extent."""
    b, wanted = n.b, n.vector(shape)
    count = b.extent(wanted, 0, "the rank of its result")
    known = b.known(wanted) or [None] * count
    have = [1] * (count - b.rank(x)) + list(b.shape(x))
    if len(have) > count:
        raise Malformed(f"its operand has {int(b.rank(x))} axes, and its result {count}")
    extents = [h if k == -1 else k for h, k in zip(have, known)]
    if all(isinstance(d, int) for d in extents):
        return b.op("broadcast_to", x, shape=extents)
    if all(k is None or k > 0 for k in known):
        return nn.broadcast_to(b, x, wanted)
    shape_of = b.shape_of(x)
    lead = count - b.rank(x)
    parts = [
        b.slice(shape_of, [i - lead], [i - lead + 1], [0]) if k == -1 else b.slice(wanted, [i], [i + 1], [0])
        for i, k in enumerate(known)
    ]
    return nn.broadcast_to(b, x, b.concat(parts, 0))


def broadcast_tensors(n: Node, xs: Tensors) -> Any:
    parts = n.list(xs)
    shape = list(nn.broadcast_extents(n.b, parts))
    return [[n.b.op("broadcast_to", part, shape=shape) for part in parts]]


def meshgrid(n: Node, xs: Tensors) -> Any:
    """Each vector along its own axis of the grid."""
    b = n.b
    parts = [b.op("reshape", x, newshape=[-1]) if b.rank(x) != 1 else x for x in n.list(xs)]
    shape = [b.extent(p, 0) for p in parts]
    rank = len(parts)
    turned = [b.reshape_exactly(p, [d if i == at else 1 for i, d in enumerate(shape)]) for at, p in enumerate(parts)]
    b.arrays.reserve([*shape, rank], "a grid", 0)
    return [[b.op("broadcast_to", t, shape=shape) for t in turned]]


def flip(n: Node, x: Expr) -> Any:
    flipped = x
    for axis in n.ints("axis"):
        flipped = n.b.op("reverse", flipped, axis=axis % n.b.rank(x))
    return flipped


def reverse(n: Node, x: Expr, axis: Tensors) -> Any:
    flipped = x
    for place in n.numbers(axis, "its axes"):
        flipped = n.b.op("reverse", flipped, axis=place % n.b.rank(x))
    return flipped


def roll(n: Node, x: Expr, shifts: Any = None) -> Any:
    """Elements beyond the end come in at the start; without axes, over all elements."""
    b, axes = n.b, n.ints("axis", [])
    moves = n.numbers(shifts, "its shifts") if shifts is not None else n.ints("shifts")
    rolled = x if axes else b.op("reshape", x, newshape=[-1])
    for axis, move in zip(axes or [0], moves):
        place = axis % b.rank(rolled)
        extent = b.extent(rolled, place)
        step = move % extent if extent else 0
        if step:
            parts = [b.slice(rolled, [extent - step], [extent], [place]), b.slice(rolled, [0], [extent - step], [place])]
            rolled = b.concat(parts, place)
    return rolled if axes else b.reshape_exactly(rolled, list(b.static_shape(x)))


def repeat_interleave(n: Node, x: Expr, repeats: Expr | None = None) -> Any:
    """Each element again, as often as one number or its own says."""
    b, axis = n.b, n.axis(x, "axis", 0)
    counts = n.numbers(repeats, "its repeats") if repeats is not None else [n.int("repeats")]
    if any(c < 0 for c in counts):
        raise Malformed(f"it repeats elements {counts[:8]} times")
    if len(counts) == 1:
        b.arrays.reserve(counts, "repeating elements", 0)
        return b.op("repeat", x, repeats=counts[0], axis=axis)
    extent = b.extent(x, axis)
    if len(counts) != extent:
        raise Malformed(f"it has {len(counts)} repeats for {extent} elements")
    return b.op("take", x, b.const(b.arrays.repeat(b.arrays.arange(extent), counts)), axis=axis)


# ---- padding

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge", "circular": "wrap"}


def _padded(n: Node, x: Expr, pairs: Sequence[tuple[int, int]], value: Any) -> Expr:
    """Padding of every axis by the attribute `mode`."""
    b, mode = n.b, n.text("mode", "constant")
    if mode not in _MODES:
        raise Malformed(f"its mode is {mode[:40]!r}")
    extents = [d + p + q for d, (p, q) in zip(b.shape(x), pairs) if isinstance(d, int)]
    if len(extents) == b.rank(x):
        b.arrays.reserve([max(d, 0) for d in extents], "padding", 0)
    return padded(b, x, list(pairs), _MODES[mode], value)


def _value(n: Node, x: Expr, value: Expr | None) -> Expr:
    b = n.b
    if value is not None:
        return b.cast(b.scalar(value), b.dtype(x))
    number = n.float("pad_value", 0.0)
    return b.const(number if "float" in b.dtype(x) else int(number), b.dtype(x))


def pad(n: Node, x: Expr, value: Expr | None = None) -> Any:
    """Two numbers for each axis, from the first on."""
    amounts, rank = n.ints("paddings"), n.b.rank(x)
    if len(amounts) != 2 * rank:
        raise Malformed(f"it has {len(amounts)} paddings, and its operand {int(rank)} axes")
    return _padded(n, x, list(zip(amounts[::2], amounts[1::2])), _value(n, x, value))


def pad3d(n: Node, x: Expr, paddings: Any = None) -> Any:
    """Two numbers for each spatial axis, from the last on."""
    amounts, rank = n.numbers(paddings, "its paddings") if paddings is not None else n.ints("paddings"), n.b.rank(x)
    if len(amounts) != 2 * (rank - 2):
        raise Malformed(f"it has {len(amounts)} paddings, and its operand {int(rank) - 2} spatial axes")
    spatial = list(zip(amounts[::2], amounts[1::2]))[::-1]
    ends = [(0, 0)]
    pairs = [*ends, *spatial, *ends] if n.text("data_format", "NCDHW").endswith("C") else [*ends, *ends, *spatial]
    return _padded(n, x, pairs, _value(n, x, None))


def pad2d(n: Node, x: Expr) -> Any:
    """Top, bottom, left, right."""
    amounts = n.ints("paddings")
    if len(amounts) != 4 or n.b.rank(x) != 4:
        raise Malformed(f"it has {len(amounts)} paddings, and its operand {int(n.b.rank(x))} axes")
    spatial, ends = [(amounts[0], amounts[1]), (amounts[2], amounts[3])], [(0, 0)]
    pairs = [*ends, *spatial, *ends] if n.text("data_format", "NCHW").endswith("C") else [*ends, *ends, *spatial]
    return _padded(n, x, pairs, _value(n, x, None))


def crop(n: Node, x: Expr, shape: Any = None, offsets: Any = None) -> Any:
    """A part of these extents, -1 for the rest of an axis, from the offsets on."""
    b, rank = n.b, n.b.rank(x)
    sizes = n.numbers(shape, "its shape") if shape is not None else n.ints("shape", list(b.static_shape(x)))
    first = n.numbers(offsets, "its offsets") if offsets is not None else n.ints("offsets", [0] * rank)
    first = first or [0] * rank
    if len(sizes) != rank or len(first) != rank or any(f < 0 for f in first):
        raise Malformed(f"its shape is {sizes[:8]}, its offsets {first[:8]}, and its operand has {int(rank)} axes")
    ends = [b.extent(x, i) if s == -1 else f + s for i, (f, s) in enumerate(zip(first, sizes))]
    return slice_axes(b, x, first, ends, list(range(rank)), [1] * rank)


# ---- shapes as values


def shape(n: Node, x: Expr) -> Any:
    return n.b.shape_of(x, "int32")


def numel(n: Node, x: Expr) -> Any:
    b = n.b
    if b.rank(x) == 0:
        return b.const(1, "int64")
    return b.op("prod", b.shape_of(x), axis=[0])


def combine(n: Node, *xs: Expr) -> Any:
    """Tensors as a list."""
    return [list(xs)]


def parted(n: Node, xs: Tensors) -> Any:
    """The tensors of a list."""
    return n.list(xs)


def chosen(n: Node, xs: Tensors) -> Any:
    """A tensor of a list."""
    parts, index = n.list(xs), n.int("index")
    if not 0 <= index < len(parts):
        raise Malformed(f"it takes the tensor {index} of a list of {len(parts)}")
    return parts[index]


def diagonal(b: Builder, x: Expr, offset: int) -> Expr:
    """The diagonal of the last two axes."""
    rows, columns = (b.extent(x, a) for a in (-2, -1))
    first = (max(-offset, 0), max(offset, 0))
    count = max(min(rows - first[0], columns - first[1]), 0)
    flat = b.reshape_exactly(x, [*b.static_shape(x)[:-2], rows * columns])
    places = (b.arrays.arange(count) + first[0]) * columns + b.arrays.arange(count) + first[1]
    return b.op("take", flat, b.const(places), axis=b.rank(flat) - 1)


def diagonal_(n: Node, x: Expr) -> Any:
    b, rank = n.b, n.b.rank(x)
    first, second = n.int("axis1", 0) % rank, n.int("axis2", 1) % rank
    if first == second:
        raise Malformed(f"both of its axes are {first}")
    others = [i for i in range(rank) if i not in (first, second)]
    return diagonal(b, b.transpose(x, [*others, first, second]), n.int("offset", 0))


RULES = (
    Rule("broadcast_tensors", broadcast_tensors),
    Rule("builtin.combine", combine),
    Rule("builtin.slice", chosen),
    Rule("builtin.split", parted),
    Rule("concat", concat),
    Rule("crop", crop),
    Rule("diagonal", diagonal_),
    Rule("expand", expand),
    Rule(
        "expand_as",
        lambda n, x, like=None: (
            n.b.op("broadcast_to", x, shape=n.ints("target_shape")) if like is None else nn.broadcast_to(n.b, x, n.b.shape_of(like))
        ),
    ),
    Rule("flatten", flatten),
    Rule("flatten2", flatten2),
    Rule("flip", flip),
    Rule("legacy_reshape", reshape),
    Rule("meshgrid", meshgrid),
    Rule("numel", numel),
    Rule("pad", pad),
    Rule("pad2d", pad2d),
    Rule("pad3d", pad3d),
    Rule("repeat_interleave", repeat_interleave),
    Rule("repeat_interleave_with_tensor_index", repeat_interleave),
    Rule("reshape", reshape),
    Rule("reverse", reverse),
    Rule("roll", roll),
    Rule("shape", shape),
    Rule("shape64", lambda n, x: n.b.shape_of(x)),
    Rule("split", split),
    Rule("split_with_num", lambda n, x, axis=None: split(n, x, None, axis)),
    Rule("squeeze", squeeze),
    Rule("stack", stack),
    Rule("tile", tile),
    Rule("transpose", transpose),
    Rule("unbind", unbind),
    Rule("unsqueeze", unsqueeze),
    Rule("unstack", unbind),
    Rule("view_shape", lambda n, x: n.b.reshape(x, n.ints("dims"))),
)
