"""Pooling: the greatest or the mean of windows, for any number of spatial axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import (
    Kernel,
    from_plain,
    is_float,
    limits,
    pad_space,
    paddings,
    plain_layout,
    spread,
    to_plain,
    wide,
    windows,
)

_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _space_last(x: Any, layout: str, count: int) -> tuple[np.ndarray, str]:
    """The data with its spatial axes last, and the order in which its axes now are."""
    space = _SPACE[count]
    order = "".join(c for c in plain_layout(layout) if c not in space) + space
    return to_plain(x, layout, order), order


def _lowest(dtype: np.dtype) -> Any:
    """The result of a window on padding alone."""
    return limits(dtype)[0]


def _divide(total: np.ndarray, count: Any, dtype: np.dtype) -> np.ndarray:
    """Integers are divided towards zero."""
    if is_float(dtype):
        return (total / np.asarray(count, total.dtype)).astype(dtype)
    count = np.asarray(count, total.dtype)
    return ((total - np.fmod(total, count)) // count).astype(dtype)


def _carrier(x: np.ndarray) -> np.ndarray:
    return wide(x) if is_float(x.dtype) else x.astype(np.int64)


class _Windows:
    """The geometry of a pool: kernel, strides, dilation, and the padding with what `ceil_mode` adds behind."""

    def __init__(self, attrs: Any, space: tuple[int, ...]) -> None:
        count = len(space)
        self.kernel = spread(attrs.pool_size, count)
        self.strides = spread(attrs.strides, count)
        self.dilation = spread(attrs.dilation or 1, count)
        self.given = paddings(attrs.padding, count)
        extra = [s - 1 if attrs.ceil_mode else 0 for s in self.strides]
        self.pads = [(a, b + e) for (a, b), e in zip(self.given, extra)]

    def over(self, x: np.ndarray, fill: Any) -> np.ndarray:
        return windows(pad_space(x, self.pads, fill), self.kernel, self.strides, self.dilation)

    def counted(self, space: tuple[int, ...], include_pad: bool) -> np.ndarray:
        """What each window's mean divides by: its places on the data, or on data and given padding; 1 at least."""
        ones = np.ones(space, np.int64)
        if include_pad:
            added = [(0, b - g) for (_, b), (_, g) in zip(self.pads, self.given)]
            ones = pad_space(pad_space(ones, self.given, 1), added)
            seen = windows(ones, self.kernel, self.strides, self.dilation)
        else:
            seen = self.over(ones, 0)
        return np.maximum(seen.sum(axis=tuple(range(len(space)))), 1)

    def axes(self, rank: int) -> tuple[int, ...]:
        return tuple(range(rank - len(self.kernel), rank))


def max_pool(count: int) -> Kernel:
    def kernel(attrs: Any, x: Any) -> Any:
        plain, order = _space_last(x, attrs.layout, count)
        pool = _Windows(attrs, plain.shape[plain.ndim - count :])
        lowest = _lowest(plain.dtype)
        best = pool.over(plain, lowest).max(axis=pool.axes(plain.ndim), initial=lowest)
        return from_plain(best, order, attrs.layout)

    return kernel


def avg_pool(count: int) -> Kernel:
    """The mean over what of a window lies on the data, or with `count_include_pad` on data and given padding."""

    def kernel(attrs: Any, x: Any) -> Any:
        plain, order = _space_last(x, attrs.layout, count)
        space = plain.shape[plain.ndim - count :]
        pool = _Windows(attrs, space)
        total = pool.over(_carrier(plain), 0).sum(axis=pool.axes(plain.ndim))
        number = pool.counted(space, attrs.count_include_pad)
        return from_plain(_divide(total, number, plain.dtype), order, attrs.layout)

    return kernel


