"""How StableHLO's reductions join elements, and reductions of whole axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.hlo import Iota, axes_in
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr


@dataclass(frozen=True)
class Join:
    """What joins two elements: `apply` for any function, and Relay's names of it where it has them.

    `op` joins two tensors, `whole` reduces axes, `mode` is that of `scatter_nd`; `apply` takes and gives one tensor for each
    operand of the reduction. `extreme` is "argmax" or "argmin" for pairs of an element and its place.
    """

    apply: Callable[[list[Expr], list[Expr]], list[Expr]]
    op: str = ""
    whole: str = ""
    mode: str = ""
    extreme: str = ""


#: StableHLO's operators that reduce -> Relay's operator, its reduction, the mode of scatter_nd.
_JOINS = {
    "add": ("add", "sum", "add"),
    "multiply": ("multiply", "prod", "mul"),
    "maximum": ("maximum", "max", "max"),
    "minimum": ("minimum", "min", "min"),
    "and": ("bitwise_and", "", ""),
    "or": ("bitwise_or", "", ""),
    "xor": ("bitwise_xor", "", ""),
}
_LOGICAL = {
    "and": ("logical_and", "all", ""),
    "or": ("logical_or", "any", ""),
    "xor": ("logical_xor", "", ""),
}
_OF_BOOLS = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}


def join_of(b: Builder, name: str, dtype: str) -> Join | None:
    """The join by one of StableHLO's operators ("add"); None for one that does not reduce."""
    if dtype == "bool":
        join = _LOGICAL.get(_OF_BOOLS.get(name, name))
    else:
        join = _JOINS.get(name)
    if join is None:
        return None
    op = join[0]
    return Join(lambda x, y: [b.op(op, x[0], y[0])], *join)


def replacing() -> Join:
    """The join that takes the second operand."""
    return Join(lambda x, y: list(y), mode="update")


def neutral(op: str, dtype: str) -> Any:
    """The value that an operator leaves alone; None where it is not known."""
    if op in ("add", "logical_or", "logical_xor", "bitwise_or", "bitwise_xor"):
        return 0
    if op in ("multiply", "logical_and"):
        return 1
    if op in ("maximum", "minimum"):
        if "float" in dtype:
            return -np.inf if op == "maximum" else np.inf
        info = np.iinfo(np.dtype(dtype))
        return info.min if op == "maximum" else info.max
    return None


def with_first(b: Builder, made: list[Expr], first: Sequence[Expr], join: Join) -> list[Expr]:
    """Results joined with the first values, which are scalars."""
    known = b.value(first[0]) if join.op else None
    if known is not None and known.size == 1 and known.reshape(-1)[0] == neutral(join.op, b.dtype(first[0])):
        return made
    return join.apply([b.scalar(f) for f in first], made)


def reduce_axes(b: Builder, xs: Sequence[Expr], first: Sequence[Expr], axes: Sequence[int], join: Join) -> list[Expr]:
    """The elements of some axes joined, in any order, with a first value for each tensor."""
    axes = axes_in(axes, b.rank(xs[0]), "the axes that it reduces")
    if not axes:
        return with_first(b, list(xs), first, join)
    if join.whole and len(xs) == 1:
        return with_first(b, [b.op(join.whole, xs[0], axis=axes, keepdims=False)], first, join)
    note = b.notes.get(xs[1]) if len(xs) == 2 else None
    if join.extreme and len(axes) == 1 and isinstance(note, Iota) and note.axis == axes[0] and b.extent(xs[0], axes[0]) > 0:
        place = b.cast(b.op(join.extreme, xs[0], axis=axes, keepdims=False), b.dtype(xs[1]))
        return [b.op(join.extreme.removeprefix("arg"), xs[0], axis=axes, keepdims=False), place]
    reduced = list(xs)
    for axis in axes:
        reduced = _halved(b, reduced, first, axis, join)
    reduced = [b.squeeze(x, sorted(axes)) for x in reduced]
    return with_first(b, reduced, first, join)


def _halved(b: Builder, xs: list[Expr], first: Sequence[Expr], axis: int, join: Join) -> list[Expr]:
    """An axis reduced to the extent 1: neighbours are joined until one element is left."""
    extent = b.extent(xs[0], axis, "an axis that is reduced")
    if extent == 0:
        return [_filled(b, x, f, axis, 1) for x, f in zip(xs, first)]
    while extent > 1:
        half = extent // 2
        left, right = ([b.slice(x, [i], [2 * half], [axis], [2]) for x in xs] for i in (0, 1))
        joined = join.apply(left, right)
        if extent % 2:
            joined = [b.concat([m, b.slice(x, [extent - 1], [extent], [axis])], axis) for m, x in zip(joined, xs)]
        xs, extent = joined, half + extent % 2
    return xs


def _filled(b: Builder, like: Expr, value: Expr, axis: int, extent: int) -> Expr:
    shape = [extent if a == axis else d for a, d in enumerate(b.static_shape(like))]
    filled: Expr = b.op("broadcast_to", b.scalar(value), shape=shape)
    return filled


def scanned(b: Builder, xs: Sequence[Expr], first: Sequence[Expr], axis: int, back: bool, join: Join) -> list[Expr]:
    """At each place of an axis, the elements up to it joined; with `back`, those from it on."""
    op = {"add": "cumsum", "multiply": "cumprod"}.get(join.op)
    if op is not None and len(xs) == 1 and b.dtype(xs[0]) != "bool":
        x = b.op("reverse", xs[0], axis=axis) if back else xs[0]
        x = b.op(op, x, axis=axis, dtype=b.dtype(x))
        return with_first(b, [b.op("reverse", x, axis=axis) if back else x], first, join)
    extent, reach, joined = b.extent(xs[0], axis), 1, list(xs)
    while reach < extent:
        parts = []
        for x, f in zip(joined, first):
            gap = _filled(b, x, f, axis, reach)
            kept = b.slice(x, [reach], [extent], [axis]) if back else b.slice(x, [0], [extent - reach], [axis])
            parts.append(b.concat([kept, gap] if back else [gap, kept], axis))
        joined = join.apply(joined, parts) if back else join.apply(parts, joined)
        reach *= 2
    return joined


def need_one(xs: Sequence[Expr], first: Sequence[Expr]) -> None:
    """Raise `Malformed` where there is not one first value for each operand."""
    if not xs or len(xs) != len(first):
        raise Malformed(f"it has {len(xs)} operands and {len(first)} first values")


__all__ = ["Join", "join_of", "need_one", "neutral", "reduce_axes", "replacing", "scanned", "with_first"]
