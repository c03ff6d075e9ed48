"""Images: resizing, cropping, sampling. Coordinates are in float32, and so is interpolation except of float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    convert,
    from_plain,
    layout_axes,
    limits,
    out_dtype,
    pad_space,
    paddings,
    plus,
    round_away,
    spread,
    to_plain,
    wide,
    windows,
)
from relaylang.interpreter.kernels.indexing import check_range
from relaylang.ops.image import METHODS

_F = np.float32
_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _source(mode: str, size: int, target: int, begin: float, end: float) -> Any:
    """The places of a resized axis' pixels on the old axis."""
    x = np.arange(target).astype(_F)
    scale = _F(size) / _F(target)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and target > 1):
        return (x + _F(0.5)) * scale - _F(0.5)
    if mode == "align_corners":
        return _F(size - 1) / _F(target - 1) * x if target > 1 else x
    if mode == "asymmetric":
        return scale * x
    if mode == "pytorch_half_pixel":
        return np.zeros_like(x)
    if mode == "tf_half_pixel_for_nn":
        return (x + _F(0.5)) * scale
    if mode == "tf_crop_and_resize":
        if target > 1:
            return _F(begin) * _F(size - 1) + x * _F(end - begin) * _F(size - 1) / _F(target - 1)
        return np.full_like(x, 0.5 * (begin + end) * (size - 1))
    raise KernelError(f"there is no coordinate transformation {mode}")


