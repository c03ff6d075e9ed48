"""Values of programs, beside numpy arrays and Python tuples: closures, constructed values, references.

Inside the evaluator a scalar is a numpy scalar or an array of no dimensions. A result is an array.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.ir import (
    Constructor,
    FuncType,
    GlobalTypeVar,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
)
from relaylang.ir.types import type_text

if TYPE_CHECKING:
    from relaylang.interpreter.code import Code

Value = Any


class FunctionValue:
    """A function as a value."""

    __slots__ = ()


class Closure(FunctionValue):
    """A function and the values that it captured."""

    __slots__ = ("captured", "code")

    def __init__(self, code: Code, captured: list[Value]) -> None:
        self.code = code
        self.captured = captured

    def __repr__(self) -> str:
        return f"<function {self.code.name}>"


class Builtin(FunctionValue):
    """A constructor as a function value."""

    __slots__ = ("apply", "name")

    def __init__(self, name: str, apply: Callable[..., Value]) -> None:
        self.name = name
        self.apply = apply

    def __repr__(self) -> str:
        return f"<function {self.name}>"


class ConstructorValue:
    """A constructed value: `Cons(1, Nil)`. `tag` is the constructor's number, `fields` a tuple of values."""

    __slots__ = ("constructor", "fields", "tag")
    __match_args__ = ("constructor", "fields")

    def __init__(self, constructor: Constructor, fields: tuple[Value, ...] = ()) -> None:
        self.constructor = constructor
        self.tag = constructor.tag
        self.fields = fields

    def __repr__(self) -> str:
        return value_text(self)


class RefValue:
    """A mutable cell; `RefValue()` has no value until one is written into it."""

    __slots__ = ("value",)

    def __init__(self, value: Value = None) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "<ref>"


def as_slot_value(value: Any) -> Value:
    """An array as the evaluator keeps it: one without dimensions as a numpy scalar."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def is_tensor(value: Value) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def value_type(value: Value) -> str:
    """The type of a value as far as the value itself shows it."""
    if is_tensor(value):
        return type_text(tensor_type(value))
    if isinstance(value, tuple):
        inside = ", ".join(value_type(v) if is_tensor(v) else _kind(v) for v in value[:8])
        return f"({inside}{', ...' if len(value) > 8 else ',' if len(value) == 1 else ''})"
    return _kind(value)


def _kind(value: Value) -> str:
    if isinstance(value, ConstructorValue):
        return f"{value.constructor.belong_to.name_hint}[...]"
    if isinstance(value, RefValue):
        return "ref(...)"
    if isinstance(value, FunctionValue):
        return "fn"
    return "(...)" if isinstance(value, tuple) else type(value).__name__


def tensor_type(value: np.ndarray | np.generic) -> TensorType:
    return TensorType(value.shape, value.dtype.name)


def value_text(value: Value, limit: int = 1000) -> str:
    """A value as text, tensors as numpy prints them. A text of more than `limit` parts is cut."""
    out: list[str] = []
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if len(out) > limit:
            out.append("...")
            break
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, ConstructorValue):
            out.append(item.constructor.name_hint)
            if item.fields:
                stack += _listed("(", item.fields, ")")
        elif isinstance(item, tuple):
            stack += _listed("(", item, ",)" if len(item) == 1 else ")")
        else:
            out.append(str(item))
    return "".join(out)


def short_text(value: Value) -> str:
    """A value as text of up to 60 characters."""
    text = value_text(value, 60)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(first: str, items: tuple[Value, ...], last: str) -> list[Any]:
    """The pieces of a bracketed list, in the order in which a stack gives them back."""
    pieces: list[Any] = [first]
    for i, item in enumerate(items):
        pieces += [", ", item] if i else [item]
    pieces.append(last)
    return pieces[::-1]


def to_arrays(value: Value, made: Callable[[Any], np.ndarray] = np.asarray) -> Value:
    """A result as callers get it: scalars as arrays of no dimensions, in tuples, constructed values and cells too.

    `made` makes the array of a tensor.
    """
    if is_tensor(value):
        return made(value)
    if not isinstance(value, (tuple, ConstructorValue, RefValue)):
        return value
    # Each object once, its parts before it. `done` holds the old objects, too: no id is given out twice.
    done: dict[int, tuple[Value, Value]] = {}
    cells: list[RefValue] = []
    stack = [value]
    while stack:
        item = stack[-1]
        new = item
        if id(item) in done:
            stack.pop()
            continue
        if isinstance(item, RefValue):
            cells.append(item)
            stack[-1] = item.value
        elif isinstance(item, (tuple, ConstructorValue)):
            inside = item if isinstance(item, tuple) else item.fields
            waiting = [v for v in inside if id(v) not in done]
            if waiting:
                stack += waiting
                continue
            parts = tuple([done[id(v)][1] for v in inside])
            if isinstance(item, tuple):
                new = parts
            else:
                done[id(parts)] = (inside, parts)
                item.fields = parts
        elif is_tensor(item):
            new = made(item)
        done[id(item)] = (item, new)
    for cell in cells:
        cell.value = done[id(cell.value)][1]
    return done[id(value)][1]


def mismatch(value: Value, ty: Type | None) -> str | None:
    """Why a value does not have a type, as far as that can be seen; None where it may. What data types and references
    hold is not looked into."""
    stack: list[tuple[Value, Type | None, str]] = [(value, ty, "")]
    while stack:
        item, wanted, where = stack.pop()
        wrong = _mismatch(item, wanted)
        if wrong is not None:
            return f"{wrong} in field {where[1:]}" if where else wrong
        if isinstance(wanted, TupleType):
            pairs = list(enumerate(zip(item, wanted.fields)))
            stack.extend([(v, t, f"{where}.{i}") for i, (v, t) in reversed(pairs)])
    return None


@lru_cache(maxsize=64)
def element_type(dtype: np.dtype) -> str:
    """`dtype.name`, which numpy puts together each time."""
    return dtype.name


def _mismatch(value: Value, ty: Type | None) -> str | None:
    if isinstance(ty, TensorType):
        if not is_tensor(value):
            return f"is {value_type(value)} instead of `{type_text(ty)}`"
        if element_type(value.dtype) != ty.dtype:
            return f"has elements of {value.dtype.name} instead of {ty.dtype}"
        if len(value.shape) != len(ty.shape) or any([isinstance(d, int) and d != n for d, n in zip(ty.shape, value.shape)]):
            return f"has the shape {value.shape} instead of {_shape(ty)}"
        return None
    if isinstance(ty, TupleType):
        fits = isinstance(value, tuple) and len(value) == len(ty.fields)
    elif isinstance(ty, FuncType):
        fits = isinstance(value, FunctionValue)
    elif isinstance(ty, RefType):
        fits = isinstance(value, RefValue)
    elif isinstance(ty, (TypeCall, GlobalTypeVar)):
        name = ty.func if isinstance(ty, TypeCall) else ty
        fits = isinstance(value, ConstructorValue) and (
            not isinstance(name, GlobalTypeVar) or value.constructor.belong_to.name_hint == name.name_hint
        )
    else:
        return None
    return None if fits else f"is {value_type(value)} instead of `{type_text(ty)}`"


def _shape(ty: TensorType) -> str:
    return f"({', '.join(str(d) if isinstance(d, int) else '?' for d in ty.shape)}{',' if len(ty.shape) == 1 else ''})"
