"""Views: tensors that share their elements with another, so that writing into one changes the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder
from relaylang.frontends.torch.torchscript.values import Tensor
from relaylang.ir import Expr

#: Operators whose result has the same elements in the same order.
_RESHAPES = frozenset("view reshape flatten unflatten unsqueeze squeeze _unsafe_view view_as reshape_as".split())
_SAME = frozenset("detach alias data contiguous".split())
_PARTS = frozenset("expand expand_as split split_with_sizes chunk unbind narrow index_select_view diagonal".split())
_LAST = (1 << 31) - 1


def note_view(b: Builder, operator: str, base: Tensor, made: Any, bound: dict[str, Any]) -> None:
    """Note that the result of an operator is a view of its operand, where it is one."""
    if operator in _PARTS:
        for part in made if isinstance(made, list) else [made]:
            if isinstance(part, Tensor):
                part.view_of(base, None, None)
        return
    if not isinstance(made, Tensor) or made.base is not None:
        return
    if operator in _SAME:
        made.view_of(base, _itself, _replaced)
    elif operator in _RESHAPES:
        made.view_of(base, _reshaped(b, made.value), _reshaped(b, base.value, back=True))
    elif operator in ("permute", "transpose", "t"):
        rank = b.rank(base.value)
        order = [d % rank for d in bound["dims"]] if operator == "permute" else _swapped(rank, bound)
        inverse = sorted(range(rank), key=order.__getitem__)
        made.view_of(base, lambda x: b.transpose(x, order), lambda old, new: b.transpose(new, inverse))
    elif operator in ("select", "slice"):
        _part(b, operator, base, made, bound)


def _itself(x: Expr) -> Expr:
    return x


def _replaced(old: Expr, new: Expr) -> Expr:
    return new


def _swapped(rank: int, bound: dict[str, Any]) -> list[int]:
    order = list(range(rank))
    if rank > 1:
        i, j = bound.get("dim0", 0) % rank, bound.get("dim1", 1) % rank
        order[i], order[j] = order[j], order[i]
    return order


def _reshaped(b: Builder, like: Expr, back: bool = False) -> Any:
    """The elements in the shape of a tensor; None where the shape is not known."""
    shape = b.shape(like)
    if not all(isinstance(d, int) for d in shape):
        return None
    known = [int(d) for d in shape if isinstance(d, int)]
    if back:
        return lambda old, new: b.reshape_exactly(new, known)
    return lambda x: b.reshape_exactly(x, known)


def _part(b: Builder, operator: str, base: Tensor, made: Tensor, bound: dict[str, Any]) -> None:
    """A slice of step 1, or one position, along an axis. Positions that are not known cannot be written."""
    axis = bound.get("dim", 0) % b.rank(base.value)
    extent = b.shape(base.value)[axis]
    index, start, end = (bound.get(name) for name in ("index", "start", "end"))
    start, end = 0 if start is None else start, _LAST if end is None else end
    if operator == "select":
        start = index
        end = index + 1 if isinstance(index, int) and index != -1 else _LAST
    known = isinstance(extent, int) and isinstance(start, int) and isinstance(end, int) and bound.get("step", 1) == 1
    if not known:
        made.view_of(base, None, None)
        return
    assert isinstance(extent, int)
    first, last, _ = slice(start, end).indices(extent)
    again, back = _window(b, axis, first, max(first, last), extent, operator == "select")
    made.view_of(base, again, back)


def _window(
    b: Builder, axis: int, first: int, last: int, extent: int, single: bool
) -> tuple[Callable[[Expr], Expr], Callable[[Expr, Expr], Expr]]:
    def again(x: Expr) -> Expr:
        part = b.slice(x, [first], [last], [axis])
        return b.squeeze(part, [axis]) if single else part

    def back(old: Expr, new: Expr) -> Expr:
        new = b.unsqueeze(new, [axis]) if single else new
        parts = [b.slice(old, [0], [first], [axis])] if first else []
        parts.append(new)
        if last < extent:
            parts.append(b.slice(old, [last], [extent], [axis]))
        return b.concat(parts, axis)

    return again, back


__all__ = ["note_view"]
