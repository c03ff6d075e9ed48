"""Products of numbers of a few bits. Counting the bits of packed words is a product of whole numbers, and taken as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    from_plain,
    np_dtype,
    out_dtype,
    paddings,
    to_plain,
)
from relaylang.interpreter.kernels.nn_conv import convolve, exact_matmul


def bitpack(attrs: Any, x: Any) -> Any:
    """Each bit of the numbers in words of its own, along a last axis. The first number's bit is the highest."""
    dtype = np_dtype(attrs.pack_type)
    width = 8 * dtype.itemsize
    axis, extent = attrs.pack_axis, x.shape[attrs.pack_axis]
    if attrs.bit_axis != x.ndim and attrs.bits != 1:
        raise KernelError(f"bit_axis={attrs.bit_axis} must be {x.ndim}, behind the last axis")
    if extent % width:
        raise KernelError(f"axis {axis} of extent {extent} does not divide into words of {width} bits")
    moved = np.moveaxis(x, axis, -1)
    grouped = moved.reshape(*moved.shape[:-1], extent // width, width)
    places = np.arange(width - 1, -1, -1).astype(dtype)
    planes = [(((grouped >> b) & 1).astype(dtype) << places).sum(axis=-1, dtype=dtype) for b in range(attrs.bits)]
    packed = [np.moveaxis(p, -1, axis) for p in planes]
    return np.stack(packed, axis=-1) if attrs.bit_axis == x.ndim else packed[0]


def _unpacked(words: Any, bits: int, bit_axis: int, pack_axis: int) -> np.ndarray:
    """The numbers whose bits stand along `bit_axis`; `pack_axis` is counted without it."""
    planes = np.moveaxis(words, bit_axis, 0)
    width = 8 * words.dtype.itemsize
    places = np.arange(width - 1, -1, -1).astype(words.dtype)
    single = (np.moveaxis(planes, pack_axis + 1, -1)[..., None] >> places) & words.dtype.type(1)
    flat = single.reshape(*single.shape[:-2], single.shape[-2] * width)
    single = np.moveaxis(flat, -1, pack_axis + 1).astype(np.int64)
    return sum(single[b] << b for b in range(bits))  # type: ignore[return-value]


def _weights(value: np.ndarray, bits: int, unipolar: bool) -> np.ndarray:
    """Bits that stand for 1 and 0, or (`unipolar`) for 1 and -1."""
    value = value.astype(np.int64) & (2**bits - 1)
    return 2 * value - (2**bits - 1) if unipolar else value


def bitserial_conv2d(attrs: Any, x: Any, weight: Any) -> Any:
    bits = attrs.weight_bits
    order = attrs.kernel_layout[:4]
    if weight.ndim == 5:
        weight = _unpacked(weight, bits, 4 if order == "OIHW" else 3, order.index("I"))
    kernel = _weights(to_plain(weight, order, "OIHW"), bits, attrs.unipolar)
    data = to_plain(x, attrs.data_layout, "NCHW").astype(np.int64) & (2**attrs.activation_bits - 1)
    dtype = out_dtype(attrs, x.dtype)
    if kernel.shape[0] != attrs.channels or kernel.shape[2:] != tuple(attrs.kernel_size):
        raise KernelError(f"the weight {kernel.shape} does not make {attrs.channels} channels of {attrs.kernel_size}")
    sums = convolve(data, kernel, attrs.strides, paddings(attrs.padding, 2), 1, 1, dtype)
    return from_plain(sums, "NCHW", attrs.data_layout)


def bitserial_dense(attrs: Any, x: Any, weight: Any) -> Any:
    if weight.ndim == 3:
        weight = _unpacked(weight, attrs.weight_bits, 1, 1)
    rows = _weights(weight, attrs.weight_bits, attrs.unipolar)
    data = x.astype(np.int64) & (2**attrs.data_bits - 1)
    if rows.ndim != 2 or rows.shape != (attrs.units, data.shape[-1]):
        raise KernelError(f"the weight {rows.shape} does not make {attrs.units} units of {data.shape[-1]} inputs")
    return exact_matmul(data, rows.T, out_dtype(attrs, x.dtype))


KERNELS: dict[str, Kernel] = {
    "nn.bitpack": bitpack,
    "nn.bitserial_conv2d": bitserial_conv2d,
    "nn.bitserial_dense": bitserial_dense,
}
