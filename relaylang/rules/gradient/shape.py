"""Gradients of operators that move elements: shapes, slices, parts of tuples, and elements at indices."""

from __future__ import annotations

import math

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType, Tuple, TupleType
from relaylang.ops.indexing import slice_bound, slice_entries
from relaylang.rules.gradient.common import (
    Gradient,
    Grads,
    NoGradient,
    extents,
    is_float,
    number,
    of,
    rank_of,
    reduced_to,
)


def _reshaped(call: Call, grad: Expr) -> Grads:
    return [of("reshape_like", grad, call.args[0]), *[None] * (len(call.args) - 1)]


def _transpose(call: Call, grad: Expr) -> Grads:
    rank = rank_of(call)
    axes = [a % rank for a in call.attrs.axes] if call.attrs.axes else list(reversed(range(rank)))
    return [of("transpose", grad, axes=[axes.index(i) for i in range(rank)])]


def _layout_transform(call: Call, grad: Expr) -> Grads:
    source, target = call.attrs.src_layout, call.attrs.dst_layout
    if math.prod(extents(call.args[0], "layout_transform")) != math.prod(extents(call, "layout_transform")):
        raise NoGradient("layout_transform that pads")
    return [of("layout_transform", grad, src_layout=target, dst_layout=source)]


def _parts_along(tuple_value: Expr, axis: int) -> list[int]:
    ty = tuple_value.checked_type
    assert isinstance(ty, TupleType)
    sizes = [t.shape[axis] for t in ty.fields if isinstance(t, TensorType)]
    if not all(isinstance(d, int) for d in sizes):
        raise NoGradient("concatenate of unknown extents")
    return [int(d) for d in sizes]  # type: ignore[arg-type]


def _concatenate(call: Call, grad: Expr) -> Grads:
    axis = call.attrs.axis % rank_of(call)
    begin = 0
    grads: list[Expr] = []
    for extent in _parts_along(call.args[0], axis):
        grads.append(of("strided_slice", grad, begin=[begin], end=[begin + extent], strides=[1], axes=[axis]))
        begin += extent
    return [grads]


def _stack(call: Call, grad: Expr) -> Grads:
    axis = call.attrs.axis % rank_of(call)
    ty = call.args[0].checked_type
    assert isinstance(ty, TupleType)
    grads: list[Expr] = []
    for i in range(len(ty.fields)):
        part = of("strided_slice", grad, begin=[i], end=[i + 1], strides=[1], axes=[axis])
        grads.append(of("squeeze", part, axis=[axis]))
    return [grads]


def _split(call: Call, grads: list[Expr]) -> Grads:
    return [of("concatenate", Tuple(grads), axis=call.attrs.axis)]


def _strided_slice(call: Call, grad: Expr) -> Grads:
    """The gradient spread out by the strides among zeros; it is reversed where a stride is negative."""
    x = call.args[0]
    shape, out = extents(x, "strided_slice"), extents(call, "strided_slice")
    widths = [[0, 0] for _ in shape]
    strides = [1] * len(shape)
    for axis, begin, _, stride in slice_entries(call.attrs, len(shape)):
        extent, count = shape[axis], out[axis]
        first = slice_bound(begin, extent, stride)
        last = first + (count - 1) * stride
        if stride < 0 and count > 1:
            grad = of("reverse", grad, axis=axis)
        strides[axis] = abs(stride)
        widths[axis] = [min(first, last), extent - 1 - max(first, last)] if count else [0, extent]
    if any(s > 1 for s in strides) and 0 not in out:
        grad = of("nn.dilate", grad, strides=strides)
    return [of("nn.pad", grad, number(0, call), pad_width=widths)]


