"""Slices, padding, parts and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, slices, windows
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.windows import ones, pairs_of
from relaylang.ir import Expr


def slice_by_attributes(n: Node, x: Expr) -> Any:
    starts, ends = n.ints("starts"), n.ints("ends")
    axes = n.ints("axes", list(range(len(starts))))
    return slices.slice_axes(n.b, x, starts, ends, axes, [1] * len(starts))


def slice_by_inputs(n: Node, x: Expr, starts: Expr, ends: Expr, axes: Expr | None = None, steps: Expr | None = None) -> Any:
    b = n.b
    count = b.extent(starts, 0, "the number of sliced axes")
    on = b.need_ints(axes, "the axes of Slice") if axes is not None else list(range(count))
    known = [_all(b, starts), _all(b, ends), [1] * count if steps is None else _all(b, steps)]
    if all(v is not None for v in known):
        first, last, step = (list(v or ()) for v in known)
        return slices.slice_axes(b, x, first, last, on, step)
    return slices.slice_computed(b, x, starts, ends, on, steps)


def _all(b: Builder, x: Expr) -> list[int] | None:
    """The elements of a vector, where all are known."""
    known = b.known(x)
    return None if known is None or None in known else [int(v) for v in known if v is not None]


def pad_by_inputs(n: Node, x: Expr, pads: Expr, value: Expr | None = None, axes: Expr | None = None) -> Any:
    b, rank, mode = n.b, n.b.rank(x), n.string("mode", "constant")
    zero = b.scalar(value) if value is not None else b.const(0, b.dtype(x))
    on = [a % rank for a in b.need_ints(axes, "the axes of Pad")] if axes is not None else list(range(rank))
    known = _all(b, pads)
    if known is not None:
        pairs = dict(zip(on, pairs_of(known)))
        return slices.pad(b, x, [pairs.get(i, (0, 0)) for i in range(rank)], mode, zero)
    count = len(on)
    wide = b.cast(pads, "int64")
    order = [on.index(i) if i in on else count for i in range(rank)]
    zeros = b.const(np.zeros(1, np.int64))
    sides = [b.concat([b.slice(wide, [s * count], [(s + 1) * count], [0]), zeros], 0) for s in (0, 1)]
    chosen = [b.op("take", side, b.const(np.array(order)), axis=0) for side in sides]
    return slices.pad_computed(b, x, b.op("stack", b.tuple(chosen), axis=1), mode, zero)


def center_crop_pad(n: Node, x: Expr, shape: Expr) -> Any:
    """Each axis is cut or padded on both sides; an odd element goes behind."""
    b, rank = n.b, n.b.rank(x)
    axes = n.ints("axes", list(range(rank)))
    wanted = dict(zip([a % rank for a in axes], b.need_ints(shape, "the shape of CenterCropPad")))
    pairs = []
    for i in range(rank):
        more = wanted[i] - b.extent(x, i) if i in wanted else 0
        before = more // 2 if more >= 0 else -(-more // 2)
        pairs.append((before, more - before))
    return slices.pad(b, x, pairs)


def concat(n: Node, *xs: Expr) -> Any:
    b = n.b
    axis = n.int("axis", 1)
    full = [x for x in xs if b.shape(x)[axis] != 0] or [xs[0]]
    return [b.concat(full, axis)]


def split_by_attribute(n: Node, x: Expr, parts: Expr | None = None) -> Any:
    if parts is not None:
        return split_by_input(n, x, parts)
    axis = n.int("axis", 0)
    return _split(n.b, x, axis, n.ints("split")) if n.has("split") else _equal_parts(n, x, axis)


def split_by_input(n: Node, x: Expr, parts: Expr | None = None) -> Any:
    b, axis = n.b, n.int("axis", 0) % n.b.rank(x)
    if parts is None:
        return _equal_parts(n, x, axis)
    lengths = _all(b, parts)
    if lengths is not None:
        return _split(b, x, axis, lengths)
    ends = b.op("cumsum", b.cast(parts, "int64"), axis=0, dtype="int64")
    parts_of_axis: list[Expr] = []
    begin: Expr = b.const(np.zeros(1, np.int64))
    for i in range(len(n.outputs)):
        end = b.slice(ends, [i], [i + 1], [0])
        parts_of_axis.append(slices.slice_computed(b, x, begin, end, [axis], None))
        begin = end
    return parts_of_axis


def _equal_parts(n: Node, x: Expr, axis: int) -> list[Expr]:
    """Parts of one length; the last is shorter where they do not fit."""
    b = n.b
    count = n.int("num_outputs", len(n.outputs))
    size = b.shape(x)[axis]
    if not isinstance(size, int):
        return b.fields(b.op("split", x, indices_or_sections=count, axis=axis))
    each = -(-size // count)
    return _split(b, x, axis, [max(min(each, size - i * each), 0) for i in range(count)])


def _split(b: Builder, x: Expr, axis: int, lengths: Sequence[int]) -> list[Expr]:
    if len(lengths) == 1:
        return [x]
    if all(n > 0 for n in lengths):
        cuts = np.cumsum(lengths)[:-1].tolist()
        return b.fields(b.op("split", x, indices_or_sections=cuts, axis=axis))
    ends = np.cumsum(lengths).tolist()
    return [slices.slice_axes(b, x, [e - c], [e], [axis], [1]) for e, c in zip(ends, lengths)]


def tile(n: Node, x: Expr, repeats: Expr) -> Any:
    b = n.b
    known = _all(b, repeats)
    if known is None:
        tiled = b.op("dyn.tile", x, repeats, reps=None)
        part = b.known(repeats) or [None] * b.rank(x)
        sizes = [d * r if isinstance(d, int) and r is not None else None for d, r in zip(b.shape(x), part)]
        return b.refine(tiled, sizes)
    if 0 in known:
        return b.op("zeros", shape=[d * r for d, r in zip(b.static_shape(x), known)], dtype=b.dtype(x))
    return x if all(r == 1 for r in known) else b.op("tile", x, reps=known)


def tile_one_axis(n: Node, x: Expr, tiles: Expr, axis: Expr) -> Any:
    """The form of opset 1."""
    reps = [1] * n.b.rank(x)
    reps[n.b.need_ints(axis, "the axis")[0]] = n.b.need_ints(tiles, "the tiles")[0]
    return n.b.op("tile", x, reps=reps)


def depth_to_space(n: Node, x: Expr) -> Any:
    return n.b.op("nn.depth_to_space", x, block_size=n.int("blocksize"), layout="NCHW", mode=n.string("mode", "DCR"))


def space_to_depth(n: Node, x: Expr) -> Any:
    """The mode CRD puts the block's places behind each channel, the other one before all channels."""
    b, block = n.b, n.int("blocksize")
    if n.string("mode", "DCR") == "DCR":
        return b.op("nn.space_to_depth", x, block_size=block, layout="NCHW")
    apart = b.op("reshape", x, newshape=[0, 0, -4, -1, block, -4, -1, block])
    moved = b.transpose(apart, [0, 1, 3, 5, 2, 4])
    return b.op("reshape", b.op("reshape", moved, newshape=[0, -3, -2]), newshape=[0, -3, -2])


