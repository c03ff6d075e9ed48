"""What decompositions are made of: typed calls of operators, with the shapes that their operands give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ops.build import op_call

#: Gets a typed call whose shapes are known, and its operands. Returns what computes the same, or None where the call stays.
Decomposition = Callable[[Call, list[Expr]], "Expr | None"]


def shape_of(x: Expr) -> tuple[int, ...] | None:
    """The shape of a typed tensor, None where an extent is not known. Extents of kernels for many sizes stay what they are."""
    ty = x.checked_type
    if not isinstance(ty, TensorType) or not all(isinstance(d, int) for d in ty.shape):
        return None
    return tuple(ty.shape)  # type: ignore[arg-type]


def dtype_of(x: Expr) -> str:
    assert isinstance(x.checked_type, TensorType)
    return x.checked_type.dtype


def known(x: Expr) -> tuple[int, ...]:
    shape = shape_of(x)
    assert shape is not None
    return shape


def make(name: str, args: Sequence[Expr], shape: Sequence[int], dtype: str | None = None, /, **attrs: Any) -> Expr:
    return op_call(name, list(args), TensorType(tuple(shape), dtype or dtype_of(args[0])), **attrs)


def reshape(x: Expr, shape: Sequence[int]) -> Expr:
    return make("reshape", [x], shape, newshape=list(shape))


def transpose(x: Expr, axes: Sequence[int]) -> Expr:
    old, axes = known(x), list(axes)
    return x if axes == sorted(axes) else make("transpose", [x], [old[a] for a in axes], axes=axes)


def cast(x: Expr, dtype: str) -> Expr:
    return x if dtype_of(x) == dtype else make("cast", [x], known(x), dtype, dtype=dtype)


def total(x: Expr, axes: Sequence[int], keepdims: bool = False, how: str = "sum") -> Expr:
    left = [1 if d in axes else n for d, n in enumerate(known(x)) if keepdims or d not in axes]
    return make(how, [x], left, axis=list(axes), keepdims=keepdims) if axes else x


def two(name: str, a: Expr, b: Expr) -> Expr:
    """A function of two tensors of one dtype that broadcast."""
    left, right = known(a), known(b)
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    return make(name, [a, b], [n if m == 1 else m for n, m in zip(left, right)])


def less(x: Expr, zero: Expr, axis: int) -> Expr:
    """Quantised data less their zero point (a vector lies along `axis`), as int32."""
    x, zero = cast(x, "int32"), cast(zero, "int32")
    if isinstance(zero, Constant) and not zero.data.any():
        return x
    extents = known(zero)
    if extents and extents[0] > 1:
        rank = len(known(x))
        zero = reshape(zero, [extents[0] if d == axis % rank else 1 for d in range(rank)])
    elif extents:
        zero = reshape(zero, [])
    return two("subtract", x, zero)
