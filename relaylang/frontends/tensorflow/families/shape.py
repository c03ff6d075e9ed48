"""Operators that move elements, and those that compute shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, strided
from relaylang.frontends.common.nn import broadcast_to
from relaylang.frontends.common.slices import pad as padded
from relaylang.frontends.common.slices import pad_computed
from relaylang.frontends.tensorflow.node import Node
from relaylang.frontends.tensorflow.tensors import numpy_dtype
from relaylang.ir import Expr

_LAYOUTS = ("NHWC", "NCHW")
#: A shape may have so many axes.
_DEEPEST = 64


def reshape(n: Node, x: Expr, shape: Expr) -> Any:
    """-1 takes the remaining elements; 0 is an extent."""
    return n.b.reshape_to(x, n.b.of_rank(shape, 1), allow_zero=True)


def expand_dims(n: Node, x: Expr, axis: Expr) -> Any:
    return n.b.unsqueeze(x, [n.axis_of(axis, n.b.rank(x) + 1)])


def squeeze(n: Node, x: Expr) -> Any:
    b = n.b
    axes = n.ints("squeeze_dims", n.ints("axis", []))
    if not axes:
        return [b.squeeze(x, [i for i, d in enumerate(b.shape(x)) if d == 1])]
    return [b.squeeze(x, [a % b.rank(x) for a in axes])]


def transpose(n: Node, x: Expr, order: Expr) -> Any:
    axes = n.ints_of(order, "the order of axes")
    if sorted(axes) != list(range(n.b.rank(x))):
        raise Malformed(f"its order of axes is {axes[:16]}, and its operand has {int(n.b.rank(x))}")
    return [n.b.transpose(x, axes)]


def _joined(n: Node, parts: Sequence[Expr], axis: Expr) -> Any:
    """Tensors behind each other; those of rank 1 without elements are left out."""
    b = n.b
    if not parts:
        raise Malformed("it has no operands")
    place = n.axis_of(axis, b.rank(parts[0]))
    return [b.concat(parts, place)]


def concat(n: Node, axis: Expr, *parts: Expr) -> Any:
    return _joined(n, parts, axis)


def concat_2(n: Node, *parts: Expr) -> Any:
    """The axis is the last operand."""
    if len(parts) < 2:
        raise Malformed(f"it has {len(parts)} operands")
    return _joined(n, parts[:-1], parts[-1])


def pack(n: Node, *parts: Expr) -> Any:
    """Scalars become a vector by a form that keeps their known values."""
    b = n.b
    if not parts:
        raise Malformed("it has no operands")
    axis = n.int("axis", 0) % (b.rank(parts[0]) + 1)
    return [b.concat([b.unsqueeze(x, [axis]) for x in parts], axis)]


def unpack(n: Node, x: Expr) -> Any:
    b = n.b
    axis, count = n.int("axis", 0) % b.rank(x), n.int("num")
    if isinstance(b.shape(x)[axis], int) and b.shape(x)[axis] != count:
        raise Malformed(f"it has {count} results, and its operand {b.shape(x)[axis]} elements along the axis {axis}")
    b.budget.take_nodes(max(count, 0), "writing its results out")
    return [b.squeeze(b.slice(x, [i], [i + 1], [axis]), [axis]) for i in range(count)]


def _parts(n: Node, x: Expr, axis: int, sizes: Sequence[int]) -> Any:
    b = n.b
    if min(sizes, default=0) < 0 or sum(sizes) != b.extent(x, axis):
        raise Malformed(f"its parts have the extents {list(sizes)[:16]}, and its operand {b.extent(x, axis)}")
    ends = np.cumsum(sizes).tolist()
    return [b.slice(x, [e - s], [e], [axis]) for e, s in zip(ends, sizes)]


def split(n: Node, axis: Expr, x: Expr) -> Any:
    b, count = n.b, n.int("num_split")
    place = n.axis_of(axis, b.rank(x))
    extent = b.extent(x, place)
    if count < 1 or extent % count:
        raise Malformed(f"it makes {count} parts of {extent} elements")
    return _parts(n, x, place, [extent // count] * b.arrays.reserve(count))


def split_v(n: Node, x: Expr, sizes: Expr, axis: Expr) -> Any:
    b = n.b
    place = n.axis_of(axis, b.rank(x))
    wanted = n.ints_of(sizes, "the extents of the parts")
    if wanted.count(-1) == 1:
        wanted[wanted.index(-1)] = b.extent(x, place) - sum(s for s in wanted if s >= 0)
    return _parts(n, x, place, wanted)


def _pairs(n: Node, x: Expr, widths: Expr) -> list[tuple[int, int]] | None:
    known = n.b.known(widths)
    if known is None or None in known:
        return None
    if len(known) != 2 * n.b.rank(x):
        raise Malformed(f"it has {len(known)} widths of padding for {int(n.b.rank(x))} axes")
    amounts = [int(d) for d in known if d is not None]
    if min(amounts, default=0) < 0:
        raise Malformed(f"its padding has the width {min(amounts)}")
    return list(zip(amounts[::2], amounts[1::2]))


def pad(n: Node, x: Expr, widths: Expr, value: Expr | None = None) -> Any:
    b = n.b
    fill = b.scalar(value) if value is not None else b.const(0, b.dtype(x))
    pairs = _pairs(n, x, widths)
    return [pad_computed(b, x, widths, "constant", fill) if pairs is None else padded(b, x, pairs, "constant", fill)]


def mirror_pad(n: Node, x: Expr, widths: Expr) -> Any:
    pairs = _pairs(n, x, widths)
    if pairs is None:
        raise Unsupported("the widths of its padding must be constants")
    mode = n.choice("mode", "REFLECT", ("REFLECT", "SYMMETRIC"))
    return n.b.op("nn.mirror_pad", x, pad_width=[list(p) for p in pairs], mode=mode)


def tile(n: Node, x: Expr, counts: Expr) -> Any:
    b = n.b
    known = b.known(counts)
    if known is not None and None not in known:
        if len(known) != b.rank(x):
            raise Malformed(f"it has {len(known)} counts for {int(b.rank(x))} axes")
        return b.op("tile", x, reps=[int(r) for r in known if r is not None]) if known else [x]
    if b.extent(counts, 0) > _DEEPEST:
        raise Unsupported(f"its result has {b.extent(counts, 0)} axes")
    tiled = b.op("dyn.tile", x, counts, reps=None)
    sizes = [r * d if r is not None and isinstance(d, int) else None for r, d in zip(known or [], b.shape(x))]
    return b.refine(tiled, sizes) if sizes else tiled


def fill(n: Node, dims: Expr, value: Expr) -> Any:
    b = n.b
    known, value = b.known(dims), b.scalar(value)
    if known is None or None in known:
        filled = b.op("dyn.full", value, dims, dtype=b.dtype(value))
        return b.refine(filled, known) if known is not None else filled
    return b.op("full", value, shape=[int(d) for d in known if d is not None], dtype=b.dtype(value))


def range_(n: Node, start: Expr, limit: Expr, step: Expr) -> Any:
    b = n.b
    return b.arange(b.scalar(start), b.scalar(limit), b.scalar(step), b.dtype(start))


def linspace(n: Node, start: Expr, stop: Expr, count: Expr) -> Any:
    """Numbers at equal distances, both ends among them."""
    b = n.b
    number = n.ints_of(count, "the number of elements")[0]
    if number < 1:
        raise Malformed(f"it makes {number} elements")
    steps = b.const(b.arrays.arange(number), b.dtype(start))
    share = b.op("divide", b.op("subtract", b.scalar(stop), b.scalar(start)), b.const(max(number - 1, 1), b.dtype(start)))
    return b.op("add", b.scalar(start), b.op("multiply", steps, share))


def shapes(n: Node, *xs: Expr) -> Any:
    return [n.b.shape_of(x, n.dtype("out_type", "int32")) for x in xs]


def rank(n: Node, x: Expr) -> Any:
    return n.b.const(n.b.rank(x), "int32")


def size(n: Node, x: Expr) -> Any:
    b, dtype = n.b, n.dtype("out_type", "int32")
    shape = b.shape(x)
    if all(isinstance(d, int) for d in shape):
        return b.const(int(np.prod([int(d) for d in shape if isinstance(d, int)], dtype=object)), dtype)
    return b.op("prod", b.shape_of(x, dtype), axis=[0])


def broadcast(n: Node, x: Expr, shape: Expr) -> Any:
    return broadcast_to(n.b, x, shape)


def broadcast_args(n: Node, first: Expr, second: Expr) -> Any:
    """The shape that two shapes broadcast to."""
    b = n.b
    longest = max(b.extent(p, 0) for p in (first, second))
    if longest > _DEEPEST:
        raise Unsupported(f"its shapes have {longest} axes")
    aligned = []
    for part in (first, second):
        missing = longest - b.extent(part, 0)
        aligned.append(b.concat([b.const(b.arrays.ones(missing), b.dtype(part)), part], 0) if missing else part)
    return b.op("where", b.op("equal", aligned[0], 1), aligned[1], aligned[0])


def blocks(op: str) -> Callable[..., Any]:
    """Blocks of an image as channels, or back."""

    def convert(n: Node, x: Expr) -> Any:
        layout = n.choice("data_format", "NHWC", _LAYOUTS)
        mode = {"mode": "DCR"} if op == "nn.depth_to_space" else {}
        return n.b.op(op, n.b.of_rank(x, 4), block_size=n.int("block_size"), layout=layout, **mode)

    return convert


def _rows(n: Node, x: Expr, what: str) -> list[list[int]]:
    numbers = n.ints_of(x, what)
    return [numbers[i : i + 2] for i in range(0, len(numbers), 2)]


def _blocks(n: Node, op: str, x: Expr, block: Expr | None, **widths: list[list[int]]) -> Any:
    """Blocks of space as examples, or back; without the operand `block`, the attribute `block_size` is its extent in a picture."""
    if block is not None:
        return n.b.op(op, x, block_shape=n.ints_of(block, "the block"), **widths)
    return n.b.op(op, n.b.of_rank(x, 4), block_shape=[n.int("block_size")] * 2, **widths)


def space_to_batch(n: Node, x: Expr, pads: Expr, block: Expr | None = None) -> Any:
    return _blocks(n, "nn.space_to_batch_nd", x, block, paddings=_rows(n, pads, "the padding"))


def batch_to_space(n: Node, x: Expr, crops: Expr, block: Expr | None = None) -> Any:
    return _blocks(n, "nn.batch_to_space_nd", x, block, crops=_rows(n, crops, "the crops"))


def reverse(n: Node, x: Expr, axes: Expr) -> Any:
    for axis in n.axes_of(axes, n.b.rank(x)):
        x = n.b.op("reverse", x, axis=axis)
    return [x]


def reverse_sequence(n: Node, x: Expr, lengths: Expr) -> Any:
    return n.b.op("reverse_sequence", x, lengths, seq_axis=n.int("seq_dim"), batch_axis=n.int("batch_dim", 0))


def roll(n: Node, x: Expr, shift: Expr, axis: Expr) -> Any:
    """Elements that leave at one end come in at the other."""
    b = n.b
    shifts, axes = n.ints_of(shift, "the shifts"), [a % b.rank(x) for a in n.ints_of(axis, "the axes")]
    if len(shifts) != len(axes):
        raise Malformed(f"it has {len(shifts)} shifts for {len(axes)} axes")
    for by, place in zip(shifts, axes):
        extent = b.extent(x, place)
        by = by % extent if extent else 0
        if by:
            parts = [b.slice(x, [extent - by], [extent], [place]), b.slice(x, [0], [extent - by], [place])]
            x = b.concat(parts, place)
    return [x]


def one_hot(n: Node, x: Expr, depth: Expr, on: Expr, off: Expr) -> Any:
    b = n.b
    count = n.ints_of(depth, "the depth")[0]
    return b.op("one_hot", x, b.scalar(on), b.scalar(off), depth=count, axis=n.int("axis", -1), dtype=b.dtype(on))


def where(n: Node, x: Expr) -> Any:
    """The positions of the elements that hold, a row each."""
    return n.b.cast(n.b.op("argwhere", x), "int64")


def invert_permutation(n: Node, x: Expr) -> Any:
    return n.b.op("invert_permutation", x)


def slice_(n: Node, x: Expr, begin: Expr, size: Expr) -> Any:
    return [strided.slice_by_size(n.b, x, begin, size)]


def strided_slice(n: Node, x: Expr, begin: Expr, end: Expr, steps: Expr) -> Any:
    masks = {name: n.int(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    return [strided.strided_slice(n.b, x, begin, end, n.ints_of(steps, "the steps"), masks)]


# ---- diagonals


def _scalar_of(n: Node, x: Expr | None, default: int) -> int:
    return default if x is None else n.ints_of(x, "the diagonal")[0]


def _padding(n: Node, x: Expr, value: Expr | None) -> Expr:
    return n.b.const(0, n.b.dtype(x)) if value is None else n.b.scalar(value)


def matrix_diag(
    n: Node, x: Expr, k: Expr | None = None, rows: Expr | None = None, columns: Expr | None = None, value: Expr | None = None
) -> Any:
    """Matrices with a diagonal; the operator's later forms have its number, the extents and the other elements."""
    b = n.b
    if k is not None and len(set(n.ints_of(k, "the diagonal"))) > 1:
        raise Unsupported("it sets several diagonals")
    at, extent = _scalar_of(n, k, 0), b.extent(x, b.rank(x) - 1)
    sizes = [_scalar_of(n, rows, -1), _scalar_of(n, columns, -1)]
    least = [extent + max(-at, 0), extent + max(at, 0)]
    if max(sizes) < 0:  # a square
        least = [max(least)] * 2
    known = [s if s >= 0 else least[i] for i, s in enumerate(sizes)]
    if min(known[0] - max(-at, 0), known[1] - max(at, 0)) != extent:
        raise Malformed(f"its diagonal of {extent} elements does not fit matrices of {known}")
    base = b.op("full", _padding(n, x, value), shape=[*b.static_shape(x)[:-1], *known], dtype=b.dtype(x))
    return b.op("matrix_set_diag", base, x, k1=at, k2=at)


