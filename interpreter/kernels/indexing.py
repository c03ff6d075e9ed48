"""Selecting from tensors: by index, by range, by condition."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.diagnostics.faults import fault_text
from relaylang.interpreter.kernels.common import Kernel, KernelError, convert, norm_axis, spread, windows
from relaylang.ops.indexing import slice_bound, slice_entries


def check_range(indices: Any, extent: int) -> None:
    wrong = (indices < 0) | (indices >= extent)
    if wrong.any():
        first = np.asarray(indices)[wrong].ravel()[0]
        raise KernelError(fault_text("index", first, extent))


def inside(indices: Any, extent: int, mode: str) -> Any:
    """Indices of any size moved to the ends of an axis ("clip") or counted round it ("wrap"), as intp.

    numpy counts round step by step, which has no end for large indices.
    """
    wide = indices.astype(np.uint64 if indices.dtype == np.uint64 else np.int64, copy=False)
    moved = np.mod(wide, wide.dtype.type(extent)) if mode == "wrap" else np.clip(wide, 0, max(extent - 1, 0))
    return moved.astype(np.intp, copy=False)


def take(attrs: Any, x: Any, indices: Any) -> Any:
    """Indices beyond the ends are moved to the end ("clip"), counted round ("wrap") or an error ("fast")."""
    extent = x.size if attrs.axis is None else x.shape[attrs.axis]
    if attrs.mode == "fast":
        check_range(indices, extent)
    if extent == 0 and indices.size:
        raise KernelError("nothing can be taken from an axis of extent 0")
    at = inside(indices, extent, attrs.mode) if indices.size else indices.astype(np.intp)
    batch = attrs.batch_dims + (indices.ndim if attrs.batch_dims < 0 else 0)
    if attrs.axis is None or not batch:
        return np.take(x, at, axis=attrs.axis, mode="clip")
    axis = norm_axis(attrs.axis, x.ndim)
    lead, inner = x.shape[:batch], at.shape[batch:]
    flat = at.reshape((*lead, *[1] * (axis - batch), -1, *[1] * (x.ndim - axis - 1)))
    taken = np.take_along_axis(x, flat, axis)
    return taken.reshape((*x.shape[:axis], *inner, *x.shape[axis + 1 :]))


def gather(attrs: Any, x: Any, indices: Any) -> Any:
    axis = norm_axis(attrs.axis, x.ndim)
    check_range(indices, x.shape[axis])
    picks = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    picks[axis] = indices
    return x[tuple(picks)]


def gather_nd(attrs: Any, x: Any, indices: Any) -> Any:
    """The first axis of `indices` runs over the axes of `x` behind the `batch_dims` leading ones."""
    batch = attrs.batch_dims
    for i, row in enumerate(indices):
        check_range(row, x.shape[batch + i])
    lead = [np.arange(x.shape[i]).reshape([-1 if j == i else 1 for j in range(indices.ndim - 1)]) for i in range(batch)]
    places = (*lead, *indices)
    if not places:
        return np.broadcast_to(x, (*indices.shape[1:], *x.shape)).copy()
    return x[places]


def strided_slice(attrs: Any, x: Any) -> Any:
    cuts: list[slice] = [slice(None)] * x.ndim
    for axis, begin, end, stride in slice_entries(attrs, x.ndim):
        if stride == 0:
            raise KernelError("a stride of 0 leads nowhere")
        first, last = (slice_bound(n, x.shape[axis], stride) for n in (begin, end))
        cuts[axis] = slice(first, None if last < 0 else last, stride) if first >= 0 else slice(0)
    return np.ascontiguousarray(x[tuple(cuts)])


def slice_like(attrs: Any, x: Any, like: Any) -> Any:
    axes = {a % x.ndim for a in attrs.axes} if attrs.axes else range(min(x.ndim, like.ndim))
    return x[tuple(slice(like.shape[i]) if i in axes else slice(None) for i in range(x.ndim))]


def where(attrs: Any, condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition, x, y)


def sequence_mask(attrs: Any, x: Any, lengths: Any) -> Any:
    steps = np.arange(x.shape[attrs.axis])
    inside = steps[:, None] < lengths[None, :] if attrs.axis == 0 else steps[None, :] < lengths[:, None]
    inside = inside.reshape(inside.shape + (1,) * (x.ndim - 2))
    return np.where(inside, x, convert(np.asarray(attrs.mask_value), x.dtype))


def matrix_set_diag(attrs: Any, x: Any, diagonals: Any) -> Any:
    """A matrix with its diagonals k1 to k2 replaced.

    The rows of `diagonals` hold them from the highest down. Each is aligned at the left or the right end of its row.
    """
    out = np.array(x)
    rows, columns = x.shape[-2:]
    for k in range(attrs.k1, attrs.k2 + 1):
        length = min(rows + min(k, 0), columns - max(k, 0))
        line = diagonals if attrs.k1 == attrs.k2 else diagonals[..., attrs.k2 - k, :]
        right = attrs.super_diag_right_align if k >= 0 else attrs.sub_diag_right_align
        begin = line.shape[-1] - length if right and attrs.k1 != attrs.k2 else 0
        at = np.arange(length)
        out[..., at + max(-k, 0), at + max(k, 0)] = line[..., begin : begin + length]
    return out


def sliding_window(attrs: Any, x: Any) -> Any:
    """Windows over the axes from `axis` on: their places come first, then the windows."""
    count = len(attrs.window_shape)
    moved = windows(np.ascontiguousarray(x), attrs.window_shape, spread(attrs.strides, count), (1,) * count)
    axis = norm_axis(attrs.axis, x.ndim)
    order = [*range(axis), *range(axis + count, axis + 2 * count), *range(axis, axis + count)]
    return np.ascontiguousarray(moved.transpose(order))


KERNELS: dict[str, Kernel] = {
    "take": take,
    "gather": gather,
    "gather_nd": gather_nd,
    "strided_slice": strided_slice,
    "slice_like": slice_like,
    "where": where,
    "argwhere": lambda attrs, x: np.argwhere(x).astype(np.int32),
    "sequence_mask": sequence_mask,
    "matrix_set_diag": matrix_set_diag,
    "sliding_window": sliding_window,
}
