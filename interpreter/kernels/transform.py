"""Shapes and order: what moves elements without computing with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, from_plain, norm_axis, plain_layout, to_plain
from relaylang.interpreter.kernels.indexing import check_range


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


def repeat(attrs: Any, x: Any) -> Any:
    return np.repeat(x, attrs.repeats, axis=attrs.axis)


def reverse_sequence(attrs: Any, x: Any, lengths: Any) -> Any:
    seq, batch = norm_axis(attrs.seq_axis, x.ndim), norm_axis(attrs.batch_axis, x.ndim)
    moved = np.moveaxis(x, (batch, seq), (0, 1)).copy()
    for row, length in zip(moved, lengths):
        count = max(0, int(length))
        row[:count] = row[:count][::-1].copy()
    return np.moveaxis(moved, (0, 1), (batch, seq))


def layout_transform(attrs: Any, x: Any) -> Any:
    order = plain_layout(attrs.src_layout)
    return from_plain(to_plain(x, attrs.src_layout, order), order, attrs.dst_layout)


def broadcast_to(attrs: Any, x: Any) -> Any:
    return np.broadcast_to(x, attrs.shape).copy()


def collapse_sum(x: Any, shape: Sequence[int]) -> Any:
    """The sum over the axes along which `shape` was broadcast."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))), dtype=x.dtype)
    return x.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True, dtype=x.dtype)


def invert_permutation(attrs: Any, x: Any) -> Any:
    out = np.empty_like(x)
    check_range(x, x.shape[0])
    out[x] = np.arange(x.shape[0], dtype=x.dtype)
    return out


def auto_scheduler_layout_transform(attrs: Any, x: Any) -> Any:
    """The axes `1N8h4c` of the target, those of one letter from the outermost in, from the source's whole ones."""
    source = re.findall(r"\d+([A-Za-z]+)", attrs.src_layout)
    target = re.findall(r"(\d+)([A-Za-z]+)", attrs.dst_layout)
    shape = [int(n) for name in source for n, axis in target if axis == name]
    order = [i for name in source for i, (_, axis) in enumerate(target) if axis == name]
    return np.ascontiguousarray(x.reshape(shape).transpose(np.argsort(order)))


def meta_schedule_layout_transform(attrs: Any, x: Any) -> Any:
    """`index_map` says where each element goes."""
    at = np.broadcast_arrays(*attrs.index_map(*np.ogrid[tuple(slice(n) for n in x.shape)]), np.empty(x.shape))[:-1]
    out = np.zeros([int(i.max()) + 1 for i in at], x.dtype)
    out[tuple(i.astype(np.intp) for i in at)] = x
    return out


KERNELS: dict[str, Kernel] = {
    "auto_scheduler_layout_transform": auto_scheduler_layout_transform,
    "meta_schedule_layout_transform": meta_schedule_layout_transform,
    "invert_permutation": invert_permutation,
    "reshape": reshape,
    "contrib_reverse_reshape": reverse_reshape,
    "reshape_like": reshape_like,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "transpose": transpose,
    "tile": lambda attrs, x: np.tile(x, attrs.reps),
    "repeat": repeat,
    "reverse": lambda attrs, x: np.flip(x, attrs.axis).copy(),
    "reverse_sequence": reverse_sequence,
    "layout_transform": layout_transform,
    "broadcast_to": broadcast_to,
    "broadcast_to_like": lambda attrs, x, like: np.broadcast_to(x, like.shape).copy(),
    "collapse_sum_like": lambda attrs, x, like: collapse_sum(x, like.shape),
}
