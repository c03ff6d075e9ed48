"""The types of tensor expressions, their extents, and the numbers of constants."""

from __future__ import annotations

from relaylang.ir.expr import Constant, Expr
from relaylang.ir.types import TensorType, Type


def tensor_type(expr: Expr) -> TensorType | None:
    """The type of a tensor expression, else None."""
    ty = expr.checked_type
    return ty if isinstance(ty, TensorType) else None


def static_shape(ty: Type | None) -> tuple[int, ...] | None:
    """The extents of a tensor type where all are known."""
    if isinstance(ty, TensorType) and all(isinstance(d, int) for d in ty.shape):
        return tuple([int(d) for d in ty.shape])  # type: ignore[arg-type]
    return None


def scalar_value(expr: Expr) -> float | None:
    """The number that a constant of one element holds; None for another expression."""
    return float(expr.data.reshape(-1)[0]) if isinstance(expr, Constant) and expr.data.size == 1 else None
