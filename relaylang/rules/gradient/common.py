"""Parts of gradients: typed calls, sums over broadcast axes, and operands without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType, TupleType, Type
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import typed_constant
from relaylang.ops.build import op_call
from relaylang.ops.reduce import taken_axes

Grads = list[Any]  # an expression, None, or for a tuple operand a list of such
Gradient = Callable[[Call, Any], Grads]


class NoGradient(Exception):
    """The gradient of a call is not known; the message names the call."""


def number(value: float, like: Expr) -> Constant:
    """A scalar of the element type of `like`."""
    ty = like.checked_type
    assert isinstance(ty, TensorType)
    return typed_constant(np.asarray(value).astype(np.dtype(ty.dtype)), ty.dtype)


def of(name: str, *args: Expr, **attrs: Any) -> Call:
    """A call of an operator."""
    return op_call(name, list(args), **attrs)


def mul(a: Expr, b: Expr) -> Expr:
    return of("multiply", a, b)


def sub(a: Expr, b: Expr) -> Expr:
    return of("subtract", a, b)


def div(a: Expr, b: Expr) -> Expr:
    return of("divide", a, b)


def plus(a: Expr, b: Expr) -> Expr:
    return of("add", a, b)


def zeros(like: Expr) -> Expr:
    return of("zeros_like", like)


def ones(like: Expr) -> Expr:
    return of("ones_like", like)


def square(x: Expr) -> Expr:
    return mul(x, x)


def mask(grad: Expr, condition: Expr) -> Expr:
    return of("where", condition, grad, of("zeros_like", grad))


def is_float(ty: Type | None) -> bool:
    """Whether a tensor type has elements that a gradient can change."""
    return isinstance(ty, TensorType) and not ty.dtype.startswith(("int", "uint", "bool"))


def holds_float(ty: Type | None) -> bool:
    """Whether a tensor, or a field of a tuple, has elements that a gradient can change."""
    return any(map(holds_float, ty.fields)) if isinstance(ty, TupleType) else is_float(ty)


def of_dtype(grad: Expr, call: Call, operand: Expr) -> Expr:
    """The gradient of a call's result in the element type of an operand, where `out_dtype` makes them two."""
    result_type, wanted = call.checked_type, operand.checked_type
    assert isinstance(result_type, TensorType) and isinstance(wanted, TensorType)
    return grad if result_type.dtype == wanted.dtype else of("cast", grad, dtype=wanted.dtype)


def extents(expr: Expr, what: str) -> tuple[int, ...]:
    """A tensor's extents. Raises `NoGradient` where one is not known; `what` names the call."""
    shape = static_shape(expr.checked_type)
    if shape is None:
        raise NoGradient(f"{what} of unknown extents")
    return shape


def rank_of(expr: Expr) -> int:
    ty = expr.checked_type
    assert isinstance(ty, TensorType)
    return len(ty.shape)


def reduced_to(grad: Expr, operand: Expr, call: Call) -> Expr:
    """A gradient summed over broadcast axes. It needs no sum where both types are equal and name every extent."""
    if operand.checked_type == call.checked_type and static_shape(call.checked_type) is not None:
        return grad
    return of("collapse_sum_like", grad, operand)


def axes_of(call: Call) -> list[int]:
    """The axes that a reduction takes away."""
    return taken_axes(rank_of(call.args[0]), call.attrs.axis, call.attrs.exclude)


def unreduced(call: Call, value: Expr) -> Expr:
    """A reduction's result, or its gradient, with the axes that it summed over as they were."""
    axes = axes_of(call)
    if not call.attrs.keepdims and axes:
        shape = static_shape(call.args[0].checked_type)
        if shape is not None and 0 not in shape:
            value = of("reshape", value, newshape=[1 if i in axes else d for i, d in enumerate(shape)])
        else:
            for axis in axes:
                value = of("expand_dims", value, axis=axis)
    return of("broadcast_to_like", value, call.args[0])


def in_layout(value: Expr, source: str, target: str) -> Expr:
    """A value with its axes in another order, or split in another way."""
    return value if source == target else of("layout_transform", value, src_layout=source, dst_layout=target)
