"""Which types fit at a place: the checker looks at the call with a value of each type in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any as AnyValue

from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Call,
    Constructor,
    Expr,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    IRModule,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    Var,
)
from relaylang.ir.visit import post_order
from relaylang.ops.record import AttrError, Op, make_attrs
from relaylang.ops.takes import TENSOR, Word, refused_elements, refused_shape
from relaylang.ops.traits import Trait
from relaylang.repl.calls import Bracket
from relaylang.repl.completion.expressions import Expressions, Variables
from relaylang.repl.completion.place import Cursor
from relaylang.repl.opdoc import example
from relaylang.typing import infer

#: The most types that are tried at one place.
_MOST_TRIED = 40
_SIGNS = ("+", "-", "*", "/", "<", ">", "==", "!=", "<=", ">=")


class Fitting:
    """Says which types fit at a cursor.

    `callee` is the operator, constructor or function-typed variable that the call around the cursor names, if it is known.
    `variables` are the visible ones, by their names in the text. `wanted` is the type of the place, where the text says it.
    """

    def __init__(
        self,
        cursor: Cursor,
        variables: Variables,
        callee: Expr | None,
        module: IRModule,
        expressions: Expressions,
        wanted: Type | None = None,
    ) -> None:
        self._cursor = cursor
        self._module = module
        self._callee = callee if cursor.nest else None
        self._index = cursor.call.index if cursor.call is not None else 0
        self._condition = cursor.back() == "(" and cursor.back(2) == "if"
        self._matched = cursor.back() == "(" and "match" in (cursor.back(2), cursor.back(3))
        self._left = variables.get(cursor.back(2)) if cursor.back() in _SIGNS else None
        self._wanted = wanted
        around = cursor.nest if self._callee is not None else []
        types = [_given_types(bracket, cursor, variables, expressions) for bracket in around] or [[]]
        #: The types in front of the cursor, of the call's arguments and the fields of tuples around it. The innermost is first.
        self._fields, self._types = types[:-1], [*types[-1], *[None] * (_arity(self._callee) - len(types[-1]))]
        self._tried: dict[str, bool] = {}

    def fits(self, ty: Type | None) -> bool:
        """Whether a value of the type fits. An unknown type does not; nor does any where the place asks for none."""
        if ty is None:
            return False
        known = repr(ty)
        if known not in self._tried:
            self._tried[known] = len(self._tried) < _MOST_TRIED and self._try(ty)
        return self._tried[known]

    def rank(self, ty: Type | None) -> tuple[bool, bool]:
        """Types that fit come first, of these such with the element type of another argument of the operator."""
        fits = self.fits(ty)
        dtypes = [t.dtype for t in self._types if isinstance(t, TensorType)] if isinstance(self._callee, Op) else []
        alike = isinstance(ty, TensorType) and ty.dtype in dtypes
        return not fits, fits and bool(dtypes) and not alike

    def _try(self, ty: Type) -> bool:
        if self._condition:
            return isinstance(ty, TensorType) and ty.dtype == "bool" and not ty.shape
        if self._matched:
            return isinstance(ty, (GlobalTypeVar, TypeCall))
        if self._callee is not None:
            before, behind = self._types[: self._index], self._types[self._index + 1 :]
            return any(_agrees(self._callee, [*before, candidate, *behind], self._module) for candidate in self._wholes(ty))
        if self._wanted is not None:
            return _agrees(Var("f", FuncType([self._wanted], TupleType([]))), [ty], self._module)
        return isinstance(self._left, TensorType) and isinstance(ty, TensorType) and self._left.dtype == ty.dtype

    def _wholes(self, ty: Type) -> Iterator[Type]:
        """The types that the argument can have with a value of a type at the cursor.

        A tuple ends at the cursor, or has as many fields as the parameter. Brackets without a comma may hold one value.
        """
        wanted = dict(enumerate(_parameters(self._callee))).get(self._index)
        if not any(self._fields) and not (self._fields and isinstance(wanted, TupleType)):
            yield ty
        lengths = []
        for fields in reversed(self._fields):
            inner = wanted.fields if isinstance(wanted, TupleType) else ()
            lengths.append(len(inner))
            wanted = inner[len(fields)] if len(fields) < len(inner) else None
        for fields, length in zip(self._fields, reversed(lengths)):
            behind = [None] * (length - len(fields) - 1)
            ty = TupleType([field or IncompleteType() for field in (*fields, ty, *behind)])
        if self._fields:
            yield ty


def _given_types(bracket: Bracket, cursor: Cursor, variables: Variables, expressions: Expressions) -> list[Type | None]:
    """The types of a bracket's parts in front of the cursor, as far as they are known."""
    begins = [bracket.at, *bracket.commas]
    return [expressions.type_of(cursor.code[begin + 1 : end], variables) for begin, end in pairwise(begins)]


