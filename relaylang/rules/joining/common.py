"""The protocol of joining rules, and the calls that they make."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from relaylang.ir import Call, Expr, TensorType
from relaylang.ir.tensors import tensor_type
from relaylang.ir.typed import typed, typed_tuple
from relaylang.ops import make_attrs
from relaylang.ops.build import op_call


class Step(NamedTuple):
    """Calls of one operator, one in each branch, that become one call."""

    calls: list[Call]
    position: int  # of the operand that comes from the step before
    axis: int  # of the result: along it the branches lie side by side


class Family(Protocol):
    """How products of one operator are joined."""

    name: str

    def key(self, call: Call) -> Hashable | None:
        """The properties that branches must share; None where the call cannot be joined."""

    def axis(self, call: Call) -> int:
        """The axis of the product's result along which branches lie."""

    def fits(self, calls: list[Call], position: int, axis: int) -> int | None:
        """The axis behind the next step, or None where it cannot be joined; `axis` is the one before it."""

    def product(self, step: Step, data: Expr, weights: list[Expr]) -> Expr:
        """One product for all."""

    def follow(self, step: Step, whole: Expr, others: list[list[Expr]]) -> Expr:
        """The next step on the whole product; `others[i]` holds the operand `i` of every branch."""

    def parts(self, step: Step, whole: Expr) -> list[Expr]:
        """Each branch's part of the whole result."""


def attr_values(call: Call, *without: str) -> Hashable:
    """A call's attributes in a form that can be compared."""
    if call.attrs is None:
        return None
    return tuple([(n, repr(getattr(call.attrs, n))) for n in type(call.attrs).schema if n not in without])


def type_of(expr: Expr) -> TensorType:
    ty = tensor_type(expr)
    assert ty is not None
    return ty


def shape_of(expr: Expr) -> tuple[Any, ...]:
    return type_of(expr).shape


def is_known(*shapes: tuple[Any, ...]) -> bool:
    return all([isinstance(d, int) for s in shapes for d in s])


def are_alike(exprs: Sequence[Expr], but: int | None = None) -> bool:
    """Tensors of one dtype, rank and known shape, whose extents along the axis `but` may differ."""
    types = [tensor_type(e) for e in exprs]
    first = types[0]
    if first is None or (but is not None and not 0 <= but < max(len(first.shape), 1)):
        return False
    for ty in types:
        if ty is None or ty.dtype != first.dtype or len(ty.shape) != len(first.shape) or not is_known(ty.shape):
            return False
        if any([a != b for i, (a, b) in enumerate(zip(ty.shape, first.shape)) if i != but]):
            return False
    return True


def widened(ty: TensorType, axis: int, extent: int) -> TensorType:
    return TensorType((*ty.shape[:axis], extent, *ty.shape[axis + 1 :]), ty.dtype)


def total_extent(items: Sequence[Expr], axis: int) -> int:
    return sum([shape_of(item)[axis] for item in items])


def concatenated(items: list[Expr], axis: int, written: int | None = None) -> Expr:
    """The items joined along an axis; `written` is the attribute's value for it."""
    ty = widened(type_of(items[0]), axis, total_extent(items, axis))
    return op_call("concatenate", [typed_tuple(items)], ty, axis=axis if written is None else written)


def stacked(items: list[Expr]) -> Expr:
    ty = type_of(items[0])
    return op_call("stack", [typed_tuple(items)], TensorType((len(items), *ty.shape), ty.dtype), axis=0)


def expanded(item: Expr, axis: int, number: int) -> Expr:
    """An item with `number` extents of 1 in front. For an `axis` other than 0 it is a scalar."""
    ty = TensorType(((1,) * number + shape_of(item)), type_of(item).dtype)
    return op_call("expand_dims", [item], ty, axis=axis, num_newaxis=number)


def call_with(call: Call, args: list[Expr], ty: TensorType, **changed: object) -> Call:
    attrs = call.attrs
    if changed:
        cls = type(attrs)
        attrs = make_attrs(cls, {**{name: getattr(attrs, name) for name in cls.schema}, **changed})
    return typed(Call(call.op, args, attrs, (), call.span), ty)
