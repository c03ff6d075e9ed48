"""The operators of torchvision in numpy, so that torch can trace and run them where torchvision's own library is absent."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,"
    " int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w,"
    " SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask)"
    " -> Tensor",
    # torchvision registers shapes and gradients of these, so their names must exist
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,"
    " int sampling_ratio) -> (Tensor, Tensor)",
    "ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
    *(f"_{name}_backward(Tensor x) -> Tensor" for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")),
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",  # torch.jit.script asks for it
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_LIBRARY: list[Any] = []


def define() -> None:
    """Define the operators, unless they exist."""
    if hasattr(torch.ops.torchvision, "nms"):
        return
    library = torch.library.Library("torchvision", "DEF")
    for schema in _SCHEMAS:
        library.define(schema)
    for kernel in (nms, roi_align, roi_pool, deform_conv2d, ps_roi_align, ps_roi_pool):
        library.impl(kernel.__name__, kernel, "CPU")
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"):
        library.impl(name, partial(pooled_shapes, name), "Meta")
    library.impl("deform_conv2d", lambda x, weight, offset, *rest: x.new_empty(len(x), len(weight), *offset.shape[2:]), "Meta")
    _LIBRARY.append(library)  # the definitions end with it


def pooled_shapes(name: str, input: Any, rois: Any, spatial_scale: float, height: int, width: int, *rest: Any) -> Any:
    """Tensors of the shapes of a pool's results, which torch needs to export it."""
    channels = input.shape[1] // (height * width) if name.startswith("ps") else input.shape[1]
    made = input.new_empty(len(rois), channels, height, width)
    return made if name == "roi_align" else (made, made.new_empty(made.shape, dtype=torch.int32))


def torchvision() -> Any:
    """The package, with the operators here where its own library does not load. Skips where it is absent."""
    define()
    try:
        package = pytest.importorskip("torchvision")
    except (OSError, RuntimeError) as why:
        pytest.skip(f"torchvision does not load beside this torch: {why}")
    for module in ("torchvision.extension", "torchvision.ops.roi_align"):
        sys.modules[module]._has_ops = has_operators  # type: ignore[attr-defined]
    return package


def has_operators() -> bool:
    """What torchvision asks before each call. torch compiles its source, so it is no lambda."""
    return True


def kept(boxes: np.ndarray, scores: np.ndarray, limit: float) -> np.ndarray:
    """The places of boxes that overlap with no better one that stays, the best first."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order, places = np.argsort(-scores, kind="stable"), []
    while order.size:
        best, order = order[0], order[1:]
        places.append(best)
        low, high = np.maximum(boxes[order, :2], boxes[best, :2]), np.minimum(boxes[order, 2:], boxes[best, 2:])
        shared = np.maximum(high - low, 0).prod(1)
        order = order[~(shared / (areas[best] + areas[order] - shared) > limit)]
    return np.array(places, np.int64)


def nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """`kept`, of tensors."""
    return torch.from_numpy(kept(dets.numpy(), scores.numpy(), iou_threshold))


def bilinear(image: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Values `(C, n)` of an image `(C, H, W)` at places, which are zero beyond one element outside."""
    height, width = image.shape[1:]
    inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    low_y, low_x = np.floor(y).astype(int), np.floor(x).astype(int)
    total = np.zeros((image.shape[0], y.size), np.float64)
    for down in (0, 1):
        for right in (0, 1):
            row, column = low_y + down, low_x + right
            weight = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
            real = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            total += np.where(real, weight * image[:, row.clip(0, height - 1), column.clip(0, width - 1)], 0)
    return total


