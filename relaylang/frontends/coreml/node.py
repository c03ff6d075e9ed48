"""One operation as a conversion sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr

#: Inputs of an operation that must be constants.
Ints = Sequence[int]
Bools = Sequence[bool]
#: An input that is a tuple of tensors.
Exprs = Sequence[Expr]


class Node:
    """An operation of a program, or a layer of a network: its name, the builder `b`, and how many results it has."""

    def __init__(self, b: Builder, name: str, results: int) -> None:
        self.b = b
        self.name = name
        self.results = results

    def weight(self, array: np.ndarray, what: str = "") -> Expr:
        """A weight as a constant or a parameter, named after the operation: `conv1_weight`."""
        return self.b.weight(f"{self.name}_{what}" if what else self.name, np.ascontiguousarray(array).reshape(array.shape))

    def per_axis(self, ints: Ints, count: int, what: str, default: int = 1) -> list[int]:
        """A number for each of `count` axes. Raises `Malformed` for another number of them."""
        if ints and len(ints) != count:
            raise Malformed(f"its {what} has {len(ints)} numbers, and its operand has {count} spatial axes")
        return [int(v) for v in ints] or [default] * count

    def alike(self, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        """Both operands with the wider one's element type."""
        left, right = self.b.dtype(x), self.b.dtype(y)
        if left == right:
            return x, y
        wide = left if "float" in left and "float" not in right else right
        if ("float" in left) == ("float" in right):
            wide = np.promote_types(left, right).name if "bfloat16" not in (left, right) else "float32"
        return self.b.cast(x, wide), self.b.cast(y, wide)


def like_axis(b: Builder, x: Expr, values: Expr, axis: int) -> Expr:
    """A vector along an axis of a tensor, so that it broadcasts. A tensor of one element broadcasts as it is."""
    if b.rank(values) != 1 or b.shape(values) == (1,):
        return b.scalar(values) if b.shape(values) == (1,) else values
    return b.unsqueeze(values, [i for i in range(b.rank(x)) if i != axis % b.rank(x)])


def axes_of(b: Builder, x: Expr, axes: Ints | None) -> list[int]:
    """Axes counted from the front; all of them where none is named."""
    rank = b.rank(x)
    return list(range(rank)) if not axes else [int(axis % rank) for axis in axes]


def each(found: Any) -> list[Any]:
    """The results of a conversion as a list."""
    return [found] if isinstance(found, Expr) else list(found)


__all__ = ["Bools", "Exprs", "Ints", "Node", "axes_of", "each", "like_axis"]
