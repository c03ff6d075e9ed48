"""Type relations that several families of operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.extents import never_agree
from relaylang.ir.types import TensorType, Type, TypeVar, dim_text
from relaylang.ops.record import RelationContext, tensor
from relaylang.ops.shapes import broadcast_shapes, product, shape_text


def identity(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape and element type; the result has its type, known or not."""
    return types[0]


def identity_of_tensors(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes tensors of any shape; the result has the first one's type."""
    for arg in range(1, len(types)):
        tensor(types, arg, ctx)
    return tensor(types, 0, ctx)


def tensor_identity(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape and element type; the result has its type."""
    return tensor(types, 0, ctx)


def to_bool(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; the result has it, and is of bool."""
    return TensorType(tensor(types, 0, ctx).shape, "bool")


def equal_dtypes(types: Sequence[Type], ctx: RelationContext) -> tuple[TensorType, TensorType]:
    left, right = tensor(types, 0, ctx), tensor(types, 1, ctx)
    if left.dtype != right.dtype:
        notes = ["cast one of them to the element type of the other"]
        ctx.fail(f"is of {right.dtype}, but the first argument is of {left.dtype}", 1, notes)
    return left, right


def broadcast(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes two tensors of one element type, broadcast against each other. Extents are matched from the last one on,
    and 1 yields to any. The result has the broadcast shape and that element type.
    """
    left, right = equal_dtypes(types, ctx)
    if left is right:
        return left
    return TensorType(broadcast_shapes(left.shape, right.shape, ctx), left.dtype)


def compare(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes two tensors of one element type, broadcast against each other. Extents are matched from the last one on,
    and 1 yields to any. The result has the broadcast shape and is of bool.
    """
    left, right = equal_dtypes(types, ctx)
    return TensorType(broadcast_shapes(left.shape, right.shape, ctx), "bool")


_REST = "`-1` stands for the extent that makes the numbers equal"


def check_same_size(old: Sequence[AnyValue], new: Sequence[AnyValue], ctx: RelationContext) -> None:
    """A reshape keeps the number of elements, where both are known."""
    had, has = product(old), product(new)
    if isinstance(had, int) and isinstance(has, int) and had != has:
        ctx.fail(f"cannot be reshaped from {shape_text(old)} to {shape_text(new)}: {had} elements are not {has}", 0, [_REST])
    if isinstance(had, TypeVar) and isinstance(has, TypeVar) and never_agree(had, has):
        numbers = f"{dim_text(had)} elements are not {dim_text(has)}"
        ctx.fail(f"cannot be reshaped from {shape_text(old)} to {shape_text(new)}: {numbers}", 0, [_REST])
