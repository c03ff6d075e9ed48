"""Reductions along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, is_float, limits, norm_axis, wide
from relaylang.ops.reduce import taken_axes


def reduced_axes(attrs: Any, rank: int) -> tuple[int, ...]:
    """The axes that go away, in order; all of them where none is named."""
    axis = (attrs.axis,) if isinstance(attrs.axis, int) else attrs.axis
    return tuple(taken_axes(rank, tuple([norm_axis(a, rank) for a in axis or ()]), attrs.exclude))


def _count(x: np.ndarray, axes: tuple[int, ...]) -> int:
    return int(np.prod([x.shape[a] for a in axes]))


def sum_(attrs: Any, x: Any) -> Any:
    """Of truth values: whether any is true, as in TVM."""
    axes = reduced_axes(attrs, x.ndim)
    if x.dtype.kind == "b":
        return np.any(x, axis=axes, keepdims=attrs.keepdims)
    carrier = np.float32 if is_float(x.dtype) and x.dtype.itemsize < 4 else x.dtype
    return np.sum(x, axis=axes, keepdims=attrs.keepdims, dtype=carrier).astype(x.dtype)


def mean(attrs: Any, x: Any) -> Any:
    """Integers are summed exactly and divided towards zero."""
    axes = reduced_axes(attrs, x.ndim)
    count = max(_count(x, axes), 1)
    if is_float(x.dtype):
        total = np.sum(wide(x), axis=axes, keepdims=attrs.keepdims)
        return (total / total.dtype.type(count)).astype(x.dtype)
    total = np.sum(x, axis=axes, keepdims=attrs.keepdims, dtype=np.int64)
    return ((total - np.fmod(total, np.int64(count))) // np.int64(count)).astype(x.dtype)


def variance(attrs: Any, x: Any, mean: Any) -> Any:
    axes = reduced_axes(attrs, x.ndim)
    apart = wide(np.asarray(x - mean))
    total = np.sum(apart * apart, axis=axes, keepdims=attrs.keepdims)
    return (total / total.dtype.type(_count(x, axes) - bool(attrs.unbiased))).astype(x.dtype)


def prod(attrs: Any, x: Any) -> Any:
    return np.prod(x, axis=reduced_axes(attrs, x.ndim), keepdims=attrs.keepdims, dtype=x.dtype)


def _extreme(f: Any) -> Kernel:
    """Along an axis of no elements: the least number of the type for `max`, the greatest for `min`."""

    def kernel(attrs: Any, x: Any) -> Any:
        axes = reduced_axes(attrs, x.ndim)
        if _count(x, axes):
            return f(x, axis=axes, keepdims=attrs.keepdims)
        ends = limits(x.dtype)
        return f(x, axis=axes, keepdims=attrs.keepdims, initial=ends[0] if f is np.max else ends[1])

    return kernel


def _truth(f: Any) -> Kernel:
    """Of numbers, those that are not zero are true; the result is 1 or 0 in their type."""
    return lambda attrs, x: f(x != 0, axis=reduced_axes(attrs, x.ndim), keepdims=attrs.keepdims).astype(x.dtype)


def _arg(greatest: bool) -> Kernel:
    """The place of the extreme along the axes taken together, as int32; nan only where there is nothing else.

    Data whose first extent has another type has places of that type: the compiler of a function casts them.
    """

    def kernel(attrs: Any, x: Any) -> Any:
        axes = reduced_axes(attrs, x.ndim)
        kept = [i for i in range(x.ndim) if i not in axes]
        if 0 in [x.shape[a] for a in axes] and all([x.shape[i] for i in kept]):
            raise KernelError("an axis of no elements has no extreme one")
        flat = np.transpose(x, kept + list(axes)).reshape([x.shape[i] for i in kept] + [_count(x, axes)])
        if is_float(x.dtype):
            flat = np.where(np.isnan(flat), x.dtype.type(-np.inf if greatest else np.inf), flat)
        if attrs.select_last_index:
            flat = flat[..., ::-1]
        if not flat.size:
            index = np.zeros(flat.shape[:-1], np.int32)
            return index.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]) if attrs.keepdims else index
        index = (np.argmax if greatest else np.argmin)(flat, axis=-1)
        if attrs.select_last_index:
            index = flat.shape[-1] - 1 - index
        index = np.asarray(index, np.int32)
        return index.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]) if attrs.keepdims else index

    return kernel


KERNELS: dict[str, Kernel] = {
    "sum": sum_,
    "mean": mean,
    "variance": variance,
    "prod": prod,
    "max": _extreme(np.max),
    "min": _extreme(np.min),
    "all": _truth(np.all),
    "any": _truth(np.any),
    "argmax": _arg(True),
    "argmin": _arg(False),
}
