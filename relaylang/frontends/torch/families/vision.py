"""Operators of torchvision: suppression of overlapping boxes, and features of regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, regions
from relaylang.frontends.torch.families.shape import computed_slice
from relaylang.frontends.torch.node import Node


def non_max_suppression(n: Node) -> Any:
    """The places of the boxes that stay, the best first."""
    b, boxes, scores = n.b, n.x("dets"), n.x("scores")
    if b.shape(scores) == (0,):
        return b.const(np.zeros(0, np.int64))
    count = b.scalar(b.cast(b.shape_of(scores), "int64"))
    made = b.op(
        "vision.all_class_non_max_suppression", b.unsqueeze(boxes, [0]), b.unsqueeze(scores, [0, 0]), count,
        b.const(float(n.get("iou_threshold")), "float32"), b.const(np.finfo(np.float32).min, "float32"), output_format="onnx",
    )  # fmt: skip
    rows, kept = b.fields(made)[:2]
    places = b.squeeze(b.slice(rows, [2], [3], [1]), [1])
    return b.cast(computed_slice(n, places, 0, 0, b.scalar(b.cast(kept, "int64")), 1), "int64")


def region_align(n: Node) -> Any:
    """Means of sampled places in each region. Relay's are at least one element large, as unaligned ones here."""
    b, x, rois = n.b, n.x("input"), n.x("rois")
    size = n.int("pooled_height"), n.int("pooled_width")
    scale, ratio = float(n.get("spatial_scale")), max(n.int("sampling_ratio", -1), 0)
    if n.get("aligned"):
        axes = regions.axes_of(b, b.slice(rois, [1], [5], [1]), size, scale, ratio, True)
        return regions.mean(b, x, b.squeeze(b.slice(rois, [0], [1], [1]), [1]), axes)
    return b.op(
        "vision.roi_align", x, rois, pooled_size=list(size), spatial_scale=scale, sample_ratio=ratio or -1, mode="avg"
    )  # fmt: skip


RULES = (Rule("torchvision.nms", non_max_suppression), Rule("torchvision.roi_align", region_align))
