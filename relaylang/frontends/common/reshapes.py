"""The numbers of `reshape` that make a shape with named extents: 0 keeps one, -1 finds one, -3 joins two, -4 splits one."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.ir import Dim, TypeVar, is_static
from relaylang.ir.extents import combine

#: Longer shapes are not looked into.
_MOST_AXES = 12


def numbers_for(have: Sequence[Dim], wanted: Sequence[Dim]) -> list[int] | None:
    """The numbers of `newshape` that turn one shape into another; None where there are none, or an extent is `?` or 0."""
    if max(len(have), len(wanted)) > _MOST_AXES or not all(isinstance(d, TypeVar) or (is_static(d) and d > 0) for d in wanted):
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
        if -1 not in numbers:
            stack.append((done + 1, used + 1, (*numbers, -1)))
        if here and done + 1 < len(wanted) and _product(wanted[done : done + 2]) == here[0]:
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


__all__ = ["numbers_for"]
