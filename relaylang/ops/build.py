"""Typed calls of operators, and typed scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang import ops
from relaylang.ir import Call, Constant, Expr, TensorType, Type
from relaylang.ir.typed import typed, typed_constant
from relaylang.ops.record import make_attrs


def op_call(name: str, args: list[Expr], ty: Type | None = None, /, **attrs: Any) -> Call:
    """A call of an operator by name; `ty` is the result's type, where the caller knows it."""
    op = ops.get(name)
    return typed(Call(op, args, make_attrs(op.attrs, attrs) if op.attrs is not None else None), ty)


def with_axes_behind(x: Expr, ty: TensorType, count: int) -> Expr:
    """A vector of type `ty` with so many axes of extent 1 behind its own."""
    if not count:
        return x
    return op_call("expand_dims", [x], TensorType((*ty.shape, *[1] * count), ty.dtype), axis=1, num_newaxis=count)


def with_axes_before(x: Expr, ty: TensorType, count: int) -> Expr:
    """A tensor of type `ty` with so many axes of extent 1 in front of its own."""
    if not count:
        return x
    return op_call("expand_dims", [x], TensorType((*[1] * count, *ty.shape), ty.dtype), axis=0, num_newaxis=count)


def scalar(value: float, dtype: str) -> Constant:
    """A scalar constant of a dtype (which ml_dtypes may have registered), with its type."""
    return typed_constant(np.asarray(value).astype(np.dtype(dtype)), dtype)
