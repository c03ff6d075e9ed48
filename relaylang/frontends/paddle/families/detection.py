"""Boxes: those of YOLO and SSD, their selection, and parts of pictures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, regions
from relaylang.frontends.paddle.families.proposals import images_of
from relaylang.frontends.paddle.node import Node
from relaylang.ir import Expr


def yolo_box(n: Node, x: Expr, size: Expr) -> Any:
    """Boxes (batch, boxes, 4) in the picture's places, and scores (batch, boxes, classes); zeros where the confidence is low."""
    b = n.b
    anchors, classes, step = n.ints("anchors"), n.int("class_num"), n.int("downsample_ratio")
    aware, bend = n.bool("iou_aware", False), n.float("scale_x_y", 1.0)
    batch, channels, rows, columns = b.static_shape(x, "the operand", 4)
    count = len(anchors) // 2
    if len(anchors) % 2 or not count or classes < 1 or step < 1 or channels != count * (5 + classes + aware):
        raise Malformed(f"its {channels} channels are not those of {count} anchors and {classes} classes")
    cells = rows * columns
    fits = b.slice(x, [0], [count], [1]) if aware else None
    main = b.slice(x, [count], [channels], [1]) if aware else x
    parts = b.reshape_exactly(main, [batch, count, 5 + classes, rows, columns])

    def part(at: int, to: int) -> Expr:
        return b.slice(parts, [at], [to], [2])

    sure = b.op("sigmoid", part(4, 5))
    if fits is not None:
        share = n.float("iou_aware_factor", 0.5)
        fit = b.op("sigmoid", b.reshape_exactly(fits, [batch, count, 1, rows, columns]))
        sure = b.op("multiply", b.op("power", sure, 1 - share), b.op("power", fit, share))
    kept = b.op("greater_equal", sure, n.float("conf_thresh", 0.01))
    sides = [b.reshape_exactly(b.cast(b.slice(size, [i], [i + 1], [1]), "float32"), [batch, 1, 1, 1, 1]) for i in (1, 0)]
    ends: list[tuple[Expr, Expr]] = []
    for at, (extent, side) in enumerate(zip((columns, rows), sides)):
        places = b.const(b.arrays.arange(extent).astype("float32").reshape([1, 1, 1, *([1, extent] if at == 0 else [extent, 1])]))
        moved = b.op("add", b.op("multiply", b.op("sigmoid", part(at, at + 1)), bend), -0.5 * (bend - 1))
        centre = b.op("divide", b.op("multiply", b.op("add", moved, places), side), float(extent))
        own = b.const(np.array(anchors[at::2], np.float32).reshape(1, count, 1, 1, 1))
        width = b.op("multiply", b.op("multiply", b.op("exp", part(2 + at, 3 + at)), own), side)
        half = b.op("divide", b.op("divide", width, float(step * extent)), 2.0)
        low, high = b.op("subtract", centre, half), b.op("add", centre, half)
        if n.bool("clip_bbox", True):
            low, high = b.op("maximum", low, 0.0), b.op("minimum", high, b.op("subtract", side, 1.0))
        ends.append((low, high))
    boxes = b.concat([ends[0][0], ends[1][0], ends[0][1], ends[1][1]], 2)
    scores = b.op("multiply", b.op("sigmoid", part(5, 5 + classes)), sure)
    pieces = []
    for value, wide in ((boxes, 4), (scores, classes)):
        value = b.op("where", kept, value, b.const(0.0, "float32"))
        pieces.append(b.reshape_exactly(b.transpose(value, [0, 1, 3, 4, 2]), [batch, count * cells, wide]))
    return pieces


def _above(b: Builder, scores: Expr, most: int) -> Expr:
    """Which scores (classes, boxes) are among the `most` largest of their class."""
    values = b.fields(b.op("topk", scores, k=most, axis=1, ret_type="both", is_ascend=False, dtype="int64"))[0]
    return b.op("greater_equal", scores, b.slice(values, [most - 1], [most], [1]))


