"""Extents under TVM's names: `tvm.tir.IntImm`, `tvm.te.var("n")`, and their arithmetic, as far as shapes need it.

An extent is a Python number, `?` (`Any`), a name (`Var`, `SizeVar`), or computed of others (`n + 1`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

from relaylang.ir.extents import combine
from relaylang.ir.types import ANY, ComputedDim, Dim, Extent, SymbolicDim
from relaylang.ir.types import Any as Any


class _Number(type):
    """Numbers of other widths than 32 bits are `IntImm`s, too."""

    def __instancecheck__(cls, value: object) -> bool:
        return type.__instancecheck__(cls, value) or (cls is IntImm and isinstance(value, Extent))


class IntImm(int, metaclass=_Number):
    """A number as TVM's shapes and attributes hold it: an int that has a `value` and a `dtype`."""

    dtype = "int32"

    def __new__(cls, dtype: str, value: int, span: AnyValue = None) -> AnyValue:
        if dtype not in ("int32", "bool"):
            return Extent(int(value), dtype)
        return int.__new__(cls, value)

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return IntImm, ("int32", int(self))

    @property
    def value(self) -> int:
        """The plain number."""
        return int(self)

    def __repr__(self) -> str:
        return int.__repr__(self)


def boxed(value: AnyValue) -> AnyValue:
    """A plain int as an `IntImm`; anything else as it is."""
    return int.__new__(IntImm, value) if type(value) is int else value


class FloatImm(float):
    """A floating point number that has a `value` and a `dtype`."""

    def __new__(cls, dtype: str, value: float, span: AnyValue = None) -> FloatImm:
        number = super().__new__(cls, value)
        number.dtype = dtype
        return number

    dtype: str

    def __reduce__(self) -> tuple[type, tuple[str, float]]:
        return FloatImm, (self.dtype, float(self))

    @property
    def value(self) -> float:
        """The plain number."""
        return float(self)


class StringImm(str):
    """A text that has a `value`."""

    __slots__ = ()

    @property
    def value(self) -> str:
        """The plain text."""
        return str(self)


class _Kind(type):
    """Names of one kind: what `isinstance` asks is the name's type key."""

    def __instancecheck__(cls, value: object) -> bool:
        keys: tuple[str, ...] = cls.__dict__["keys"]
        return isinstance(value, SymbolicDim) and value.type_key in keys


class Var(metaclass=_Kind):
    """A named extent, equal to itself alone."""

    keys = ("tir.Var", "tir.SizeVar")

    def __new__(cls, name: str = "tindex", dtype: str = "int32", span: AnyValue = None) -> AnyValue:
        return SymbolicDim(name, dtype, "tir.Var")


class SizeVar(metaclass=_Kind):
    """A named extent that is not negative."""

    keys = ("tir.SizeVar",)

    def __new__(cls, name: str = "size", dtype: str = "int32", span: AnyValue = None) -> AnyValue:
        return SymbolicDim(name, dtype, "tir.SizeVar")


def var(name: str = "tindex", dtype: str = "int32", span: AnyValue = None) -> SymbolicDim:
    """A named extent."""
    return SymbolicDim(name, dtype, "tir.Var")


def size_var(name: str = "size", dtype: str = "int32", span: AnyValue = None) -> SymbolicDim:
    """A named extent that is not negative."""
    return SymbolicDim(name, dtype, "tir.SizeVar")


class _Expr(type):
    """What TVM calls a PrimExpr: numbers, `?` and names."""

    def __instancecheck__(cls, value: object) -> bool:
        return value is ANY or isinstance(value, (IntImm, FloatImm, SymbolicDim))


class PrimExpr(metaclass=_Expr):
    """The class of all extents, for `isinstance`."""


def const(value: AnyValue, dtype: str | None = None, span: AnyValue = None) -> AnyValue:
    """A number of an element type: int32 or float32 where none is given."""
    dtype = dtype or ("float32" if isinstance(value, float) else "bool" if isinstance(value, bool) else "int32")
    return FloatImm(dtype, value) if "float" in dtype else IntImm(dtype, value)


def compute(key: str, a: Dim, b: Dim) -> AnyValue:
    """The extent that an operator makes of two, as `boxed` gives it."""
    return boxed(combine(key, a, b))


def _binary(key: str, name: str, says: str) -> Callable[..., AnyValue]:
    def apply(a: Dim, b: Dim, span: AnyValue = None) -> AnyValue:
        return compute(key, a, b)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = says
    return apply


floordiv = _binary("tir.FloorDiv", "floordiv", "The quotient of two extents, rounded down.")
floormod = _binary("tir.FloorMod", "floormod", "The remainder of `floordiv`.")
indexdiv = _binary("tir.FloorDiv", "indexdiv", "The quotient of two extents that are not negative.")
indexmod = _binary("tir.FloorMod", "indexmod", "The remainder of `indexdiv`.")
truncdiv = _binary("tir.Div", "truncdiv", "The quotient of two extents, rounded towards zero.")
truncmod = _binary("tir.Mod", "truncmod", "The remainder of `truncdiv`.")
min = _binary("tir.Min", "min", "The lesser of two extents.")
max = _binary("tir.Max", "max", "The greater of two extents.")
Add = _binary("tir.Add", "Add", "The sum of two extents.")
Sub = _binary("tir.Sub", "Sub", "The difference of two extents.")
Mul = _binary("tir.Mul", "Mul", "The product of two extents.")
FloorDiv, FloorMod, Div, Mod, Min, Max = floordiv, floormod, truncdiv, truncmod, min, max

#: Python's signs between extents that are not numbers, and TVM's operators for them.
SIGNS = {
    "add": "tir.Add",
    "sub": "tir.Sub",
    "mul": "tir.Mul",
    "floordiv": "tir.FloorDiv",
    "mod": "tir.FloorMod",
}


def _bound(dtype: str, sign: int) -> AnyValue:
    bits = int("".join(c for c in dtype if c.isdigit()) or 32)
    if dtype.startswith("uint"):
        return IntImm(dtype, (1 << bits) - 1 if sign > 0 else 0)
    return IntImm(dtype, (1 << bits - 1) - 1 if sign > 0 else -(1 << bits - 1))


def max_value(dtype: str, span: AnyValue = None) -> AnyValue:
    """The greatest number of an integer type."""
    return _bound(dtype, 1)


def min_value(dtype: str, span: AnyValue = None) -> AnyValue:
    """The least number of an integer type."""
    return _bound(dtype, -1)


def layout(layout_str: str) -> str | None:
    """A layout such as "NCHW4c", as rules of layouts take it: its text, or None for an unknown one."""
    return str(layout_str) or None


__all__ = [
    "Add", "Any", "ComputedDim", "Div", "FloatImm", "FloorDiv", "FloorMod", "IntImm", "Max", "Min", "Mod", "Mul", "PrimExpr",
    "SizeVar", "StringImm", "Sub", "Var", "const", "floordiv", "floormod", "indexdiv", "indexmod", "layout", "max", "max_value", "min",
    "min_value", "size_var", "truncdiv", "truncmod", "var",
]  # fmt: skip
