"""Operators of torchvision: suppression of overlapping boxes, features of regions, convolutions at moved places."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, regions
from relaylang.frontends.common.deformable import deformable_conv
from relaylang.frontends.torch.families.shape import computed_slice
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def non_max_suppression(n: Node) -> Any:
    """The places of the boxes that stay, the best first."""
    b, boxes, scores = n.b, n.x("dets"), n.x("scores")
    if b.shape(scores) == (0,):
        return b.const(np.zeros(0, np.int64))
    count = b.scalar(b.cast(b.shape_of(scores), "int64"))
    selected = b.op(
        "vision.all_class_non_max_suppression",
        b.unsqueeze(boxes, [0]),
        b.unsqueeze(scores, [0, 0]),
        count,
        b.const(float(n.get("iou_threshold")), "float32"),
        b.const(np.finfo(np.float32).min, "float32"),
        output_format="onnx",
    )
    rows, kept = b.fields(selected)[:2]
    places = b.squeeze(b.slice(rows, [2], [3], [1]), [1])
    return b.cast(computed_slice(n, places, 0, 0, b.scalar(b.cast(kept, "int64")), 1), "int64")


def _corners(n: Node) -> tuple[Expr, Expr]:
    """The images of the regions (regions,), and their corners (regions, 4)."""
    b, rois = n.b, n.x("rois")
    return b.squeeze(b.slice(rois, [0], [1], [1]), [1]), b.slice(rois, [1], [5], [1])


def _size(n: Node) -> tuple[int, int]:
    return n.int("pooled_height"), n.int("pooled_width")


def region_align(n: Node) -> Any:
    """Means of sampled places in each region. Relay's are at least one element large, as unaligned ones here."""
    b, x, size = n.b, n.x("input"), _size(n)
    scale, ratio = float(n.get("spatial_scale")), max(n.int("sampling_ratio", -1), 0)
    if n.get("aligned"):
        batch, corners = _corners(n)
        return regions.mean(b, x, batch, regions.axes_of(b, corners, size, scale, ratio, True))
    return b.op("vision.roi_align", x, n.x("rois"), pooled_size=list(size), spatial_scale=scale, sample_ratio=ratio or -1, mode="avg")


def region_pool(n: Node) -> Any:
    """The greatest elements of cells. `vision.roi_pool` moves their ends by 1e-5, which loses elements that torchvision's
    rounding reaches.
    """
    b, x = n.b, n.x("input")
    batch, corners = _corners(n)
    limits = b.extent(x, 2), b.extent(x, 3)
    parts, some = regions.whole_cells(b, corners, _size(n), float(n.get("spatial_scale")), 1, limits)
    return [b.op("where", some, regions.cells(b, x, batch, parts, "max"), b.const(0, b.dtype(x)))]


def position_sensitive_pool(n: Node) -> Any:
    """Means of the whole elements of cells, of which each has channels of its own. The last row and column are left out."""
    b, (numbers, corners) = n.b, _corners(n)
    images, batch = regions.by_cell(b, n.x("input"), numbers, _size(n))
    limits = b.extent(images, 2) - 1, b.extent(images, 3) - 1
    parts, some = regions.whole_cells(b, corners, _size(n), float(n.get("spatial_scale")), 0, limits)
    return [b.op("where", some, regions.cells(b, images, batch, parts), b.const(0, b.dtype(images)))]


def position_sensitive_align(n: Node) -> Any:
    """Means of sampled places of cells, of which each has channels of its own."""
    b, (numbers, corners) = n.b, _corners(n)
    images, batch = regions.by_cell(b, n.x("input"), numbers, _size(n))
    ratio = max(n.int("sampling_ratio", -1), 0)
    axes = regions.axes_of(b, corners, _size(n), float(n.get("spatial_scale")), ratio, True)
    return [regions.mean(b, images, batch, axes)]


def deformable_convolution(n: Node) -> Any:
    b, weight = n.b, n.x("weight")
    pads, strides, dilation = ([n.int(f"{name}_{axis}") for axis in "hw"] for name in ("pad", "stride", "dilation"))
    mask = n.x("mask") if n.get("use_mask") else None
    groups = n.int("groups", 1), n.int("offset_groups", 1)
    conv = deformable_conv(b, n.x("input"), n.x("offset"), weight, mask, strides, pads, dilation, *groups)
    return b.op("nn.bias_add", conv, n.x("bias")) if n.has("bias") else conv


RULES = (
    Rule("torchvision.deform_conv2d", deformable_convolution),
    Rule("torchvision.nms", non_max_suppression),
    Rule("torchvision.ps_roi_align", position_sensitive_align),
    Rule("torchvision.ps_roi_pool", position_sensitive_pool),
    Rule("torchvision.roi_align", region_align),
    Rule("torchvision.roi_pool", region_pool),
)
