"""Which types fit at a place: the checker looks at the call with a value of each type in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constructor, Expr, FuncType, IncompleteType, IRModule, TensorType, TupleType, Type, Var
from relaylang.ops.record import AttrError, Op, make_attrs
from relaylang.ops.takes import TENSOR, Word, refused_elements, refused_shape
from relaylang.repl.calls import Bracket
from relaylang.repl.completion.place import Cursor
from relaylang.syntax.tokeniser import Token
from relaylang.typing import infer

#: The most types that are tried at one place.
_MOST_TRIED = 40
_SIGNS = ("+", "-", "*", "/", "<", ">")


class Fitting:
    """Says which types fit at a cursor.

    `callee` is the operator, constructor or function-typed variable that the call around the cursor names, if it is known.
    `variables` are the visible ones, by their names in the text.
    """

    def __init__(self, cursor: Cursor, variables: Mapping[str, Type | None], callee: Expr | None, module: IRModule) -> None:
        self._cursor = cursor
        self._module = module
        self._callee = callee if cursor.nest else None
        self._index = cursor.call.index if cursor.call is not None else 0
        self._condition = cursor.back() == "(" and cursor.back(2) == "if"
        self._left = variables.get(cursor.back(2)) if cursor.back() in _SIGNS else None
        given = [self._given_types(bracket, variables) for bracket in cursor.nest] if self._callee is not None else [[]]
        #: The types in front of the cursor, of the call's arguments and the fields of tuples around it. The innermost is first.
        self._fields, self._types = given[:-1], [*given[-1], *[None] * (_arity(self._callee) - len(given[-1]))]
        self._tried: dict[str, bool] = {}

    def fits(self, ty: Type | None) -> bool:
        """Whether a value of the type fits. An unknown type does not; nor does any where the place asks for none."""
        if ty is None:
            return False
        known = repr(ty)
        if known not in self._tried:
            self._tried[known] = len(self._tried) < _MOST_TRIED and self._try(ty)
        return self._tried[known]

    def _try(self, ty: Type) -> bool:
        if self._condition:
            return isinstance(ty, TensorType) and ty.dtype == "bool" and not ty.shape
        if self._callee is not None:
            before, behind = self._types[: self._index], self._types[self._index + 1 :]
            return any(_agrees(self._callee, [*before, whole, *behind], self._module) for whole in self._wholes(ty))
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

    def _given_types(self, bracket: Bracket, variables: Mapping[str, Type | None]) -> list[Type | None]:
        """The types of a bracket's parts in front of the cursor, as far as they are known."""
        begins = [bracket.at, *bracket.commas]
        return [argument_type(self._cursor.code[b + 1 : e], variables) for b, e in pairwise(begins)]


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


def argument_type(tokens: Sequence[Token], variables: Mapping[str, Type | None]) -> Type | None:
    """The type of a variable, of its field, or of a tuple of these in brackets; None for other expressions."""
    while [t.text for t in (*tokens[:2], *tokens[-2:])] == ["(", "(", ")", ")"]:
        tokens = tokens[1:-1]
    if not tokens or tokens[0].text != "(":
        return _variable_type(tokens, variables)
    depth, ends = 0, [0]
    for i, token in enumerate(tokens):
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if token.text == "," and depth == 1:
            ends.append(i)
    types = [_variable_type(tokens[b + 1 : e], variables) for b, e in pairwise([*ends, len(tokens) - 1]) if e > b + 1]
    return types[0] if types and len(ends) == 1 else TupleType([ty or IncompleteType() for ty in types])


def _variable_type(tokens: Sequence[Token], variables: Mapping[str, Type | None]) -> Type | None:
    if not tokens or tokens[0].kind != "local":
        return None
    ty = variables.get(tokens[0].text)
    rest = [t.text for t in tokens[1:]]
    while len(rest) > 1 and rest[0] == "." and rest[1].isdigit() and isinstance(ty, TupleType):
        ty = ty.fields[int(rest[1])] if int(rest[1]) < len(ty.fields) else None
        rest = rest[2:]
    return None if rest else ty


def _agrees(callee: Expr, types: Sequence[Type | None], module: IRModule) -> bool:
    """Whether the checker finds no error in a call with arguments of these types; None stands for an unknown one."""
    attrs = None
    if isinstance(callee, Op):
        if not all(_takes(callee.takes[i : i + 1], ty) for i, ty in enumerate(types) if ty is not None):
            return False
        try:
            attrs = make_attrs(callee.attrs, {}) if callee.attrs is not None else None
        except AttrError:  # attributes that must be given follow the arguments
            return True
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


__all__ = ["Fitting", "argument_type"]