def _adaptive(greatest: bool, count: int) -> Kernel:
    """Each output cell covers floor(i * n / m) up to ceil((i + 1) * n / m)."""

    def kernel(attrs: Any, x: Any) -> Any:
        plain, order = _space_last(x, attrs.layout, count)
        size = spread(attrs.output_size, count) if attrs.output_size else plain.shape[plain.ndim - count :]
        result, number = (plain if greatest else _carrier(plain)), np.ones((), np.int64)
        for i, wanted in enumerate(size):
            axis = plain.ndim - count + i
            extent = plain.shape[axis]
            cuts = [(j * extent // wanted, -(-(j + 1) * extent // wanted)) for j in range(wanted)]
            parts = [np.take(result, range(a, b), axis=axis) for a, b in cuts]
            if greatest:
                parts = [p.max(axis=axis, keepdims=True, initial=_lowest(plain.dtype)) for p in parts]
            else:
                parts = [p.sum(axis=axis, keepdims=True) for p in parts]
            result = np.concatenate(parts, axis=axis) if parts else np.take(result, [], axis=axis)
            number = number[..., None] * np.asarray([max(b - a, 1) for a, b in cuts], np.int64)
        if not greatest:
            result = _divide(result, number, plain.dtype)
        return from_plain(result, order, attrs.layout)

    return kernel


def _global(greatest: bool) -> Kernel:
    def kernel(attrs: Any, x: Any) -> Any:
        plain, order = _space_last(x, attrs.layout, 2)
        axes = (plain.ndim - 2, plain.ndim - 1)
        if greatest:
            result = plain.max(axis=axes, keepdims=True, initial=_lowest(plain.dtype))
        else:
            number = max(int(np.prod(plain.shape[-2:])), 1)
            result = _divide(_carrier(plain).sum(axis=axes, keepdims=True), number, plain.dtype)
        return from_plain(result, order, attrs.layout)

    return kernel


def _pool_grad(greatest: bool) -> Kernel:
    """The share of each element of the data in the gradient of its windows.

    With `greatest`, the first of a window's greatest elements gets all of it. Else each element of the window gets the
    same part.
    """

    def kernel(attrs: Any, grad: Any, x: Any) -> Any:
        plain, order = _space_last(x, attrs.layout, 2)
        gradient, _ = _space_last(grad, attrs.layout, 2)
        if not gradient.size:
            return np.zeros_like(x)
        pool = _Windows(attrs, plain.shape[-2:])
        places = pool.over(np.arange(plain.size).reshape(plain.shape), -1)
        places = places[..., : gradient.shape[-2], : gradient.shape[-1]]
        share = np.broadcast_to(gradient[:, :, None, None], places.shape)
        out = np.zeros(plain.size + 1, _carrier(plain).dtype)  # the last one takes what falls on the padding
        if greatest:
            seen = pool.over(plain, _lowest(plain.dtype))[..., : gradient.shape[-2], : gradient.shape[-1]]
            flat = seen.reshape(*seen.shape[:2], -1, *seen.shape[4:])
            best = np.expand_dims(flat.argmax(axis=2), 2)
            np.add.at(out, np.take_along_axis(places.reshape(flat.shape), best, 2)[:, :, 0], gradient)
        else:
            number = pool.counted(plain.shape[-2:], attrs.count_include_pad)[: gradient.shape[-2], : gradient.shape[-1]]
            np.add.at(out, places, share / np.asarray(number, out.dtype))
        return from_plain(out[:-1].reshape(plain.shape).astype(x.dtype), order, attrs.layout)

    return kernel


KERNELS: dict[str, Kernel] = {
    "nn.max_pool2d_grad": _pool_grad(True),
    "nn.avg_pool2d_grad": _pool_grad(False),
    **{f"nn.max_pool{n}d": max_pool(n) for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": avg_pool(n) for n in (1, 2, 3)},
    **{f"nn.adaptive_max_pool{n}d": _adaptive(True, n) for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": _adaptive(False, n) for n in (1, 2, 3)},
    "nn.global_max_pool2d": _global(True),
    "nn.global_avg_pool2d": _global(False),
}