def multiclass_nms(n: Node, boxes: Expr, scores: Expr, counts: Expr | None = None) -> Any:
    """Rows of class, score and box; their places among all boxes; and their number for each picture."""
    b = n.b
    if counts is not None or b.rank(scores) != 3:
        raise Unsupported("its boxes are those of a batch of regions")
    if n.float("nms_eta", 1.0) != 1.0:
        raise Unsupported("its threshold changes with each box")
    batch, count, _ = b.static_shape(boxes, "the boxes", 3)
    classes = b.extent(scores, 1, "the classes")
    if not n.bool("normalized", True):
        boxes = b.op("add", boxes, b.const(np.array([0, 0, 1, 1], np.float32)))
    n.importer.budget.take_nodes(64 * batch, "writing the pictures of a batch out")
    selections = [_selected(n, boxes, scores, picture, count, classes) for picture in range(batch)]
    rows, places, numbers = ([f[i] for f in selections] for i in range(3))
    return [b.concat(rows, 0), b.concat(places, 0), b.concat(numbers, 0)]


def _selected(n: Node, boxes: Expr, scores: Expr, picture: int, count: int, classes: int) -> tuple[Expr, Expr, Expr]:
    """The chosen boxes of one picture, in the order of classes and scores."""
    b = n.b
    most, kept, least = n.int("nms_top_k"), n.int("keep_top_k"), n.float("score_threshold")
    own, values = (b.slice(v, [picture], [picture + 1], [0]) for v in (boxes, scores))
    flat = b.squeeze(values, [0])
    chosen = b.op("greater", flat, least)
    if 0 < most < count:
        chosen = b.op("logical_and", chosen, _above(b, flat, most))
    background = n.int("background_label", 0)
    if 0 <= background < classes:
        others = (b.arrays.arange(classes) != background)[:, None]
        chosen = b.op("logical_and", chosen, b.const(others))
    # Relay leaves boxes whose score is not above 0, so scores move up by the threshold where that is below 0.
    lift = max(-least, 0.0)
    usable = b.op("where", chosen, b.op("add", flat, lift) if lift else flat, b.const(0.0, "float32"))
    bound = np.nextafter(np.float32(n.float("nms_threshold", 0.3)), np.float32(np.inf))
    selected = b.op(
        "vision.all_class_non_max_suppression",
        own,
        b.unsqueeze(usable, [0]),
        b.const(count, "int64"),
        b.const(max(bound, np.finfo(np.float32).tiny)),
        b.const(0.0, "float32"),
        output_format="onnx",
    )
    rows, number = b.fields(selected)[:2]
    total = classes * count
    alive = b.op("less", b.const(b.arrays.arange(total)), b.cast(b.reshape(number, [1]), "int64"))
    labels, places = (b.squeeze(b.slice(b.cast(rows, "int64"), [i], [i + 1], [1]), [1]) for i in (1, 2))
    labels, places = (b.op("where", alive, v, b.const(0, "int64")) for v in (labels, places))
    score = b.op("take", b.op("reshape", flat, newshape=[-1]), b.op("add", b.op("multiply", labels, count), places), axis=0)
    if 0 < kept < total:
        ranked = b.op("where", alive, score, b.const(-np.inf, "float32"))
        order = b.op("argsort", ranked, axis=0, is_ascend=False, dtype="int64")
        rank = b.op("argsort", order, axis=0, is_ascend=True, dtype="int64")
        alive = b.op("logical_and", alive, b.op("less", rank, b.const(kept, "int64")))
    at = b.squeeze(b.op("argwhere", alive), [1])
    labels, places, score = (b.op("take", v, at, axis=0) for v in (labels, places, score))
    box = b.op("take", b.squeeze(own, [0]), places, axis=0)
    if not n.bool("normalized", True):
        box = b.op("subtract", box, b.const(np.array([0, 0, 1, 1], np.float32)))
    columns = [b.unsqueeze(b.cast(labels, "float32"), [1]), b.unsqueeze(score, [1]), box]
    numbers = b.unsqueeze(b.op("add", places, picture * count), [1])
    return b.concat(columns, 1), b.cast(numbers, "int32"), b.cast(b.reshape(b.shape_of(labels), [1]), "int32")