def reverse_sequence(n: Node, x: Expr, lengths: Expr) -> Any:
    b = n.b
    lengths = b.cast(lengths, "int32")
    return b.op("reverse_sequence", x, lengths, seq_axis=n.int("time_axis", 0), batch_axis=n.int("batch_axis", 1))


def col2im(n: Node, x: Expr, image: Expr, block: Expr) -> Any:
    b = n.b
    sizes, kernel = b.need_ints(image, "the image's shape"), b.need_ints(block, "the block's shape")
    rank = len(sizes)
    pads = pairs_of(n.ints("pads", [0] * (2 * rank)))
    return windows.fold(b, x, sizes, kernel, ones(n, "strides", rank), pads, ones(n, "dilations", rank))


RULES = (
    Rule("CenterCropPad", center_crop_pad),
    Rule("Col2Im", col2im),
    Rule("Concat", concat),
    Rule("DepthToSpace", depth_to_space),
    Rule(
        "Pad",
        lambda n, x: slices.pad(
            n.b, x, pairs_of(n.ints("pads" if n.has("pads") else "paddings")), n.string("mode", "constant"), n.float("value", 0.0)
        ),
        until=10,
    ),
    Rule("Pad", pad_by_inputs, since=11),
    Rule("ReverseSequence", reverse_sequence),
    Rule("Slice", slice_by_attributes, until=9),
    Rule("Slice", slice_by_inputs, since=10),
    Rule("SpaceToDepth", space_to_depth),
    Rule("Split", split_by_attribute, until=12),
    Rule("Split", split_by_input, since=13),
    Rule("Tile", tile_one_axis, until=5),
    Rule("Tile", tile, since=6),
)
