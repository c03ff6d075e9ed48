"""Operators that move, join, cut, repeat and make elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.hlo import dynamic_update_slice
from relaylang.frontends.common.slices import pad as padded
from relaylang.frontends.common.slices import pad_computed
from relaylang.frontends.common.strided import slice_by_size as sliced_by_size
from relaylang.frontends.common.strided import strided_slice
from relaylang.frontends.coreml.node import Bools, Exprs, Ints, Node, axes_of
from relaylang.ir import Expr


def identity(n: Node, x: Expr) -> Any:
    return x


def reshape(n: Node, x: Expr, shape: Expr) -> Any:
    """Another shape: -1 takes the elements that are left, and 0 keeps an extent."""
    b = n.b
    known = b.known(shape) or []
    if 0 in known and len(known) != b.rank(x) and 0 not in b.shape(x):
        raise Malformed(f"its shape {known[:12]} keeps extents of an operand of {int(b.rank(x))} axes")
    return b.reshape_to(x, shape)


def reshape_like(n: Node, x: Expr, ref_tensors: Exprs, begins: Ints, ends: Ints, end_masks: Bools) -> Any:
    """The extents of other tensors, from one axis of each to before another."""
    b, parts = n.b, []
    if not len(ref_tensors) == len(begins) == len(ends) == len(end_masks):
        raise Malformed(f"it has {len(ref_tensors)} tensors, {len(begins)} begins and {len(ends)} ends")
    for tensor, begin, end, mask in zip(ref_tensors, begins, ends, end_masks):
        rank = b.rank(tensor)
        first, last = begin % max(rank, 1), rank if mask else end % (rank + 1) if end < 0 else min(end, rank)
        parts.append(b.slice(b.shape_of(tensor), [first], [last], [0]))
    return b.reshape_to(x, b.concat(parts, 0))


def flatten2d(n: Node, x: Expr, axis: int = 1) -> Any:
    """Two axes: those before an axis, and those from it on."""
    b, rank = n.b, n.b.rank(x)
    at = axis + rank if axis < 0 else axis
    if not 0 <= at <= rank:
        raise Malformed(f"it names the axis {axis} of an operand that has {int(rank)}")
    if at == 1 and rank == 2:
        return x
    shape = b.static_shape(x)
    return b.reshape_exactly(x, [math.prod(shape[:at]), math.prod(shape[at:])])


def expand_dims(n: Node, x: Expr, axes: Ints) -> Any:
    rank = n.b.rank(x) + len(axes)
    if len({axis % rank for axis in axes}) != len(axes) or any(not -rank <= axis < rank for axis in axes):
        raise Malformed(f"it adds the axes {list(axes)[:12]}, and its result has {rank}")
    return n.b.unsqueeze(x, axes)


def squeeze(n: Node, x: Expr, axes: Ints | None = None) -> Any:
    b = n.b
    gone = axes_of(b, x, axes) if axes else [i for i, d in enumerate(b.shape(x)) if d == 1]
    return b.squeeze(x, gone)


def transpose(n: Node, x: Expr, perm: Ints) -> Any:
    rank = n.b.rank(x)
    order = [int(axis % rank) for axis in perm]
    if sorted(order) != list(range(rank)):
        raise Malformed(f"its order {list(perm)[:12]} is none of {int(rank)} axes")
    return n.b.transpose(x, order)


def concat(n: Node, values: Exprs, axis: int, interleave: bool = False) -> Any:
    """Tensors behind each other, or their slices in turn."""
    b = n.b
    if not values:
        raise Malformed("it has no operand")
    at, xs = int(axis % b.rank(values[0])), list(values)
    if len({b.dtype(x) for x in xs}) > 1:
        xs = [n.alike(x, xs[0])[0] for x in xs]
    if not interleave or len(xs) == 1:
        return b.concat(xs, at)
    shape = b.static_shape(xs[0])
    stacked = b.op("stack", b.tuple(xs), axis=at + 1)
    return b.reshape_exactly(stacked, [*shape[:at], shape[at] * len(xs), *shape[at + 1 :]])


def stack(n: Node, values: Exprs, axis: int) -> Any:
    if not values:
        raise Malformed("it has no operand")
    rank = n.b.rank(values[0]) + 1
    if not -rank <= axis < rank:
        raise Malformed(f"it joins along the axis {axis}, and its result has {rank}")
    return n.b.op("stack", n.b.tuple(list(values)), axis=axis % rank)


def split(n: Node, x: Expr, axis: int, num_splits: int = 0, split_sizes: Ints = ()) -> Any:
    """Parts of an axis, of equal extents or of those that it states."""
    b, at = n.b, int(axis % n.b.rank(x))
    extent, count = b.extent(x, at), len(split_sizes) or num_splits
    sizes = list(split_sizes) or ([extent // count] * count if count > 0 else [])
    if not sizes or sum(sizes) != extent or min(sizes) < 0 or len(sizes) > max(extent, 1):
        raise Malformed(f"its parts {sizes[:12]} do not make {extent} elements")
    if len(sizes) == 1:
        return [x]
    places = [int(v) for v in np.cumsum(sizes[:-1])]
    return b.fields(b.op("split", x, indices_or_sections=places, axis=at))


# ---- slices


def _bits(mask: Bools | None) -> int:
    return sum(1 << i for i, bit in enumerate(mask or ()) if bit)


def _masks(begin_mask: Bools | None, end_mask: Bools | None, squeeze_mask: Bools | None) -> dict[str, int]:
    rest = {"ellipsis": 0, "new_axis": 0}
    return {"begin": _bits(begin_mask), "end": _bits(end_mask), "shrink_axis": _bits(squeeze_mask), **rest}


def slice_by_index(
    n: Node,
    x: Expr,
    begin: Expr,
    end: Expr,
    stride: Ints | None = None,
    begin_mask: Bools | None = None,
    end_mask: Bools | None = None,
    squeeze_mask: Bools | None = None,
) -> Any:
    b = n.b
    steps = list(stride) if stride else [1] * b.rank(x)
    masks = _masks(begin_mask, end_mask, squeeze_mask)
    masks["begin"] &= ~masks["shrink_axis"]
    return strided_slice(b, x, begin, end, steps, masks)


def slice_by_size(n: Node, x: Expr, begin: Expr, size: Expr) -> Any:
    return sliced_by_size(n.b, x, begin, size)


def slice_update(
    n: Node,
    x: Expr,
    update: Expr,
    begin: Expr,
    end: Expr,
    stride: Ints | None = None,
    begin_mask: Bools | None = None,
    end_mask: Bools | None = None,
    squeeze_mask: Bools | None = None,
) -> Any:
    """A tensor whose slice is another tensor. The begins may be computed; the steps are 1 then."""
    b, rank = n.b, n.b.rank(x)
    shape = b.static_shape(x)
    first, last = b.known(begin), b.known(end)
    masks = [list(mask or [False] * rank) for mask in (begin_mask, end_mask, squeeze_mask)]
    if any(len(mask) != rank for mask in masks) or b.extent(begin, 0) != rank:
        raise Malformed(f"its bounds are not those of {int(rank)} axes")
    gone = [i for i in range(rank) if masks[2][i]]
    part = b.unsqueeze(update, gone) if gone else update
    steps = list(stride) if stride else [1] * rank
    if first is not None and last is not None and None not in first and None not in last:
        rows = []
        for i, size in enumerate(shape):
            low, high = first[i], last[i]
            assert low is not None and high is not None
            ends = slice(None if masks[0][i] else low, None if masks[1][i] else high, steps[i] or 1)
            places = [low % max(size, 1)] if masks[2][i] else list(range(*ends.indices(size)))
            rows.append(np.asarray(places, np.int64))
        b.arrays.reserve([len(row) for row in rows])
        grid = np.stack(np.broadcast_arrays(*np.ix_(*rows)))
        return b.op("scatter_nd", x, b.const(grid), part, mode="update")
    if any(step != 1 for step in steps):
        raise Unsupported("its begins are computed, and its steps are not 1")
    starts = []
    for i in range(rank):
        at = b.scalar(b.slice(begin, [i], [i + 1], [0]))
        starts.append(b.const(0, b.dtype(begin)) if masks[0][i] and not masks[2][i] else at)
    return dynamic_update_slice(b, x, part, starts)


def reverse(n: Node, x: Expr, axes: Ints | None = None) -> Any:
    flipped = x
    for axis in axes_of(n.b, x, axes):
        flipped = n.b.op("reverse", flipped, axis=axis)
    return flipped


def reverse_sequence(n: Node, x: Expr, lengths: Expr, seq_axis: int = 0, batch_axis: int = 0) -> Any:
    b, rank = n.b, n.b.rank(x)
    return b.op("reverse_sequence", x, b.cast(lengths, "int32"), seq_axis=int(seq_axis % rank), batch_axis=int(batch_axis % rank))


def sliding_windows(n: Node, x: Expr, axis: int, size: int, stride: int = 1) -> Any:
    """Windows along an axis, each on an axis of its own behind it."""
    b, at = n.b, int(axis % n.b.rank(x))
    extent = b.extent(x, at)
    if not 1 <= size <= extent or stride < 1:
        raise Malformed(f"its windows of {size} elements at steps of {stride} do not fit {extent}")
    return b.op("take", x, b.const(b.arrays.windows(extent, size, stride).astype(np.int32)), axis=at)


# ---- padding, repeating, making


def pad(n: Node, x: Expr, pad: Expr, mode: str = "constant", constant_val: float = 0.0) -> Any:
    """Padding of the last axes, by pairs of numbers."""
    b, rank = n.b, n.b.rank(x)
    how = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}.get(mode)
    if how is None:
        raise Malformed(f"its mode is {mode[:40]!r}")
    widths = b.known(pad)
    if widths is None or None in widths:
        return pad_computed(b, x, b.reshape(pad, [-1, 2]), how, b.const(constant_val, b.dtype(x)))
    if len(widths) % 2 or len(widths) > 2 * rank or any(w is not None and w < 0 for w in widths):
        raise Malformed(f"its padding is {widths[:12]}, and its operand has {int(rank)} axes")
    known = [int(w) for w in widths if w is not None]
    pairs = [(0, 0)] * (rank - len(known) // 2) + list(zip(known[::2], known[1::2]))
    if how == "reflect" and any(isinstance(d, int) and max(pair) >= d for d, pair in zip(b.shape(x), pairs) if any(pair)):
        raise Malformed(f"its padding {known[:12]} is not smaller than what it reflects")
    return padded(b, x, pairs, how, constant_val if "float" in b.dtype(x) else b.const(int(constant_val), b.dtype(x)))


def tile(n: Node, x: Expr, reps: Ints) -> Any:
    if any(not 1 <= v < 1 << 31 for v in reps) or len(reps) != n.b.rank(x):
        raise Malformed(f"it repeats its {int(n.b.rank(x))} axes {list(reps)[:12]} times")
    return n.b.op("tile", x, reps=[int(v) for v in reps])


def fill(n: Node, shape: Expr, value: Expr) -> Any:
    return nn.broadcast_to(n.b, n.b.scalar(value), n.b.cast(shape, "int64"))


def fill_like(n: Node, ref_tensor: Expr, value: Expr) -> Any:
    return fill(n, n.b.shape_of(ref_tensor), value)


def range_1d(n: Node, end: Expr, start: Expr, step: Expr) -> Any:
    b = n.b
    dtype = b.dtype(n.alike(*n.alike(end, start))[0])
    first, last, apart = (b.scalar(b.cast(v, dtype)) for v in (start, end, step))
    return b.arange(first, last, apart, dtype)


def shape(n: Node, x: Expr) -> Any:
    return n.b.shape_of(x, "int32")


def one_hot(
    n: Node, indices: Expr, one_hot_vector_size: int, axis: int = -1, on_value: Expr | None = None, off_value: Expr | None = None
) -> Any:
    """A vector for each index, with one value at its place and another elsewhere. Those of other places have the second alone."""
    b, rank = n.b, n.b.rank(indices) + 1
    if one_hot_vector_size < 1 or not -rank <= axis < rank:
        raise Malformed(f"it makes vectors of {one_hot_vector_size} elements on the axis {axis}")
    on, off = (b.const(default, "int32") if v is None else b.scalar(v) for v, default in ((on_value, 1), (off_value, 0)))
    places = b.const(b.arrays.arange(one_hot_vector_size), b.dtype(indices))
    at = axis % rank
    column = b.unsqueeze(places, [i for i in range(rank) if i != at])
    return b.op("where", b.op("equal", b.unsqueeze(indices, [at]), column), *n.alike(on, off))


def band_part(n: Node, x: Expr, lower: int = -1, upper: int = -1) -> Any:
    """The elements near the diagonal of the last two axes, zeros elsewhere. Numbers below 0 keep a whole side."""
    b = n.b
    rows, columns = b.extent(x, -2), b.extent(x, -1)
    apart = b.arrays.arange(rows)[:, None] - b.arrays.arange(columns)[None, :]
    kept = b.arrays.ones((rows, columns), bool)
    kept &= (apart <= lower) if lower >= 0 else True
    kept &= (-apart <= upper) if upper >= 0 else True
    return b.op("where", b.const(kept), x, b.const(0, b.dtype(x)))


# ---- blocks


def _blocks(name: str, **attrs: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, block_size: int) -> Any:
        """Blocks of elements between channels and the picture."""
        if block_size < 1:
            raise Malformed(f"its blocks have {block_size} elements")
        channels, high, wide = (n.b.extent(n.b.of_rank(x, 4), i) for i in (1, 2, 3))
        fits = channels % block_size**2 == 0 if "depth_to" in name else high % block_size == 0 == wide % block_size
        if not fits:
            raise Malformed(f"its {channels} channels of {high} x {wide} do not fit blocks of {block_size}")
        return n.b.op(name, x, block_size=block_size, layout="NCHW", **attrs)

    return convert


depth_to_space = _blocks("nn.depth_to_space", mode="DCR")
space_to_depth = _blocks("nn.space_to_depth")


def pixel_shuffle(n: Node, x: Expr, upscale_factor: int) -> Any:
    return _blocks("nn.depth_to_space", mode="CRD")(n, x, upscale_factor)


def pixel_unshuffle(n: Node, x: Expr, downscale_factor: int) -> Any:
    """Blocks of a picture as channels, those of one channel behind each other."""
    b, f = n.b, downscale_factor
    shape = b.static_shape(x, rank=4)
    if f < 1 or shape[2] % f or shape[3] % f:
        raise Malformed(f"its {shape[2]} x {shape[3]} places do not fit blocks of {f}")
    parts = b.reshape_exactly(x, [*shape[:2], shape[2] // f, f, shape[3] // f, f])
    return b.reshape_exactly(b.transpose(parts, [0, 1, 3, 5, 2, 4]), [shape[0], shape[1] * f * f, shape[2] // f, shape[3] // f])


def _spread(name: str, amounts: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, block_shape: Ints, margins: Expr) -> Any:
        b = n.b
        rows = [int(v) for v in b.need_ints(margins, f"its {amounts}")]
        if len(rows) != 2 * len(block_shape) or min([*rows, 0]) < 0 or min(block_shape, default=1) < 1:
            raise Malformed(f"its blocks {list(block_shape)[:4]} have the {amounts} {rows[:8]}")
        b.of_rank(x, len(block_shape) + 2)
        rank = b.rank(x)
        data = b.transpose(x, [0, *range(2, rank), 1])
        moved = b.op(name, data, block_shape=list(block_shape), **{amounts: [rows[i : i + 2] for i in range(0, len(rows), 2)]})
        return b.transpose(moved, [0, rank - 1, *range(1, rank - 1)])

    return convert


def space_to_batch(n: Node, x: Expr, block_shape: Ints, paddings: Expr) -> Any:
    return _spread("nn.space_to_batch_nd", "paddings")(n, x, block_shape, paddings)


def batch_to_space(n: Node, x: Expr, block_shape: Ints, crops: Expr) -> Any:
    return _spread("nn.batch_to_space_nd", "crops")(n, x, block_shape, crops)


RULES = (
    Rule("band_part", band_part),
    Rule("batch_to_space", batch_to_space),
    Rule("concat", concat),
    Rule("depth_to_space", depth_to_space),
    Rule("expand_dims", expand_dims),
    Rule("fill", fill),
    Rule("fill_like", fill_like),
    Rule("flatten2d", flatten2d),
    Rule("identity", identity),
    Rule("one_hot", one_hot),
    Rule("pad", pad),
    Rule("pixel_shuffle", pixel_shuffle),
    Rule("pixel_unshuffle", pixel_unshuffle),
    Rule("range_1d", range_1d),
    Rule("reshape", reshape),
    Rule("reshape_like", reshape_like),
    Rule("reverse", reverse),
    Rule("reverse_sequence", reverse_sequence),
    Rule("shape", shape),
    Rule("slice_by_index", slice_by_index),
    Rule("slice_by_size", slice_by_size),
    Rule("slice_update", slice_update),
    Rule("sliding_windows", sliding_windows),
    Rule("space_to_batch", space_to_batch),
    Rule("space_to_depth", space_to_depth),
    Rule("split", split),
    Rule("squeeze", squeeze),
    Rule("stack", stack),
    Rule("tile", tile),
    Rule("transpose", transpose),
)