def _ratios(n: Node) -> list[float]:
    """1, then the others without those that are there already, each with its inverse where boxes are flipped."""
    ratios = [1.0]
    for ratio in n.floats("aspect_ratios", [1.0]):
        if ratio <= 0:
            raise Malformed(f"it has the aspect ratio {ratio}")
        if all(abs(ratio - other) > 1e-6 for other in ratios):
            ratios += [ratio, 1 / ratio] if n.bool("flip", False) else [ratio]
    return ratios


def prior_box(n: Node, x: Expr, image: Expr) -> Any:
    """Boxes (rows, columns, boxes, 4) as shares of the picture, and their variances."""
    b = n.b
    rows, columns = b.static_shape(x, "the operand", 4)[2:]
    high, wide = b.static_shape(image, "the picture", 4)[2:]
    least, greatest = n.floats("min_sizes"), n.floats("max_sizes", [])
    variances = n.floats("variances", [0.1, 0.1, 0.2, 0.2])
    if len(greatest) not in (0, len(least)) or len(variances) != 4 or not least or not high or not wide:
        raise Malformed(f"it has {len(least)} sizes, {len(greatest)} greatest sizes and {len(variances)} variances")
    sizes: list[tuple[float, float]] = []
    for at, small in enumerate(least):
        shaped = [(small * math.sqrt(r), small / math.sqrt(r)) for r in _ratios(n)]
        between = [(math.sqrt(small * greatest[at]),) * 2] if greatest else []
        first = n.bool("min_max_aspect_ratios_order", False)
        sizes += [shaped[0], *between, *shaped[1:]] if first else [*shaped, *between]  # type: ignore[list-item]
    steps = [n.float(name, 0.0) or extent / count for name, extent, count in (("step_w", wide, columns), ("step_h", high, rows))]
    b.arrays.reserve((rows, columns, len(sizes), 8), size=4)
    offset = n.float("offset", 0.5)
    half = np.array(sizes, np.float64) / 2
    across = np.broadcast_to(((b.arrays.arange(columns) + offset) * steps[0])[None, :, None], (rows, columns, len(sizes)))
    down = np.broadcast_to(((b.arrays.arange(rows) + offset) * steps[1])[:, None, None], (rows, columns, len(sizes)))
    ends = [(across - half[:, 0]) / wide, (down - half[:, 1]) / high, (across + half[:, 0]) / wide, (down + half[:, 1]) / high]
    boxes = np.stack(ends, 3).astype("float32")
    boxes = boxes.clip(0, 1) if n.bool("clip", False) else boxes
    spread = np.broadcast_to(np.array(variances, np.float32), boxes.shape)
    return [b.const(boxes), b.const(np.ascontiguousarray(spread))]


def _moved_boxes(b: Builder, moves: Expr, centres: list[Expr], extents: list[Expr], one: float) -> Expr:
    """The boxes that lie by moves from boxes of these centres and extents."""
    last = b.rank(moves) - 1
    parts = [b.slice(moves, [i], [i + 1], [last]) for i in range(4)]
    middle = [b.op("add", b.op("multiply", p, e), c) for p, e, c in zip(parts[:2], extents, centres)]
    half = [b.op("divide", b.op("multiply", b.op("exp", p), e), 2.0) for p, e in zip(parts[2:], extents)]
    low = [b.op("subtract", m, h) for m, h in zip(middle, half)]
    high = [b.op("subtract", b.op("add", m, h), one) for m, h in zip(middle, half)]
    return b.concat([*low, *high], last)