def matrix_set_diag(n: Node, x: Expr, diagonal: Expr, k: Expr | None = None) -> Any:
    at = n.ints_of(k, "the diagonals") if k is not None else [0]
    align = n.choice("align", "RIGHT_LEFT", ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"))
    sides = [side == "RIGHT" for side in align.split("_")]
    return n.b.op("matrix_set_diag", x, diagonal, k1=at[0], k2=at[-1], super_diag_right_align=sides[0], sub_diag_right_align=sides[1])


def matrix_diag_part(n: Node, x: Expr, k: Expr | None = None, value: Expr | None = None) -> Any:
    """A diagonal of matrices."""
    b = n.b
    if k is not None and len(set(n.ints_of(k, "the diagonal"))) > 1:
        raise Unsupported("it takes several diagonals")
    at = _scalar_of(n, k, 0)
    rank_ = b.rank(x)
    rows, columns = (b.extent(x, rank_ - 2 + i) for i in (0, 1))
    count = min(rows - max(-at, 0), columns - max(at, 0))
    if count < 1:
        raise Malformed(f"its matrices have no diagonal {at}")
    places = (b.arrays.arange(count) + max(-at, 0)) * columns + b.arrays.arange(count) + max(at, 0)
    shape = b.shape(x)[:-2]
    flat = b.reshape(x, [*[int(d) if isinstance(d, int) else 0 for d in shape], rows * columns])
    return b.op("take", flat, b.const(places.astype(np.int32)), axis=rank_ - 2)


def band_part(n: Node, x: Expr, lower: Expr, upper: Expr) -> Any:
    """Matrices of which some diagonals stay; -1 keeps all of a side."""
    b = n.b
    below, above = n.ints_of(lower, "the lower band")[0], n.ints_of(upper, "the upper band")[0]
    rows, columns = (b.extent(x, b.rank(x) - 2 + i) for i in (0, 1))
    b.arrays.reserve((rows, columns))
    apart = b.arrays.arange(rows)[:, None] - b.arrays.arange(columns)
    kept = (apart <= (below if below >= 0 else rows)) & (-apart <= (above if above >= 0 else columns))
    return b.op("where", b.const(kept), x, b.const(0, b.dtype(x)))


def diag(n: Node, x: Expr) -> Any:
    if n.b.rank(x) != 1:
        raise Unsupported("its operand is no vector")
    return matrix_diag(n, x)


def diag_part(n: Node, x: Expr) -> Any:
    if n.b.rank(x) != 2:
        raise Unsupported("its operand is no matrix")
    return matrix_diag_part(n, x)


def empty(n: Node, shape: Expr) -> Any:
    """Elements that nothing states are 0."""
    dtype = n.dtype("dtype")
    return n.b.op("full", n.b.const(np.zeros((), numpy_dtype(dtype))), shape=n.ints_of(shape, "the shape"), dtype=dtype)


RULES = (
    Rule("BatchToSpace", lambda n, x, crops: batch_to_space(n, x, crops)),
    Rule("BatchToSpaceND", lambda n, x, block, crops: batch_to_space(n, x, crops, block)),
    Rule("BroadcastArgs", broadcast_args),
    Rule("BroadcastTo", broadcast),
    Rule("Concat", concat),
    Rule("ConcatV2", concat_2),
    Rule("DepthToSpace", blocks("nn.depth_to_space")),
    Rule("Diag", diag),
    Rule("DiagPart", diag_part),
    Rule("Empty", empty),
    Rule("ExpandDims", expand_dims),
    Rule("Fill", fill),
    Rule("InvertPermutation", invert_permutation),
    Rule("LinSpace", linspace),
    Rule("MatrixBandPart", band_part),
    Rule("MatrixDiag", matrix_diag),
    Rule("MatrixDiagPart", matrix_diag_part),
    Rule("MatrixDiagPartV2", matrix_diag_part),
    Rule("MatrixDiagPartV3", matrix_diag_part),
    Rule("MatrixDiagV2", matrix_diag),
    Rule("MatrixDiagV3", matrix_diag),
    Rule("MatrixSetDiag", matrix_set_diag),
    Rule("MatrixSetDiagV2", matrix_set_diag),
    Rule("MatrixSetDiagV3", matrix_set_diag),
    Rule("MirrorPad", mirror_pad),
    Rule("OneHot", one_hot),
    Rule("Pack", pack),
    Rule("Pad", pad),
    Rule("PadV2", pad),
    Rule("Range", range_),
    Rule("Rank", rank),
    Rule("Reshape", reshape),
    Rule("ReverseSequence", reverse_sequence),
    Rule("ReverseV2", reverse),
    Rule("Roll", roll),
    Rule("ShapeN", shapes),
    Rule("Size", size),
    Rule("Slice", slice_),
    Rule("SpaceToBatch", lambda n, x, pads: space_to_batch(n, x, pads)),
    Rule("SpaceToBatchND", lambda n, x, block, pads: space_to_batch(n, x, pads, block)),
    Rule("SpaceToDepth", blocks("nn.space_to_depth")),
    Rule("Split", split),
    Rule("SplitV", split_v),
    Rule("Squeeze", squeeze),
    Rule("StridedSlice", strided_slice),
    Rule("Tile", tile),
    Rule("Transpose", transpose),
    Rule("Unpack", unpack),
    Rule("Where", where),
)
