"""The selection of boxes: those of the best scores that do not overlap a better one.

Source: TensorFlow Lite, kernels/detection_postprocess.cc, kernels/internal/reference/non_max_suppression.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.common.boxes import choose
from relaylang.frontends.common.places import counted
from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr


def _first(b: Builder, x: Expr, count: int) -> Expr:
    """The first rows; zeros behind them where there are fewer."""
    have = b.extent(x, 0, "the number of boxes")
    if have >= count:
        return b.slice(x, [0], [count], [0])
    return b.op("nn.pad", x, b.const(0, b.dtype(x)), pad_width=[[0, count - have], *[[0, 0]] * (b.rank(x) - 1)])


def _chosen(b: Builder, boxes: Expr, scores: Expr, most: int, overlap: Expr, least: Expr) -> tuple[Expr, Expr]:
    """The rows of `most` boxes, 0 behind the last one, and their number."""
    selected = b.op(
        "vision.all_class_non_max_suppression",
        b.unsqueeze(boxes, [0]),
        b.unsqueeze(scores, [0, 1]),
        b.const(most, "int64"),
        overlap,
        least,
        output_format="onnx",
    )
    rows, count = b.fields(selected)[:2]
    rows = b.squeeze(b.slice(rows, [2], [3], [1]), [1])
    return b.cast(_first(b, rows, most), "int32"), b.cast(b.scalar(count), "int32")


def _within(b: Builder, x: Expr, count: Expr) -> Expr:
    """The first `count` elements of a vector; the others become 0."""
    places = counted(b, b.extent(x, 0))
    return b.op("where", b.op("less", places, count), x, b.const(0, b.dtype(x)))


def non_max_suppression(n: Node) -> Any:
    """Boxes, scores, the number of results, and thresholds; the fifth form lowers scores by its sigma."""
    b = n.b
    boxes, scores = n.real(0), n.real(1)
    most = n.ints(2, "the number of results")[0]
    overlap, least = b.scalar(n.real(3)), b.scalar(n.real(4))
    fifth = n.operator.name.endswith("V5")
    sigma = float(b.need(n.x(5), "the sigma")) if fifth else 0.0
    known = b.value(least)
    if sigma > 0 or known is None or float(known) < 0 or most <= 0:
        rows, values, count = choose(b, boxes, scores, max(most, 0), overlap, least, sigma, at=True)
        return [rows, n.result(values, 1, activation=False), count] if fifth else [rows, count]
    rows, count = _chosen(b, boxes, scores, most, overlap, least)
    rows = _within(b, rows, count)
    if not fifth:
        return [rows, count]
    return [rows, n.result(_within(b, b.op("take", scores, rows, axis=0), count), 1, activation=False), count]


def _decoded(n: Node, o: dict[str, Any]) -> Expr:
    """Corners (boxes, 4) of boxes that are stored relative to anchors: y, x, height, width."""
    b = n.b
    code, anchors = b.squeeze(n.real(0), [0]), n.real(2)
    y, x, h, w = (b.slice(code, [i], [i + 1], [1]) for i in range(4))
    at_y, at_x, height, width = (b.slice(anchors, [i], [i + 1], [1]) for i in range(4))

    def middle(part: Expr, scale: float, size: Expr, at: Expr) -> Expr:
        return b.op("add", b.op("multiply", b.op("divide", part, scale), size), at)

    def half(part: Expr, scale: float, size: Expr) -> Expr:
        return b.op("multiply", b.op("multiply", b.op("exp", b.op("divide", part, scale)), 0.5), size)

    y, x = middle(y, o["y_scale"], height, at_y), middle(x, o["x_scale"], width, at_x)
    h, w = half(h, o["h_scale"], height), half(w, o["w_scale"], width)
    corners = [("subtract", y, h), ("subtract", x, w), ("add", y, h), ("add", x, w)]
    return b.concat([b.op(op, p, q) for op, p, q in corners], 1)


def detection_postprocess(n: Node) -> Any:
    """Boxes relative to anchors, scores of classes, anchors: the best boxes, their classes, scores and number."""
    b, o = n.b, n.flexible_options()
    if n.q(0) is None and b.extent(n.x(0), 0, "the batch") != 1:
        raise Unsupported("it has several pictures")
    most, classes = int(o["max_detections"]), int(o["num_classes"])
    boxes, scores = _decoded(n, o), n.real(1)
    if o.get("use_regular_nms"):
        selected = b.op(
            "vision.regular_non_max_suppression",
            b.unsqueeze(boxes, [0]),
            scores,
            max_detections=most,
            num_classes=classes,
            max_detections_per_class=int(o.get("detections_per_class") or 100),
            iou_threshold=float(o["nms_iou_threshold"]),
            score_threshold=float(o["nms_score_threshold"]),
        )
        *detections, count = b.fields(selected)
        extra = most * (int(o["max_classes_per_detection"]) - 1)
        pads = [[[0, 0], [0, extra], *[[0, 0]] * (b.rank(x) - 2)] for x in detections]
        detections = (
            [b.op("nn.pad", x, b.const(0.0, "float32"), pad_width=p) for x, p in zip(detections, pads)] if extra > 0 else detections
        )
        return [*detections, b.cast(count, "float32")]
    return _fast(n, boxes, scores, o, most, classes)


def _fast(n: Node, boxes: Expr, scores: Expr, o: dict[str, Any], most: int, classes: int) -> Any:
    """One selection by the best class of each box; some classes of each chosen box are results."""
    b = n.b
    each = int(o["max_classes_per_detection"])
    class_scores = b.squeeze(scores, [0])
    class_scores = b.slice(class_scores, [b.extent(class_scores, 1) - classes], [b.extent(class_scores, 1)], [1])
    best, numbers = b.fields(
        b.op("topk", class_scores, k=min(each, classes), axis=-1, ret_type="both", is_ascend=False, dtype="int32")
    )
    # A box stays at the least score itself, and goes beyond the overlap, not at it.
    overlap = np.nextafter(np.float32(o["nms_iou_threshold"]), np.float32(np.inf))
    least = np.nextafter(np.float32(o["nms_score_threshold"]), np.float32(-np.inf))
    top = b.op("max", class_scores, axis=(1,))
    rows, count = _chosen(b, boxes, top, most, b.const(overlap), b.const(least))
    rows = b.cast(rows, "int32")
    kept = b.unsqueeze(b.op("less", counted(b, most), count), [1])

    def picked(x: Expr) -> Expr:
        picked_rows = b.op("where", kept, b.op("take", x, rows, axis=0), b.const(0.0, "float32"))
        extra = each - min(each, classes)
        return b.op("nn.pad", picked_rows, b.const(0.0, "float32"), pad_width=[[0, 0], [0, extra]]) if extra else picked_rows

    corners = b.op("where", kept, b.op("take", boxes, rows, axis=0), b.const(0.0, "float32"))
    corners = b.op("repeat", corners, repeats=each, axis=0) if each > 1 else corners
    results = [b.reshape(picked(x), [1, most * each]) for x in (b.cast(numbers, "float32"), best)]
    return [b.unsqueeze(corners, [0]), *results, b.reshape(b.cast(count, "float32"), [1])]


RULES = (
    Rule("NON_MAX_SUPPRESSION_V4", non_max_suppression),
    Rule("NON_MAX_SUPPRESSION_V5", non_max_suppression),
    Rule("TFLite_Detection_PostProcess", detection_postprocess),
)
