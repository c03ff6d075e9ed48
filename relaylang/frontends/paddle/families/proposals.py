"""Regions of detectors in two stages: proposals, their levels, pools of regions, and other selections of boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common.boxes import overlaps
from relaylang.frontends.common.slices import pad as padded
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.ir import Expr

#: Boxes grow at most by this factor.
_GROWTH = math.log(1000.0 / 16.0)


def images_of(n: Node, boxes: Expr, counts: Expr | None) -> Expr:
    """The picture of each region, an int32, from the numbers of regions of the pictures."""
    b = n.b
    rows = b.scalar(b.slice(b.shape_of(boxes), [0], [1], [0]))
    places = b.arange(b.const(0, "int64"), rows, b.const(1, "int64"), "int64")
    if counts is None:
        return b.cast(b.op("zeros_like", places), "int32")
    ends = b.op("cumsum", b.cast(b.of_rank(counts, 1), "int64"), axis=0)
    return b.op("sum", b.cast(b.op("greater_equal", b.unsqueeze(places, [1]), b.unsqueeze(ends, [0])), "int32"), axis=[1])


def _sides(b: Builder, boxes: Expr, more: float) -> tuple[list[Expr], list[Expr]]:
    """Columns of the starts and the extents of boxes, along x and y."""
    ends = [b.slice(boxes, [i], [i + 1], [1]) for i in range(4)]
    extents = [b.op("subtract", ends[i + 2], ends[i]) for i in (0, 1)]
    return ends[:2], [b.op("add", e, more) for e in extents] if more else extents


def _kept(n: Node, boxes: Expr, usable: Expr, bound: float, more: float) -> tuple[Expr, Expr]:
    """The places of boxes that no better one covers, the best first, and their number. Boxes are in the order of their scores."""
    b = n.b
    count = b.extent(boxes, 0)
    ranked = b.const(b.arrays.arange(1, count + 1)[::-1].astype("float32"))
    scores = b.op("where", usable, ranked, b.const(0.0, "float32"))
    wide = b.op("add", boxes, b.const(np.array([0, 0, more, more], np.float32))) if more else boxes
    if bound <= 0:
        order = b.op("argsort", scores, axis=0, is_ascend=False, dtype="int64")
        return order, b.op("sum", b.cast(usable, "int64"))
    selected = b.op(
        "vision.all_class_non_max_suppression",
        b.unsqueeze(wide, [0]),
        b.unsqueeze(scores, [0, 1]),
        b.const(count, "int64"),
        b.const(np.nextafter(np.float32(bound), np.float32(np.inf))),
        b.const(0.0, "float32"),
        output_format="onnx",
    )
    rows, number = b.fields(selected)[:2]
    return b.squeeze(b.slice(b.cast(rows, "int64"), [2], [3], [1]), [1]), b.scalar(b.cast(number, "int64"))


def generate_proposals(n: Node, scores: Expr, moves: Expr, sizes: Expr, anchors: Expr, spread: Expr) -> Any:
    """The best boxes of each picture, their scores, and their number: one of zeros where none is large enough."""
    b = n.b
    if n.float("eta", 1.0) != 1.0:
        raise Unsupported("its threshold changes with each box")
    batch, count, rows, columns = b.static_shape(scores, "the scores", 4)
    total = count * rows * columns
    priors, factors = (b.reshape_exactly(v, [total, 4]) for v in (anchors, spread))
    n.importer.budget.take_nodes(64 * batch, "writing the pictures of a batch out")
    flat = b.reshape_exactly(b.transpose(scores, [0, 2, 3, 1]), [batch, total])
    parted = b.reshape_exactly(b.transpose(moves, [0, 2, 3, 1]), [batch, total, 4])
    proposals = []
    for picture in range(batch):
        own = [b.squeeze(b.slice(v, [picture], [picture + 1], [0]), [0]) for v in (flat, parted, sizes)]
        proposals.append(_proposals(n, own[0], own[1], own[2], priors, factors))
    boxes, values, numbers = ([m[i] for m in proposals] for i in range(3))
    return [b.concat(boxes, 0), b.concat(values, 0), b.concat(numbers, 0)]


def _proposals(n: Node, scores: Expr, moves: Expr, size: Expr, priors: Expr, factors: Expr) -> tuple[Expr, Expr, Expr]:
    b, total = n.b, n.b.extent(scores, 0)
    first, most = n.int("pre_nms_top_n", 6000), n.int("post_nms_top_n", 1000)
    first = total if first <= 0 else min(first, total)
    more = float(n.bool("pixel_offset", True))
    values, at = b.fields(b.op("topk", scores, k=first, axis=0, ret_type="both", is_ascend=False, dtype="int64"))
    moves, priors, factors = (b.op("take", v, at, axis=0) for v in (moves, priors, factors))
    starts, extents = _sides(b, priors, more)
    steps = [b.slice(b.op("multiply", moves, factors), [i], [i + 1], [1]) for i in range(4)]
    middles = [
        b.op("add", b.op("multiply", s, e), b.op("add", p, b.op("multiply", e, 0.5))) for s, e, p in zip(steps, extents, starts)
    ]
    grown = [b.op("multiply", b.op("exp", b.op("minimum", s, _GROWTH)), e) for s, e in zip(steps[2:], extents)]
    ends = [b.slice(b.op("subtract", size, more) if more else size, [i], [i + 1], [0]) for i in (1, 0)]

    def held(v: Expr, end: Expr) -> Expr:
        return b.op("maximum", b.op("minimum", v, end), 0.0)

    half = [b.op("multiply", g, 0.5) for g in grown]
    low = [held(b.op("subtract", m, h), e) for m, h, e in zip(middles, half, ends)]
    high = [b.op("add", m, h) for m, h in zip(middles, half)]
    high = [held(b.op("subtract", h, more) if more else h, e) for h, e in zip(high, ends)]
    boxes = b.concat([*low, *high], 1)
    lengths = _sides(b, boxes, more)[1]
    least = max(n.float("min_size", 0.1), 1.0)
    tests = [b.op("greater_equal", e, least) for e in lengths]
    if more:
        image_size = [b.slice(size, [i], [i + 1], [0]) for i in (1, 0)]
        tests += [b.op("less_equal", b.op("add", p, b.op("divide", e, 2.0)), w) for p, e, w in zip(low, lengths, image_size)]
    usable = b.squeeze(b.op("min", b.cast(b.concat(tests, 1), "int32"), axis=[1], keepdims=True), [1])
    places, number = _kept(n, boxes, b.op("greater", usable, 0), n.float("nms_thresh", 0.5), more)
    left = b.op("minimum", number, b.const(most, "int64")) if most > 0 else number
    slots = b.const(b.arrays.arange(first), "int64")
    none = b.const(first, "int64")
    places = b.op("where", b.op("less", slots, left), places, none)  # a box of zeros stands behind the others
    alive = b.op("less", slots, b.op("maximum", left, b.const(1, "int64")))
    chosen = b.op("take", places, b.squeeze(b.op("argwhere", alive), [1]), axis=0)
    boxes, values = (padded(b, v, [(0, 1), (0, 0)]) for v in (boxes, b.unsqueeze(values, [1])))
    rois, kept = (b.op("take", v, chosen, axis=0) for v in (boxes, values))
    return rois, kept, b.cast(b.reshape(b.op("maximum", left, b.const(1, "int64")), [1]), "int32")


def distribute(n: Node, boxes: Expr, counts: Expr | None = None) -> Any:
    """The regions of each level by their size; the numbers of each level; and where each region is among all of them."""
    b = n.b
    low, high, middle, scale = (n.int(name) for name in ("min_level", "max_level", "refer_level", "refer_scale"))
    if not 0 <= high - low < 64 or scale < 1:
        raise Malformed(f"its levels go from {low} to {high}, for the size {scale}")
    extents = _sides(b, boxes, 1.0 if n.bool("pixel_offset", True) else 0.0)[1]
    area = b.squeeze(b.op("multiply", *extents), [1])
    level = b.op("log2", b.op("add", b.op("divide", b.op("sqrt", b.op("maximum", area, 0.0)), float(scale)), 1e-6))
    level = b.op("clip", b.op("floor", b.op("add", level, float(middle))), a_min=float(low), a_max=float(high))
    picture = images_of(n, boxes, counts)
    number = b.extent(counts, 0) if counts is not None else 1
    pictures = b.const(b.arrays.arange(number)[:, None], "int32")
    parts, places, numbers = [], [], []
    for own in range(low, high + 1):
        here = b.op("equal", level, float(own))
        at = b.squeeze(b.op("argwhere", here), [1])
        parts.append(b.op("take", boxes, at, axis=0))
        places.append(b.cast(at, "int32"))
        mine = b.op("logical_and", b.op("equal", b.unsqueeze(picture, [0]), pictures), b.unsqueeze(here, [0]))
        numbers.append(b.op("sum", b.cast(mine, "int32"), axis=[1]))
    order = b.op("argsort", b.concat(places, 0), axis=0, dtype="int32")
    return [parts, numbers, b.unsqueeze(order, [1])]


def collect(n: Node, boxes: Tensors, scores: Tensors, counts: Any = None) -> Any:
    """The best regions of all levels, those of each picture together, and their number for each."""
    b, xs, values = n.b, n.list(boxes), n.list(scores)
    box, value = b.concat(xs, 0), b.op("reshape", b.concat(values, 0), newshape=[-1])
    level_counts = n.list(counts) if counts is not None else [None] * len(xs)
    if len(level_counts) != len(xs) or len(values) != len(xs):
        raise Malformed(f"it has {len(xs)} levels, {len(values)} of scores and {len(level_counts)} of numbers")
    picture = b.concat([images_of(n, x, c) for x, c in zip(xs, level_counts)], 0)
    order = b.op("argsort", value, axis=0, is_ascend=False, dtype="int64")
    total = b.shape(box)[0]
    most = n.int("post_nms_topn", 1) if n.has("post_nms_topn") else n.int("post_nms_topN")
    if not isinstance(total, int) or most < total:
        order = b.op("strided_slice", order, begin=[0], end=[most], strides=[1])
    order = b.op("take", order, b.op("argsort", b.op("take", picture, order, axis=0), axis=0, dtype="int64"), axis=0)
    number = b.extent(level_counts[0], 0) if level_counts[0] is not None else 1
    own = b.op("equal", b.unsqueeze(b.op("take", picture, order, axis=0), [0]), b.const(b.arrays.arange(number)[:, None], "int32"))
    return [b.op("take", box, order, axis=0), b.op("sum", b.cast(own, "int32"), axis=[1])]


def matrix_nms(n: Node, boxes: Expr, scores: Expr) -> Any:
    """Rows of class, score and box, the scores lower by the overlaps with better boxes; their places; and their numbers."""
    b = n.b
    batch, count, _ = b.static_shape(boxes, "the boxes", 3)
    classes = b.extent(scores, 1, "the classes")
    background = n.int("background_label", 0)
    labels = [c for c in range(classes) if c != background]
    if not labels:
        raise Malformed("it has no class but the background")
    n.importer.budget.take_nodes(64 * batch, "writing the pictures of a batch out")
    decayed = []
    for picture in range(batch):
        own, values = (b.squeeze(b.slice(v, [picture], [picture + 1], [0]), [0]) for v in (boxes, scores))
        decayed.append(_decayed(n, own, b.op("take", values, b.const(np.array(labels)), axis=0), labels, picture * count))
    rows, places, numbers = ([m[i] for m in decayed] for i in range(3))
    return [b.concat(rows, 0), b.concat(places, 0), b.concat(numbers, 0)]


def _decayed(n: Node, boxes: Expr, scores: Expr, labels: Sequence[int], front: int) -> tuple[Expr, Expr, Expr]:
    b = n.b
    count, many = b.extent(boxes, 0), len(labels)
    top, kept = n.int("nms_top_k"), n.int("keep_top_k")
    top = min(top, count) if top > -1 else count
    values, at = b.fields(b.op("topk", scores, k=top, axis=1, ret_type="both", is_ascend=False, dtype="int64"))
    wide = boxes if n.bool("normalized", True) else b.op("add", boxes, b.const(np.array([0, 0, 1, 1], np.float32)))
    b.arrays.reserve((many, top, top), "the overlaps of its boxes", 0)
    flat = b.op("reshape", at, newshape=[-1])
    pairs = b.reshape_exactly(b.op("take", overlaps(b, wide), flat, axis=0), [many, top, count])
    pairs = b.op("gather", pairs, b.op("broadcast_to", b.unsqueeze(at, [1]), shape=[many, top, top]), axis=2)
    before = b.const(np.tril(b.arrays.ones((top, top), bool), -1)[None])
    zero, one = b.const(0.0, "float32"), b.const(1.0, "float32")
    pairs = b.op("where", before, pairs, zero)
    most = b.op("max", pairs, axis=[2], keepdims=True)  # with a better box, for each box
    most = b.transpose(most, [0, 2, 1])
    if n.bool("use_gaussian", False):
        squares = [b.op("multiply", v, v) for v in (most, pairs)]
        decay = b.op("exp", b.op("multiply", b.op("subtract", *squares), n.float("gaussian_sigma", 2.0)))
    else:
        decay = b.op("divide", b.op("subtract", one, pairs), b.op("subtract", one, most))
    lower = b.op("multiply", b.op("min", b.op("where", before, decay, one), axis=[2]), values)
    fine = b.op(
        "logical_and", b.op("greater", values, n.float("score_threshold")), b.op("greater", lower, n.float("post_threshold", 0.0))
    )
    ranked = b.op("reshape", b.op("where", fine, lower, b.const(-np.inf, "float32")), newshape=[-1])
    order = b.op("argsort", ranked, axis=0, is_ascend=False, dtype="int64")
    if 0 <= kept < many * top:
        order = b.slice(order, [0], [kept], [0])
    alive = b.op("take", b.op("reshape", fine, newshape=[-1]), order, axis=0)
    order = b.op("take", order, b.squeeze(b.op("argwhere", alive), [1]), axis=0)
    label = b.const(b.arrays.repeat(np.array(labels, "float32"), top))
    place, score = (b.op("take", v, order, axis=0) for v in (flat, b.op("reshape", lower, newshape=[-1])))
    columns = [b.unsqueeze(b.op("take", label, order, axis=0), [1]), b.unsqueeze(score, [1]), b.op("take", boxes, place, axis=0)]
    index = b.cast(b.unsqueeze(b.op("add", place, front), [1]), "int32")
    return b.concat(columns, 1), index, b.cast(b.reshape(b.shape_of(place), [1]), "int32")


def nms(n: Node, boxes: Expr) -> Any:
    """The places of boxes that no earlier one covers."""
    b, count = n.b, n.b.extent(boxes, 0)
    places, number = _kept(n, boxes, b.const(b.arrays.ones(count, bool)), n.float("threshold", 1.0), 0.0)
    alive = b.op("less", b.const(b.arrays.arange(count), "int64"), number)
    return b.op("take", places, b.squeeze(b.op("argwhere", alive), [1]), axis=0)


def box_clip(n: Node, boxes: Expr, sizes: Expr) -> Any:
    """Boxes inside of their pictures; the sizes of those are rows, columns and their scale."""
    b = n.b
    scale = b.slice(sizes, [2], [3], [1])
    extents = [b.op("subtract", b.op("round", b.op("divide", b.slice(sizes, [i], [i + 1], [1]), scale)), 1.0) for i in (1, 0)]
    ends = b.concat([*extents, *extents], 1)
    ends = b.unsqueeze(ends, [1]) if b.rank(boxes) == 3 else ends
    return b.op("maximum", b.op("minimum", boxes, ends), 0.0)


def iou_similarity(n: Node, x: Expr, y: Expr) -> Any:
    """The overlap of each box with each other."""
    b, more = n.b, 0.0 if n.bool("box_normalized", True) else 1.0
    (starts, extents), (others, lengths) = (_sides(b, v, more) for v in (x, y))
    turned = [[b.transpose(v, [1, 0]) for v in side] for side in (others, lengths)]
    common = []
    for at, extent, other, length in zip(starts, extents, *turned):
        last = b.op("minimum", b.op("add", at, extent), b.op("add", other, length))
        common.append(b.op("maximum", b.op("subtract", last, b.op("maximum", at, other)), 0.0))
    both = b.op("multiply", *common)
    areas = b.op("add", b.op("multiply", *extents), b.op("multiply", *turned[1]))
    return b.op("divide", both, b.op("subtract", areas, both))


def anchors(n: Node, x: Expr) -> Any:
    """Boxes (rows, columns, boxes, 4) around the places of an operand, and their variances."""
    b = n.b
    rows, columns = b.static_shape(x, "the operand", 4)[2:]
    sizes, ratios, stride = n.floats("anchor_sizes"), n.floats("aspect_ratios"), n.floats("stride")
    variances, offset = n.floats("variances", [0.1, 0.1, 0.2, 0.2]), n.float("offset", 0.5)
    if len(stride) != 2 or len(variances) != 4 or min(*stride, *ratios, *sizes, 1.0) <= 0:
        raise Malformed(f"it has the steps {stride[:4]}, the ratios {ratios[:4]} and the variances {variances[:4]}")
    b.arrays.reserve((rows, columns, len(sizes) * len(ratios), 8), size=4)
    across, down = stride
    half = []
    for ratio in ratios:
        base = round(math.sqrt(across * down / ratio))
        half += [(size / across * base, size / down * round(base * ratio)) for size in sizes]
    lengths = (np.array(half, np.float64).reshape(-1, 2) - 1) / 2
    x_at = (b.arrays.arange(columns) * across + offset * (across - 1))[None, :, None]
    y_at = (b.arrays.arange(rows) * down + offset * (down - 1))[:, None, None]
    ends = [x_at - lengths[:, 0], y_at - lengths[:, 1], x_at + lengths[:, 0], y_at + lengths[:, 1]]
    boxes = np.stack(np.broadcast_arrays(*ends), 3).astype("float32")
    return [b.const(boxes), b.const(np.ascontiguousarray(np.broadcast_to(np.array(variances, "float32"), boxes.shape)))]


# ---- pools of regions


def roi_pool(n: Node, x: Expr, boxes: Expr, counts: Expr | None = None) -> Any:
    b = n.b
    rows = b.concat([b.unsqueeze(b.cast(images_of(n, boxes, counts), b.dtype(boxes)), [1]), boxes], 1)
    size = [n.int("pooled_height", 1), n.int("pooled_width", 1)]
    return b.op("vision.roi_pool", x, rows, pooled_size=size, spatial_scale=n.float("spatial_scale", 1.0))


RULES = (
    Rule("anchor_generator", anchors),
    Rule("box_clip", box_clip),
    Rule("collect_fpn_proposals", collect),
    Rule("distribute_fpn_proposals", distribute),
    Rule("generate_proposals", generate_proposals),
    Rule("iou_similarity", iou_similarity),
    Rule("matrix_nms", matrix_nms),
    Rule("nms", nms),
    Rule("roi_pool", roi_pool),
)
