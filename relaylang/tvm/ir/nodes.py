"""Nodes that TVM has beside Relay's: functions by name, relations between types, types of machine words, ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from relaylang.diagnostics.source import Span
from relaylang.ir import Type
from relaylang.ir.types import Dim
from relaylang.ops import OPS
from relaylang.ops.record import AttrError, make_attrs
from relaylang.tvm.ir.attributes import DictAttrs
from relaylang.tvm.registry import get_global_func
from relaylang.tvm.tir import FloatImm, IntImm, boxed, compute


class EnvFunc:
    """A function under a name for everybody, which it is looked up by when it is called."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The function of a name."""
        return EnvFunc(name)

    @property
    def func(self) -> Callable[..., Any]:
        """The Python function. Raises `ValueError` where there is none."""
        return get_global_func(self.name)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvFunc) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class PrimType(Type):
    """The type of a machine word: `dtype`."""

    __slots__ = ("dtype",)
    __match_args__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.span = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimType) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return self.dtype


class TypeConstraint(Type):
    """A demand on types."""

    __slots__ = ()


class TypeRelation(TypeConstraint):
    """A relation `func` between types: `num_inputs` of them are given, the others follow. `attrs` are a call's."""

    __slots__ = ("args", "attrs", "func", "num_inputs")
    __match_args__ = ("func", "args", "num_inputs", "attrs")

    def __init__(self, func: EnvFunc | None, args: Sequence[Type], num_inputs: int, attrs: Any, span: Span | None = None) -> None:
        self.func = func
        self.args = tuple(args)
        self.num_inputs = num_inputs
        self.attrs = attrs
        self.span = span

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeRelation) and self._key() == other._key()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self.func.name if self.func else '_'}({', '.join(map(repr, self.args))})"


class Range:
    """The whole numbers from `min` on, `extent` of them: `Range(end)` or `Range(begin, end)`. Bounds may be names of extents."""

    __slots__ = ("extent", "min", "span")

    def __init__(self, begin: Dim, end: Dim | None = None, span: Span | None = None) -> None:
        self.min = boxed(0 if end is None else begin)
        self.extent = boxed(begin) if end is None else compute("tir.Sub", end, begin)
        self.span = span

    @staticmethod
    def from_min_extent(min_value: Dim, extent: Dim, span: Span | None = None) -> Range:
        """The range of a first number and a count."""
        bounds = Range(extent, span=span)
        bounds.min = boxed(min_value)
        return bounds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and bool(self.min == other.min and self.extent == other.extent)

    def __hash__(self) -> int:
        return hash((self.min, self.extent))

    def __repr__(self) -> str:
        return f"I.Range({self.min}, {compute('tir.Add', self.min, self.extent)})"


class CallingConv(IntEnum):
    """How a compiled function is called; an attribute `calling_conv` of TVM's functions."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


def make_node(type_key: str, **kwargs: Any) -> Any:
    """A number (`IntImm`, `FloatImm`), attributes (`DictAttrs`), or an operator's attributes by their type key.

    Raises `AttributeError` for wrong attributes, and `ValueError` for another type key.
    """
    if type_key in ("IntImm", "FloatImm"):
        scalar_class = {"IntImm": IntImm, "FloatImm": FloatImm}[type_key]
        return scalar_class(str(kwargs["dtype"]), kwargs["value"])
    if type_key == "DictAttrs":
        return DictAttrs({key: boxed(value) for key, value in kwargs.items()})
    for op in OPS.values():
        if op.attrs is not None and op.attrs.type_key == type_key:  # type: ignore[attr-defined]
            try:
                return make_attrs(op.attrs, kwargs)
            except AttrError as problem:
                raise AttributeError(f"{type_key}: {problem.name} {problem}") from None
    raise ValueError(f"there are no nodes {type_key} to make: IntImm, FloatImm, DictAttrs and operators' attributes can be made")


__all__ = ["CallingConv", "EnvFunc", "PrimType", "Range", "TypeConstraint", "TypeRelation", "make_node"]
