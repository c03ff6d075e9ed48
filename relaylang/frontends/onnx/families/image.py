"""Operators on images: Resize and its forerunner, sampling grids, regions, non-maximum suppression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, resample
from relaylang.frontends.common.resize import Method
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def _method(n: Node) -> Method:
    coordinates = n.string("coordinate_transformation_mode", "half_pixel")
    return Method(
        n.string("mode", "nearest"), coordinates, n.string("nearest_mode", "round_prefer_floor"), n.float("cubic_coeff_a", -0.75),
        bool(n.int("exclude_outside", 0)), bool(n.int("antialias", 0)), n.float("extrapolation_value", 0.0),
    )  # fmt: skip


def resize(n: Node, x: Expr, roi: Expr | None = None, scales: Expr | None = None, sizes: Expr | None = None) -> Any:
    """Resize of opset 11 and later."""
    b, method, rank = n.b, _method(n), n.b.rank(x)
    axes = [a % rank for a in n.ints("axes", list(range(rank)))]
    regions = _regions(b, roi, axes, rank) if method.coordinates == "tf_crop_and_resize" else None
    if sizes is not None and b.shape(sizes) != (0,):
        return _to_sizes(n, x, sizes, axes, method, regions)
    if scales is None:
        raise Unsupported("it has neither scales nor sizes")
    factors = dict(zip(axes, (float(s) for s in b.need(scales, "the scales"))))
    return _by_scales(b, x, factors, method, regions)


def _regions(b: Builder, roi: Expr | None, axes: list[int], rank: int) -> list[float]:
    given = b.need(roi, "the region").astype(np.float64).tolist()
    whole = [0.0] * rank + [1.0] * rank
    for i, axis in enumerate(axes):
        whole[axis], whole[rank + axis] = given[i], given[len(axes) + i]
    return whole


def _by_scales(b: Builder, x: Expr, factors: dict[int, float], method: Method, roi: list[float] | None) -> Any:
    factors = {a: s for a, s in factors.items() if s != 1 or roi}
    if any(not isinstance(b.shape(x)[a], int) for a in factors):
        return resample.dynamic_scales(b, x, factors, method)
    sizes = {}
    for axis, scale in factors.items():
        part = roi[b.rank(x) + axis] - roi[axis] if roi else 1.0
        sizes[axis] = math.floor(b.extent(x, axis) * part * scale)
    return resample.resample(b, x, sizes, factors, method, roi)


def _to_sizes(n: Node, x: Expr, sizes: Expr, axes: list[int], method: Method, roi: list[float] | None) -> Any:
    b, shape = n.b, n.b.shape(x)
    known = b.known(sizes)
    if known is None or None in known:
        if axes != list(range(4)):
            raise Unsupported("the sizes are computed")
        return resample.dynamic(b, x, b.slice(sizes, [2], [4], [0]), method)
    wanted = {a: int(s) for a, s in zip(axes, known) if s is not None}
    if any(not isinstance(shape[a], int) and a < 2 for a in wanted):
        wanted = {a: s for a, s in wanted.items() if isinstance(shape[a], int) or a >= 2}
    if any(not isinstance(shape[a], int) for a in wanted):
        if b.rank(x) != 4 or not {2, 3} <= set(wanted):
            raise Unsupported("an axis of unknown extent is resized; --shape gives it")
        return resample.dynamic(b, x, b.const(np.array([wanted[2], wanted[3]])), method)
    policy = n.string("keep_aspect_ratio_policy", "stretch")
    scales = {a: s / b.extent(x, a) for a, s in wanted.items()}
    if policy != "stretch":
        scale = min(scales.values()) if policy == "not_larger" else max(scales.values())
        wanted = {a: math.floor(scale * b.extent(x, a) + 0.5) for a in wanted}
        scales = dict.fromkeys(wanted, scale)
    return resample.resample(b, x, wanted, scales, method, roi)


def resize_10(n: Node, x: Expr, scales: Expr) -> Any:
    """Resize of opset 10 and Upsample of opset 9: floor of asymmetric coordinates."""
    method = Method(n.string("mode", "nearest"), "asymmetric", "floor")
    factors = dict(enumerate(float(s) for s in n.b.need(scales, "the scales")))
    return _by_scales(n.b, x, factors, method, None)


def upsample_7(n: Node, x: Expr) -> Any:
    method = Method(n.string("mode", "nearest"), "asymmetric", "floor")
    return _by_scales(n.b, x, dict(enumerate(n.floats("scales"))), method, None)


def grid_sample(n: Node, x: Expr, grid: Expr) -> Any:
    """The grid's last axis holds x, y (and z); Relay wants it in front of the spatial axes."""
    b, rank = n.b, n.b.rank(x)
    mode = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}
    moved = b.transpose(grid, [0, rank - 1, *range(1, rank - 1)])
    return b.op(
        "image.grid_sample", x, moved, method=mode[n.string("mode", "linear")], layout="NCHW" if rank == 4 else "NCDHW",
        padding_mode=n.string("padding_mode", "zeros"), align_corners=bool(n.int("align_corners", 0)),
    )  # fmt: skip


