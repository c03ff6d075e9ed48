"""Boxes of SSD, and regions of pictures.

Source: the layers of Caffe's branch for SSD, and of Fast R-CNN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.caffe.node import LARGEST, Node
from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.ir import Expr


def _shapes(n: Node, p: Any) -> list[tuple[float, float]]:
    """The width and height of each box at a place, in the order of the layer."""
    least, most = n.floats(p, "min_size"), n.floats(p, "max_size")
    if not least or min(least) <= 0 or (most and (len(most) != len(least) or any(a >= z for a, z in zip(least, most)))):
        raise Malformed(f"its sizes are {least[:8]} to {most[:8]}")
    ratios = [1.0]
    for ratio in n.floats(p, "aspect_ratio"):
        if ratio <= 0:
            raise Malformed(f"it has the aspect ratio {ratio}")
        if all(abs(ratio - other) >= 1e-6 for other in ratios):
            ratios += [ratio, 1 / ratio] if p.flip else [ratio]
    boxes: list[tuple[float, float]] = []
    for at, low in enumerate(map(int, least)):  # Caffe cuts sizes off to whole numbers.
        boxes.append((low, low))
        if most:
            boxes.append((math.sqrt(low * int(most[at])),) * 2)
        boxes += [(low * math.sqrt(r), low / math.sqrt(r)) for r in ratios if abs(r - 1) >= 1e-6]
    return boxes


def prior_box(n: Node, x: Expr, picture: Expr | None = None) -> Any:
    """Boxes at each place of a picture, in parts of another one: a constant (1, 2, boxes * 4) of corners and variances."""
    b, p = n.b, n.params("prior_box_param")
    rows, columns = (b.extent(b.of_rank(x, 4), axis) for axis in (2, 3))
    height, width = (p.img_h or p.img_size), (p.img_w or p.img_size)
    if not height or not width:
        if picture is None:
            raise Malformed("it has neither a picture nor its size")
        height, width = (b.extent(b.of_rank(picture, 4), axis) for axis in (2, 3))
    step_h, step_w = (n.float(p, name) or n.float(p, "step") for name in ("step_h", "step_w"))
    if not step_h or not step_w:
        step_h, step_w = height / max(rows, 1), width / max(columns, 1)
    variances = n.floats(p, "variance") or [0.1]
    if len(variances) not in (1, 4) or max(height, width) >= LARGEST or min(step_h, step_w) < 0:
        raise Malformed(f"it has {len(variances)} variances, and its picture is {height} x {width}")
    sizes = _shapes(n, p)
    b.arrays.reserve((rows, columns, len(sizes), 8), "making its boxes")
    middles = b.arrays.zeros((rows, columns, 1, 2))
    middles[..., 0] = ((b.arrays.arange(columns) + p.offset) * step_w)[:, None]
    middles[..., 1] = ((b.arrays.arange(rows) + p.offset) * step_h)[:, None, None]
    halves = np.array(sizes) / 2
    ends = [middles + sign * halves for sign in (-1, 1)]
    boxes = np.concatenate(ends, -1) / [width, height, width, height]
    boxes = np.clip(boxes, 0, 1) if p.clip else boxes
    spread = b.arrays.full((rows, columns, len(sizes), 4), variances, np.float64)
    return b.const(np.stack([boxes.reshape(-1), spread.reshape(-1)])[None], "float32")


def _decoded(b: Builder, moves: Expr, prior: Expr, code: int, plain: bool) -> Expr:
    """The corners of boxes (batch, boxes, classes, 4), from moves of those of `prior` (1, 2, boxes, 1, 4)."""
    here, spread = (b.squeeze(b.slice(prior, [i], [i + 1], [1]), [1]) for i in (0, 1))
    own = moves if plain else b.op("multiply", moves, spread)
    if code == 1:
        return b.op("add", here, own)
    low, high = b.slice(here, [0], [2], [3]), b.slice(here, [2], [4], [3])
    size = b.op("subtract", high, low)
    if code == 3:
        return b.op("add", here, b.op("multiply", own, b.concat([size, size], 3)))
    middle = b.op("multiply", b.op("add", low, high), 0.5)
    centre = b.op("add", b.op("multiply", b.slice(own, [0], [2], [3]), size), middle)
    half = b.op("multiply", b.op("multiply", b.op("exp", b.slice(own, [2], [4], [3])), size), 0.5)
    return b.concat([b.op("subtract", centre, half), b.op("add", centre, half)], 3)


def detection_output(n: Node, moves: Expr, scores: Expr, prior: Expr, *more: Expr) -> Any:
    """Rows (1, 1, rows, 7) of picture, class, score and corners, in the order of pictures, classes and scores.

    Each class keeps its best boxes without those that they cover, each picture the best of all its classes. Caffe gives as
    many rows as there are boxes. Here their number is fixed, and rows without a box are -1.
    """
    b, p = n.b, n.params("detection_output_param")
    classes, batch = p.num_classes, b.extent(moves, 0)
    if more:
        raise Unsupported(f"it has {3 + len(more)} operands, as the refinement of boxes has")
    if p.nms_param.eta != 1:
        raise Unsupported("its threshold of overlaps changes from box to box")
    count = b.extent(b.of_rank(prior, 3), 2) // 4
    places = 1 if p.share_location else classes
    kept = [c for c in range(classes) if c != p.background_label_id] if classes < 1 << 16 else []
    if not kept or not count or p.code_type not in (1, 2, 3):
        raise Malformed(f"it has {classes} classes and {count} boxes")
    # Boxes and scores by class.
    own = b.reshape_exactly(moves, [batch, count, places, 4])
    boxes = _decoded(b, own, b.reshape_exactly(prior, [1, 2, count, 1, 4]), p.code_type, p.variance_encoded_in_target)
    boxes = b.transpose(boxes, [0, 2, 1, 3])
    wanted = b.const(np.array(kept), "int32")
    chance = b.op("take", b.transpose(b.reshape_exactly(scores, [batch, count, classes]), [0, 2, 1]), wanted, axis=1)
    if p.share_location:
        boxes = b.op("broadcast_to", boxes, shape=[batch, len(kept), count, 4])
    else:
        boxes = b.op("take", boxes, wanted, axis=1)
    rows = b.reshape_exactly(b.concat([b.unsqueeze(chance, [3]), boxes], 3), [batch * len(kept), count, 5])
    # The best of each class.
    least = n.float(p, "confidence_threshold") if p.HasField("confidence_threshold") else float(np.finfo(np.float32).min)
    how = {"id_index": -1, "score_index": 0}
    numbers, rows, order = b.fields(b.op("vision.get_valid_counts", rows, b.const(least, "float32"), score_threshold=least, **how))
    best = p.nms_param.top_k if p.nms_param.top_k >= 0 else -1
    limits = b.const(-1, "int32"), b.const(n.float(p.nms_param, "nms_threshold"), "float32")
    how |= {"return_indices": False, "invalid_to_bottom": True, "force_suppress": True, "coord_start": 1, "top_k": best}
    rows = b.op("vision.non_max_suppression", rows, numbers, order, *limits, **how)
    most = min(count, best) if best > 0 else count
    rows = b.reshape_exactly(b.slice(rows, [0], [most], [1]), [batch, len(kept) * most, 5])
    return _best(b, rows, kept, batch, most, p.keep_top_k)


def _best(b: Builder, rows: Expr, kept: list[int], batch: int, most: int, limit: int) -> Expr:
    """Of the rows (batch, classes * most, 5) of each picture those with the best scores, in their own order; then -1."""
    total = len(kept) * most
    count = min(limit, total) if limit >= 0 else total
    if not count:
        raise Malformed("it keeps no boxes")
    b.arrays.reserve((batch, total, 2), "numbering its boxes", 4)
    labels = np.broadcast_to(b.arrays.repeat(np.array(kept, np.float32), most)[:, None], (batch, total, 1))
    pictures = np.broadcast_to(b.arrays.arange(batch, dtype=np.float32)[:, None, None], (batch, total, 1))
    score = b.slice(rows, [0], [1], [2])
    chosen = b.op("greater_equal", score, 0.0)
    full = b.concat([b.const(np.ascontiguousarray(pictures)), b.const(np.ascontiguousarray(labels)), rows], 2)
    full = b.op("where", chosen, full, b.const(-1.0, "float32"))
    full = b.concat([full, b.const(b.arrays.full((batch, 1, 7), -1.0, np.float32))], 1)  # The last row stands for no box.
    places = b.op("topk", b.squeeze(score, [2]), k=count, axis=1, ret_type="indices", is_ascend=False, dtype="int32")
    scores = b.op("gather", b.squeeze(score, [2]), places, axis=1)
    places = b.op("where", b.op("less", scores, 0.0), b.const(total, "int32"), places)
    places = b.op("sort", places, axis=1, is_ascend=True)
    start = b.const((b.arrays.arange(batch) * (total + 1))[:, None], "int32")
    flat = b.reshape_exactly(full, [batch * (total + 1), 7])
    taken = b.op("take", flat, b.reshape_exactly(b.op("add", places, start), [batch * count]), axis=0)
    return b.reshape_exactly(taken, [1, 1, batch * count, 7])


def roi_pooling(n: Node, x: Expr, rois: Expr) -> Any:
    """Regions are (regions, 5), or have further axes of extent 1."""
    b, p = n.b, n.params("roi_pooling_param")
    if not p.pooled_h or not p.pooled_w:
        raise Malformed(f"its results have {p.pooled_h} x {p.pooled_w} places")
    rows = b.op("nn.batch_flatten", rois) if b.rank(rois) > 2 else rois
    return b.op("vision.roi_pool", x, rows, pooled_size=[p.pooled_h, p.pooled_w], spatial_scale=n.float(p, "spatial_scale"))


RULES = (
    Rule("DetectionOutput", detection_output),
    Rule("PriorBox", prior_box),
    Rule("ROIPooling", roi_pooling),
)