def _take(call: Call, grad: Expr) -> Grads:
    """Gradients of elements from one place are added there, while the axis of the indices stands first."""
    data, indices = call.args
    if call.attrs.batch_dims:
        raise NoGradient("take in batches")
    shape = extents(data, "take")
    zeros: Expr = of("zeros_like", data)
    if call.attrs.axis is None:
        axis, shape = 0, (math.prod(shape),)
        zeros = of("reshape", zeros, newshape=[-1])
    else:
        axis = call.attrs.axis % len(shape)
    if 0 in shape:
        raise NoGradient("take of nothing")
    rest = [d for i, d in enumerate(shape) if i != axis]
    rank = rank_of(indices)
    inner = list(range(axis, axis + rank))
    others = [i for i in range(rank + len(shape) - 1) if i not in inner]
    front = of("transpose", grad, axes=[*inner, *others]) if inner and axis else grad
    updates = of("reshape", front, newshape=[-1, *rest])
    places: Expr = of("reshape", indices, newshape=[1, -1])
    ty = indices.checked_type
    assert isinstance(ty, TensorType)
    if call.attrs.mode == "clip":
        last = Constant(np.asarray(shape[axis] - 1, ty.dtype))
        places = of("minimum", of("maximum", places, Constant(np.asarray(0, ty.dtype))), last)
    elif call.attrs.mode == "wrap":
        places = of("floor_mod", places, Constant(np.asarray(shape[axis], ty.dtype)))
    order = [axis, *[i for i in range(len(shape)) if i != axis]]
    turned = of("transpose", zeros, axes=order) if axis else zeros
    grad_data = of("scatter_nd", turned, places, updates, mode="add")
    if axis:
        grad_data = of("transpose", grad_data, axes=[order.index(i) for i in range(len(shape))])
    return [grad_data if call.attrs.axis is not None else of("reshape_like", grad_data, data), None]


def _gather_nd(call: Call, grad: Expr) -> Grads:
    if call.attrs.batch_dims:
        raise NoGradient("gather_nd in batches")
    data, indices = call.args
    return [of("scatter_nd", of("zeros_like", data), indices, grad, mode="add"), None]


def _where(call: Call, grad: Expr) -> Grads:
    cond, x, y = call.args
    zeros = of("zeros_like", grad)
    return [
        None,
        reduced_to(of("where", cond, grad, zeros), x, call),
        reduced_to(of("where", cond, zeros, grad), y, call),
    ]


def _full(call: Call, grad: Expr) -> Grads:
    value = call.args[0]
    total = of("cast_like", of("sum", grad), value) if is_float(value.checked_type) else None
    return [total, *[None] * (len(call.args) - 1)]


def _one_hot(call: Call, grad: Expr) -> Grads:
    """The sum of the gradient at the places that the indices name, and the sum at the others."""
    indices, *values = call.args
    if not all(is_float(v.checked_type) for v in values):
        return [None, None, None]
    yes, no = Constant(np.asarray(True)), Constant(np.asarray(False))
    hit = of("one_hot", indices, yes, no, depth=call.attrs.depth, axis=call.attrs.axis, dtype="bool")
    zeros = of("zeros_like", grad)
    parts = [of("where", hit, grad, zeros), of("where", hit, zeros, grad)]
    return [None, *[of("cast_like", of("sum", part), value) for part, value in zip(parts, values)]]


def _arange(call: Call, grad: Expr) -> Grads:
    """The n-th number is `start + n * step`; `stop` says only how many there are."""
    start, _, step = call.args
    ty = call.checked_type
    assert isinstance(ty, TensorType)
    count = ty.shape[0]
    if isinstance(count, int):
        places: Expr = Constant(np.arange(count).astype(np.dtype(ty.dtype)), dtype=ty.dtype)
    else:
        places = of("round", of("divide", of("subtract", call, start), step))
    return [of("sum", grad), None, of("sum", of("multiply", grad, places))]


RULES: dict[str, Gradient] = {
    **dict.fromkeys(
        ("reshape", "nn.batch_flatten", "squeeze", "expand_dims", "contrib_reverse_reshape", "reshape_like", "dyn.reshape"), _reshaped
    ),
    "transpose": _transpose,
    "layout_transform": _layout_transform,
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "strided_slice": _strided_slice,
    "take": _take,
    "gather_nd": _gather_nd,
    "where": _where,
    "full": _full,
    "one_hot": _one_hot,
    "arange": _arange,
    "collapse_sum_like": lambda c, g: [of("broadcast_to_like", g, c.args[0]), None],
    "collapse_sum_to": lambda c, g: [of("broadcast_to_like", g, c.args[0]), *[None] * (len(c.args) - 1)],
    "broadcast_to_like": lambda c, g: [of("collapse_sum_like", g, c.args[0]), None],
    "broadcast_to": lambda c, g: [of("collapse_sum_like", g, c.args[0]), *[None] * (len(c.args) - 1)],
}
