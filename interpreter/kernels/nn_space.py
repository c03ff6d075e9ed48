"""Layers that pad data, move it between space and channels or batch, and make images larger."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from relaylang.interpreter.kernels import image
from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    convert,
    from_plain,
    is_float,
    to_plain,
)


def pad_value(value: Any, dtype: np.dtype) -> Any:
    """The padding value in the data's element type; an integer type takes it only where it can hold it."""
    value = np.asarray(value)
    if not is_float(dtype) and dtype.kind != "b":
        info = np.iinfo(dtype)
        number = float(value)
        if not info.min <= number <= info.max:
            raise KernelError(f"{dtype.name} cannot hold the padding value {number:g}")
    return convert(value, dtype)


def pad(attrs: Any, x: Any, value: Any) -> Any:
    """Negative widths cut. A border is of the data's own ends, whether they are cut or not."""
    widths = [(int(a), int(b)) for a, b in attrs.pad_width]
    shape = [n + a + b for n, (a, b) in zip(x.shape, widths)]
    if min(shape, default=0) < 0:
        raise KernelError(f"pad_width={[list(w) for w in widths]} takes more away from {x.shape} than there is")
    if attrs.pad_mode == "constant":
        out = np.full(shape, pad_value(value, x.dtype))
        kept = [(max(-a, 0), min(n, n + b)) for n, (a, b) in zip(x.shape, widths)]
        if all(first < end for first, end in kept):
            into = tuple(slice(first + a, end + a) for (first, end), (a, _) in zip(kept, widths))
            out[into] = x[tuple(slice(first, end) for first, end in kept)]
        return out
    for axis, (wanted, n, (before, _)) in enumerate(zip(shape, x.shape, widths)):
        if wanted and not n:
            raise KernelError(f"axis {axis} has no entries to repeat at its ends")
        places = np.arange(wanted) - before
        places = np.clip(places, 0, n - 1) if attrs.pad_mode == "edge" else _mirrored(places, n)
        x = np.take(x, places, axis=axis)
    return x


def _mirrored(places: Any, extent: int) -> Any:
    """Places beyond the ends, folded back at the first and last entries as often as it takes."""
    if extent < 2:
        return np.zeros_like(places)
    around = 2 * extent - 2
    places = places % around
    return np.where(places < extent, places, around - places)


def mirror_pad(attrs: Any, x: Any) -> Any:
    mode: Literal["symmetric", "reflect"] = "symmetric" if attrs.mode.upper() == "SYMMETRIC" else "reflect"
    return np.pad(x, [(int(a), int(b)) for a, b in attrs.pad_width], mode=mode)


def depth_to_space(attrs: Any, x: Any) -> Any:
    plain, b = to_plain(x, attrs.layout, "NCHW"), attrs.block_size
    n, c, h, w = plain.shape
    if attrs.mode == "DCR":
        parts = plain.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = plain.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return from_plain(parts.reshape(n, c // (b * b), h * b, w * b), "NCHW", attrs.layout)


def space_to_depth(attrs: Any, x: Any) -> Any:
    plain, b = to_plain(x, attrs.layout, "NCHW"), attrs.block_size
    n, c, h, w = plain.shape
    parts = plain.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return from_plain(parts.reshape(n, c * b * b, h // b, w // b), "NCHW", attrs.layout)


def space_to_batch_nd(attrs: Any, x: Any) -> Any:
    """Each spatial axis is cut into blocks, whose places go to the front of the batch."""
    blocks = tuple(attrs.block_shape)
    pads = [(0, 0), *[(int(a), int(b)) for a, b in attrs.paddings]]
    pads += [(0, 0)] * (x.ndim - len(pads))
    padded = np.pad(x, pads, constant_values=x.dtype.type(attrs.pad_value))
    batch, space, rest = x.shape[0], padded.shape[1 : 1 + len(blocks)], padded.shape[1 + len(blocks) :]
    cut = padded.reshape(batch, *[m for n, b in zip(space, blocks) for m in (n // b, b)], *rest)
    count = len(blocks)
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, cut.ndim)]
    return cut.transpose(order).reshape(batch * int(np.prod(blocks)), *[n // b for n, b in zip(space, blocks)], *rest)


def batch_to_space_nd(attrs: Any, x: Any) -> Any:
    blocks = tuple(attrs.block_shape)
    count = len(blocks)
    batch, space, rest = x.shape[0] // int(np.prod(blocks)), x.shape[1 : 1 + count], x.shape[1 + count :]
    cut = x.reshape(*blocks, batch, *space, *rest)
    order = [count, *[axis for i in range(count) for axis in (count + 1 + i, i)], *range(2 * count + 1, cut.ndim)]
    joined = cut.transpose(order).reshape(batch, *[n * b for n, b in zip(space, blocks)], *rest)
    cuts = [slice(int(a), joined.shape[i] - int(b)) for i, (a, b) in enumerate(attrs.crops, 1)]
    places = (slice(None), *cuts)
    return np.ascontiguousarray(joined[places])


KERNELS: dict[str, Kernel] = {
    "nn.upsampling": image.upsampling,
    "nn.upsampling3d": image.upsampling3d,
    "nn.space_to_batch_nd": space_to_batch_nd,
    "nn.batch_to_space_nd": batch_to_space_nd,
    "nn.pad": pad,
    "nn.mirror_pad": mirror_pad,
    "nn.depth_to_space": depth_to_space,
    "nn.space_to_depth": space_to_depth,
}
