"""Operators whose shapes are values: each reads them and goes on as its static sibling."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from relaylang.interpreter.kernels import algorithm, create, image, indexing, nn_space, transform
from relaylang.interpreter.kernels.common import Kernel, KernelError, np_dtype
from relaylang.interpreter.kernels.scatter import dense


def _shape(x: Any) -> tuple[int, ...]:
    """Extents, none of which is negative."""
    extents = _ints(x)
    if min(extents, default=0) < 0:
        raise KernelError(f"the shape {extents} has a negative extent")
    return extents


def _ints(x: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.reshape(x, -1))


def _with(attrs: Any, **values: Any) -> Any:
    """The attributes with some of them set."""
    return SimpleNamespace(**{**{name: getattr(attrs, name) for name in type(attrs).schema}, **values})


def reshape(attrs: Any, x: Any, shape: Any) -> Any:
    return transform.reshape(_with(attrs, newshape=_ints(shape)), x)


def full(attrs: Any, value: Any, shape: Any) -> Any:
    return create.full(_with(attrs, shape=_shape(shape)), value)


def topk(attrs: Any, x: Any, k: Any) -> Any:
    return algorithm.topk(_with(attrs, k=_ints(k)[0]), x)


def one_hot(attrs: Any, indices: Any, on: Any, off: Any, depth: Any) -> Any:
    count = _shape(depth)[0]
    if count < 1:
        raise KernelError(f"depth {count} must be positive")
    return create.one_hot(_with(attrs, depth=count), indices, on, off)


def strided_slice(attrs: Any, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    return indexing.strided_slice(_with(attrs, begin=_ints(begin), end=_ints(end), strides=_ints(strides)), x)


def expand_dims(attrs: Any, x: Any, axis: Any) -> Any:
    return transform.expand_dims(_with(attrs, axis=int(axis)), x)


def squeeze(attrs: Any, x: Any, axes: Any) -> Any:
    return transform.squeeze(_with(attrs, axis=_ints(axes)), x)


def pad(attrs: Any, x: Any, widths: Any, value: Any) -> Any:
    return nn_space.pad(_with(attrs, pad_width=[_ints(row) for row in widths]), x, value)


def upsampling(attrs: Any, x: Any, scale_h: Any, scale_w: Any) -> Any:
    return image.upsampling(_with(attrs, scale_h=float(scale_h), scale_w=float(scale_w)), x)


def upsampling3d(attrs: Any, x: Any, scale_d: Any, scale_h: Any, scale_w: Any) -> Any:
    scales = {"scale_d": float(scale_d), "scale_h": float(scale_h), "scale_w": float(scale_w)}
    return image.upsampling3d(_with(attrs, **scales), x)


def resize2d(attrs: Any, x: Any, size: Any, roi: Any) -> Any:
    return image.resize(_with(attrs, size=_shape(size), roi=tuple(float(r) for r in roi)), x)


KERNELS: dict[str, Kernel] = {
    "dyn.image.resize2d": resize2d,
    "dyn.reshape": reshape,
    "dyn.broadcast_to": lambda attrs, x, shape: transform.broadcast(x, _ints(shape)),
    "dyn.tile": lambda attrs, x, reps: np.tile(x, _shape(reps)),
    "dyn.zeros": lambda attrs, shape: np.zeros(_shape(shape), np_dtype(attrs.dtype)),
    "dyn.ones": lambda attrs, shape: np.ones(_shape(shape), np_dtype(attrs.dtype)),
    "dyn.full": full,
    "dyn.topk": topk,
    "dyn.one_hot": one_hot,
    "dyn.strided_slice": strided_slice,
    "dyn.expand_dims": expand_dims,
    "dyn.squeeze": squeeze,
    "dyn.nn.pad": pad,
    "dyn.nn.upsampling": upsampling,
    "dyn.nn.upsampling3d": upsampling3d,
    "dyn.sparse_to_dense": lambda attrs, indices, values, default, shape: dense(indices, values, default, _shape(shape)),
}
