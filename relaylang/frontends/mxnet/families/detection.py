"""Boxes, regions, and images at computed places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, regions
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr


def multibox_prior(n: Node, x: Expr) -> Any:
    how = {"sizes": n.floats("sizes", [1.0]), "ratios": n.floats("ratios", [1.0])}
    places = {"steps": n.floats("steps", [-1.0, -1.0]), "offsets": n.floats("offsets", [0.5, 0.5])}
    return n.b.op("vision.multibox_prior", x, **how, **places, clip=n.bool("clip"))


def multibox_detection(n: Node, scores: Expr, moves: Expr, anchors: Expr) -> Any:
    """Class, score and box of each anchor, by the score. The rows of no class and of suppressed boxes are -1."""
    b = n.b
    if n.int("background_id", 0) != 0:
        raise Unsupported("its background is not the class 0")
    located = b.op(
        "vision.multibox_transform_loc",
        scores,
        moves,
        anchors,
        clip=n.bool("clip", True),
        threshold=n.float("threshold", 0.01),
        variances=n.floats("variances", [0.1, 0.1, 0.2, 0.2]),
    )
    boxes, count = b.fields(located)
    how = {"force_suppress": n.bool("force_suppress"), "top_k": n.int("nms_topk", -1)}
    return _suppressed(b, boxes, count, count, n.float("nms_threshold", 0.5), id_index=0, **how)


def _suppressed(b: Builder, boxes: Expr, count: Expr, places: Expr, most: float, **how: Any) -> Expr:
    """Boxes by their score, -1 in the rows of those that a better one covers."""
    limits = b.const(-1, "int32"), b.const(most, "float32")
    suppressed: Expr = b.op("vision.non_max_suppression", boxes, count, places, *limits, return_indices=False, **how)
    return suppressed


def box_iou(n: Node, x: Expr, y: Expr) -> Any:
    """The shared part of each pair of boxes, of that which both cover."""
    b, rank = n.b, n.b.rank(x)
    corners = []
    for value in (x, y):
        parts = [b.slice(value, [i], [i + 1], [b.rank(value) - 1]) for i in range(4)]
        if n.choice("format", "corner", ("corner", "center")) == "center":
            parts = _to_corners(b, parts)
        corners.append(parts)
    left = corners[0]
    right = [b.reshape(part, [1] * (rank - 1) + [-1]) for part in corners[1]]
    shape = [*b.static_shape(x)[:-1], *b.static_shape(y)[:-1]]
    width, height = (
        b.op("maximum", b.op("subtract", b.op("minimum", left[i + 2], right[i + 2]), b.op("maximum", left[i], right[i])), 0.0)
        for i in (0, 1)
    )
    shared = b.op("multiply", width, height)
    areas = [b.op("multiply", b.op("subtract", p[2], p[0]), b.op("subtract", p[3], p[1])) for p in (left, right)]
    both = b.op("subtract", b.op("add", *areas), shared)
    share = b.op("divide", shared, both)
    none = b.op("equal", shared, 0.0)
    return b.reshape_exactly(b.op("where", none, b.const(0.0, b.dtype(x)), share), shape)


def _to_corners(b: Builder, parts: list[Expr]) -> list[Expr]:
    """Left, top, right and bottom of a centre with width and height."""
    x, y, width, height = parts
    halves = [b.op("multiply", size, 0.5) for size in (width, height)]
    return [b.op("subtract", c, h) for c, h in zip((x, y), halves)] + [b.op("add", c, h) for c, h in zip((x, y), halves)]


def _to_centres(b: Builder, parts: list[Expr]) -> list[Expr]:
    """Centre, width and height of left, top, right and bottom."""
    left, top, right, bottom = parts
    middles = [b.op("multiply", b.op("add", low, high), 0.5) for low, high in ((left, right), (top, bottom))]
    return [*middles, b.op("subtract", right, left), b.op("subtract", bottom, top)]


def box_decode(n: Node, moves: Expr, anchors: Expr) -> Any:
    """Boxes as corners, from moves of anchors."""
    b = n.b
    parts = [b.slice(anchors, [i], [i + 1], [2]) for i in range(4)]
    if n.choice("format", "center", ("corner", "center")) == "corner":
        parts = _to_centres(b, parts)
    stds = [n.float(f"std{i}", 1.0) for i in range(4)]
    own = [b.op("multiply", b.slice(moves, [i], [i + 1], [2]), std) for i, std in enumerate(stds)]
    clip = n.float("clip", -1.0)
    middles = [b.op("add", b.op("multiply", own[i], parts[i + 2]), parts[i]) for i in (0, 1)]
    sizes = []
    for i in (2, 3):
        size = b.op("exp", b.op("minimum", own[i], clip) if clip > 0 else own[i])
        sizes.append(b.op("multiply", b.op("multiply", size, parts[i]), 0.5))
    ends = [b.op(name, m, s) for name in ("subtract", "add") for m, s in zip(middles, sizes)]
    return b.concat(ends, 2)


def box_nms(n: Node, x: Expr) -> Any:
    """The rows of boxes by their score, without those that a better one covers; -1 in the rows that are left."""
    b = n.b
    shape = list(b.static_shape(x, "the boxes"))
    first, score, ident = n.int("coord_start", 2), n.int("score_index", 1), n.int("id_index", -1)
    if len(shape) < 2 or not (0 <= score < shape[-1] and 0 <= first <= shape[-1] - 4 and -1 <= ident < shape[-1]):
        raise Malformed(f"its operand has the shape {tuple(shape)}, and the attributes name other columns")
    data = b.reshape_exactly(x, [math.prod(shape[:-2]), *shape[-2:]])
    background = n.int("background_id", -1)
    if ident >= 0 and background >= 0:
        column = b.op("equal", b.slice(data, [ident], [ident + 1], [2]), float(background))
        held = b.op("where", column, b.const(-math.inf, b.dtype(x)), b.slice(data, [score], [score + 1], [2]))
        data = _with_columns(b, data, score, [held])
    forms = [n.choice(name, "corner", ("corner", "center")) for name in ("in_format", "out_format")]
    if forms[0] == "center":
        data = _with_columns(b, data, first, _to_corners(b, _columns(b, data, first)))
    valid = n.float("valid_thresh", 0.0)
    count, rows, places = b.fields(
        b.op("vision.get_valid_counts", data, b.const(valid, "float32"), score_threshold=valid, id_index=ident, score_index=score)
    )
    how = {"force_suppress": n.bool("force_suppress") or ident < 0, "top_k": n.int("topk", -1), "invalid_to_bottom": True}
    suppressed = _suppressed(
        b, rows, count, places, n.float("overlap_thresh", 0.5), coord_start=first, score_index=score, id_index=ident, **how
    )
    if forms[1] == "center":
        turned = _with_columns(b, suppressed, first, _to_centres(b, _columns(b, suppressed, first)))
        suppressed = b.op("where", b.op("equal", b.slice(suppressed, [score], [score + 1], [2]), -1.0), suppressed, turned)
    return b.reshape_exactly(suppressed, shape)


def _columns(b: Builder, data: Expr, first: int) -> list[Expr]:
    """Four columns of rows of boxes."""
    return [b.slice(data, [i], [i + 1], [2]) for i in range(first, first + 4)]


def _with_columns(b: Builder, data: Expr, first: int, columns: list[Expr]) -> Expr:
    """Rows of boxes with other columns from a place on."""
    width, end = b.extent(data, 2), first + len(columns)
    before = [b.slice(data, [0], [first], [2])] if first else []
    after = [b.slice(data, [end], [width], [2])] if end < width else []
    return b.concat([*before, *columns, *after], 2)


# ---- regions


def roi_pooling(n: Node, x: Expr, rois: Expr) -> Any:
    return n.b.op("vision.roi_pool", x, rois, pooled_size=n.ints("pooled_size", count=2), spatial_scale=n.float("spatial_scale"))


def roi_align(n: Node, x: Expr, rois: Expr) -> Any:
    b = n.b
    size, scale, ratio = n.ints("pooled_size", count=2), n.float("spatial_scale"), max(n.int("sample_ratio", -1), 0)
    if n.bool("position_sensitive"):
        raise Unsupported("each cell of its regions has channels of its own")
    if n.bool("aligned"):
        b.shape(rois, 2)
        corners, batch = b.slice(rois, [1], [5], [1]), b.squeeze(b.slice(rois, [0], [1], [1]), [1])
        return regions.mean(b, x, batch, regions.axes_of(b, corners, (size[0], size[1]), scale, ratio, True))
    return b.op("vision.roi_align", x, rois, pooled_size=size, spatial_scale=scale, sample_ratio=ratio or -1)


def proposal(n: Node, scores: Expr, moves: Expr, info: Expr) -> Any:
    if n.bool("output_score"):
        raise Unsupported("the scores of its regions are results")
    return n.b.op(
        "vision.proposal",
        scores,
        moves,
        info,
        scales=n.floats("scales", [4.0, 8.0, 16.0, 32.0]),
        ratios=n.floats("ratios", [0.5, 1.0, 2.0]),
        feature_stride=n.int("feature_stride", 16),
        threshold=n.float("threshold", 0.7),
        rpn_min_size=n.int("rpn_min_size", 16),
        rpn_pre_nms_top_n=n.int("rpn_pre_nms_top_n", 6000),
        rpn_post_nms_top_n=n.int("rpn_post_nms_top_n", 300),
        iou_loss=n.bool("iou_loss"),
    )


# ---- images at computed places


def resize(n: Node, x: Expr, like: Expr | None = None) -> Any:
    """`BilinearResize2D`: the extents by the attribute `mode`."""
    b = n.b
    have = b.static_shape(x, "the image", 4)[2:]
    mode = n.string("mode", "size")
    scales = [n.float(name, 0.0) if n.has(name) else 0.0 for name in ("scale_height", "scale_width")]
    if mode == "size":
        sizes = [int(s * h) if s else n.int(name, 1) for s, h, name in zip(scales, have, ("height", "width"))]
    elif mode == "like" and like is not None:
        sizes = list(b.static_shape(like, "the image", 4)[2:])
    elif mode == "odd_scale":
        sizes = [int(h * s) if h % 2 == 0 else int((h - 1) * s) + 1 for s, h in zip(scales, have)]
    elif mode in _TO:
        parity, step = _TO[mode]
        sizes = [h if h % 2 == parity else h + step for h in have]
    else:
        raise Unsupported(f"the mode {mode[:40]!r} is unknown")
    if min(sizes) < 1:
        raise Malformed(f"its result would have the extents {sizes}")
    form = "align_corners" if n.bool("align_corners", True) else "half_pixel"
    return b.op("image.resize2d", x, size=sizes, method="linear", coordinate_transformation_mode=form, roi=[0.0, 0.0, 0.0, 0.0])


#: Modes that make extents even or odd: the parity, and the step to it.
_TO = {"to_even_down": (0, -1), "to_even_up": (0, 1), "to_odd_down": (1, -1), "to_odd_up": (1, 1)}


def _affine(n: Node, theta: Expr) -> Expr:
    shape = n.ints("target_shape", count=2)
    grid: Expr = n.b.op("image.affine_grid", n.b.reshape(theta, [-1, 2, 3]), target_shape=shape)
    return grid


def grid_generator(n: Node, x: Expr) -> Any:
    """The places of an affine map, or of moved pixels: -1 and 1 are the middles of the outer pixels."""
    b = n.b
    if n.choice("transform_type", "affine", ("affine", "warp")) == "affine":
        return _affine(n, x)
    height, width = b.static_shape(x, "the moves", 4)[2:]
    rows, columns = np.meshgrid(b.arrays.arange(height), b.arrays.arange(width), indexing="ij")
    own = b.const(np.stack([columns, rows])[None].astype(b.dtype(x)))
    halves = np.array([max(width - 1, 1), max(height - 1, 1)], b.dtype(x)).reshape(1, 2, 1, 1) / 2
    return b.op("subtract", b.op("divide", b.op("add", x, own), b.const(halves.astype(b.dtype(x)))), 1.0)


def _sampled(b: Builder, x: Expr, grid: Expr) -> Expr:
    sampled: Expr = b.op("image.grid_sample", x, grid, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True)
    return sampled


def correlation(n: Node, x: Expr, y: Expr) -> Any:
    pad = n.int("pad_size", 0)
    return n.b.op(
        "nn.correlation",
        x,
        y,
        kernel_size=n.int("kernel_size", 1),
        max_displacement=n.int("max_displacement", 1),
        stride1=n.int("stride1", 1),
        stride2=n.int("stride2", 1),
        padding=[pad, pad],
        is_multiply=n.bool("is_multiply", True),
    )


RULES = (
    Rule("_contrib_MultiBoxPrior", multibox_prior),
    Rule("_contrib_MultiBoxDetection", multibox_detection),
    Rule("_contrib_box_iou", box_iou),
    Rule("_contrib_box_decode", box_decode),
    Rule("_contrib_box_nms", box_nms),
    Rule("ROIPooling", roi_pooling),
    Rule("_contrib_ROIAlign", roi_align),
    Rule("_contrib_Proposal", proposal),
    Rule("_contrib_MultiProposal", proposal),
    Rule("_contrib_BilinearResize2D", resize),
    Rule("GridGenerator", grid_generator),
    Rule("BilinearSampler", lambda n, x, grid: _sampled(n.b, x, grid)),
    Rule("SpatialTransformer", lambda n, x, theta: _sampled(n.b, x, _affine(n, theta))),
    Rule("Correlation", correlation),
)
