"""Convolutions and products with prepared weights, correlation, deformable windows.

A prepared weight is turned back into the plain one. The result is that of the plain convolution, in its order of
additions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    convert,
    from_plain,
    is_float,
    out_dtype,
    pad_space,
    paddings,
    spread,
    to_plain,
    wide,
    windows,
)
from relaylang.interpreter.kernels.image import bilinear
from relaylang.interpreter.kernels.nn_conv import conv, convolve, exact_matmul
from relaylang.interpreter.kernels.qnn import less_zero
from relaylang.ops.nn_conv import own_layout

#: Element types whose tiles TVM's GEMM turns.
_BYTES = ("int8", "uint8")
_FEW = (0.0, -1.0, 1.0, 0.5)
_MORE = (*_FEW, -0.5, 2.0, -2.0, -0.25)
#: Where the polynomials are evaluated, by their number (arXiv 1803.10986).
_POINTS: dict[int, tuple[float, ...]] = {
    3: _FEW[:3],
    4: _FEW,
    5: (*_FEW, -2.0),
    6: (*_FEW, -2.0, -0.5),
    7: _MORE[:7],
    8: _MORE,
    9: (*_MORE, 4.0),
    10: (*_MORE, 0.75, -4 / 3),
    11: (*_MORE, 4.0, 0.75, -4 / 3),
    12: (*_MORE, 4.0, 0.75, -4 / 3, 0.25),
    13: (*_MORE, 4.0, 0.25, -0.75, 4 / 3, -4.0),
}


def winograd_matrix(tile: int, kernel: int) -> np.ndarray:
    """The matrix that the kernel is multiplied with, (tile + kernel - 1, kernel).

    It has the polynomial's values at the points, and its leading coefficient. The values at a point are divided by the
    product of the point's distances from the others.
    """
    if not 1 < tile < 9 or not 2 < kernel < 8:
        raise KernelError(f"there is no Winograd transformation of a kernel of {kernel} for tiles of {tile}")
    points = np.asarray(_POINTS[tile + kernel - 2])
    values = points[:, None] ** np.arange(kernel)
    apart = points[:, None] - points
    np.fill_diagonal(apart, 1.0)
    scale = apart.prod(axis=1)
    scale[0] = abs(scale[0])
    return np.concatenate([values / scale[:, None], np.eye(kernel)[-1:]])


def winograd_weight_2d(attrs: Any, weight: Any) -> Any:
    if weight.shape[2] != weight.shape[3]:
        raise KernelError("the kernel must be square")
    g = winograd_matrix(attrs.tile_size, weight.shape[2])
    return np.einsum("oiyx,ay,bx->aboi", weight.astype(np.float64), g, g).astype(weight.dtype)


def winograd_weight_3d(attrs: Any, weight: Any) -> Any:
    """The depth is transformed too where it has 3 to 7 entries."""
    if weight.shape[3] != weight.shape[4]:
        raise KernelError("the kernel must be square")
    g = winograd_matrix(attrs.tile_size, weight.shape[3])
    wide = weight.astype(np.float64)
    if 2 < weight.shape[2] < 8:
        depth = winograd_matrix(attrs.tile_size, weight.shape[2])
        return np.einsum("oizyx,az,by,cx->abcoi", wide, depth, g, g).astype(weight.dtype)
    return np.einsum("oizyx,by,cx->bczoi", wide, g, g).astype(weight.dtype)


def _without(transformed: Any, tile: int, kernel: int, axis: int) -> Any:
    """The kernel whose transformation along an axis this is."""
    matrix = winograd_matrix(tile, kernel)
    if transformed.ndim <= axis or transformed.shape[axis] != len(matrix):
        raise KernelError(f"a kernel of {kernel} for tiles of {tile} has {len(matrix)} rows, not those of {transformed.shape}")
    back = np.linalg.pinv(matrix)
    return np.moveaxis(np.tensordot(back, transformed, axes=(1, axis)), 0, axis)


def _plain_conv(attrs: Any, x: Any, weight: Any, order: str) -> Any:
    count = len(order) - 2
    dtype = out_dtype(attrs, x.dtype)
    data = to_plain(x, attrs.data_layout, order)
    if not is_float(dtype):
        data, weight = convert(data, dtype), convert(weight, dtype)
    pads = paddings(attrs.padding, count)
    sums = convolve(data, weight, attrs.strides, pads, attrs.dilation, attrs.groups, dtype)
    return from_plain(sums, order, attrs.out_layout or attrs.data_layout)


def _need_axes(weight: Any, rank: int) -> None:
    if weight.ndim != rank:
        raise KernelError(f"a transformed weight has {rank} dimensions, not {weight.ndim}")


def winograd_conv2d(attrs: Any, x: Any, weight: Any) -> Any:
    """The weight is (height, width, out, in) in the transformed domain."""
    _need_axes(weight, 4)
    weight = weight.astype(np.float64)
    for axis, kernel in enumerate(attrs.kernel_size):
        weight = _without(weight, attrs.tile_size, kernel, axis)
    return _plain_conv(attrs, x, weight.transpose(2, 3, 0, 1), "NCHW")


def winograd_conv3d(attrs: Any, x: Any, weight: Any) -> Any:
    _need_axes(weight, 5)
    weight, kernel = weight.astype(np.float64), attrs.kernel_size
    deep = 2 < kernel[0] < 8
    for axis, size in enumerate(kernel if deep else kernel[1:]):
        weight = _without(weight, attrs.tile_size, size, axis)
    return _plain_conv(attrs, x, weight.transpose((3, 4, 0, 1, 2) if deep else (3, 4, 2, 0, 1)), "NCDHW")


def gemm_weight(attrs: Any, weight: Any) -> Any:
    """(height, width, in, out) as a matrix in tiles of tile_K rows and tile_N columns; those of bytes are turned."""
    columns, rows = attrs.tile_N, attrs.tile_K
    total, channels = int(np.prod(weight.shape[:3])), weight.shape[3]
    matrix = weight.reshape(total, channels)
    matrix = np.pad(matrix, ((0, -total % (4 * rows)), (0, -channels % columns)))
    tiles = matrix.reshape(matrix.shape[0] // rows, rows, matrix.shape[1] // columns, columns).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(tiles.swapaxes(2, 3) if weight.dtype.name in _BYTES else tiles)


def gemm_conv2d(attrs: Any, x: Any, weight: Any) -> Any:
    tiles = weight.swapaxes(2, 3) if weight.dtype.name in _BYTES else weight
    matrix = tiles.transpose(1, 2, 0, 3).reshape(tiles.shape[1] * tiles.shape[2], tiles.shape[0] * tiles.shape[3])
    inputs = to_plain(x, attrs.data_layout, "NCHW").shape[1]
    height, width = attrs.kernel_size
    if matrix.shape[0] < height * width * inputs or matrix.shape[1] < attrs.channels:
        raise KernelError(f"the weight's matrix {matrix.shape} is less than {height * width * inputs} by {attrs.channels}")
    plain = matrix[: height * width * inputs, : attrs.channels].reshape(height, width, inputs, attrs.channels)
    return _plain_conv(attrs, x, plain.transpose(3, 2, 0, 1), "NCHW")


def _rows(weight: Any) -> np.ndarray:
    """The weight (units / a, inputs / b, a[, b]) as (units, inputs)."""
    blocks = weight if weight.ndim == 4 else weight[..., None]
    return blocks.transpose(0, 2, 1, 3).reshape(blocks.shape[0] * blocks.shape[2], blocks.shape[1] * blocks.shape[3])


def dense_pack(attrs: Any, x: Any, weight: Any) -> Any:
    dtype = out_dtype(attrs, x.dtype)
    return exact_matmul(convert(x, dtype), convert(_rows(weight), dtype).T, dtype)


def qnn_dense_pack(attrs: Any, x: Any, weight: Any, in_zero: Any, w_zero: Any, in_scale: Any, w_scale: Any) -> Any:
    return exact_matmul(less_zero(x, in_zero, 0), less_zero(_rows(weight), w_zero, 0).T, out_dtype(attrs, x.dtype))


def correlation(attrs: Any, first: Any, second: Any) -> Any:
    """The mean product (or distance) of each patch of the first with those of the second around it."""
    pads = paddings(attrs.padding, 2)
    first, second = pad_space(first, pads), pad_space(second, pads)
    size, reach, step = attrs.kernel_size, attrs.max_displacement, attrs.stride2
    border = reach + (size - 1) // 2
    extents = [-(-(n - 2 * border) // attrs.stride1) for n in first.shape[2:]]

    def patches(x: Any, top: int, left: int) -> Any:
        cut = x[:, :, top:, left:]
        view = windows(np.ascontiguousarray(cut), (size, size), (attrs.stride1,) * 2, (1, 1))
        return view[..., : extents[0], : extents[1]]

    radius = reach // step
    displaced = []
    here = patches(first, reach, reach)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            there = patches(second, reach + dy * step, reach + dx * step)
            values = here * there if attrs.is_multiply else np.abs(here - there)
            displaced.append(values.sum(axis=(1, 2, 3), dtype=first.dtype))
    return np.stack(displaced, axis=1) / first.dtype.type(max(size * size * first.shape[1], 1))


def deformable_conv2d(attrs: Any, x: Any, offset: Any, weight: Any) -> Any:
    """A convolution whose windows take their pixels from moved places, between the pixels of the data."""
    data = wide(to_plain(x, attrs.data_layout, "NCHW"))
    moves = wide(to_plain(offset, attrs.data_layout, "NCHW"))
    kernel = to_plain(weight, attrs.kernel_layout, "OIHW")
    height, width = kernel.shape[2:]
    strides, dilation = spread(attrs.strides, 2), spread(attrs.dilation, 2)
    (top, _), (left, _) = paddings(attrs.padding, 2)
    groups = attrs.deformable_groups
    rows, columns = moves.shape[2:]
    if data.shape[1] % groups:
        raise KernelError(f"{data.shape[1]} channels do not divide into {groups} groups")
    moves = moves.reshape(len(moves), groups, height, width, 2, rows, columns)
    kind = data.dtype.type
    y0 = (np.arange(height) * dilation[0])[:, None, None, None] + (np.arange(rows) * strides[0] - top)[:, None]
    x0 = (np.arange(width) * dilation[1])[:, None, None] + np.arange(columns) * strides[1] - left
    taken = np.empty((*data.shape[:2], height, width, rows, columns), data.dtype)
    each = data.shape[1] // groups
    for n in range(len(data)):
        for g in range(groups):
            y = y0.astype(data.dtype) + moves[n, g, :, :, 0]
            across = x0.astype(data.dtype) + moves[n, g, :, :, 1]
            outside = (y < 0) | (across < 0) | (y >= data.shape[2]) | (across >= data.shape[3])
            part = slice(g * each, (g + 1) * each)
            taken[n, part] = np.where(outside, kind(0), bilinear(data[n, part], y, across))
    dtype = out_dtype(attrs, x.dtype)
    flat = taken.reshape(len(data), attrs.groups, data.shape[1] // attrs.groups * height * width, rows * columns)
    sums = exact_matmul(kernel.reshape(attrs.groups, kernel.shape[0] // attrs.groups, flat.shape[2]), flat, dtype)
    sums = sums.reshape(len(data), kernel.shape[0], rows, columns)
    return from_plain(sums, "NCHW", attrs.out_layout or attrs.data_layout)


def conv_blocks(attrs: Any, data: Any, weight: Any) -> Any:
    return conv(own_layout(attrs, weight.shape), data, weight)


KERNELS: dict[str, Kernel] = {
    "nn.contrib_conv2d_winograd_weight_transform": winograd_weight_2d,
    "nn.contrib_conv3d_winograd_weight_transform": winograd_weight_3d,
    "nn.contrib_conv2d_winograd_without_weight_transform": winograd_conv2d,
    "nn.contrib_conv3d_winograd_without_weight_transform": winograd_conv3d,
    "nn.contrib_conv2d_gemm_weight_transform": gemm_weight,
    "nn.contrib_conv2d_gemm_without_weight_transform": gemm_conv2d,
    "nn.contrib_conv2d_NCHWc": conv_blocks,
    "nn.contrib_depthwise_conv2d_NCHWc": conv_blocks,
    "nn.contrib_dense_pack": dense_pack,
    "qnn.contrib_dense_pack": qnn_dense_pack,
    "nn.correlation": correlation,
    "nn.deformable_conv2d": deformable_conv2d,
}
