"""Operators of torchvision: suppression of overlapping boxes, and features of regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
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
    """Means of sampled places in each region; Relay's regions are at least one element large, as unaligned ones here."""
    if n.get("aligned"):
        raise Unsupported("aligned regions below one element have another size in Relay")
    ratio = n.int("sampling_ratio", -1)
    return n.b.op(
        "vision.roi_align", n.x("input"), n.x("rois"), pooled_size=[n.int("pooled_height"), n.int("pooled_width")],
        spatial_scale=float(n.get("spatial_scale")), sample_ratio=ratio if ratio > 0 else -1, mode="avg",
    )  # fmt: skip


RULES = (Rule("torchvision.nms", non_max_suppression), Rule("torchvision.roi_align", region_align))
