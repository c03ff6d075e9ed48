"""Shapes and order: what moves elements without computing with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    from_plain,
    norm_axis,
    plain_layout,
    to_plain,
    wide,
)
from relaylang.interpreter.kernels.indexing import check_range
from relaylang.ops.reshape import new_shape


class _Asked:
    """What the relations' arithmetic on shapes asks of the checker, for shapes that are known."""

    def fail(self, message: str, arg: int | None = None, notes: Sequence[str] = ()) -> Any:
        raise KernelError(message)


def to_shape(x: Any, shape: Sequence[int], said: Sequence[Any] | None = None) -> Any:
    """The elements in another shape; `said` is what the call's type says of it."""
    if min(shape, default=0) < 0 or int(np.prod(shape, dtype=object)) != x.size:
        raise KernelError(f"{x.size} elements do not fit into the shape {tuple(shape)}")
    if said and (len(said) != len(shape) or any(isinstance(d, int) and d != n for d, n in zip(said, shape))):
        raise KernelError(f"the shape is {tuple(shape)}, but the attribute newshape is {list(said)}")
    return np.reshape(x, shape)


def reshape(attrs: Any, x: Any, *shape: Any) -> Any:
    spec = tuple(int(n) for n in shape[0]) if shape else attrs.newshape
    return to_shape(x, new_shape(x.shape, spec, bool(attrs.allowzero), _Asked()))  # type: ignore[arg-type]


def reverse_reshape(attrs: Any, x: Any) -> Any:
    """As reshape, matched from the last axis."""
    return to_shape(x, new_shape(x.shape[::-1], tuple(attrs.newshape)[::-1], False, _Asked())[::-1])  # type: ignore[arg-type]


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
    if axis is None:
        return np.squeeze(x)
    away = [norm_axis(a, x.ndim) for a in ((axis,) if isinstance(axis, int) else axis)]
    if len(set(away)) != len(away) or any(x.shape[a] != 1 for a in away):
        raise KernelError(f"the axes {away} of a shape {x.shape} are not different ones of extent 1")
    return np.squeeze(x, axis=tuple(away))


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
    return broadcast(x, attrs.shape)


def broadcast(x: Any, shape: Sequence[int]) -> Any:
    """The elements repeated along the extents of 1, up to a shape."""
    own = (1,) * (len(shape) - x.ndim) + x.shape
    if len(own) > len(shape) or min(shape, default=0) < 0 or any(a not in (1, n) for a, n in zip(own, shape)):
        raise KernelError(f"a tensor of shape {x.shape} cannot be broadcast to {tuple(shape)}")
    return np.broadcast_to(x, shape).copy()


def collapse_sum(x: Any, shape: Sequence[int]) -> Any:
    """The sum over the axes along which `shape` was broadcast."""
    lead = x.ndim - len(shape)
    if lead < 0 or any(n not in (1, extent) for n, extent in zip(shape, x.shape[lead:])):
        raise KernelError(f"a tensor of shape {x.shape} is not one of shape {tuple(shape)}, broadcast")
    axes = (*range(lead), *[lead + i for i, n in enumerate(shape) if n == 1])
    carrier = wide(x)
    f = np.add if x.dtype.kind != "b" else np.bitwise_xor
    return f.reduce(carrier, axis=axes, keepdims=True, dtype=carrier.dtype).astype(x.dtype).reshape(shape)


def invert_permutation(attrs: Any, x: Any) -> Any:
    out = np.empty_like(x)
    check_range(x, x.shape[0])
    if len(np.unique(x)) < x.size:
        raise KernelError("is no permutation: a place is named twice")
    out[x] = np.arange(x.shape[0], dtype=x.dtype)
    return out


def auto_scheduler_layout_transform(attrs: Any, x: Any) -> Any:
    """The axes `1N8h4c` of the target, those of one letter from the outermost in, from the source's whole ones."""
    source = re.findall(r"\d+([A-Za-z]+)", attrs.src_layout)
    target = re.findall(r"(\d+)([A-Za-z]+)", attrs.dst_layout)
    shape = [int(n) for name in source for n, axis in target if axis == name]
    order = [i for name in source for i, (_, axis) in enumerate(target) if axis == name]
    return np.ascontiguousarray(to_shape(x, shape).transpose(np.argsort(order)))


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
    "broadcast_to_like": lambda attrs, x, like: broadcast(x, like.shape),
    "collapse_sum_like": lambda attrs, x, like: collapse_sum(x, like.shape),
}
