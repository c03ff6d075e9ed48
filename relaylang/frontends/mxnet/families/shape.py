"""Shapes: reshape, axes moved, added and taken away, tensors repeated and joined."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.nn import broadcast_to as broadcast
from relaylang.frontends.common.slices import pad as padded
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr
from relaylang.ir.types import Dim


def reshape(n: Node, x: Expr) -> Any:
    """`Reshape`: 0 keeps an extent, -1 takes the remaining elements, -2 keeps all others, -3 joins two, -4 splits one in two."""
    b = n.b
    codes = n.ints("shape", [])
    if not codes:
        return _old_reshape(n, x)
    shape = list(b.shape(x))
    if n.bool("reverse"):
        extents = _extents(shape[::-1], _reversed(codes))[::-1]
    else:
        extents = _extents(shape, codes)
    return _to(n, x, extents)


def _old_reshape(n: Node, x: Expr) -> Any:
    """By `target_shape`, of versions before 0.9: 0 takes the remaining elements, and `keep_highest` keeps the first extent."""
    b = n.b
    target = n.ints("target_shape", [])
    if not target:
        raise Malformed("it has no shape")
    if n.bool("keep_highest"):
        target[0] = 0
        return _to(n, x, _extents(list(b.shape(x)), [0, *[-1 if d == 0 else d for d in target[1:]]]))
    return _to(n, x, [-1 if d == 0 else d for d in target])


def _reversed(codes: list[int]) -> list[int]:
    """The codes from the last to the first; a split stays before its two extents, which change places."""
    groups: list[list[int]] = []
    i = 0
    while i < len(codes):
        if codes[i] == -4 and i + 2 < len(codes):
            groups.append([-4, codes[i + 2], codes[i + 1]])
            i += 3
        else:
            groups.append([codes[i]])
            i += 1
    return [code for group in reversed(groups) for code in group]


def _extents(shape: list[Dim], codes: list[int]) -> list[Any]:
    """The result's extents, of which one may be -1."""
    extents: list[Any] = []
    at = i = 0

    def extent() -> Any:
        nonlocal at
        if at >= len(shape):
            raise Malformed(f"its shape {tuple(codes)} has more entries than its operand's {len(shape)} axes")
        at += 1
        return shape[at - 1]

    while i < len(codes):
        code = codes[i]
        if code == 0:
            extents.append(extent())
        elif code == -1:
            at += at < len(shape)
            extents.append(-1)
        elif code == -2:
            extents += shape[at:]
            at = len(shape)
        elif code == -3:
            extents.append(_times(extent(), extent()))
        elif code == -4:
            if i + 2 >= len(codes):
                raise Malformed(f"its shape {tuple(codes)} ends within a split")
            extents += _split(extent(), codes[i + 1], codes[i + 2])
            i += 2
        elif code > 0:
            at += at < len(shape)
            extents.append(code)
        else:
            raise Malformed(f"its shape has {code}, which is below -4")
        i += 1
    if extents.count(-1) > 1:
        raise Malformed(f"its shape {tuple(codes)} has several -1")
    return extents


def _times(left: Any, right: Any) -> Any:
    return left * right if isinstance(left, int) and isinstance(right, int) else -1


