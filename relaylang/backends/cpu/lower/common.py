"""Helpers of the lowerings: broadcasting, conversions, templates chosen by dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.backends.cpu.kernel import Kernel, Recipe, Tensor, static_shape
from relaylang.ir import Call, Expr, TensorType, TupleType
from relaylang.kernels import ir
from relaylang.kernels.dtypes import int_range
from relaylang.kernels.index import ZERO
from relaylang.kernels.nest import Index, Nest, Scalar
from relaylang.kernels.ops import SHORT
from relaylang.kernels.sizes import step_of

#: Floats of 16 bits, and their names in C's helpers.
HALVES = {"float16": "f16", "bfloat16": "bf16"}


def result_type(call: Expr) -> tuple[tuple[int, ...], str]:
    """The shape and dtype of a call's tensor."""
    shape = static_shape(call.checked_type, call)
    assert isinstance(call.checked_type, TensorType)
    return shape, call.checked_type.dtype


def result_types(call: Expr) -> list[tuple[tuple[int, ...], str]]:
    """The shapes and dtypes of a call's tuple of tensors."""
    ty = call.checked_type
    fields = ty.fields if isinstance(ty, TupleType) else (ty,)
    return [(static_shape(f, call), f.dtype) for f in fields]  # type: ignore[union-attr]


def elements(at: Callable[[Call, list[Any], Nest, Sequence[Index]], Scalar]) -> Callable[[Kernel, Call, list[Any]], Recipe]:
    """The lowering of an operator whose result's element at an index is `at(call, args, nest, index)`."""

    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Recipe:
        return Recipe(*result_type(call), lambda nest, index: at(call, args, nest, index))

    return lower


def own_index(tensor: Tensor, nest: Nest, index: Sequence[Index], shape: Sequence[int]) -> list[Index]:
    """The index of an operand's element that belongs to an index of the broadcast result, which has a shape."""
    ahead = len(index) - len(tensor.shape)
    steps = map(step_of, tensor.shape, shape[ahead:])
    return [i if step == 1 else ZERO if step == 0 else nest.scale(i, step) for i, step in zip(index[ahead:], steps)]


def broadcast_at(tensor: Tensor, nest: Nest, index: Sequence[Index], shape: Sequence[int]) -> Scalar:
    """The element of an operand that belongs to an index of the broadcast result, which has a shape."""
    return tensor.at(nest, own_index(tensor, nest, index, shape))


def clamp(value: Scalar, low: Scalar | float, high: Scalar | float) -> Scalar:
    """`min(max(value, low), high)`; a nan stays a nan."""
    return value.op("max", low).op("min", high)


def saturate(nest: Nest, value: Scalar, dtype: str) -> Scalar:
    """An integer as a narrower type; a value out of range becomes the nearest one in it."""
    if value.type == "int32" and dtype in SHORT:
        return ir.op("saturate", value, type=dtype)
    low, high = int_range(dtype)
    own_low, own_high = int_range(value.type)
    return clamp(value, max(low, own_low), min(high, own_high)).cast(dtype)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis + rank if axis < 0 else axis
