"""Operators on images: Resize and its forerunner, sampling grids, regions, non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, regions, resample
from relaylang.frontends.common.resize import Method, Stretch
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def _method(n: Node) -> Method:
    coordinates = n.string("coordinate_transformation_mode", "half_pixel")
    return Method(
        n.string("mode", "nearest"),
        coordinates,
        n.string("nearest_mode", "round_prefer_floor"),
        n.float("cubic_coeff_a", -0.75),
        bool(n.int("exclude_outside", 0)),
        bool(n.int("antialias", 0)),
        n.float("extrapolation_value", 0.0),
    )


def resize(n: Node, x: Expr, roi: Expr | None = None, scales: Expr | None = None, sizes: Expr | None = None) -> Any:
    """Resize of opset 11 and later."""
    b, method, rank = n.b, _method(n), n.b.rank(x)
    axes = [a % rank for a in n.ints("axes", list(range(rank)))]
    parts = _parts(b, roi, axes) if method.coordinates == "tf_crop_and_resize" else [(0.0, 1.0)] * len(axes)
    if sizes is not None and b.shape(sizes) != (0,):
        return resample.resample(b, x, _to_sizes(n, x, sizes, axes, parts), method)
    if scales is None or b.shape(scales) == (0,):
        raise Unsupported("it has neither scales nor sizes")
    return _by_scales(b, x, scales, axes, method, parts)


def _parts(b: Builder, roi: Expr | None, axes: list[int]) -> list[tuple[float, float]]:
    """The part of each axis that is taken: all beginnings, then all ends."""
    if roi is None or b.shape(roi) == (0,):
        return [(0.0, 1.0)] * len(axes)
    corners = b.need(roi, "the region").astype(np.float64).tolist()
    return list(zip(corners[: len(axes)], corners[len(axes) :], strict=True))


def _by_scales(b: Builder, x: Expr, scales: Expr, axes: list[int], method: Method, parts: Sequence[tuple[float, float]]) -> Any:
    known = b.value(scales)
    if known is None:
        factors: list[Any] = [b.scalar(b.slice(scales, [i], [i + 1], [0])) for i in range(len(axes))]
    else:
        factors = [float(s) for s in known]
        changed = {a: s for a, s in zip(axes, factors) if s != 1}
        opened = any(not isinstance(b.shape(x)[a], int) for a in changed)
        if method.coordinates != "tf_crop_and_resize" and opened and not all(1 < s < 2 for s in changed.values()):
            return resample.dynamic_scales(b, x, changed, method)
    stretches = {a: resample.stretch(b, x, a, None, s, part) for a, s, part in zip(axes, factors, parts, strict=True)}
    return resample.resample(b, x, _kept(b, stretches, method), method)


def _kept(b: Builder, axes: dict[int, Stretch], method: Method) -> dict[int, Stretch]:
    """Axes with the scale 1 where onnxruntime copies: where all extents stay, with antialias each that stays.

    The specification moves the places by the scale there. An extent that stays has a scale from 1 to 2.
    """
    resized = {a: to for a, to in axes.items() if b.value(to.scale) != 1}
    if method.coordinates == "tf_crop_and_resize" or not resized:
        return axes
    stays = {a: b.op("equal", to.have, to.size) for a, to in resized.items()}
    if not method.antialias:
        every = b.const(True, "bool")
        for one in stays.values():
            every = b.op("logical_and", every, one)
        stays = dict.fromkeys(stays, every)
    return axes | {
        a: replace(to, scale=b.op("where", stays[a], b.const(1.0, "float32"), to.scale))
        for a, to in resized.items()
        if b.value(stays[a]) is None or b.value(stays[a])
    }


def _to_sizes(n: Node, x: Expr, sizes: Expr, axes: list[int], parts: Sequence[tuple[float, float]]) -> dict[int, Stretch]:
    """The axes with their new extents, which keep_aspect_ratio_policy may lessen or enlarge."""
    b = n.b
    known = b.known(sizes) or [None] * len(axes)
    wanted: dict[int, Any] = {}
    for i, (axis, size) in enumerate(zip(axes, known, strict=True)):
        wanted[axis] = b.cast(b.scalar(b.slice(sizes, [i], [i + 1], [0])), "int64") if size is None else int(size)
    policy = n.string("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        # A size of the batch or the channels that is computed is their own extent: only copies could have another.
        kept = [(a, part) for a, part in zip(axes, parts) if a >= 2 or isinstance(wanted[a], int) or b.rank(x) < 3]
        return {a: resample.stretch(b, x, a, wanted[a], None, part) for a, part in kept}
    choose = {"not_larger": "minimum", "not_smaller": "maximum"}.get(policy)
    if choose is None:
        raise Unsupported(f"keep_aspect_ratio_policy={policy} is unknown")
    every = [resample.stretch(b, x, a, s) for a, s in wanted.items()]
    scale = every[0].scale
    for one in every[1:]:
        scale = b.op(choose, scale, one.scale)
    stretches = {}
    for axis, one, part in zip(axes, every, parts):
        extent = b.cast(b.op("round", b.op("multiply", scale, b.cast(one.have, "float32"))), "int64")
        stretches[axis] = resample.stretch(b, x, axis, extent, scale, part)
    return stretches


def resize_10(n: Node, x: Expr, scales: Expr) -> Any:
    """Resize of opset 10 and Upsample of opset 9: asymmetric coordinates."""
    method = Method(n.string("mode", "nearest"), "asymmetric", "simple")
    return _by_scales(n.b, x, scales, list(range(n.b.rank(x))), method, [(0.0, 1.0)] * n.b.rank(x))


def grid_sample(n: Node, x: Expr, grid: Expr) -> Any:
    """The grid's last axis holds x, y (and z); Relay wants it in front of the spatial axes."""
    b, rank = n.b, n.b.rank(x)
    mode = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}
    moved = b.transpose(grid, [0, rank - 1, *range(1, rank - 1)])
    return b.op(
        "image.grid_sample",
        x,
        moved,
        method=mode[n.choice("mode", "linear", mode)],
        layout="NCHW" if rank == 4 else "NCDHW",
        padding_mode=n.choice("padding_mode", "zeros", ("zeros", "border", "reflection")),
        align_corners=bool(n.int("align_corners", 0)),
    )


