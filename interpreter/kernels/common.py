"""Helpers of the kernels:

A kernel is `kernel(attrs, *inputs)`: numpy arrays or numpy scalars in (a tuple for a tuple-typed argument), the same
out. Results have exactly the element type that the checker gives. Scalars are numpy scalars where numpy makes them,
which makes scalar programs fast. Nothing depends on the promotion of Python numbers, so numpy 1.26 and 2 agree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes  # (gives numpy the names bfloat16, float8_e4m3fn, int4, ...)
import numpy as np

Kernel = Callable[..., Any]


class KernelError(ValueError):
    """An operator cannot be computed for these values: the message says why."""


def np_dtype(name: str) -> np.dtype:
    """numpy's element type for Relay's name."""
    return np.dtype(name)


def out_dtype(attrs: Any, default: np.dtype) -> np.dtype:
    """The element type that `out_dtype` names, or the default where it is empty."""
    name = attrs.out_dtype
    return np_dtype(name) if name else default


def is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def wide(x: np.ndarray) -> np.ndarray:
    """A float of 16 or fewer bits as float32, in which it is computed; others as they are."""
    return x.astype(np.float32) if is_float(x.dtype) and x.dtype.itemsize < 4 else x


def round_away(x: np.ndarray) -> np.ndarray:
    """To the nearest whole number, halves away from zero."""
    truncated = np.trunc(x)
    return np.where(np.abs(x - truncated) >= x.dtype.type(0.5), truncated + np.copysign(x.dtype.type(1), x), truncated).astype(x.dtype)


def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Elements as another type, as x86 converts them: integers wrap.

    A float beyond the integer range gives its lowest value (of int32 for 32 and fewer bits, then wrapped). Only zero
    and nan are False.
    """
    source = x.dtype
    if source == dtype:
        return x
    if dtype.kind == "b":
        return x.astype(np.bool_) if not is_float(source) else (x < source.type(0)) | (x > source.type(0))
    if is_float(source) and not is_float(dtype):
        x = wide(x)
        carrier = np.int64 if dtype.itemsize == 8 or dtype == np.uint32 else np.int32
        limit = x.dtype.type(2.0 ** (63 if carrier is np.int64 else 31))
        inside = (x >= -limit) & (x < limit)
        if not inside.all():
            truncated = np.where(inside, x, x.dtype.type(0)).astype(carrier)
            return np.where(inside, truncated, np.iinfo(carrier).min).astype(dtype)
        return x.astype(carrier).astype(dtype)
    if source.kind == "V" and not is_float(source):
        x = x.astype(np.int32)
    return x.astype(dtype)


def limits(dtype: np.dtype) -> tuple[Any, Any]:
    """The least and the greatest number of a type; of floats they are finite."""
    if dtype.kind == "b":
        return np.bool_(False), np.bool_(True)
    info = ml_dtypes.finfo(dtype) if is_float(dtype) else np.iinfo(dtype)
    return dtype.type(info.min), dtype.type(info.max)


def plus(a: Any, b: Any) -> Any:
    """The sum; of truth values it is modulo 2."""
    return a + b if a.dtype.kind != "b" else a ^ b