def _split(extent: Any, left: int, right: int) -> list[Any]:
    if left == right == -1:
        raise Malformed("a split of its shape has two unknown extents")
    if isinstance(extent, int):
        known = right if left == -1 else left
        if known < 1 or extent % known:
            raise Malformed(f"it splits the extent {extent} into {left} and {right}")
        return [extent // known, right] if left == -1 else [left, extent // known if right == -1 else right]
    return [left, right]


def _to(n: Node, x: Expr, shape: list[Any]) -> Expr:
    """A reshape to extents of which some are open: those of the same axis stay, and one takes the remaining elements."""
    b = n.b
    have = b.shape(x)
    if all(isinstance(d, int) for d in have):
        total = math.prod(int(d) for d in have if isinstance(d, int))
        rest = math.prod(d for d in shape if d != -1)
        if -1 in shape and (rest == 0 or total % rest):
            raise Malformed(f"its operand's {total} elements do not fit the shape {tuple(shape)}")
        return b.reshape_exactly(x, [total // rest if d == -1 else d for d in shape])
    open_axes = [i for i, d in enumerate(shape) if not isinstance(d, int)]
    if any(i >= len(have) or isinstance(have[i], int) for i in open_axes):
        raise Unsupported("its result has an unknown extent that is not at the operand's axis; --shape gives it")
    return b.op("reshape", x, newshape=[d if isinstance(d, int) else 0 for d in shape])


def npx_reshape(n: Node, x: Expr) -> Any:
    """numpy's reshape of MXNet: -2 keeps an extent, -3 drops a 1, -4 keeps the others, -5 joins two, -6 splits one."""
    codes, shape = n.ints("newshape", []), list(n.b.shape(x))
    turned = n.bool("reverse")
    translated: list[int] = []
    at = 0
    if turned:
        raise Unsupported("its shape is read from the last axis on")
    other = {-2: 0, -4: -2, -5: -3, -6: -4}
    for code in codes:
        if code == -3:
            raise Unsupported("it drops axes of extent 1")
        translated.append(other.get(code, code))
        at += 1
    if 0 in codes:
        raise Unsupported("its result has no elements")
    return _to(n, x, _extents(shape, translated))


def flatten(n: Node, x: Expr) -> Any:
    return x if n.b.rank(x) == 2 else n.b.op("nn.batch_flatten", x) if n.b.rank(x) > 1 else n.b.unsqueeze(x, [1])


def expand_dims(n: Node, x: Expr) -> Any:
    return n.b.unsqueeze(x, [n.axis("axis", n.b.rank(x) + 1)])


def squeeze(n: Node, x: Expr) -> Any:
    b = n.b
    axes = n.axes("axis", b.rank(x))
    if axes is None:
        axes = [i for i, d in enumerate(b.static_shape(x)) if d == 1]
    squeezed = b.squeeze(x, axes)
    return b.reshape(squeezed, [1]) if b.rank(squeezed) == 0 and not n.layer.op.startswith("_np") else squeezed


def transpose(n: Node, x: Expr) -> Any:
    rank = n.b.rank(x)
    axes = n.axes("axes", rank) or list(range(rank))[::-1]
    if len(axes) != rank:
        raise Malformed(f"the attribute axes has {len(axes)} numbers; it must have {rank}")
    return n.b.transpose(x, axes)


def swap_axes(n: Node, x: Expr) -> Any:
    axes = list(range(n.b.rank(x)))
    one, other = (n.axis(name, len(axes), 0) for name in ("dim1", "dim2"))
    axes[one], axes[other] = axes[other], axes[one]
    return n.b.transpose(x, axes)


# ---- broadcasting and repetition


def broadcast_to(n: Node, x: Expr) -> Any:
    b = n.b
    shape = n.ints("shape", [])
    have = b.static_shape(x, "the operand of broadcast_to")
    if len(shape) < len(have):
        raise Malformed(f"its shape has {len(shape)} extents for {len(have)} axes")
    have = (1,) * (len(shape) - len(have)) + tuple(have)  # type: ignore[assignment]
    return b.op("broadcast_to", x, shape=[h if d in (0, -2) else d for h, d in zip(have, shape)])


def broadcast_axis(n: Node, x: Expr) -> Any:
    b = n.b
    axes, sizes = n.axes("axis", b.rank(x)) or [], n.ints("size", [])
    if len(axes) != len(sizes):
        raise Malformed(f"it has {len(axes)} axes and {len(sizes)} extents")
    for axis, size in zip(axes, sizes):
        if b.extent(x, axis) != 1:
            raise Malformed(f"it broadcasts the axis {axis}, whose extent is not 1")
        x = b.op("repeat", x, repeats=size, axis=axis)
    return x


def broadcast_like(n: Node, x: Expr, like: Expr) -> Any:
    b = n.b
    mine, theirs = n.axes("lhs_axes", b.rank(x)), n.axes("rhs_axes", b.rank(like))
    if mine is None or theirs is None:
        return broadcast(b, x, b.shape_of(like))
    shape = list(b.static_shape(x, "the operand of broadcast_like"))
    for axis, other in zip(mine, theirs):
        shape[axis] = b.extent(like, other)
    return b.op("broadcast_to", x, shape=shape)


def reshape_like(n: Node, x: Expr, like: Expr) -> Any:
    """The shape of another tensor, or of a range of its axes."""
    b, ranks = n.b, (n.b.rank(x), n.b.rank(like))
    ends = []
    for rank, name in zip(ranks, ("lhs", "rhs")):
        first, last = n.int(f"{name}_begin", 0), n.int(f"{name}_end", rank)
        ends.append(tuple([v + rank if v < 0 else v for v in (first, last)]))
    (a, z), (c, d) = ends
    if not (0 <= a <= z <= ranks[0] and 0 <= c <= d <= ranks[1]):
        raise Malformed(f"its axes {a} to {z} and {c} to {d} are not those of its operands")
    if all(isinstance(e, int) for e in (*b.shape(x), *b.shape(like))):
        return b.reshape_exactly(x, [*b.static_shape(x)[:a], *b.static_shape(like)[c:d], *b.static_shape(x)[z:]])
    return b.op("reshape_like", x, like, lhs_begin=a, lhs_end=z, rhs_begin=c, rhs_end=d)


def tile(n: Node, x: Expr) -> Any:
    return n.b.op("tile", x, reps=n.ints("reps"))


def repeat(n: Node, x: Expr) -> Any:
    b = n.b
    if not n.has("axis"):
        return b.op("repeat", b.reshape(x, [-1]), repeats=n.int("repeats"), axis=0)
    return b.op("repeat", x, repeats=n.int("repeats"), axis=n.axis("axis", b.rank(x)))


def reverse(n: Node, x: Expr) -> Any:
    for axis in n.axes("axis", n.b.rank(x)) or []:
        x = n.b.op("reverse", x, axis=axis)
    return x


# ---- several tensors


def concat(n: Node, *xs: Expr) -> Any:
    if not xs:
        raise Malformed("it joins no tensors")
    return n.b.concat(xs, n.axis("dim", n.b.rank(xs[0]), 1))


def np_concatenate(n: Node, *xs: Expr) -> Any:
    if not xs:
        raise Malformed("it joins no tensors")
    if n.layer.attributes.get("axis") == "None":
        return n.b.concat([n.b.reshape(x, [-1]) for x in xs], 0)
    return n.b.concat(xs, n.axis("axis", n.b.rank(xs[0]), 0))


def stack(n: Node, *xs: Expr) -> Any:
    if not xs:
        raise Malformed("it joins no tensors")
    return n.b.op("stack", n.b.tuple(list(xs)), axis=n.axis("axis", n.b.rank(xs[0]) + 1, 0))


def split(n: Node, x: Expr) -> Any:
    b = n.b
    axis, count = n.axis("axis", b.rank(x), 1), n.int("num_outputs")
    extent = b.extent(x, axis)
    if count < 1 or extent % count:
        raise Malformed(f"it splits the extent {extent} into {count} parts")
    parts = b.fields(b.op("split", x, indices_or_sections=count, axis=axis)) if count > 1 else [x]
    return [b.squeeze(part, [axis]) for part in parts] if n.bool("squeeze_axis") else parts


def split_v2(n: Node, x: Expr) -> Any:
    """Into equal sections, or at indices, of which the first may be 0."""
    b = n.b
    axis, sections = n.axis("axis", b.rank(x), 0), n.int("sections", 0)
    if sections > 0:
        extent = b.extent(x, axis)
        if extent % sections:
            raise Malformed(f"it splits the extent {extent} into {sections} parts")
        parts = b.fields(b.op("split", x, indices_or_sections=sections, axis=axis)) if sections > 1 else [x]
    else:
        extent = b.extent(x, axis)
        places = n.ints("indices", [0])
        ends = [*places[1:], extent]
        if places != sorted(places) or places[0] != 0 or places[-1] > extent:
            raise Malformed(f"it splits the extent {extent} at {places}")
        parts = [b.slice(x, [first], [end], [axis]) for first, end in zip(places, ends)]
    return [b.squeeze(part, [axis]) for part in parts] if n.bool("squeeze_axis") else parts


def pad(n: Node, x: Expr) -> Any:
    rank = n.b.rank(x)
    widths = n.ints("pad_width", count=2 * rank)
    mode = n.choice("mode", "constant", ("constant", "edge", "reflect"))
    return padded(n.b, x, list(zip(widths[::2], widths[1::2])), mode, n.float("constant_value", 0.0))


def np_pad(n: Node, x: Expr) -> Any:
    rank = n.b.rank(x)
    widths = n.layer.attributes.get("pad_width", "").replace("(", " ").replace(")", " ").replace("[", " ").replace("]", " ")
    numbers = [part.strip() for part in widths.split(",") if part.strip()]
    if len(numbers) != 2 * rank or not all(number.isdecimal() for number in numbers):
        raise Malformed(f"the attribute pad_width must have {2 * rank} numbers")
    pairs = [(int(p), int(q)) for p, q in zip(numbers[::2], numbers[1::2])]
    mode = n.choice("mode", "constant", ("constant", "edge", "reflect", "symmetric"))
    return padded(n.b, x, pairs, mode, n.float("constant_values", 0.0))


# ---- blocks of space


def depth_to_space(n: Node, x: Expr) -> Any:
    return n.b.op("nn.depth_to_space", n.b.of_rank(x, 4), block_size=n.int("block_size"), mode="DCR")


def space_to_depth(n: Node, x: Expr) -> Any:
    return n.b.op("nn.space_to_depth", n.b.of_rank(x, 4), block_size=n.int("block_size"))


def diag(n: Node, x: Expr) -> Any:
    """A matrix of a vector's diagonal, or the diagonals of two axes."""
    b, k = n.b, n.int("k", 0)
    if b.rank(x) == 1:
        extent = b.extent(x, 0, "the diagonal")
        size = extent + abs(k)
        line = b.arrays.arange(extent)
        flat = (line + max(-k, 0)) * size + line + max(k, 0)
        b.arrays.reserve((size, size))
        zeros = b.op("zeros", shape=[size * size], dtype=b.dtype(x))
        scattered = b.op("scatter_elements", zeros, b.const(flat.astype(np.int64)), x, axis=0, reduction="update")
        return b.reshape_exactly(scattered, [size, size])
    one, other = n.axis("axis1", b.rank(x), 0), n.axis("axis2", b.rank(x), 1)
    if one == other:
        raise Malformed(f"axis1 and axis2 are the axis {one}")
    rest = [i for i in range(b.rank(x)) if i not in (one, other)]
    rows, columns = b.extent(x, one), b.extent(x, other)
    x = b.transpose(x, [*rest, one, other])
    places = b.arrays.arange(max(min(rows + min(k, 0), columns - max(k, 0)), 0))
    if not places.size:
        raise Malformed(f"its diagonal {k} has no elements")
    flat = (places + max(-k, 0)) * columns + places + max(k, 0)
    shape = [int(d) for d in b.static_shape(x)[:-2]]
    return b.op("take", b.reshape_exactly(x, [*shape, rows * columns]), b.const(flat.astype(np.int64)), axis=len(shape))


RULES = (
    Rule("Reshape", reshape),
    Rule("_npx_reshape", npx_reshape),
    Rule("Flatten", flatten),
    Rule("expand_dims", expand_dims),
    Rule("squeeze", squeeze),
    Rule("transpose", transpose),
    Rule("SwapAxis", swap_axes),
    Rule("broadcast_to", broadcast_to),
    Rule("_np_broadcast_to", broadcast_to),
    Rule("broadcast_axis", broadcast_axis),
    Rule("broadcast_like", broadcast_like),
    Rule("reshape_like", reshape_like),
    Rule("tile", tile),
    Rule("repeat", repeat),
    Rule("reverse", reverse),
    Rule("_npi_flip", reverse),
    Rule("Concat", concat),
    Rule("_npi_concatenate", np_concatenate),
    Rule("stack", stack),
    Rule("_npi_stack", stack),
    Rule("SliceChannel", split),
    Rule("_split_v2", split_v2),
    Rule("Pad", pad),
    Rule("_npi_pad", np_pad),
    Rule("depth_to_space", depth_to_space),
    Rule("space_to_depth", space_to_depth),
    Rule("diag", diag),
)