def affine_grid(n: Node, theta: Expr, size: Expr) -> Any:
    return resample.affine_grid(n.b, theta, n.b.need_ints(size, "the size")[2:], bool(n.int("align_corners", 0)))


def roi_align(n: Node, x: Expr, rois: Expr, batch: Expr) -> Any:
    """Relay's regions have the image's number in front, and are of one element at least, as those of whole pixels."""
    b = n.b
    scale, ratio = n.float("spatial_scale", 1.0), n.int("sampling_ratio", 0)
    size = (n.int("output_height", 1), n.int("output_width", 1))
    half = n.string("coordinate_transformation_mode", "half_pixel" if n.version >= 16 else "output_half_pixel") == "half_pixel"
    greatest = n.string("mode", "avg") == "max"
    if half or greatest:
        axes = regions.axes_of(b, rois, size, scale, ratio, half)
        return (regions.greatest if greatest else regions.mean)(b, x, batch, axes)
    numbered = b.concat([b.unsqueeze(b.cast(batch, b.dtype(rois)), [1]), rois], 1)
    return b.op("vision.roi_align", x, numbered, pooled_size=list(size), spatial_scale=scale, sample_ratio=ratio or -1, mode="avg")


def _next(b: Builder, overlap: Expr | None) -> Expr:
    """The next number of float32 after a threshold, by default 0."""
    known = np.float32(0) if overlap is None else b.value(overlap)
    if known is not None:
        return b.const(np.nextafter(np.float32(known).reshape(()), np.float32(np.inf)))
    larger = b.op("multiply", b.scalar(overlap), float(1 + np.finfo(np.float32).eps))  # type: ignore[arg-type]
    return b.op("maximum", larger, float(np.finfo(np.float32).tiny))


def _positive(b: Builder, scores: Expr, least: Expr | None) -> tuple[Expr, Expr]:
    """Scores and their threshold. Relay leaves boxes whose score is not above 0; where such can be chosen, all are moved up."""
    known = None if least is None else b.value(least)
    if least is not None and known is not None and known >= 0:
        return scores, b.scalar(least)
    lowest, zero = b.op("min", scores), b.const(0.0, b.dtype(scores))
    shift = b.op("where", b.op("greater", lowest, zero), zero, b.op("subtract", b.const(1.0, b.dtype(scores)), lowest))
    moved = b.op("add", scores, shift)
    chosen = moved if least is None else b.op("where", b.op("greater", scores, b.scalar(least)), moved, zero)
    return chosen, zero


def non_max_suppression(
    n: Node, boxes: Expr, scores: Expr, most: Expr | None = None, overlap: Expr | None = None, least: Expr | None = None
) -> Any:
    """Rows of image, class and box; Relay pads them, so the first `count` are kept.

    ONNX drops boxes that overlap by more than the threshold, Relay those that reach it, which has to be above 0.
    """
    b = n.b
    if n.int("center_point_box", 0):
        x, y, w, h = (b.slice(boxes, [i], [i + 1], [2]) for i in range(4))
        half_w, half_h = b.op("divide", w, 2.0), b.op("divide", h, 2.0)
        corners = [("subtract", y, half_h), ("subtract", x, half_w), ("add", y, half_h), ("add", x, half_w)]
        boxes = b.concat([b.op(op, p, q) for op, p, q in corners], 2)
    if most is None or (b.value(most) is not None and not b.need_ints(most, "the number of boxes")[0]):
        return b.const(np.zeros((0, 3), np.int64))
    scores, floor = _positive(b, scores, least)
    selected = b.op(
        "vision.all_class_non_max_suppression",
        boxes,
        scores,
        b.cast(b.scalar(most), "int64"),
        _next(b, overlap),
        floor,
        output_format="onnx",
    )
    rows, count = b.fields(selected)[:2]
    ones = b.const(np.ones(1, np.int64))
    end = b.concat([b.reshape(b.cast(count, "int64"), [1]), b.const(np.array([3]))], 0)
    kept_rows = b.op(
        "dyn.strided_slice", rows, b.const(np.zeros(2, np.int64)), end, b.op("concatenate", b.tuple([ones, ones]), axis=0)
    )
    return b.cast(b.refine(kept_rows, [None, 3]), "int64")


RULES = (
    Rule("AffineGrid", affine_grid),
    Rule("GridSample", grid_sample),
    Rule(
        "MaxRoiPool",
        lambda n, x, rois: n.b.op(
            "vision.roi_pool", x, rois, pooled_size=n.ints("pooled_shape"), spatial_scale=n.float("spatial_scale", 1.0)
        ),
    ),
    Rule("NonMaxSuppression", non_max_suppression),
    Rule("Resize", resize_10, since=10, until=10),
    Rule("Resize", resize, since=11),
    Rule("RoiAlign", roi_align),
    Rule("Upsample", lambda n, x: resize_10(n, x, n.b.const(n.floats("scales"), "float32")), since=7, until=8),
    Rule("Upsample", resize_10, since=9, until=9),
)
