"""TVM's containers: here they are Python's. `Array`, `Map` and `String` are there for `isinstance`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from relaylang.interpreter.values import ConstructorValue
from relaylang.tvm.tir import boxed


class _Like(type):
    """A class whose instances are those of Python's classes."""

    def __instancecheck__(cls, value: object) -> bool:
        kinds: tuple[type, ...] = cls.__dict__["kinds"]
        return isinstance(value, kinds)


class Array(metaclass=_Like):
    """A tuple or a list; `Array(values)` makes a tuple."""

    kinds = (tuple, list)

    def __new__(cls, values: Iterable[Any] = ()) -> Any:
        return tuple(values)


class Map(metaclass=_Like):
    """A mapping; `Map(values)` makes a dict."""

    kinds = (dict,)

    def __new__(cls, values: Mapping[Any, Any] | None = None) -> Any:
        return dict(values or {})


class String(metaclass=_Like):
    """A text; `String(text)` makes a str."""

    kinds = (str,)

    def __new__(cls, text: str = "") -> Any:
        return str(text)


class ShapeTuple(metaclass=_Like):
    """A tuple of numbers."""

    kinds = (tuple,)

    def __new__(cls, values: Iterable[int] = ()) -> Any:
        return tuple(values)


class ADT(metaclass=_Like):
    """A tuple or a constructed value; `ADT(0, fields)` makes a tuple."""

    kinds = (tuple, ConstructorValue)

    def __new__(cls, tag: int, fields: Iterable[Any] = ()) -> Any:
        return tuple(fields)


def tuple_object(fields: Iterable[Any] = ()) -> tuple[Any, ...]:
    """A tuple."""
    return tuple(fields)


def convert(value: Any, span: Any = None) -> Any:
    """A Python value as TVM's objects are here: numbers have a `value`, lists are tuples."""
    if isinstance(value, (list, tuple)):
        return tuple([convert(v) for v in value])
    if type(value) is dict:
        return {key: convert(v) for key, v in value.items()}
    return boxed(value)


Object = object

__all__ = ["Object", "ADT", "Array", "Map", "ShapeTuple", "String", "convert", "tuple_object"]