def _parameters(callee: Expr | None) -> Sequence[Type]:
    """The parameters' types of a constructor or function; none for an operator."""
    if isinstance(callee, Constructor):
        return callee.inputs
    ty = callee.type_annotation if isinstance(callee, Var) else None
    return ty.arg_types if isinstance(ty, FuncType) else ()


def _arity(callee: Expr | None) -> int:
    """How many arguments a callee takes; 0 for any number."""
    if isinstance(callee, Op):
        return 0 if callee.variadic else len(callee.args)
    return len(_parameters(callee))


def values_that_fit(
    op: Op, field: str, values: Sequence[AnyValue], cursor: Cursor, variables: Variables, expressions: Expressions
) -> list[AnyValue]:
    """The values of an attribute with which the checker finds no error in the call in front of the cursor."""
    bracket = next((b for b in cursor.brackets if cursor.call is not None and cursor.code[b.at].start == cursor.call.at), None)
    if bracket is None:
        return []
    types: list[Type | None] = []
    attributes: dict[str, AnyValue] = {}
    for begin, end in pairwise([bracket.at, *bracket.commas]):
        part = cursor.code[begin + 1 : end]
        if len(part) > 2 and part[1].text == "=":
            try:
                attributes[part[0].text] = ast.literal_eval(cursor.text[part[2].start : part[-1].end])
            except (ValueError, SyntaxError):
                return []
        else:
            types.append(expressions.type_of(part, variables))
    types += [None] * (_arity(op) - len(types))
    usual = _usual_attributes(op)
    lacking = [f.name for f in op.schema.values() if f.required and f.name not in attributes] if usual is not None else []
    attributes = {name: getattr(usual, name) for name in lacking} | attributes
    fitting = []
    for value in values:
        try:
            attrs = make_attrs(op.attrs, {**attributes, field: value}) if op.attrs is not None else None
        except AttrError:
            continue
        if _checks(op, types, attrs, IRModule()):
            fitting.append(value)
    return fitting


def _agrees(callee: Expr, types: Sequence[Type | None], module: IRModule) -> bool:
    """Whether the checker finds no error in a call with arguments of these types; None stands for an unknown one."""
    attrs = None
    if isinstance(callee, Op):
        if not all(_takes(callee.takes[i : i + 1], ty) for i, ty in enumerate(types) if ty is not None):
            return False
        try:
            attrs = make_attrs(callee.attrs, {}) if callee.attrs is not None else None
        except AttrError:  # attributes that must be given follow the arguments
            attrs = _usual_attributes(callee)
            if attrs is None:
                return True
    return _checks(callee, types, attrs, module)


@lru_cache(maxsize=64)
def _usual_attributes(op: Op) -> AnyValue:
    """The attributes of the operator's example, where arguments of other shapes may have the same."""
    shown = example(op) if Trait.RESHAPE not in op.traits else None
    calls = (node for node in post_order(shown.function) if isinstance(node, Call)) if shown is not None else ()
    return next((call.attrs for call in calls if call.op is op), None)


def _checks(callee: Expr, types: Sequence[Type | None], attrs: AnyValue, module: IRModule) -> bool:
    """Whether the checker finds no error in a call."""
    call = Call(callee, [Var(f"a{i}", ty) for i, ty in enumerate(types)], attrs)
    try:
        return not any(d.severity == "error" for d in infer(call, fragment=True, module=module))
    except RelayError:
        return False


def _takes(words: Sequence[Word], ty: Type) -> bool:
    """Whether an argument's word allows a type."""
    (word,) = words or (TENSOR,)
    if not isinstance(ty, TensorType):
        return word.elements == "any"
    return refused_elements(word, ty.dtype, ty.dtype) is None and refused_shape(word, ty.shape, ty.shape, {}) is None


__all__ = ["Fitting", "values_that_fit"]
