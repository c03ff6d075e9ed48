"""Shapes as conversions ask for them, the type that covers two, and the numbers of `reshape` between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.frontends.common.report import Malformed
from relaylang.ir import ANY, Dim, IncompleteType, TensorType, TupleType, Type, TypeCall, TypeVar, is_static
from relaylang.ir.extents import combine

#: Longer shapes are not looked into.
_MOST_AXES = 12


class Shape(tuple[Any, ...]):
    """A tensor's extents, `ANY` for unknown ones. A conversion that asks for an axis beyond them shows a wrong operand."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError:
            shape = ", ".join(str(d) if isinstance(d, int) else "?" for d in self)
            raise Malformed(f"an operand has the shape ({shape}), and the operator needs its axis {index}") from None


class Rank(int):
    """A number of axes. `axis % rank` counts a negative axis from the end; an axis beyond them shows a wrong layer."""

    __slots__ = ()

    def __rmod__(self, axis: Any) -> int:
        if not -self <= axis < self:
            raise Malformed(f"it names the axis {axis} of an operand that has {int(self)}")
        return int(axis) % int(self)


def joined(left: Type, right: Type) -> Type | None:
    """The type that covers both: extents that differ are `?`. None where ranks, element types or kinds differ.

    `_` stands for any type.
    """
    match left, right:
        case IncompleteType(), _:
            return right
        case _, IncompleteType():
            return left
        case TensorType(), TensorType():
            if left.dtype != right.dtype or len(left.shape) != len(right.shape):
                return None
            return TensorType([a if a == b else ANY for a, b in zip(left.shape, right.shape)], left.dtype)
        case TupleType(), TupleType() if len(left.fields) == len(right.fields):
            fields = _all_joined(left.fields, right.fields)
            return None if fields is None else TupleType(fields)
        case TypeCall(), TypeCall() if left.func is right.func:
            args = _all_joined(left.args, right.args)
            return None if args is None else TypeCall(left.func, args)
    return left if left == right else None


def _all_joined(left: Sequence[Type], right: Sequence[Type]) -> list[Type] | None:
    types = [ty for pair in zip(left, right) if (ty := joined(*pair)) is not None]
    return types if len(types) == len(left) else None


def numbers_for(have: Sequence[Dim], wanted: Sequence[Dim]) -> list[int] | None:
    """The numbers of `newshape` that turn one shape into another: 0 keeps an extent, -1 finds one, -3 joins two, -4 splits one.

    One extent that is wanted may be -1, which is found. None where there are no such numbers, and where an extent is `?` or 0.
    """
    open_axes = [d for d in wanted if is_static(d) and d == -1]
    if max(len(have), len(wanted)) > _MOST_AXES or len(open_axes) > 1:
        return None
    if not all(isinstance(d, TypeVar) or (is_static(d) and (d > 0 or d == -1)) for d in wanted):
        return None
    # (axes of `wanted` that are done, axes of `have` that are used, the numbers)
    stack: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    seen: set[tuple[int, int, bool]] = set()
    while stack:
        done, used, numbers = stack.pop()
        if done == len(wanted):
            return list(numbers)
        state = (done, used, -1 in numbers)
        if state in seen:
            continue
        seen.add(state)
        dim, here = wanted[done], have[used : used + 2]
        if is_static(dim) and dim == -1:
            stack.append((done + 1, used + 1, (*numbers, -1)))
            continue
        if -1 not in numbers and not open_axes:
            stack.append((done + 1, used + 1, (*numbers, -1)))
        if here and done + 1 < len(wanted) and wanted[done + 1] != -1 and _product(wanted[done : done + 2]) == here[0]:
            left, right = (int(d) if is_static(d) else -1 for d in wanted[done : done + 2])
            if (left, right) != (-1, -1):
                stack.append((done + 2, used + 1, (*numbers, -4, left, right)))
        if len(here) == 2 and _product(here) == dim:
            stack.append((done + 1, used + 2, (*numbers, -3)))
        if is_static(dim):
            stack.append((done + 1, used + 1, (*numbers, int(dim))))
        if here and not is_static(dim) and here[0] == dim:
            stack.append((done + 1, used + 1, (*numbers, 0)))
    return None


def _product(dims: Sequence[Dim]) -> Dim:
    return combine("tir.Mul", dims[0], dims[1])


__all__ = ["Rank", "Shape", "joined", "numbers_for"]
