"""Arithmetic on extents: numbers, `?`, names that hold for a whole program, and computations of them.

A sum or a product with a number has one form, `n + 5` for `n + 2 + 3`. The number stands on the right. So equal ones are
the same object. Names keep the order in which they stand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from relaylang.ir.types import ANY, ComputedDim, Dim, SymbolicDim, computed_dim, extent, extent_dtype


def _trunc(a: int, b: int) -> int:
    """The quotient towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


#: TVM's operators on extents, and what they do to numbers.
_COMPUTES: dict[str, Callable[[int, int], int]] = {
    "tir.Add": operator.add,
    "tir.Sub": operator.sub,
    "tir.Mul": operator.mul,
    "tir.FloorDiv": operator.floordiv,
    "tir.FloorMod": operator.mod,
    "tir.Div": _trunc,
    "tir.Mod": lambda a, b: a - _trunc(a, b) * b,
    "tir.Min": min,
    "tir.Max": max,
}
#: Operators and the right operands that leave the left one as it is.
_NEUTRAL = {"tir.Add": 0, "tir.Sub": 0, "tir.Mul": 1, "tir.FloorDiv": 1, "tir.Div": 1}
_COMMUTATIVE = ("tir.Add", "tir.Mul")
#: The deepest extent that is computed of others; a program that computes further has `?` there.
DEEPEST = 50


def _known(dim: Dim) -> bool:
    """Whether others can be computed of an extent."""
    return dim.depth < DEEPEST if isinstance(dim, ComputedDim) else isinstance(dim, (int, SymbolicDim))


def combine(key: str, a: Dim, b: Dim) -> Dim:
    """The extent that TVM's operator `key` makes of two: a number of numbers, else a computed one.

    It is `?` where an operand is `?`, a name that a function binds, or as deep as `DEEPEST`.
    """
    if isinstance(a, int) and isinstance(b, int):
        # Numbers of other classes have an arithmetic of their own, but for sizes, which stay what they are here.
        made = _COMPUTES[key](a.__index__(), b.__index__())
        return extent(made, "int64" if "int64" in (extent_dtype(a), extent_dtype(b)) else "int32")
    if isinstance(a, int) and key in _COMMUTATIVE:
        a, b = b, a
    if isinstance(b, int) and b == _NEUTRAL.get(key):
        return a
    if not (_known(a) and _known(b)):
        return ANY
    if isinstance(b, int):
        if key == "tir.Sub":
            key, b = "tir.Add", -b
        if key in _COMMUTATIVE and isinstance(a, ComputedDim) and a.type_key in (key, "tir.Sub"):
            inner, number = a.operands
            if isinstance(number, int) and (a.type_key == key or key == "tir.Add"):
                return combine(key, inner, combine(key, -number if a.type_key == "tir.Sub" else number, b))
        if key == "tir.Add" and b < 0:
            key, b = "tir.Sub", -b
    named = a if isinstance(a, SymbolicDim) else b
    return computed_dim(key, (a, b), extent_dtype(named))
