"""Shapes, order and selection: what moves elements without computing with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    convert,
    from_plain,
    norm_axis,
    np_dtype,
    plain_layout,
    spread,
    to_plain,
    windows,
)


def new_shape(shape: Sequence[int], spec: Sequence[int], allowzero: bool = False) -> tuple[int, ...]:
    """The extents that `reshape` makes: 0 keeps one, -1 is what remains, -2 keeps all that are left, -3 joins two,
    -4 splits one into the two that follow."""
    out: list[int] = []
    at, i, open_at = 0, 0, -1
    while i < len(spec):
        n = spec[i]
        if n == 0 and not allowzero:
            out.append(shape[at])
            at += 1
        elif n == -1:
            open_at = len(out)
            out.append(1)
            at += 1
        elif n == -2:
            out += shape[at:]
            at = len(shape)
        elif n == -3:
            out.append(shape[at] * shape[at + 1])
            at += 2
        elif n == -4:
            left, right = spec[i + 1], spec[i + 2]
            out += [shape[at] // right if left == -1 else left, shape[at] // left if right == -1 else right]
            at, i = at + 1, i + 2
        else:
            out.append(n)
            at += 1
        i += 1
    if open_at >= 0:
        rest = int(np.prod(out))
        out[open_at] = int(np.prod(shape)) // rest if rest else 0
    return tuple(out)


def reshape(attrs: Any, x: Any, *shape: Any) -> Any:
    spec = tuple(int(n) for n in shape[0]) if shape else attrs.newshape
    return np.reshape(x, new_shape(x.shape, spec, bool(attrs.allowzero)))


def reverse_reshape(attrs: Any, x: Any) -> Any:
    """As reshape, matched from the last axis."""
    return np.reshape(x, new_shape(x.shape[::-1], tuple(attrs.newshape)[::-1])[::-1])


def reshape_like(attrs: Any, x: Any, like: Any) -> Any:
    left, right = x.shape, like.shape

    def bounds(begin: int, end: int | None, rank: int) -> tuple[int, int]:
        end = rank if end is None else end
        return (begin + rank if begin < 0 else begin, end + rank if end < 0 else end)

    a, b = bounds(attrs.lhs_begin, attrs.lhs_end, len(left))
    c, d = bounds(attrs.rhs_begin, attrs.rhs_end, len(right))
    return np.reshape(x, left[:a] + right[c:d] + left[b:])


def expand_dims(attrs: Any, x: Any) -> Any:
    axis = attrs.axis if attrs.axis >= 0 else attrs.axis + x.ndim + 1
    return np.reshape(x, x.shape[:axis] + (1,) * attrs.num_newaxis + x.shape[axis:])


def squeeze(attrs: Any, x: Any) -> Any:
    axis = attrs.axis
    return np.squeeze(x, axis=None if axis is None else ((axis,) if isinstance(axis, int) else tuple(axis)))


def transpose(attrs: Any, x: Any) -> Any:
    return np.transpose(x, attrs.axes or None)


def concatenate(attrs: Any, parts: tuple[Any, ...]) -> Any:
    return np.concatenate(parts, axis=attrs.axis)


def stack(attrs: Any, parts: tuple[Any, ...]) -> Any:
    return np.stack(parts, axis=attrs.axis)


def split(attrs: Any, x: Any) -> tuple[Any, ...]:
    how = attrs.indices_or_sections
    if isinstance(how, int):
        count = how
        if x.shape[attrs.axis] % count:
            raise KernelError(f"an extent of {x.shape[attrs.axis]} cannot be split into {count} equal parts")
        return tuple(np.split(x, count, axis=attrs.axis))
    return tuple(np.split(x, [int(i) for i in how], axis=attrs.axis))


def check_range(indices: Any, extent: int) -> None:
    wrong = (indices < 0) | (indices >= extent)
    if wrong.any():
        first = np.asarray(indices)[wrong].ravel()[0]
        raise KernelError(f"the index {first} is outside an axis of extent {extent}")


def take(attrs: Any, x: Any, indices: Any) -> Any:
    """Indices beyond the ends are moved to the end ("clip"), counted round ("wrap") or an error ("fast")."""
    mode = attrs.mode
    extent = x.size if attrs.axis is None else x.shape[attrs.axis]
    if mode == "fast":
        check_range(indices, extent)
        mode = "clip"
    if extent == 0 and indices.size:
        raise KernelError("nothing can be taken from an axis of extent 0")
    batch = attrs.batch_dims + (indices.ndim if attrs.batch_dims < 0 else 0)
    if attrs.axis is None or not batch:
        return np.take(x, indices, axis=attrs.axis, mode=mode)
    axis = norm_axis(attrs.axis, x.ndim)
    at = np.mod(indices, extent) if mode == "wrap" else np.clip(indices, 0, extent - 1)
    lead, inner = x.shape[:batch], at.shape[batch:]
    flat = at.reshape((*lead, *[1] * (axis - batch), -1, *[1] * (x.ndim - axis - 1)))
    found = np.take_along_axis(x, flat.astype(np.intp), axis)
    return found.reshape((*x.shape[:axis], *inner, *x.shape[axis + 1 :]))


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
    return x[places]


def strided_slice(attrs: Any, x: Any, *bounds: Any) -> Any:
    begin, end, strides = ([int(n) for n in b] for b in bounds) if bounds else (attrs.begin, attrs.end, attrs.strides)
    axes = attrs.axes if attrs.axes is not None else range(len(begin))
    cuts: list[slice] = [slice(None)] * x.ndim
    for i, axis in enumerate(axes):
        step = strides[i] if strides and i < len(strides) else (strides[0] if strides and len(strides) == 1 else 1)
        extent = x.shape[axis]
        first = begin[i] if begin is not None else None
        last = end[i] if end is not None and i < len(end) else None
        if attrs.slice_mode == "size":
            start = 0 if first is None else (first + extent if first < 0 else first)
            cuts[axis] = slice(start, None if last is None or last < 0 else start + last)
        else:
            cuts[axis] = slice(first, last, step)
    return np.ascontiguousarray(x[tuple(cuts)])


def slice_like(attrs: Any, x: Any, like: Any) -> Any:
    axes = {a % x.ndim for a in attrs.axes} if attrs.axes else range(min(x.ndim, like.ndim))
    return x[tuple(slice(like.shape[i]) if i in axes else slice(None) for i in range(x.ndim))]


def where(attrs: Any, condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition, x, y)


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
    hit = np.expand_dims(indices, axis) == np.arange(attrs.depth, dtype=indices.dtype).reshape(shape)
    return np.where(hit, convert(np.asarray(on), dtype), convert(np.asarray(off), dtype))


def repeat(attrs: Any, x: Any) -> Any:
    return np.repeat(x, attrs.repeats, axis=attrs.axis)


def reverse_sequence(attrs: Any, x: Any, lengths: Any) -> Any:
    seq, batch = norm_axis(attrs.seq_axis, x.ndim), norm_axis(attrs.batch_axis, x.ndim)
    moved = np.moveaxis(x, (batch, seq), (0, 1)).copy()
    for row, length in zip(moved, lengths):
        row[: int(length)] = row[: int(length)][::-1].copy()
    return np.moveaxis(moved, (0, 1), (batch, seq))


def layout_transform(attrs: Any, x: Any) -> Any:
    order = plain_layout(attrs.src_layout)
    return from_plain(to_plain(x, attrs.src_layout, order), order, attrs.dst_layout)


def sequence_mask(attrs: Any, x: Any, lengths: Any) -> Any:
    steps = np.arange(x.shape[attrs.axis])
    inside = steps[:, None] < lengths[None, :] if attrs.axis == 0 else steps[None, :] < lengths[:, None]
    inside = inside.reshape(inside.shape + (1,) * (x.ndim - 2))
    return np.where(inside, x, x.dtype.type(attrs.mask_value))


def shape_of(attrs: Any, x: Any) -> Any:
    return np.asarray(x.shape, np_dtype(attrs.dtype or "int32"))


def ndarray_size(attrs: Any, x: Any) -> Any:
    return np.asarray(x.size, np_dtype(attrs.dtype or "int32"))


def broadcast_to(attrs: Any, x: Any) -> Any:
    return np.broadcast_to(x, attrs.shape).copy()


def collapse_sum(x: Any, shape: Sequence[int]) -> Any:
    """The sum over the axes along which `shape` was broadcast."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))), dtype=x.dtype)
    return x.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True, dtype=x.dtype)


