"""Making tensors, and their shapes as values."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, convert, np_dtype


def full(attrs: Any, value: Any) -> Any:
    dtype = np_dtype(attrs.dtype) if attrs.dtype else value.dtype
    return np.full(attrs.shape, convert(np.asarray(value), dtype), dtype)


def arange(attrs: Any, start: Any, stop: Any, step: Any) -> Any:
    if step == step.dtype.type(0):
        raise KernelError("a step of 0 leads nowhere")
    count = max(0, int(np.ceil((float(stop) - float(start)) / float(step))))
    dtype = np_dtype(attrs.dtype) if attrs.dtype else start.dtype
    return convert(start + np.arange(count).astype(start.dtype) * step, dtype)


def one_hot(attrs: Any, indices: Any, on: Any, off: Any) -> Any:
    axis = attrs.axis if attrs.axis >= 0 else attrs.axis + indices.ndim + 1
    dtype = np_dtype(attrs.dtype) if attrs.dtype else on.dtype
    shape = [1] * (indices.ndim + 1)
    shape[axis] = attrs.depth
    hit = np.expand_dims(indices, axis) == np.arange(attrs.depth).reshape(shape)
    return np.where(hit, convert(np.asarray(on), dtype), convert(np.asarray(off), dtype))


def shape_of(attrs: Any, x: Any) -> Any:
    """A scalar has the shape 0, which is a scalar, too."""
    return np.asarray(x.shape if x.ndim else 0, np_dtype(attrs.dtype or "int32"))


def ndarray_size(attrs: Any, x: Any) -> Any:
    return np.asarray(x.size, np_dtype(attrs.dtype or "int32"))


def meshgrid(attrs: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.meshgrid(*parts, indexing=attrs.indexing))


KERNELS: dict[str, Kernel] = {
    "zeros": lambda attrs: np.zeros(attrs.shape, np_dtype(attrs.dtype or "float32")),
    "ones": lambda attrs: np.ones(attrs.shape, np_dtype(attrs.dtype or "float32")),
    "full": full,
    "arange": arange,
    "one_hot": one_hot,
    "meshgrid": meshgrid,
    "shape_of": shape_of,
    "ndarray_size": ndarray_size,
}