_ROUND = {
    "round": round_away,
    "round_prefer_floor": lambda x: np.ceil(x - _F(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x + _F(0.5)),
    "floor": lambda x: np.floor(x + _F(1e-5)),
    "ceil": lambda x: np.ceil(x - _F(1e-5)),
}


def _cubic(t: Any, alpha: Any) -> list[Any]:
    t2, t3 = t * t, t * t * t
    return [
        alpha * (t3 - _F(2) * t2 + t),
        (alpha + _F(2)) * t3 - (_F(3) + alpha) * t2 + _F(1),
        -(alpha + _F(2)) * t3 + (_F(3) + _F(2) * alpha) * t2 - alpha * t,
        -alpha * t3 + alpha * t2,
    ]


def _interpolate(x: Any, axis: int, at: Any, method: str, rounding: Any, alpha: float, exclude: bool) -> Any:
    """A tensor at real coordinates along one axis; beyond the ends the last pixel goes on."""
    size = x.shape[axis]

    def pixels(index: Any) -> Any:
        return np.take(x, np.clip(index, 0, size - 1).astype(np.intp), axis=axis)

    if method == "nearest_neighbor":
        return pixels(rounding(at))
    low = np.floor(at)
    shape = [1] * x.ndim
    shape[axis] = -1
    t = (at - low).reshape(shape)
    if method == "linear":
        return pixels(low) * (_F(1) - t) + pixels(low + 1) * t
    if method != "cubic":
        raise KernelError(f"there is no method {method}")
    weights = _cubic(t, _F(alpha))
    if exclude:
        places = low.reshape(shape)
        weights = [np.where((places - 1 + i < 0) | (places + i > size), _F(0), weight) for i, weight in enumerate(weights)]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        weights = [w / total for w in weights]
    parts = [pixels(low - 1 + i) * weight for i, weight in enumerate(weights)]
    return parts[0] + parts[1] + parts[2] + parts[3]


def _whole_steps(size: int, target: int) -> bool:
    """Whether each pixel is repeated a whole number of times, few enough that TVM divides integers."""
    return target % size == 0 and target / size <= 1 / (1e-5 * size + 1e-5)


def resize(attrs: Any, x: Any) -> Any:
    return resized(
        x,
        attrs.layout,
        attrs.size,
        attrs.method,
        attrs.coordinate_transformation_mode,
        rounding=attrs.rounding_method,
        roi=attrs.roi,
        alpha=attrs.cubic_alpha,
        exclude=bool(attrs.cubic_exclude),
        extrapolation=attrs.extrapolation_value,
        dtype=out_dtype(attrs, x.dtype),
    )


def resized(
    x: Any,
    layout: str,
    size: Sequence[int],
    method: str,
    mode: str,
    *,
    rounding: str | None = None,
    roi: Sequence[float] | None = None,
    alpha: float = -0.5,
    exclude: bool = False,
    extrapolation: float = 0.0,
    dtype: np.dtype | None = None,
) -> Any:
    """The spatial axes of a layout resized to `size`. Pixels are mixed in float32, float64's in float64; the nearest
    are copied as they are."""
    count = len(size)
    order = "NC" + _SPACE[count]
    image = plain = to_plain(x, layout, order)
    rounding = rounding or ("round" if mode == "align_corners" else "floor")
    if rounding not in _ROUND:
        raise KernelError(f"there is no rounding method {rounding}")
    if method != "nearest_neighbor":
        image = image.astype(x.dtype if x.dtype == np.float64 else _F)
    outside = np.zeros([1] * plain.ndim, np.bool_)
    for i in reversed(range(count)):
        old, new = plain.shape[2 + i], size[i]
        begin, end = (roi[i], roi[i + count]) if roi else (0.0, 1.0)
        at = _source(mode, old, new, begin, end)
        how: Any = _ROUND[rounding]
        if method == "nearest_neighbor" and mode == "asymmetric" and count == 2 and _whole_steps(old, new):
            how, at = np.floor, np.arange(new) // (new // old)
        image = _interpolate(image, 2 + i, at, method, how, alpha, exclude)
        if mode == "tf_crop_and_resize":
            shape = [1] * plain.ndim
            shape[2 + i] = -1
            outside = outside | ((at < 0) | (at > old - 1)).reshape(shape)
    image = convert(np.asarray(image), dtype or x.dtype)
    if outside.any():
        image = np.where(outside, convert(np.asarray(_F(extrapolation)), image.dtype), image)
    return from_plain(image, order, layout)


def _upsampled(attrs: Any, x: Any, order: str, scales: Sequence[float], mode: str) -> Any:
    if not all(0 < s < np.inf for s in scales):
        raise KernelError(f"the scales {tuple(scales)} must be positive and finite")
    space = [math.prod(x.shape[i] for i, (a, _) in enumerate(layout_axes(attrs.layout)) if a == c) for c in order[2:]]
    size = [round(n * s) for n, s in zip(space, scales)]
    method = METHODS.get(attrs.method, attrs.method)
    return resized(x, attrs.layout, size, method, mode, roi=[0.0] * (2 * len(size)))


def upsampling(attrs: Any, x: Any) -> Any:
    mode = "align_corners" if attrs.align_corners else "asymmetric"
    return _upsampled(attrs, x, "NCHW", (attrs.scale_h, attrs.scale_w), mode)


def upsampling3d(attrs: Any, x: Any) -> Any:
    scales = (attrs.scale_d, attrs.scale_h, attrs.scale_w)
    return _upsampled(attrs, x, "NCDHW", scales, attrs.coordinate_transformation_mode)


def crop_and_resize(attrs: Any, x: Any, boxes: Any, numbers: Any) -> Any:
    """Each box (top, left, bottom, right, from 0 to 1) of the image that its number names."""
    plain, boxes = to_plain(x, attrs.layout, "NCHW").astype(_F), wide(boxes)
    method = METHODS.get(attrs.method, attrs.method)
    crops = []
    check_range(numbers, len(plain))
    for box, number in zip(boxes, numbers):
        if 0 in attrs.crop_size:
            crops.append(np.zeros((plain.shape[1], *attrs.crop_size), _F))
            continue
        part = plain[int(number)]
        outside = np.zeros((1, 1, 1), np.bool_)
        for i in (1, 0):
            size, target = plain.shape[2 + i], attrs.crop_size[i]
            steps = _F(size - 1) * (box[2 + i] - box[i])
            at = box[i] * _F(size - 1)
            at = at + (steps / _F(target - 1) if target > 1 else _F(np.nan)) * np.arange(target).astype(_F)
            at = at if target > 1 else np.full(1, _F(np.nan))
            known = np.nan_to_num(at)
            part = _interpolate(part, 1 + i, known, method, round_away, -0.5, False)
            beyond = (at < 0) | (at > size - 1)
            outside = outside | beyond.reshape((1, -1, 1) if i == 0 else (1, 1, -1))
        crops.append(np.where(outside, _F(attrs.extrapolation_value), part))
    out = np.stack(crops) if crops else np.zeros((0, plain.shape[1], *attrs.crop_size), _F)
    return from_plain(convert(out, out_dtype(attrs, x.dtype)), "NCHW", attrs.layout)


def dilation2d(attrs: Any, x: Any, weight: Any) -> Any:
    """The greatest sum of a window and the weight; the padding is 0."""
    dtype = out_dtype(attrs, x.dtype)
    plain = convert(to_plain(x, attrs.data_layout, "NCHW"), dtype)
    kernel = convert(to_plain(weight, attrs.kernel_layout, "IHW"), dtype)
    padded = np.ascontiguousarray(pad_space(plain, paddings(attrs.padding, 2)))
    view = windows(padded, kernel.shape[1:], spread(attrs.strides[:2], 2), spread(attrs.dilations[:2], 2))
    dilated = plus(view, kernel[..., None, None]).max(axis=(2, 3), initial=limits(dtype)[0])
    return from_plain(dilated, "NCHW", attrs.data_layout)


def affine_grid(attrs: Any, x: Any) -> Any:
    """A matrix per image, over the coordinates from -1 to 1 of a target image."""
    kind = x.dtype.type
    y, across = (kind(-1) + np.arange(n).astype(x.dtype) * kind((2.0 - 1e-7) / (n - 1) if n > 1 else 0) for n in attrs.target_shape)
    matrix = x[:, :, :, None, None]
    return matrix[:, :, 0] * across + matrix[:, :, 1] * y[:, None] + matrix[:, :, 2]


def bilinear(image: Any, y: Any, x: Any) -> Any:
    """An image (channels, height, width) at real coordinates; pixels beyond it count as 0. Shape (channels, *places)."""
    return _between(image, [y, x])


def _pixel(image: Any, places: Sequence[Any]) -> Any:
    """The pixels of an image (channels, *space) at whole coordinates, 0 beyond its ends."""
    inside = np.logical_and.reduce([(p >= 0) & (p < n) for p, n in zip(places, image.shape[1:])])
    at = [np.clip(np.nan_to_num(p), 0, n - 1).astype(np.intp) for p, n in zip(places, image.shape[1:])]
    every: tuple[Any, ...] = (slice(None), *at)
    return np.where(inside, image[every], image.dtype.type(0))


def _between(image: Any, places: Sequence[Any]) -> Any:
    """Linear interpolation in each coordinate."""
    lows = [np.floor(p) for p in places]
    total: Any = 0
    for corner in np.ndindex(*[2] * len(places)):
        weight: Any = 1
        for p, low, bit in zip(places, lows, corner):
            weight = weight * (p - low if bit else low.dtype.type(1) - (p - low))
        total = total + _pixel(image, [low + low.dtype.type(bit) for low, bit in zip(lows, corner)]) * weight
    return total


def _reflect(x: Any, size: int, corner: float) -> Any:
    """Folded back at both ends, which are `size` apart and begin at `corner`. An infinite place has none: it becomes nan."""
    kind, step = x.dtype.type, x.dtype.type(max(size, 1))
    away = np.abs(kind(corner) - x)
    extra = np.fmod(away, step)
    odd = np.fmod(np.rint((away - extra) / step), kind(2)) != 0
    folded = np.where(odd, kind(size) - extra + kind(corner), extra + kind(corner))
    return np.where((x >= corner) & (x <= size + corner), x, folded)


def grid_sample(attrs: Any, x: Any, grid: Any) -> Any:
    """Each image at the places that its grid holds, as (x, y[, z]) from -1 to 1."""
    order, dtype = "NCHW" if x.ndim == 4 else "NCDHW", x.dtype
    x, grid, count = wide(to_plain(x, attrs.layout, order)), wide(grid), x.ndim - 2
    kind = grid.dtype.type
    space = x.shape[2:]
    raw = [grid[:, count - 1 - i] for i in range(count)]
    if attrs.align_corners:
        places = [(p + kind(1)) * kind(n - 1) / kind(2) for p, n in zip(raw, space)]
    else:
        places = [kind(-0.5) + (p + kind(1)) * kind(n) / kind(2) for p, n in zip(raw, space)]

    def inside(p: Any, n: int) -> Any:
        if attrs.padding_mode == "reflection":
            p = _reflect(p, n - 1, 0) if attrs.align_corners else _reflect(p, n, -0.5)
        return p if attrs.padding_mode == "zeros" else np.clip(p, kind(0), kind(n - 1))

    out = []
    for b in range(x.shape[0]):
        at = [p[b] for p in places]
        if attrs.method == "bicubic":
            out.append(_bicubic(x[b], at, inside))
            continue
        at = [inside(p, n) for p, n in zip(at, space)]
        if attrs.method == "nearest":
            out.append(_pixel(x[b], [np.rint(p) for p in at]))
        elif attrs.method == "bilinear":
            out.append(_between(x[b], at))
        else:
            raise KernelError(f"there is no method {attrs.method}")
    sampled = np.stack(out).astype(dtype) if out else np.zeros((0, x.shape[1], *grid.shape[2:]), dtype)
    return from_plain(sampled, order, attrs.layout)


def _bicubic(image: Any, places: Any, inside: Any) -> Any:
    """With the coefficient -0.75, as PyTorch has it."""
    kind = places[0].dtype.type
    lows = [np.floor(p) for p in places]
    weights = [_cubic(p - low, kind(-0.75)) for p, low in zip(places, lows)]
    total: Any = 0
    for i in range(4):
        y = np.trunc(inside(lows[0] - 1 + i, image.shape[1]))
        row: Any = 0
        for j in range(4):
            x = np.trunc(inside(lows[1] - 1 + j, image.shape[2]))
            row = row + _pixel(image, [y, x]) * weights[1][j]
        total = total + row * weights[0][i]
    return total


KERNELS: dict[str, Kernel] = {
    "image.resize1d": resize,
    "image.resize2d": resize,
    "image.resize3d": resize,
    "image.crop_and_resize": crop_and_resize,
    "image.dilation2d": dilation2d,
    "image.affine_grid": affine_grid,
    "image.grid_sample": grid_sample,
}