def meshgrid(attrs: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.meshgrid(*parts, indexing=attrs.indexing))


def sliding_window(attrs: Any, x: Any) -> Any:
    """Windows over the axes from `axis` on: their places come first, then the windows."""
    count = len(attrs.window_shape)
    moved = windows(np.ascontiguousarray(x), attrs.window_shape, spread(attrs.strides, count), (1,) * count)
    axis = norm_axis(attrs.axis, x.ndim)
    order = [*range(axis), *range(axis + count, axis + 2 * count), *range(axis, axis + count)]
    return np.ascontiguousarray(moved.transpose(order))


def invert_permutation(attrs: Any, x: Any) -> Any:
    out = np.empty_like(x)
    check_range(x, x.shape[0])
    out[x] = np.arange(x.shape[0], dtype=x.dtype)
    return out


KERNELS: dict[str, Kernel] = {
    "argwhere": lambda attrs, x: np.argwhere(x).astype(np.int32),
    "invert_permutation": invert_permutation,
    "sliding_window": sliding_window,
    "reshape": reshape,
    "contrib_reverse_reshape": reverse_reshape,
    "reshape_like": reshape_like,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "transpose": transpose,
    "concatenate": concatenate,
    "stack": stack,
    "split": split,
    "take": take,
    "gather": gather,
    "gather_nd": gather_nd,
    "strided_slice": strided_slice,
    "slice_like": slice_like,
    "where": where,
    "zeros": lambda attrs: np.zeros(attrs.shape, np_dtype(attrs.dtype or "float32")),
    "ones": lambda attrs: np.ones(attrs.shape, np_dtype(attrs.dtype or "float32")),
    "full": full,
    "arange": arange,
    "one_hot": one_hot,
    "tile": lambda attrs, x: np.tile(x, attrs.reps),
    "repeat": repeat,
    "reverse": lambda attrs, x: np.flip(x, attrs.axis).copy(),
    "reverse_sequence": reverse_sequence,
    "layout_transform": layout_transform,
    "sequence_mask": sequence_mask,
    "shape_of": shape_of,
    "ndarray_size": ndarray_size,
    "broadcast_to": broadcast_to,
    "broadcast_to_like": lambda attrs, x, like: np.broadcast_to(x, like.shape).copy(),
    "collapse_sum_like": lambda attrs, x, like: collapse_sum(x, like.shape),
    "meshgrid": meshgrid,
}
