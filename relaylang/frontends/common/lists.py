"""Lists and options of the Prelude, for sequences whose length is not known, and for values that may be missing.

An importer holds a sequence of known length as a Python list of expressions, and a missing value as `NOTHING`. `fit` turns
both into expressions where a type asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.shapes import joined
from relaylang.ir import (
    ANY,
    Call,
    Clause,
    Constructor,
    Expr,
    GlobalTypeVar,
    IncompleteType,
    Match,
    PatternConstructor,
    PatternVar,
    PatternWildcard,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    type_text,
)
from relaylang.ir.typed import typed
from relaylang.ir.types import type_children
from relaylang.stdlib import library

#: The functions that the Prelude lacks.
_OWN = ("insert_at", "erase_at")


class Nothing:
    """An optional without a value."""


NOTHING = Nothing()

# ---- types


def _named(b: Builder, name: str) -> GlobalTypeVar:
    library.add(b.module, name)
    return b.module.get_global_type_var(name)


def list_of(b: Builder, element: Type) -> TypeCall:
    """The type `List[element]`."""
    return TypeCall(_named(b, "List"), [element])


def option_of(b: Builder, element: Type) -> TypeCall:
    """The type `Option[element]`."""
    return TypeCall(_named(b, "Option"), [element])


def _is(ty: Type | None, name: str) -> bool:
    return isinstance(ty, TypeCall) and isinstance(ty.func, GlobalTypeVar) and ty.func.name_hint == name


def is_list(x: Any) -> bool:
    """Whether a value is an expression of a list."""
    return isinstance(x, Expr) and _is(x.checked_type, "List")


def is_option(x: Any) -> bool:
    """Whether a value is an expression of an option."""
    return isinstance(x, Expr) and _is(x.checked_type, "Option")


def element(x: Expr) -> Type:
    """What a list or an option holds."""
    assert isinstance(x.checked_type, TypeCall)
    return x.checked_type.args[0]


def kind(b: Builder, value: Any) -> Type:
    """The type of a value as an expression; `_` inside it is not known. Raises `Unsupported`."""
    if isinstance(value, list):
        inner: Type = IncompleteType()
        for v in value:
            inner = wider(inner, kind(b, v))
        return list_of(b, inner)
    if value is NOTHING:
        return option_of(b, IncompleteType())
    if not isinstance(value, Expr) or value.checked_type is None:
        raise Unsupported("a value of it is left out")
    return value.checked_type


def wider(left: Type, right: Type) -> Type:
    """The type that covers both. A value fits into an option of it. Raises `Unsupported`."""
    for one, other in ((left, right), (right, left)):
        if _is(one, "Option") and not _is(other, "Option") and not isinstance(other, IncompleteType):
            assert isinstance(one, TypeCall)
            return TypeCall(one.func, [wider(one.args[0], other)])
    common = joined(left, right)
    if common is None:
        raise Unsupported(f"it holds values of the types `{type_text(left)}` and `{type_text(right)}`")
    return common


def whole(ty: Type) -> bool:
    """Whether no part of a type is unknown."""
    return not isinstance(ty, IncompleteType) and all(whole(t) for t in type_children(ty))


def ranked(ty: Type) -> bool:
    """Whether the tensors in a type have axes. ONNX's tools state no axes where they know nothing."""
    return bool(ty.shape) if isinstance(ty, TensorType) else all(ranked(t) for t in type_children(ty))


def _open(ty: Type) -> bool:
    """Whether an extent in a type is `?`."""
    if isinstance(ty, TensorType):
        return ANY in ty.shape
    return any(_open(t) for t in type_children(ty))


# ---- values


def fit(b: Builder, value: Any, ty: Type) -> Expr:
    """A value as an expression of this kind. Raises `Unsupported` for a value of another kind."""
    if not whole(ty):
        raise Unsupported("the types of the elements of a sequence are not known")
    if _is(ty, "Option"):
        assert isinstance(ty, TypeCall)
        if value is NOTHING:
            return _empty(b, "Option", "None", ty)
        if is_option(value):
            return _widened(b, value, wider(kind(b, value), ty))
        return _made(b, "Option", "Some", [fit(b, value, ty.args[0])], ty)
    if value is NOTHING:
        raise Unsupported("the optional is empty")
    if is_option(value):
        value = get(b, value)
    if isinstance(value, list):
        if not _is(ty, "List"):
            raise Unsupported(f"a sequence stands in the place of a `{type_text(ty)}`")
        assert isinstance(ty, TypeCall)
        if not value:
            return nil(b, ty.args[0])
        items = [fit(b, item, ty.args[0]) for item in reversed(value)]
        cells = _single(b, items[0], ty.args[0])
        for item in items[1:]:
            cells = cons(b, item, cells)
        return cells
    own_type = kind(b, value)
    if isinstance(ty, TensorType) and isinstance(own_type, TensorType):
        tensor: Expr = value
        return tensor
    return _widened(b, value, wider(own_type, ty))


def as_list(b: Builder, value: Any) -> Expr:
    """A sequence of either form as an expression. Raises `Unsupported` for another value."""
    if is_option(value):
        value = get(b, value)
    if isinstance(value, list):
        return fit(b, value, kind(b, value))
    if not is_list(value):
        raise Unsupported("an operand is not a sequence")
    sequence: Expr = value
    return sequence


