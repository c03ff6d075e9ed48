"""Layers that move, join, cut and make elements, and that reduce axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.coreml.families import norm, select
from relaylang.frontends.coreml.families import shape as ops
from relaylang.frontends.coreml.layer import LayerNode, alike, same, whole
from relaylang.ir import Expr

#: The operators of programs that reduce axes, by name.
_REDUCED = {rule.name: rule.convert for rule in norm.RULES}

# ---- layers of the older rule


def reshape(n: LayerNode, x: Expr) -> Any:
    """Other channels, rows and columns, and another sequence where four extents are stated."""
    b, wanted = n.b, [int(d) for d in n.p.targetShape]
    data = n.four(x)[0] if n.old else x
    if len(wanted) not in (3, 4) or min(wanted) < 1:
        raise Malformed(f"its shape is {wanted[:8]}")
    shape = b.static_shape(data)
    front = wanted[:-3] or ([shape[0]] if n.old else list(shape[:-3]))
    if n.p.mode == 0:
        return _exactly(n, data, [*front, *wanted[-3:]])
    rank = b.rank(data)
    last = [*range(rank - 3), rank - 2, rank - 1, rank - 3]
    reshaped = _exactly(n, b.transpose(data, last), [*front, *wanted[-2:], wanted[-3]])
    rank = b.rank(reshaped)
    return b.transpose(reshaped, [*range(rank - 3), rank - 1, rank - 3, rank - 2])


def _exactly(n: LayerNode, x: Expr, shape: list[int]) -> Expr:
    if math.prod(shape) != math.prod(n.b.static_shape(x)):
        raise Malformed(f"its operand of the shape {tuple(n.b.static_shape(x))} has other elements than the shape {tuple(shape)}")
    return n.b.reshape_exactly(x, shape)


def flatten(n: LayerNode, x: Expr) -> Any:
    b, data = n.b, n.four(x)[0] if n.old else x
    rank = b.rank(data)
    if rank < 3:
        raise Malformed(f"its operand has {int(rank)} axes")
    if n.p.mode == 1:
        data = b.transpose(data, [*range(rank - 3), rank - 2, rank - 1, rank - 3])
    if n.old:
        return b.op("nn.batch_flatten", data)
    shape = b.static_shape(data)
    return b.reshape_exactly(data, [*shape[:-3], math.prod(shape[-3:]), 1, 1])


def permute(n: LayerNode, x: Expr) -> Any:
    """The axes in another order. The axis of the batch, which the layer does not count, stays."""
    b, order = n.b, [int(v) for v in n.p.axis] or [0, 1, 2, 3]
    if sorted(order) != [0, 1, 2, 3]:
        raise Malformed(f"its order is {order[:8]}")
    if n.old:
        return b.transpose(n.four(x)[0], order)
    full = {0: 0, 1: 2, 2: 3, 3: 4}
    return b.transpose(b.of_rank(x, 5), [full[order[0]], 1, *[full[axis] for axis in order[1:]]])


def concat(n: LayerNode, *operands: Expr) -> Any:
    xs = alike(n, operands)
    if not xs:
        raise Malformed("it has no operand")
    if n.p.sequenceConcat:
        return n.b.concat(xs, 0)
    return n.b.concat(xs, n.channel(xs[0]))


def split(n: LayerNode, x: Expr) -> Any:
    return ops.split(n, x, n.channel(x), int(n.p.nOutputs))


def slices(n: LayerNode, x: Expr) -> Any:
    p, data = n.p, n.four(x)[0] if n.old else x
    if p.axis not in (0, 1, 2) or p.stride >= 1 << 31:
        raise Malformed(f"its axis has the number {p.axis}, and its step is {p.stride}")
    axis = int((p.axis - 3) % n.b.rank(data))
    extent, step = n.b.extent(data, axis), int(p.stride) or 1
    places = range(*slice(int(p.startIndex), int(p.endIndex) or None, step).indices(extent))
    if not places:
        raise Malformed(f"it takes the places {p.startIndex} to {p.endIndex} of {extent}")
    return n.b.slice(data, [places[0]], [places[-1] + 1], [axis], [step])


def sequence_repeat(n: LayerNode, x: Expr) -> Any:
    count = int(n.p.nRepetitions) or 1
    return ops.tile(n, x, [min(count, 1 << 31), *[1] * (n.b.rank(x) - 1)]) if count > 1 else x


_MODES = ("sum", "mean", "prod", "", "sum_square", "l1_norm", "l2_norm", "max", "min")
_AXES = ((-3, -2, -1), (-2, -1), (-3,), (-2,), (-1,))


def reduce(n: LayerNode, x: Expr) -> Any:
    """A result along channels, rows or columns, which stay with extent 1."""
    b, p, data = n.b, n.p, n.four(n.real(x))[0] if n.old else n.real(x)
    if not 0 <= p.axis < 5 or not 0 <= p.mode < 10:
        raise Malformed(f"its mode has the number {p.mode}, its axis {p.axis}")
    axes = [int(axis % b.rank(data)) for axis in _AXES[p.axis]]
    if p.mode == 9:
        if len(axes) > 1:
            raise Malformed("it takes places along several axes")
        return b.cast(b.op("argmax", data, axis=axes, keepdims=True), "float32")
    if p.mode == 3:
        return b.op("sum", b.op("log", b.op("add", data, n.float("epsilon", 1e-6))), axis=axes, keepdims=True)
    return _REDUCED[f"reduce_{_MODES[p.mode]}"](n, data, axes, True)


# ---- layers of the newer rule


def _reduced(name: str) -> Callable[..., Any]:
    def convert(n: LayerNode, x: Expr) -> Any:
        p = n.p
        if n.b.rank(x) and not p.reduceAll:
            n.axis(x, -1)
        axes = None if p.reduceAll or not p.axes else [int(axis) for axis in p.axes]
        return _REDUCED[name](n, n.real(x), axes, bool(p.keepDims) and not p.reduceAll)

    return convert


def _extreme(name: str) -> Callable[..., Any]:
    def convert(n: LayerNode, x: Expr) -> Any:
        axis = n.axis(x, n.p.axis)
        index = n.b.op(name, n.real(x), axis=[axis], keepdims=not n.p.removeDim)
        return n.b.unsqueeze(index, [0]) if n.b.rank(index) == 0 else index

    return convert


def squeeze(n: LayerNode, x: Expr) -> Any:
    n.axis(x, -1)
    squeezed = ops.squeeze(n, x, None if n.p.squeezeAll else [int(axis) for axis in n.p.axes])
    return n.b.unsqueeze(squeezed, [0]) if n.b.rank(squeezed) == 0 else squeezed


def expand_dims(n: LayerNode, x: Expr) -> Any:
    n.axis(x, -1) if n.b.rank(x) else None
    return ops.expand_dims(n, x, [int(axis) for axis in n.p.axes])


def reshape_static(n: LayerNode, x: Expr) -> Any:
    """Another shape: -1 takes the elements that are left, and 0 keeps an extent."""
    wanted = [int(d) for d in n.p.targetShape]
    if any(not -1 <= d < 1 << 31 for d in wanted):
        raise Malformed(f"its shape is {wanted[:8]}")
    return n.b.reshape_to(x, n.b.const(np.array(wanted, np.int64)))


def reshape_like(n: LayerNode, x: Expr, like: Expr) -> Any:
    return n.b.reshape_to(x, n.b.shape_of(like))


def slice_dynamic(n: LayerNode, x: Expr, begin: Expr, *others: Expr) -> Any:
    """A slice whose begins are computed; its ends, steps and masks may be operands, too."""
    b = n.b
    ints = [b.need_ints(whole(b, v), "its steps and masks") for v in others[1:]]
    return _sliced(n, x, whole(b, begin), whole(b, others[0]) if others else None, *ints)


def _sliced(n: LayerNode, x: Expr, begin: Expr, end: Expr | None = None, *stated: list[int]) -> Expr:
    p, rank = n.p, n.b.rank(x)
    n.axis(x, -1)
    ends = end if end is not None else n.b.const(np.array(list(p.endIds), np.int64))
    own: list[list[int]] = [list(v) for v in (p.strides, p.beginMasks, p.endMasks, p.squeezeMasks)]
    steps, *marks = [*stated, *own[len(stated) :]]
    masks = [[bool(v) for v in mask] for mask in marks]
    if len(steps) not in (0, rank) or any(len(mask) not in (0, rank) for mask in masks):
        raise Malformed(f"its steps and masks are not those of {int(rank)} axes")
    sliced = ops.slice_by_index(n, x, begin, ends, [int(v) for v in steps] or None, *masks)
    return n.b.unsqueeze(sliced, [0]) if n.b.rank(sliced) == 0 else sliced


def slice_by_size(n: LayerNode, x: Expr, begin: Expr) -> Any:
    b, axis = n.b, n.axis(x, n.p.axis)
    rank = b.rank(x)
    at = b.reshape_exactly(b.cast(whole(b, begin), "int64"), [1])
    none = b.const(np.zeros(1, np.int64))
    begins = b.concat([at if i == axis else none for i in range(rank)], 0)
    extents = b.const(np.array([n.p.size if i == axis else -1 for i in range(rank)], np.int64))
    return ops.slice_by_size(n, x, begins, extents)


def stack(n: LayerNode, *operands: Expr) -> Any:
    return ops.stack(n, alike(n, operands), int(n.p.axis))


def concat_nd(n: LayerNode, *operands: Expr) -> Any:
    if not operands:
        raise Malformed("it has no operand")
    xs = list(operands) if len({n.b.dtype(x) for x in operands}) == 1 else [n.real(x) for x in operands]
    return ops.concat(n, xs, n.axis(xs[0], n.p.axis), bool(n.p.interleave))


def transpose(n: LayerNode, x: Expr) -> Any:
    n.axis(x, -1)
    return ops.transpose(n, x, [int(axis) for axis in n.p.axes])


def reverse(n: LayerNode, x: Expr) -> Any:
    n.axis(x, -1)
    if len(n.p.reverseDim) != n.b.rank(x):
        raise Malformed(f"it turns {len(n.p.reverseDim)} axes of an operand that has {int(n.b.rank(x))}")
    axes = [i for i, turned in enumerate(n.p.reverseDim) if turned]
    return ops.reverse(n, x, axes) if axes else x


def tile(n: LayerNode, x: Expr, reps: Expr | None = None) -> Any:
    n.axis(x, -1)
    counts = n.b.need_ints(whole(n.b, reps), "its repetitions") if reps is not None else [int(v) for v in n.p.reps]
    return ops.tile(n, x, counts)


def fill_like(n: LayerNode, x: Expr) -> Any:
    return ops.fill_like(n, x, n.b.const(n.float("value"), "float32"))


def broadcast_like(n: LayerNode, x: Expr, like: Expr) -> Any:
    return nn.broadcast_to(n.b, x, n.b.shape_of(like))


def ranged(n: LayerNode, end: Expr | None = None, start: Expr | None = None, step: Expr | None = None) -> Any:
    b, p = n.b, n.p
    last = n.real(end) if end is not None else b.const(n.float("endValue"), "float32")
    first = n.real(start) if start is not None else b.const(n.float("startValue"), "float32")
    apart = n.real(step) if step is not None else b.const(float(p.stepSizeValue) or 1.0, "float32")
    return ops.range_1d(n, last, first, apart)


def topk(n: LayerNode, x: Expr, count: Expr | None = None) -> Any:
    k = n.b.need_ints(whole(n.b, count), "its count")[0] if count is not None else int(n.p.K)
    return select.topk(n, n.real(x), k, n.axis(x, n.p.axis), bool(n.p.useBottomK))


def argsort(n: LayerNode, x: Expr) -> Any:
    return select.argsort(n, n.real(x), n.axis(x, n.p.axis), not n.p.descending)


def one_hot(n: LayerNode, indices: Expr, size: Expr | None = None) -> Any:
    b, p = n.b, n.p
    count = b.need_ints(whole(b, size), "its size")[0] if size is not None else int(p.oneHotVectorSize)
    values = [b.const(n.float(name), "float32") for name in ("onValue", "offValue")]
    if n.old:
        raise Unsupported("it counts the axes of arrays, which are five by the network's rule")
    return ops.one_hot(n, whole(b, indices), count, int(p.axis), *values)


def _triangle(upper: bool) -> Callable[..., Any]:
    def convert(n: LayerNode, x: Expr) -> Any:
        """The elements on one side of a diagonal."""
        b, k = n.b, int(n.p.k)
        rows, columns = b.extent(x, -2), b.extent(x, -1)
        b.arrays.reserve((rows, columns))
        apart = b.arrays.arange(columns)[None, :] - b.arrays.arange(rows)[:, None]
        return b.op("where", b.const(apart >= k if upper else apart <= k), x, b.const(0, b.dtype(x)))

    return convert


def _indexed(convert: Callable[..., Any], axis: bool = False, mode: bool = False) -> Callable[..., Any]:
    def layer(n: LayerNode, x: Expr, indices: Expr, *updates: Expr) -> Any:
        """An operator of programs that takes places as its second operand."""
        attributes: dict[str, Any] = {"axis": n.axis(x, n.p.axis)} if axis else {}
        if mode:
            modes = ("update", "add", "sub", "mul", "div", "max", "min")
            if n.p.mode not in range(len(modes)) or len(updates) != 1:
                raise Malformed(f"its mode has the number {n.p.mode}, and it has {2 + len(updates)} operands")
            attributes["mode"] = modes[n.p.mode]
            return convert(n, n.real(x), whole(n.b, indices), n.real(updates[0]), **attributes)
        if updates:
            raise Malformed(f"it has {2 + len(updates)} operands")
        return convert(n, x, whole(n.b, indices), **attributes)

    return layer


def suppressed(n: LayerNode, boxes: Expr, scores: Expr, *others: Expr) -> Any:
    b, p = n.b, n.p
    limits = [n.float("iouThreshold"), n.float("scoreThreshold")]
    limits = [float(b.need(v, "its limits").reshape(-1)[0]) for v in others[:2]] + limits[len(others[:2]) :]
    most = b.need_ints(whole(b, others[2]), "its limits")[0] if len(others) > 2 else int(p.maxBoxes)
    overlap, least = limits
    return select.non_maximum_suppression(n, n.real(boxes), n.real(scores), overlap, most, least, bool(p.perClassSuppression))


_KINDS = """
L1 l1_norm; L2 l2_norm; Max max; Min min; Sum sum; Prod prod; Mean mean; LogSum log_sum; SumSquare sum_square;
LogSumExp log_sum_exp
"""

RULES = (
    *[
        Rule(f"reduce{kind}", _reduced(f"reduce_{name}"))
        for kind, name in (row.split() for row in _KINDS.replace("\n", " ").split(";"))
    ],
    Rule("NonMaximumSuppression", suppressed),
    Rule("argMax", _extreme("argmax")),
    Rule("argMin", _extreme("argmin")),
    Rule("argSort", argsort),
    Rule("broadcastToDynamic", lambda n, x, shape: nn.broadcast_to(n.b, x, n.b.cast(whole(n.b, shape), "int64"))),
    Rule("broadcastToLike", broadcast_like),
    Rule("broadcastToStatic", lambda n, x: nn.broadcast_to(n.b, x, n.b.const(np.array(list(n.p.targetShape), np.int64)))),
    Rule("concat", concat),
    Rule("concatND", concat_nd),
    Rule("cumSum", same(select.cumsum, "axis", real=True, exclusive="excludeFinalSum", reverse="reverse")),
    Rule("expandDims", expand_dims),
    Rule("fillDynamic", lambda n, shape: ops.fill(n, whole(n.b, shape), n.b.const(n.float("value"), "float32"))),
    Rule("fillLike", fill_like),
    Rule(
        "fillStatic",
        lambda n: ops.fill(n, n.b.const(np.array(list(n.p.targetShape), np.int64)), n.b.const(n.float("value"), "float32")),
    ),
    Rule("flatten", flatten),
    Rule("flattenTo2D", same(ops.flatten2d, "axis")),
    Rule("gather", _indexed(select.gather, axis=True)),
    Rule("gatherAlongAxis", _indexed(select.gather_along_axis, axis=True)),
    Rule("gatherND", _indexed(select.gather_nd)),
    Rule("getShape", lambda n, x: n.b.shape_of(x, "int32")),
    Rule("lowerTriangular", _triangle(False)),
    Rule("matrixBandPart", same(ops.band_part, lower="numLower", upper="numUpper")),
    Rule("oneHot", one_hot),
    Rule("permute", permute),
    Rule("rangeDynamic", ranged),
    Rule("rangeStatic", ranged),
    Rule("rankPreservingReshape", reshape_static),
    Rule("reduce", reduce),
    Rule("reshape", reshape),
    Rule("reshapeDynamic", lambda n, x, shape: n.b.reshape_to(x, whole(n.b, shape))),
    Rule("reshapeLike", reshape_like),
    Rule("reshapeStatic", reshape_static),
    Rule("reverse", reverse),
    Rule("reverseSeq", same(ops.reverse_sequence, seq_axis="sequenceAxis", batch_axis="batchAxis")),
    Rule("scatter", _indexed(select.scatter, axis=True, mode=True)),
    Rule("scatterAlongAxis", _indexed(select.scatter_along_axis, axis=True, mode=True)),
    Rule("scatterND", _indexed(select.scatter_nd, mode=True)),
    Rule("sequenceRepeat", sequence_repeat),
    Rule("slice", slices),
    Rule("sliceBySize", slice_by_size),
    Rule("sliceDynamic", slice_dynamic),
    Rule("sliceStatic", lambda n, x: _sliced(n, x, n.b.const(np.array(list(n.p.beginIds), np.int64)))),
    Rule("slidingWindows", same(ops.sliding_windows, "axis", size="windowSize", stride="step")),
    Rule("split", split),
    Rule("splitND", same(ops.split, "axis", num_splits="numSplits", split_sizes="splitSizes")),
    Rule("squeeze", squeeze),
    Rule("stack", stack),
    Rule("tile", tile),
    Rule("topK", topk),
    Rule("transpose", transpose),
    Rule("upperTriangular", _triangle(True)),
    Rule("whereNonZero", same(select.non_zero)),
)
