"""Typed calls of operators, and typed scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang import ops
from relaylang.ir import Call, Constant, Expr, Type
from relaylang.ir.typed import typed, typed_constant
from relaylang.ops.record import make_attrs


def op_call(name: str, args: list[Expr], ty: Type | None = None, /, **attrs: Any) -> Call:
    """A call of an operator by name; `ty` is the result's type where the caller knows it."""
    op = ops.get(name)
    return typed(Call(op, args, make_attrs(op.attrs, attrs) if op.attrs is not None else None), ty)


def scalar(value: float, dtype: str) -> Constant:
    """A scalar constant of a dtype (which ml_dtypes may have registered), with its type."""
    return typed_constant(np.asarray(value).astype(np.dtype(dtype)), dtype)
