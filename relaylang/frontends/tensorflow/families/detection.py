"""The selection of boxes: those of the best scores that do not overlap a better one."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, boxes
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr

#: No score is less.
_NONE = float(np.finfo("float32").min)


def _threshold(n: Node, x: Expr | None, default: float) -> Expr:
    return n.b.scalar(x) if x is not None else n.b.const(default, "float32")


def suppress(
    n: Node, rows: Expr, scores: Expr, most: Expr, overlap: Expr | None = None, least: Expr | None = None, sigma: Expr | None = None
) -> Any:
    """The chosen boxes; later forms pad them to the number of results and tell how many there are."""
    b = n.b
    count = n.ints_of(most, "the number of results")[0]
    limit = _threshold(n, overlap, n.float("iou_threshold", 0.5)) if n.op == "NonMaxSuppression" else _threshold(n, overlap, 0.5)
    # A box is dropped where it overlaps by more than the threshold, and kept at it.
    softness = float(b.need(sigma, "the sigma").reshape(())) if sigma is not None else 0.0
    have = b.extent(b.of_rank(rows, 2), 0, "the number of boxes")
    slots = max(min(count, have), 0)
    chosen, values, valid = boxes.choose(b, rows, scores, slots, limit, _threshold(n, least, _NONE), softness)
    padded = n.op in ("NonMaxSuppressionV4", "NonMaxSuppressionV5") and n.bool("pad_to_max_output_size")
    if padded:
        behind = max(count, 0) - slots
        wide = [b.op("nn.pad", x, b.const(0, b.dtype(x)), pad_width=[[0, behind]]) if behind else x for x in (chosen, values)]
        chosen, values = wide
    else:
        end, zero, one = b.reshape(b.cast(valid, "int64"), [1]), b.const(np.array([0])), b.const(np.array([1]))
        chosen, values = (
            b.op("dyn.strided_slice", x, zero, end, one, begin=None, end=None, strides=None, axes=None) for x in (chosen, values)
        )
    if n.op == "NonMaxSuppressionV5":
        return [chosen, values, valid]
    return [chosen, valid] if n.op == "NonMaxSuppressionV4" else [chosen]


def combined(n: Node, rows: Expr, scores: Expr, each: Expr, total: Expr, overlap: Expr, least: Expr) -> Any:
    """The best boxes of all classes of each image, held to the image unless told otherwise; zeros behind them."""
    b = n.b
    images, count, groups, _ = b.static_shape(rows, "the boxes", 4)
    classes = b.static_shape(scores, "the scores", 3)[2]
    if groups not in (1, classes):
        raise Malformed(f"it has boxes for {groups} classes and scores for {classes}")
    per_class, most = (n.ints_of(x, "a number of boxes")[0] for x in (each, total))
    if per_class < 1 or most < 1:
        raise Malformed(f"it gives {per_class} boxes of each class, {most} in all")
    slots = min(per_class, count)
    b.budget.take_nodes(images * classes * 64, "writing the selections of its classes out")
    if images * classes > 256:
        raise Unsupported(f"it selects in {images} images of {classes} classes")
    size = min(most, per_class * classes) if n.bool("pad_per_class") else most
    results: list[list[Expr]] = [[], [], [], []]
    for i in range(images):
        selections: list[tuple[Expr, Expr, Expr]] = []
        for c in range(classes):
            own = b.reshape(b.slice(rows, [i, c if groups > 1 else 0], [i + 1, (c if groups > 1 else 0) + 1], [0, 2]), [count, 4])
            score = b.reshape(b.slice(scores, [i, c], [i + 1, c + 1], [0, 2]), [count])
            chosen, values, number = boxes.choose(b, own, score, slots, b.scalar(overlap), b.scalar(least), 0.0)
            inside = b.op("less", b.const(b.arrays.arange(slots), "int32"), number)
            value = b.op("where", inside, values, b.const(_NONE, "float32"))
            selections.append((b.op("take", own, chosen, axis=0), value, b.const(b.arrays.full(slots, c), "float32")))
        corner, value, kind = (b.concat([f[k] for f in selections], 0) for k in range(3))
        have = slots * classes
        k = min(size, have)
        value, order = b.fields(b.op("topk", value, k=k, axis=-1, ret_type="both", is_ascend=False, dtype="int32"))
        real = b.op("greater", value, _NONE)
        corner, kind = b.op("take", corner, order, axis=0), b.op("take", kind, order, axis=0)
        if n.bool("clip_boxes", True):
            corner = b.op("clip", corner, a_min=0.0, a_max=1.0)
        zero = b.const(0.0, "float32")
        masks = [b.unsqueeze(real, [1]), real, real]
        parts = [b.op("where", m, p, zero) for m, p in zip(masks, (corner, value, kind))]
        pads = [[[0, size - k], *[[0, 0]] * (b.rank(p) - 1)] for p in parts]
        parts = [b.op("nn.pad", p, zero, pad_width=w) if size > k else p for p, w in zip(parts, pads)]
        parts.append(b.op("sum", b.cast(real, "int32"), axis=[0]))
        for into, part in zip(results, parts):
            into.append(b.unsqueeze(part, [0]))
    return [b.concat(r, 0) for r in results]


RULES = (
    Rule("CombinedNonMaxSuppression", combined),
    Rule("NonMaxSuppression", suppress),
    Rule("NonMaxSuppressionV2", suppress),
    Rule("NonMaxSuppressionV3", suppress),
    Rule("NonMaxSuppressionV4", suppress),
    Rule("NonMaxSuppressionV5", suppress),
)
