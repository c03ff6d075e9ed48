"""Convolutions: one matrix product over a strided view, for any number of spatial axes and any layout."""

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
    windows,
)

_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def exact_matmul(a: np.ndarray, b: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The product of two stacks of matrices in an element type; the factors of integers are integers.

    Integers come out exact modulo their width. They are multiplied in float64 if no sum can reach 2**53. numpy
    multiplies integer matrices without BLAS, a hundred times slower.
    """
    if is_float(dtype):
        carrier = np.float32 if dtype.itemsize < 4 else dtype
        return np.matmul(a.astype(carrier, copy=False), b.astype(carrier, copy=False)).astype(dtype, copy=False)
    if dtype.kind == "b" or is_float(a.dtype) or is_float(b.dtype):
        a, b = convert(a, dtype), convert(b, dtype)
    bound = float(np.abs(a.astype(np.float64)).max(initial=0)) * float(np.abs(b.astype(np.float64)).max(initial=0))
    if bound * a.shape[-1] < 2.0**53:
        product = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    else:
        product = np.matmul(a.astype(np.int64), b.astype(np.int64))
    return (product & 1 if dtype.kind == "b" else product).astype(dtype)


def convolve(data: np.ndarray, weight: np.ndarray, strides: Any, pads: Any, dilation: Any, groups: int, dtype: np.dtype) -> np.ndarray:
    """Data (N, C, *space) with weights (O, C / groups, *kernel), zeros around: (N, O, *out) in `dtype`."""
    count = data.ndim - 2
    kernel = weight.shape[2:]
    n, channels = data.shape[:2]
    if groups == channels == weight.shape[0] and weight.shape[1] > 1:
        # A depthwise kernel given as (channels, multiplier, ...).
        weight = weight.reshape(weight.shape[0] * weight.shape[1], 1, *kernel)
    if groups < 1 or channels % groups or weight.shape[0] % groups or weight.shape[1] * groups != channels:
        raise KernelError(f"weights of shape {weight.shape} do not fit {channels} channels in {groups} groups")
    rows = weight.reshape(groups, weight.shape[0] // groups, weight.shape[1] * int(np.prod(kernel)))
    padded = np.ascontiguousarray(pad_space(data, pads))
    view = windows(padded, kernel, spread(strides, count), spread(dilation, count))
    out = view.shape[2 + count :]
    columns = view.reshape(n, groups, channels // groups * int(np.prod(kernel)), int(np.prod(out)))
    return exact_matmul(rows, columns, dtype).reshape(n, weight.shape[0], *out)


def conv(attrs: Any, data: Any, weight: Any) -> Any:
    count = sum(c in "DHW" for c in attrs.data_layout)
    space = _SPACE[count]
    plain = to_plain(data, attrs.data_layout, "NC" + space)
    kernel = to_plain(weight, attrs.kernel_layout, "OI" + space)
    dtype = out_dtype(attrs, data.dtype)
    result = convolve(plain, kernel, attrs.strides, paddings(attrs.padding, count), attrs.dilation, attrs.groups, dtype)
    return from_plain(result, "NC" + space, attrs.out_layout or attrs.data_layout)


def conv_transpose(attrs: Any, data: Any, weight: Any) -> Any:
    """A convolution with the flipped kernel over the data spread out by the strides."""
    count = sum(c in "DHW" for c in attrs.data_layout)
    space = _SPACE[count]
    plain = to_plain(data, attrs.data_layout, "NC" + space)
    kernel = to_plain(weight, attrs.kernel_layout, "IO" + space)
    dtype = out_dtype(attrs, data.dtype)
    result = transposed(plain, kernel, attrs, dtype)
    return from_plain(result, "NC" + space, attrs.out_layout or attrs.data_layout)


def transposed(data: np.ndarray, weight: np.ndarray, attrs: Any, dtype: np.dtype) -> np.ndarray:
    """Data (N, C, *space) with weights (C, O / groups, *kernel)."""
    count, groups = data.ndim - 2, attrs.groups
    kernel, strides, dilation = weight.shape[2:], spread(attrs.strides, count), spread(attrs.dilation, count)
    extra = spread(attrs.output_padding[:count], count)
    spaced = np.zeros((*data.shape[:2], *[(n - 1) * s + 1 for n, s in zip(data.shape[2:], strides)]), data.dtype)
    grid = (slice(None), slice(None), *[slice(None, None, s) for s in strides])
    spaced[grid] = data
    reach = [(k - 1) * d for k, d in zip(kernel, dilation)]
    pads = [(r - before, r - after + e) for r, (before, after), e in zip(reach, paddings(attrs.padding, count), extra)]
    cut = (slice(None), slice(None), *[slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(spaced.shape[2:], pads)])
    spaced = np.ascontiguousarray(spaced[cut])
    flipped = np.flip(weight, tuple(range(2, weight.ndim)))
    grouped = flipped.reshape(groups, weight.shape[0] // groups, *weight.shape[1:]).swapaxes(1, 2)
    rows = np.ascontiguousarray(grouped).reshape(groups * weight.shape[1], weight.shape[0] // groups, *kernel)
    return convolve(spaced, rows, 1, [(max(a, 0), max(b, 0)) for a, b in pads], dilation, groups, dtype)


def conv2d_backward_weight(attrs: Any, grad: Any, data: Any) -> Any:
    """Each weight's share of the result: the sum of the data under it times the gradient. `data_layout` is the
    gradient's, `kernel_layout` the data's."""
    dtype = out_dtype(attrs, grad.dtype)
    gradient, plain = to_plain(grad, attrs.data_layout, "NCHW"), to_plain(data, attrs.kernel_layout, "NCHW")
    groups = attrs.groups
    padded = np.ascontiguousarray(pad_space(plain, paddings(attrs.padding, 2)))
    view = windows(padded, attrs.kernel_size, spread(attrs.strides, 2), spread(attrs.dilation, 2))
    view = view[..., : gradient.shape[2], : gradient.shape[3]]
    if view.shape[4:] != gradient.shape[2:]:
        raise KernelError(f"the gradient's extents {gradient.shape[2:]} are not the convolution's {view.shape[4:]}")
    view = view.reshape(view.shape[0], groups, view.shape[1] // groups, *view.shape[2:])
    gradient = gradient.reshape(gradient.shape[0], groups, gradient.shape[1] // groups, *gradient.shape[2:])
    if not is_float(dtype):  # the factors of integers are integers
        gradient, view = convert(gradient, dtype), convert(view, dtype)
    weight = np.einsum("ngoyx,ngiabyx->goiab", gradient.astype(np.float64), view.astype(np.float64))
    weight = weight % 2 if dtype.kind == "b" else weight
    weight = convert(weight.reshape(weight.shape[0] * weight.shape[1], *weight.shape[2:]), dtype)
    return from_plain(weight, "OIHW", attrs.out_layout)


KERNELS: dict[str, Kernel] = {
    "nn.conv2d_backward_weight": conv2d_backward_weight,
    "nn.conv1d": conv,
    "nn.conv2d": conv,
    "nn.conv3d": conv,
    "nn.conv1d_transpose": conv_transpose,
    "nn.conv2d_transpose": conv_transpose,
    "nn.conv3d_transpose": conv_transpose,
}