def _widened(b: Builder, x: Expr, ty: Type) -> Expr:
    """An expression under a type with more `?`."""
    return x if x.checked_type == ty else b.stated(x, ty)


def _constructor(b: Builder, ty: str, name: str) -> Constructor:
    data = b.module.type_definitions[_named(b, ty)]
    return next(c for c in data.constructors if c.name_hint == name)


def _made(b: Builder, ty: str, name: str, fields: Sequence[Expr], result: Type) -> Expr:
    return typed(Call(_constructor(b, ty, name), list(fields), None, (), b.span), result)


def _empty(b: Builder, ty: str, name: str, result: Type) -> Expr:
    """A constructor without fields. The program states its type where its neighbours might give it fewer `?`."""
    constructed = _made(b, ty, name, [], result)
    return b.stated(constructed, result) if _open(result) else constructed


def nil(b: Builder, inner: Type) -> Expr:
    """The empty list."""
    return _empty(b, "List", "Nil", list_of(b, inner))


def _single(b: Builder, item: Expr, inner: Type) -> Expr:
    """The list of one element."""
    ty = list_of(b, inner)
    end = _made(b, "List", "Nil", [], ty)
    return _made(b, "List", "Cons", [item, end if item.checked_type == inner else b.stated(end, ty)], ty)


def cons(b: Builder, first: Expr, others: Expr) -> Expr:
    """A list with an element before it. Extents that differ become `?`."""
    assert first.checked_type is not None
    ty = list_of(b, wider(element(others), first.checked_type))
    return _made(b, "List", "Cons", [first, _widened(b, others, ty)], ty)


def append(b: Builder, xs: Expr, last: Expr) -> Expr:
    """A list with an element behind it."""
    assert last.checked_type is not None
    inner = wider(element(xs), last.checked_type)
    ty = list_of(b, inner)
    return call(b, "concat", [_widened(b, xs, ty), _single(b, last, inner)], ty)


def insert(b: Builder, xs: Expr, place: Expr, item: Expr) -> Expr:
    """A list with an element before the one at `place`, an int32."""
    assert item.checked_type is not None
    ty = list_of(b, wider(element(xs), item.checked_type))
    return call(b, "insert_at", [_widened(b, xs, ty), place, item], ty)


def get(b: Builder, option: Expr) -> Expr:
    """The value of an option. A program that has none there stops."""
    value = b.variable("value", element(option))
    clause = Clause(PatternConstructor(_constructor(b, "Option", "Some"), [PatternVar(value)]), value)
    return typed(Match(option, [clause], complete=False, span=b.span), element(option))


def has(b: Builder, option: Expr) -> Expr:
    """Whether an option has a value."""
    some = Clause(PatternConstructor(_constructor(b, "Option", "Some"), [PatternWildcard()]), b.const(True, "bool"))
    none = Clause(PatternConstructor(_constructor(b, "Option", "None"), []), b.const(False, "bool"))
    return typed(Match(option, [some, none], span=b.span), TensorType((), "bool"))


def call(b: Builder, name: str, args: Sequence[Expr], result: Type) -> Expr:
    """A call of a function of the library. `result` is what its type gives for these arguments."""
    library.add(b.module, name, library.library("sequence") if name in _OWN else None)
    return typed(Call(b.module.get_global_var(name), list(args), None, (), b.span), result)


def length(b: Builder, xs: Expr) -> Expr:
    """The number of elements, an int32."""
    return call(b, "length", [xs], TensorType((), "int32"))


def concat(b: Builder, xs: Expr, axis: int, new: bool) -> Expr:
    """The elements of a list behind each other. A list without elements has no value."""
    inner = element(xs)
    x = b.variable("part", inner)
    part = b.unsqueeze(x, [axis]) if new else x
    axis %= b.rank(part)
    wide = TensorType([ANY if i == axis else d for i, d in enumerate(b.shape(part))], b.dtype(part))
    before = b.variable("all", wide)
    step = b.function([before, x], b.op("concatenate", b.tuple([before, part]), axis=axis))
    first = call(b, "hd", [xs], inner)
    rest = call(b, "tl", [xs], list_of(b, inner))
    return call(b, "foldl", [step, b.unsqueeze(first, [axis]) if new else first, rest], wide)


def zipped(b: Builder, lists: Sequence[Expr]) -> Expr:
    """The list of tuples `((x, y), z)` of lists."""
    zipped_list = lists[0]
    for other in lists[1:]:
        zipped_list = call(b, "zip", [zipped_list, other], list_of(b, TupleType([element(zipped_list), element(other)])))
    return zipped_list


def unzipped(b: Builder, pair: Expr, count: int) -> list[Expr]:
    """The values in an element of `zipped`."""
    fields: list[Expr] = []
    for _ in range(count - 1):
        fields.append(b.field(pair, 1))
        pair = b.field(pair, 0)
    return [pair, *reversed(fields)]


__all__ = [
    "NOTHING",
    "Nothing",
    "append",
    "as_list",
    "call",
    "concat",
    "cons",
    "element",
    "fit",
    "get",
    "has",
    "insert",
    "is_list",
    "is_option",
    "kind",
    "length",
    "list_of",
    "nil",
    "option_of",
    "ranked",
    "unzipped",
    "whole",
    "wider",
    "zipped",
]
