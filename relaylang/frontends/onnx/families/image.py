"""Operators on images: Resize and its forerunner, sampling grids, regions, non-maximum suppression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.common.resize import Method, nearest, places, taps
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr

#: Relay's names of the kernels.
_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
#: The coordinate modes that Relay's operators have.
_NATIVE = ("half_pixel", "align_corners", "asymmetric")


def _along(b: Builder, x: Expr, axis: int, out: int, scale: float, method: Method, roi: tuple[float, float]) -> Expr:
    """One axis resampled, from taps that are known now."""
    size = b.extent(x, axis)
    at = places(method, size, out, scale, *roi)
    if method.kind == "nearest":
        made = b.op("take", x, b.const(nearest(method, at, size)), axis=axis)
    else:
        index, weights = taps(method, at, size, scale)
        dtype, shape = b.dtype(x), [-1 if i == axis else 1 for i in range(b.rank(x))]
        parts = [
            b.op("multiply", b.op("take", x, b.const(i), axis=axis), b.const(w.reshape(shape).astype(np.dtype(dtype))))
            for i, w in zip(index.T.copy(), weights.T)
        ]
        made = parts[0]
        for part in parts[1:]:
            made = b.op("add", made, part)
    if method.coordinates == "tf_crop_and_resize":
        inside = (at >= 0) & (at <= size - 1)
        if not inside.all():
            mask = b.const(inside.reshape([-1 if i == axis else 1 for i in range(b.rank(x))]))
            made = b.op("where", mask, made, b.const(method.outside, b.dtype(x)))
    return made


def resample(b: Builder, x: Expr, sizes: dict[int, int], scales: dict[int, float], method: Method, roi: list[float] | None) -> Any:
    """The axes of `sizes` resampled, one after the other, or by one operator where Relay has it."""
    rank = b.rank(x)
    spatial = list(range(2, rank))
    exact = all(math.isclose(scales[a] * b.extent(x, a), sizes[a], rel_tol=1e-6) for a in sizes)
    plain = not (method.exclude_outside or method.antialias) and method.coordinates in _NATIVE and exact
    if plain and 3 <= rank <= 5 and set(sizes) <= set(spatial) and method.kind == "linear" and b.dtype(x) == "float32":
        return b.op(
            f"image.resize{rank - 2}d", x, size=[sizes.get(a, b.extent(x, a)) for a in spatial], roi=[0.0] * (2 * (rank - 2)),
            layout="NCDHW"[:2] + "DHW"[5 - rank :], method=_METHODS[method.kind], rounding_method="",
            coordinate_transformation_mode=method.coordinates, cubic_alpha=method.a,
        )  # fmt: skip
    for axis in sorted(sizes):
        part = (roi[axis], roi[rank + axis]) if roi else (0.0, 1.0)
        if sizes[axis] != b.extent(x, axis) or method.coordinates == "tf_crop_and_resize":
            x = _along(b, x, axis, sizes[axis], scales[axis], method, part)
    return x


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
        return _dynamic_scales(b, x, factors, method)
    sizes = {}
    for axis, scale in factors.items():
        part = roi[b.rank(x) + axis] - roi[axis] if roi else 1.0
        sizes[axis] = math.floor(b.extent(x, axis) * part * scale)
    return resample(b, x, sizes, factors, method, roi)


def _dynamic_scales(b: Builder, x: Expr, factors: dict[int, float], method: Method) -> Any:
    """Unknown extents times scales: repeated elements, or a resize to a computed size."""
    copies = all(s == int(s) for s in factors.values())
    if method.kind == "nearest" and copies and (method.coordinates, method.rounding) in (
        ("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"), ("half_pixel", "round"),
    ):  # fmt: skip
        for axis, scale in factors.items():
            x = b.op("repeat", x, repeats=int(scale), axis=axis)
        return x
    if b.rank(x) != 4 or not set(factors) <= {2, 3}:
        raise Unsupported("an axis of unknown extent is resized; --shape gives it")
    spatial = b.cast(b.slice(b.shape_of(x), [2], [4], [0]), "float32")
    scaled = b.op("multiply", spatial, b.const(np.array([factors.get(2, 1.0), factors.get(3, 1.0)], "float32")))
    return _dynamic(b, x, b.cast(b.op("floor", scaled), "int64"), method)


def _dynamic(b: Builder, x: Expr, size: Expr, method: Method) -> Any:
    """A resize of the last two axes to a computed size."""
    floored = (method.kind, method.coordinates) == ("nearest", "asymmetric") and method.rounding != "floor"
    if method.exclude_outside or method.antialias or method.coordinates not in _NATIVE or floored:
        raise Unsupported(f"the size is computed, with coordinate_transformation_mode {method.coordinates}")
    return b.op(
        "dyn.image.resize2d", x, size, b.const(np.zeros(4, "float32")), layout="NCHW", method=_METHODS[method.kind],
        coordinate_transformation_mode=method.coordinates, cubic_alpha=method.a,
        rounding_method=method.rounding if method.kind == "nearest" else "",
    )  # fmt: skip


def _to_sizes(n: Node, x: Expr, sizes: Expr, axes: list[int], method: Method, roi: list[float] | None) -> Any:
    b, shape = n.b, n.b.shape(x)
    known = b.known(sizes)
    if known is None or None in known:
        if axes != list(range(4)):
            raise Unsupported("the sizes are computed")
        return _dynamic(b, x, b.slice(sizes, [2], [4], [0]), method)
    wanted = {a: int(s) for a, s in zip(axes, known) if s is not None}
    if any(not isinstance(shape[a], int) and a < 2 for a in wanted):
        wanted = {a: s for a, s in wanted.items() if isinstance(shape[a], int) or a >= 2}
    if any(not isinstance(shape[a], int) for a in wanted):
        if b.rank(x) != 4 or not {2, 3} <= set(wanted):
            raise Unsupported("an axis of unknown extent is resized; --shape gives it")
        return _dynamic(b, x, b.const(np.array([wanted[2], wanted[3]])), method)
    policy = n.string("keep_aspect_ratio_policy", "stretch")
    scales = {a: s / b.extent(x, a) for a, s in wanted.items()}
    if policy != "stretch":
        scale = min(scales.values()) if policy == "not_larger" else max(scales.values())
        wanted = {a: math.floor(scale * b.extent(x, a) + 0.5) for a in wanted}
        scales = dict.fromkeys(wanted, scale)
    return resample(b, x, wanted, scales, method, roi)


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
    """The base grid of the output, times the matrices: shape (N, *spatial, axes)."""
    b = n.b
    spatial = b.need_ints(size, "the size")[2:]
    axes = []
    for extent in spatial:
        if n.int("align_corners", 0):
            axes.append(np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1))
        else:
            axes.append((np.arange(extent) * 2 + 1) / extent - 1)
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1).reshape(-1, len(spatial) + 1)
    points = b.const(base.astype(np.dtype(b.dtype(theta)))[None])
    batch = b.extent(theta, 0, "the batch")
    made = b.op("nn.batch_matmul", b.op("broadcast_to", points, shape=(batch, *base.shape)), theta, transpose_b=True)
    return b.reshape(made, [batch, *spatial, len(spatial)])


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
