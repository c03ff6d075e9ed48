"""Small helpers with which passes make typed calls."""
from __future__ import annotations

from typing import Any

import numpy as np

from relaylang import ops
from relaylang.ir import Call, Constant, Expr, TensorType, Type
from relaylang.ops.record import make_attrs


def op_call(name: str, args: list[Expr], ty: Type | None = None, /, **attrs: Any) -> Call:
    """A call of an operator by name; `ty` is the result's type where the pass knows it."""
    op = ops.get(name)
    made = Call(op, args, make_attrs(op.attrs, attrs) if op.attrs is not None else None)
    made.checked_type = ty
    return made


def scalar(value: float, dtype: str) -> Constant:
    """A scalar constant of a dtype (which ml_dtypes may have registered), with its type."""
    made = Constant(np.asarray(value).astype(np.dtype(dtype)))
    made.checked_type = TensorType((), dtype)
    return made
