"""Resizing of tensors axis by axis, and grids of points, as importers need them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Unsupported
from relaylang.frontends.common.resize import Method, nearest, places, taps
from relaylang.ir import Expr

#: Relay's names of the kernels.
_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
#: The coordinate modes that Relay's operators have.
_NATIVE = ("half_pixel", "align_corners", "asymmetric")


def along(b: Builder, x: Expr, axis: int, out: int, scale: float, method: Method, roi: tuple[float, float]) -> Expr:
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
            x = along(b, x, axis, sizes[axis], scales[axis], method, part)
    return x


def dynamic_scales(b: Builder, x: Expr, factors: dict[int, float], method: Method) -> Any:
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
    return dynamic(b, x, b.cast(b.op("floor", scaled), "int64"), method)


def dynamic(b: Builder, x: Expr, size: Expr, method: Method) -> Any:
    """A resize of the last two axes to a computed size."""
    floored = (method.kind, method.coordinates) == ("nearest", "asymmetric") and method.rounding != "floor"
    if method.exclude_outside or method.antialias or method.coordinates not in _NATIVE or floored:
        raise Unsupported(f"the size is computed, with coordinate_transformation_mode {method.coordinates}")
    return b.op(
        "dyn.image.resize2d", x, size, b.const(np.zeros(4, "float32")), layout="NCHW", method=_METHODS[method.kind],
        coordinate_transformation_mode=method.coordinates, cubic_alpha=method.a,
        rounding_method=method.rounding if method.kind == "nearest" else "",
    )  # fmt: skip


def affine_grid(b: Builder, theta: Expr, spatial: Sequence[int], align_corners: bool) -> Expr:
    """The base grid of the output, times the matrices: shape (N, *spatial, axes)."""
    axes = []
    for extent in spatial:
        if align_corners:
            axes.append(np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1))
        else:
            axes.append((np.arange(extent) * 2 + 1) / extent - 1)
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1).reshape(-1, len(spatial) + 1)
    points = b.const(base.astype(np.dtype(b.dtype(theta)))[None])
    batch = b.extent(theta, 0, "the batch")
    made = b.op("nn.batch_matmul", b.op("broadcast_to", points, shape=(batch, *base.shape)), theta, transpose_b=True)
    return b.reshape(made, [batch, *spatial, len(spatial)])


__all__ = ["along", "affine_grid", "dynamic", "dynamic_scales", "resample"]