def affine_grid(n: Node, theta: Expr, size: Expr) -> Any:
    return resample.affine_grid(n.b, theta, n.b.need_ints(size, "the size")[2:], bool(n.int("align_corners", 0)))


def roi_align(n: Node, x: Expr, rois: Expr, batch: Expr) -> Any:
    """Relay's regions have the image's number in front. Half pixels move a region by half an element."""
    b = n.b
    scale = n.float("spatial_scale", 1.0)
    mode = n.string("coordinate_transformation_mode", "half_pixel" if n.version >= 16 else "output_half_pixel")
    if mode == "half_pixel":
        rois = b.op("subtract", rois, 0.5 / scale)
    numbered = b.concat([b.unsqueeze(b.cast(batch, b.dtype(rois)), [1]), rois], 1)
    return b.op(
        "vision.roi_align", x, numbered, pooled_size=[n.int("output_height", 1), n.int("output_width", 1)],
        spatial_scale=scale, sample_ratio=n.int("sampling_ratio", 0) or -1, mode=n.string("mode", "avg"),
    )  # fmt: skip


def max_roi_pool(n: Node, x: Expr, rois: Expr) -> Any:
    return n.b.op("vision.roi_pool", x, rois, pooled_size=n.ints("pooled_shape"), spatial_scale=n.float("spatial_scale", 1.0))


def non_max_suppression(
    n: Node, boxes: Expr, scores: Expr, most: Expr | None = None, overlap: Expr | None = None, least: Expr | None = None
) -> Any:
    """Rows of image, class and box; Relay pads them, so the first `count` are kept."""
    b = n.b
    if n.int("center_point_box", 0):
        x, y, w, h = (b.slice(boxes, [i], [i + 1], [2]) for i in range(4))
        half_w, half_h = b.op("divide", w, 2.0), b.op("divide", h, 2.0)
        corners = [("subtract", y, half_h), ("subtract", x, half_w), ("add", y, half_h), ("add", x, half_w)]
        boxes = b.concat([b.op(op, p, q) for op, p, q in corners], 2)
    if most is None or (b.value(most) is not None and not b.need_ints(most, "the number of boxes")[0]):
        return b.const(np.zeros((0, 3), np.int64))
    floor = float(np.finfo(np.float32).min)
    made = b.op(
        "vision.all_class_non_max_suppression", boxes, scores, b.cast(b.scalar(most), "int64"),
        b.const(0.0, "float32") if overlap is None else b.scalar(overlap),
        b.const(floor, "float32") if least is None else b.scalar(least), output_format="onnx",
    )  # fmt: skip
    rows, count = b.fields(made)[:2]
    ones = b.const(np.ones(1, np.int64))
    end = b.concat([b.reshape(b.cast(count, "int64"), [1]), b.const(np.array([3]))], 0)
    found = b.op("dyn.strided_slice", rows, b.const(np.zeros(2, np.int64)), end, b.op("concatenate", b.tuple([ones, ones]), axis=0))
    return b.cast(b.refine(found, [None, 3]), "int64")


RULES = (
    Rule("AffineGrid", affine_grid),
    Rule("GridSample", grid_sample),
    Rule("MaxRoiPool", max_roi_pool),
    Rule("NonMaxSuppression", non_max_suppression),
    Rule("Resize", resize_10, since=10, until=10),
    Rule("Resize", resize, since=11),
    Rule("RoiAlign", roi_align),
    Rule("Upsample", upsample_7, since=7, until=8),
    Rule("Upsample", resize_10, since=9, until=9),
)