def box_coder(n: Node, priors: Expr, spread: Expr | None, target: Expr) -> Any:
    """Boxes as moves from others, or moves as boxes."""
    b, axis = n.b, n.int("axis", 0)
    kind = n.text("code_type", "encode_center_size")
    one = 0.0 if n.bool("box_normalized", True) else 1.0
    decode = kind.lower().startswith("decode")
    if axis not in (0, 1):
        raise Malformed(f"its axis is {axis}")

    def ends(boxes: Expr) -> tuple[list[Expr], list[Expr]]:
        """The centres and the extents of boxes, along x and y."""
        last = b.rank(boxes) - 1
        low, high = ([b.slice(boxes, [i], [i + 1], [last]) for i in pair] for pair in ((0, 1), (2, 3)))
        extents = [b.op("add", b.op("subtract", q, p), one) if one else b.op("subtract", q, p) for p, q in zip(low, high)]
        return [b.op("add", p, b.op("divide", e, 2.0)) for p, e in zip(low, extents)], extents

    place = 0 if not decode or axis == 0 else 1
    prior = b.unsqueeze(priors, [place])
    factors = b.unsqueeze(spread, [place]) if spread is not None and b.rank(spread) == 2 else spread
    if factors is None:
        variances = n.floats("variance", [])
        factors = b.const(np.array(variances or [1.0] * 4, np.float32))
    centres, extents = ends(prior)
    if decode:
        return _moved_boxes(b, b.op("multiply", target, factors), centres, extents, one)
    wanted = b.unsqueeze(target, [1])
    lengths = ends(wanted)[1]
    middles = [b.op("divide", b.op("add", *[b.slice(wanted, [i], [i + 1], [2]) for i in pair]), 2.0) for pair in ((0, 2), (1, 3))]
    moved = [b.op("divide", b.op("subtract", m, c), e) for m, c, e in zip(middles, centres, extents)]
    grown = [b.op("log", b.op("abs", b.op("divide", w, e))) for w, e in zip(lengths, extents)]
    return b.op("divide", b.concat([*moved, *grown], 2), factors)


def roi_align(n: Node, x: Expr, boxes: Expr, counts: Expr | None = None) -> Any:
    """Parts of pictures; `counts` are the numbers of regions of each picture."""
    b = n.b
    scale, ratio = n.float("spatial_scale", 1.0), max(n.int("sampling_ratio", -1), 0)
    size = n.int("pooled_height", 1), n.int("pooled_width", 1)
    if any(s < 1 for s in size):
        raise Malformed(f"its parts have the extents {size}")
    batch = images_of(n, boxes, counts)
    axes = regions.axes_of(b, boxes, size, scale, ratio, n.bool("aligned", False))
    return regions.mean(b, x, batch, axes)


def psroi_pool(n: Node, x: Expr, boxes: Expr, counts: Expr | None = None) -> Any:
    """Means of the whole elements of cells, of which each has channels of its own. Corners are rounded before they are scaled."""
    b, scale, outputs = n.b, n.float("spatial_scale", 1.0), n.int("output_channels", 1)
    size = n.int("pooled_height", 1), n.int("pooled_width", 1)
    if min(size) < 1 or outputs < 1:
        raise Malformed(f"its parts have the extents {size}, with {outputs} channels")
    images, batch = regions.by_cell(b, x, images_of(n, boxes, counts), size)
    if b.extent(images, 1) != outputs:
        raise Malformed(f"its {b.extent(x, 1)} channels are not {outputs} for each of {size[0]} x {size[1]} cells")
    ends = b.op("round", boxes)
    ends = b.op("multiply", b.op("add", ends, b.const(np.array([0, 0, 1, 1], np.float32))), scale)
    limits = b.extent(x, 2), b.extent(x, 3)
    parts, some = regions.cut_cells(b, ends, size, 0.1, limits)
    return b.op("where", some, regions.cells(b, images, batch, parts), b.const(0, b.dtype(x)))


RULES = (
    Rule("box_coder", box_coder),
    Rule("multiclass_nms3", multiclass_nms),
    Rule("prior_box", prior_box),
    Rule("psroi_pool", psroi_pool),
    Rule("roi_align", roi_align),
    Rule("yolo_box", yolo_box),
)