def saturate(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers held to the range of another integer type. int32 is TVM's accumulator and wraps."""
    if dtype == np.int32:
        return x.astype(dtype)
    info, own = np.iinfo(dtype), np.iinfo(x.dtype)
    return np.clip(x, x.dtype.type(max(info.min, own.min)), x.dtype.type(min(info.max, own.max))).astype(dtype)


def norm_axis(axis: int, rank: int) -> int:
    """An axis counted from 0."""
    if not -rank <= axis < max(rank, 1):
        raise KernelError(f"axis {axis} is not one of a tensor of {rank} dimensions")
    return axis + rank if axis < 0 else axis


def along(x: Any, axis: int, rank: int) -> np.ndarray:
    """A vector laid along one axis of a tensor of `rank` dimensions; a scalar as it is."""
    x = np.asarray(x)
    if x.ndim != 1:
        return x
    if not rank:
        return x.reshape(())
    shape = [1] * rank
    shape[norm_axis(axis, rank)] = x.shape[0]
    return x.reshape(shape)


# Layouts: `NCHW`, `OIHW`, and blocked ones such as `NCHW4c`. Its lower-case axis is the inner part of its upper-case
# one.

_AXIS = re.compile(r"(\d*)([A-Za-z])")


def layout_axes(layout: str) -> list[tuple[str, int]]:
    """`NCHW4c` as [("N", 0), ("C", 0), ("H", 0), ("W", 0), ("c", 4)]."""
    return [(letter, int(size or 0)) for size, letter in _AXIS.findall(layout)]


def plain_layout(layout: str) -> str:
    """The upper-case axes in their order."""
    return "".join(letter for letter, _ in layout_axes(layout) if letter.isupper())


def to_plain(x: np.ndarray, layout: str, order: str) -> np.ndarray:
    """A tensor in some layout as one whose axes are `order`, without blocks."""
    if layout == order:
        return x
    axes = [letter for letter, _ in layout_axes(layout)]
    wanted: list[int] = []
    shape: list[int] = []
    for letter in order:
        parts = [i for i, a in enumerate(axes) if a.upper() == letter.upper()]
        if not parts:
            raise KernelError(f"the layout {layout} has no axis {letter}")
        parts.sort(key=lambda i: axes[i].islower())
        wanted += parts
        shape.append(int(np.prod([x.shape[i] for i in parts])))
    return x.transpose(wanted).reshape(shape)


def from_plain(x: np.ndarray, order: str, layout: str) -> np.ndarray:
    """The way back: a tensor with the axes `order` in some layout."""
    if layout == order:
        return x
    axes = layout_axes(layout)
    shape: list[int] = []
    places: dict[str, list[int]] = {}
    for letter, extent in zip(order, x.shape):
        parts = [size for part, size in axes if part == letter.lower()]
        factor = math.prod(parts)
        if extent % factor:
            raise KernelError(f"axis {letter} of extent {extent} does not divide into blocks of {factor}")
        places[letter] = [len(shape)]
        places[letter.lower()] = [len(shape) + 1 + i for i in range(len(parts))]
        shape += [extent // factor, *parts]
    return np.ascontiguousarray(x.reshape(shape).transpose([places[letter].pop(0) for letter, _ in axes]))


# Windows: what convolutions and pools slide over their spatial axes, the last ones of the array.


def spread(values: Any, count: int) -> tuple[int, ...]:
    """An attribute of one value per spatial axis; a single value serves all."""
    values = (values,) if isinstance(values, int) else tuple(values)
    return values * count if len(values) == 1 else values


def paddings(padding: Any, count: int) -> list[tuple[int, int]]:
    """Padding before and after each of `count` spatial axes, from 1, `count` or twice `count` numbers."""
    padding = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(padding) == 1:
        padding = padding * count
    if len(padding) == count:
        padding = padding * 2
    return list(zip(padding[:count], padding[count:]))


def windows(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> np.ndarray:
    """A view of shape (*leading, *kernel, *output) over the last axes of `x`, which is padded already."""
    count = len(kernel)
    lead, space = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    out = tuple((n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(space, kernel, strides, dilation))
    if min(out, default=1) < 0:
        raise KernelError(f"a window of {tuple(kernel)} does not fit into {tuple(space)}")
    steps = x.strides[x.ndim - count :]
    return np.lib.stride_tricks.as_strided(
        x,
        (*lead, *kernel, *out),
        (
            *x.strides[: x.ndim - count],
            *[t * d for t, d in zip(steps, dilation)],
            *[t * s for t, s in zip(steps, strides)],
        ),
        writeable=False,
    )


def pad_space(x: np.ndarray, pads: Sequence[tuple[int, int]], value: Any = 0) -> np.ndarray:
    """The last axes padded with a value (negative padding is none)."""
    if not any(a or b for a, b in pads):
        return x
    full = [(0, 0)] * (x.ndim - len(pads)) + list(pads)
    return np.pad(x, full, constant_values=x.dtype.type(value))
