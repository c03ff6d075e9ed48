"""Resizing of tensors axis by axis, and grids of points, as importers need them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.resize import Method, Stretch, nearest, places, taps
from relaylang.ir import Expr

#: The coordinate modes that Relay's operators have.
_NATIVE = ("half_pixel", "align_corners", "asymmetric")
#: Truncation of sums of weighted integers first makes them larger by this factor, lest rounding loses a whole number.
_LARGER = 1 + 1e-12


def stretch(
    b: Builder,
    x: Expr,
    axis: int,
    size: Expr | int | None = None,
    scale: Expr | float | None = None,
    roi: tuple[float, float] = (0.0, 1.0),
) -> Stretch:
    """An axis of a tensor with the extent of the result, or its scale, or both; each a number or computed."""
    shape = b.shape_of(x)
    have = b.scalar(b.slice(shape, [axis], [axis + 1], [0]))
    real = b.cast(have, "float32")
    ratio = scale if isinstance(scale, Expr) or scale is None else b.const(scale, "float32")
    if size is None:
        assert ratio is not None
        known, times = b.value(have), b.value(ratio)
        if known is not None and times is not None:
            if not 0 < float(times) < math.inf:
                raise Malformed(f"it resizes an axis of {known} elements by the scale {times}")
            b.arrays.reserve(int(float(known) * float(times)), "resizing an axis")
        size = b.cast(b.op("floor", b.op("multiply", real, ratio)), "int64")
    elif isinstance(size, int):
        size = b.const(size, "int64")
    if ratio is None:
        ratio = b.op("divide", b.cast(size, "float32"), b.op("maximum", real, 1.0))
    return Stretch(have, size, ratio, *roi)


def along(b: Builder, x: Expr, axis: int, to: Stretch, method: Method) -> Expr:
    """One axis resampled: copies, or weighted sums of elements in the data's element type, which is a real one."""
    have, size = b.value(to.have), b.value(to.size)
    if size is not None and b.arrays.reserve(int(size), "resizing an axis") and have == 0:
        raise Malformed(f"it resizes an axis without elements to {size}")
    at = places(b, method, to)
    if method.kind == "nearest":
        total: Expr = b.op("take", x, nearest(b, method, at, to), axis=axis)
    else:
        dtype, shape = b.dtype(x), [-1 if i == axis else 1 for i in range(b.rank(x))]
        parts = [
            b.op("multiply", b.op("take", x, index, axis=axis), b.reshape(b.cast(weight, dtype), shape))
            for index, weight in taps(b, method, at, to)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = b.op("add", total, part)
    if method.coordinates == "tf_crop_and_resize":
        last = b.op("subtract", b.cast(to.have, "float32"), 1.0)
        inside = b.op("logical_and", b.op("greater_equal", at, 0.0), b.op("less_equal", at, last))
        known = b.value(inside)
        if known is None or not known.all():
            mask = b.reshape(inside, [-1 if i == axis else 1 for i in range(b.rank(x))])
            total = b.op("where", mask, total, b.const(np.asarray(method.outside).astype(np.dtype(b.dtype(x)))))
    return total


def resample(b: Builder, x: Expr, axes: Mapping[int, Stretch], method: Method) -> Expr:
    """The axes resampled one after the other, or by one operator where Relay has it."""
    crops = method.coordinates == "tf_crop_and_resize"
    changed = {a: to for a, to in axes.items() if _changes(b, to, crops)}
    spatial = {a: to for a, to in changed.items() if a >= 2}
    native = _native(b, x, spatial, method) if spatial else None
    if native is not None:
        x, changed = native, {a: to for a, to in changed.items() if a < 2}
    dtype = b.dtype(x)
    if method.kind == "nearest" or dtype in ("float32", "float64"):
        for axis in sorted(changed):
            x = along(b, x, axis, changed[axis], method)
        return x
    real, stored = dtype in ("float16", "bfloat16"), dtype
    each = method.antialias and not real  # integers are rounded after each axis
    for axis in sorted(changed, reverse=True):
        x = along(b, b.cast(x, "float32" if real else "float64"), axis, changed[axis], method)
        x = _whole(b, x, stored, method) if each else x
    return b.cast(x, dtype) if real or each else _whole(b, x, stored, method)


def _whole(b: Builder, x: Expr, dtype: str, method: Method) -> Expr:
    """Sums of weighted integers as integers: cut, and rounded and held to their range of kernels that leave it."""
    if dtype == "bool":
        return b.cast(x, dtype)
    if method.kind == "linear" and not method.antialias:
        return b.cast(b.op("trunc", b.op("multiply", x, _LARGER)), dtype)
    limits = np.iinfo(np.dtype(dtype))
    return b.cast(b.op("clip", b.op("round", x), a_min=float(limits.min), a_max=float(limits.max)), dtype)


def _changes(b: Builder, to: Stretch, crops: bool) -> bool:
    """Whether resampling changes an axis: not by a scale of 1, unless a part of the axis is taken."""
    scale = b.value(to.scale)
    return scale is None or float(scale) != 1 or not _same(b, to) or (crops and (to.start, to.end) != (0.0, 1.0))


def _same(b: Builder, to: Stretch) -> bool:
    """Whether an axis keeps its extent."""
    have, size = b.value(to.have), b.value(to.size)
    return have is not None and size is not None and int(have) == int(size)


def _native(b: Builder, x: Expr, axes: Mapping[int, Stretch], method: Method) -> Expr | None:
    """Linear resizing of spatial axes by Relay's operator; None where its results are others."""
    rank, dtype = b.rank(x), b.dtype(x)
    if method.kind != "linear" or method.exclude_outside or method.antialias or method.coordinates not in _NATIVE:
        return None
    if dtype != "float32" or not 3 <= rank <= 5:
        return None
    every = [axes.get(a) or stretch(b, x, a, scale=1.0) for a in range(2, rank)]
    values = [[b.value(v) for v in (to.have, to.size, to.scale)] for to in every]
    known = [[float(v) for v in row if v] for row in values]
    if any(len(row) < 3 for row in known):
        return None
    if method.coordinates != "align_corners" and not all(np.isclose(scale * have, size, rtol=1e-6) for have, size, scale in known):
        return None
    resized: Expr = b.op(
        f"image.resize{rank - 2}d",
        x,
        size=[int(size) for _, size, _ in known],
        roi=[0.0] * (2 * (rank - 2)),
        layout="NCDHW"[:2] + "DHW"[5 - rank :],
        method="linear",
        rounding_method="",
        coordinate_transformation_mode=method.coordinates,
        cubic_alpha=method.a,
    )
    return resized


def dynamic_scales(b: Builder, x: Expr, factors: Mapping[int, float], method: Method) -> Expr:
    """Axes of unknown extents times scales: repeated elements where these are the nearest, else resampled."""
    copies = all(s == int(s) for s in factors.values())
    if (
        method.kind == "nearest"
        and copies
        and (method.coordinates, method.rounding)
        in (
            ("asymmetric", "floor"),
            ("half_pixel", "round_prefer_floor"),
            ("half_pixel", "round_prefer_ceil"),
            ("half_pixel", "round"),
        )
    ):
        for axis, scale in factors.items():
            x = b.op("repeat", x, repeats=int(scale), axis=axis)
        return x
    return resample(b, x, {a: stretch(b, x, a, scale=s) for a, s in factors.items()}, method)


def affine_grid(b: Builder, theta: Expr, spatial: Sequence[int], align_corners: bool) -> Expr:
    """The base grid of the output, times the matrices: shape (N, *spatial, axes)."""
    axes = []
    for extent in spatial:
        if align_corners:
            axes.append(b.arrays.linspace(-1, 1, extent) if extent > 1 else np.zeros(1))
        else:
            axes.append((b.arrays.arange(extent) * 2 + 1) / extent - 1)
    base = b.arrays.ones((*spatial, len(spatial) + 1))
    for i, grid in enumerate(np.ix_(*axes)):
        base[..., len(spatial) - 1 - i] = grid
    base = base.reshape(-1, len(spatial) + 1)
    points = b.const(base.astype(np.dtype(b.dtype(theta)))[None])
    batch = b.extent(theta, 0, "the batch")
    coordinates = b.op("nn.batch_matmul", b.op("broadcast_to", points, shape=(batch, *base.shape)), theta, transpose_b=True)
    return b.reshape(coordinates, [batch, *spatial, len(spatial)])


__all__ = ["affine_grid", "dynamic_scales", "resample", "stretch"]