def roi_align(
    input: Any,
    rois: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Any:
    """Means of samples of each region `(R, 5)`: `(R, C, pooled_height, pooled_width)`. Samples clamp to the border."""
    images, made = input.numpy(), []
    height, width = images.shape[2:]
    for batch, *corners in rois.numpy():
        # places are computed in 32 bits, so that a count of samples is that of torchvision
        left, top, right, bottom = np.array(corners, np.float32) * np.float32(spatial_scale) - np.float32(0.5 if aligned else 0)
        sizes = [bottom - top, right - left] if aligned else [max(bottom - top, 1), max(right - left, 1)]
        places = []
        for start, size, count in ((top, sizes[0], pooled_height), (left, sizes[1], pooled_width)):
            step = np.float32(size) / np.float32(count)
            samples = sampling_ratio if sampling_ratio > 0 else max(int(np.ceil(step)), 0)
            at = start + step * ((np.arange(count)[:, None]) + (np.arange(samples) + 0.5) / max(samples, 1))
            places.append(at)
        rows, columns = (p.reshape(-1) for p in places)
        outside = [(p < -1) | (p > n) for p, n in ((rows, height), (columns, width))]
        y, x = (g.reshape(-1) for g in np.meshgrid(rows.clip(0, height - 1), columns.clip(0, width - 1), indexing="ij"))
        values = bilinear(images[int(batch)], y, x).reshape(images.shape[1], rows.size, columns.size)
        values = np.where(outside[0][:, None] | outside[1], 0, values)
        parts = values.reshape(images.shape[1], *places[0].shape, *places[1].shape)
        made.append(parts.sum((2, 4)) / max(places[0].shape[1] * places[1].shape[1], 1))
    shape = (len(made), images.shape[1], pooled_height, pooled_width)
    return torch.from_numpy(np.array(made, images.dtype).reshape(shape))


def roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int) -> Any:
    """Maxima of the parts of each region, and their places in the image, -1 of an empty part."""
    images = input.numpy()
    shape = (len(rois), images.shape[1], pooled_height, pooled_width)
    values, places = np.zeros(shape, images.dtype), np.full(shape, -1, np.int32)
    height, width = images.shape[2:]
    for at, (batch, *corners) in enumerate(rois.numpy()):
        scaled = np.array(corners, np.float32) * np.float32(spatial_scale)
        left, top, right, bottom = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(int)
        steps = (
            np.float32(max(bottom - top + 1, 1)) / pooled_height,
            np.float32(max(right - left + 1, 1)) / pooled_width,
        )
        for i in range(pooled_height):
            for j in range(pooled_width):
                rows = [int(np.clip(f(steps[0] * n) + top, 0, height)) for f, n in ((np.floor, i), (np.ceil, i + 1))]
                columns = [int(np.clip(f(steps[1] * n) + left, 0, width)) for f, n in ((np.floor, j), (np.ceil, j + 1))]
                part = images[int(batch), :, slice(*rows), slice(*columns)]
                if part.size:
                    best = part.reshape(len(part), -1).argmax(1)
                    values[at, :, i, j] = part.reshape(len(part), -1).max(1)
                    places[at, :, i, j] = (best // part.shape[2] + rows[0]) * width + best % part.shape[2] + columns[0]
    return torch.from_numpy(values), torch.from_numpy(places)


def own_channels(pooled: np.ndarray) -> Any:
    """Of cells of all channels `(R, C * h * w, h, w)`, those of each cell's own channels, and the channels' numbers."""
    regions, channels, height, width = pooled.shape
    numbers = np.arange(channels, dtype=np.int32).reshape(-1, height, width)
    rows, columns = np.mgrid[:height, :width]
    return torch.from_numpy(pooled[:, numbers, rows, columns]), torch.from_numpy(np.tile(numbers, (regions, 1, 1, 1)))


def ps_roi_align(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int) -> Any:
    """As `roi_align`, aligned, and each cell of a region has channels of its own."""
    every = roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, True)
    return own_channels(every.numpy())


def ps_roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int) -> Any:
    """Means of the whole elements of each cell, which has channels of its own. The image's last row and column are left out."""
    images = input.numpy()
    every = np.zeros((len(rois), images.shape[1], pooled_height, pooled_width), images.dtype)
    limits = images.shape[2] - 1, images.shape[3] - 1
    for at, (batch, *corners) in enumerate(rois.numpy()):
        scaled = np.array(corners, np.float32) * np.float32(spatial_scale)
        left, top, right, bottom = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(int)
        steps = np.float32(max(bottom - top, 1)) / pooled_height, np.float32(max(right - left, 1)) / pooled_width
        for i, j in np.ndindex(pooled_height, pooled_width):
            low = [int(np.clip(np.floor(s * np.float32(k)) + o, 0, m)) for s, k, o, m in zip(steps, (i, j), (top, left), limits)]
            high = [int(np.clip(np.ceil(s * np.float32(k + 1)) + o, 0, m)) for s, k, o, m in zip(steps, (i, j), (top, left), limits)]
            part = images[int(batch), :, low[0] : high[0], low[1] : high[1]]
            if part.size:
                every[at, :, i, j] = part.mean((1, 2))
    return own_channels(every)


def deform_conv2d(
    input: Any,
    weight: Any,
    offset: Any,
    mask: Any,
    bias: Any,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Any:
    """A convolution whose samples move by `offset`, and are scaled by `mask` where `use_mask` is true."""
    batch, channels = input.shape[:2]
    _, _, kernel_h, kernel_w = weight.shape
    out_h, out_w = offset.shape[2:]
    moves = offset.numpy().reshape(batch, offset_groups, kernel_h, kernel_w, 2, out_h, out_w)
    scales = mask.numpy().reshape(batch, offset_groups, kernel_h, kernel_w, out_h, out_w) if use_mask else None
    columns = np.zeros((batch, channels, kernel_h, kernel_w, out_h, out_w))
    own = channels // offset_groups
    grid = np.meshgrid(np.arange(out_h) * stride_h - pad_h, np.arange(out_w) * stride_w - pad_w, indexing="ij")
    for n, g, i, j in np.ndindex(batch, offset_groups, kernel_h, kernel_w):
        y, x = grid[0] + i * dilation_h + moves[n, g, i, j, 0], grid[1] + j * dilation_w + moves[n, g, i, j, 1]
        part = slice(g * own, (g + 1) * own)
        found = bilinear(input.numpy()[n, part], y.reshape(-1), x.reshape(-1)).reshape(own, out_h, out_w)
        columns[n, part, i, j] = found if scales is None else found * scales[n, g, i, j]
    parts = columns.reshape(batch, groups, channels // groups, kernel_h, kernel_w, out_h, out_w)
    kernels = weight.numpy().reshape(groups, -1, *weight.shape[1:])
    made = np.einsum("bgchwyx,gochw->bgoyx", parts, kernels).reshape(batch, -1, out_h, out_w)
    return torch.from_numpy((made + bias.numpy()[:, None, None]).astype(input.numpy().dtype))
