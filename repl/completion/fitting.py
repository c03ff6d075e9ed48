"""Which types fit at a place: the checker looks at the call with a value of each type in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constructor, Expr, FuncType, IRModule, TensorType, TupleType, Type, Var
from relaylang.ops.record import AttrError, Op, make_attrs
from relaylang.ops.takes import TENSOR, Word, refused_elements, refused_shape
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
        self._callee = callee if cursor.at_argument else None
        self._index = cursor.call.index if cursor.call is not None else 0
        self._condition = cursor.back() == "(" and cursor.back(2) == "if"
        self._left = variables.get(cursor.back(2)) if cursor.back() in _SIGNS else None
        self._types = self._given_types(variables) if self._callee is not None else []
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
            return _agrees(self._callee, [*self._types[: self._index], ty, *self._types[self._index + 1 :]], self._module)
        return isinstance(self._left, TensorType) and isinstance(ty, TensorType) and self._left.dtype == ty.dtype

    def _given_types(self, variables: Mapping[str, Type | None]) -> list[Type | None]:
        """The types of the call's arguments, as far as they are known."""
        bracket = self._cursor.brackets[0]
        begins = [bracket.at, *bracket.commas]
        types = [argument_type(self._cursor.code[b + 1 : e], variables) for b, e in pairwise(begins)]
        return [*types, *[None] * (_arity(self._callee) - len(types))]


def _arity(callee: Expr | None) -> int:
    """How many arguments a callee takes; 0 for any number."""
    if isinstance(callee, Op):
        return 0 if callee.variadic else len(callee.args)
    if isinstance(callee, Constructor):
        return len(callee.inputs)
    ty = callee.type_annotation if isinstance(callee, Var) else None
    return len(ty.arg_types) if isinstance(ty, FuncType) else 0


def argument_type(tokens: Sequence[Token], variables: Mapping[str, Type | None]) -> Type | None:
    """The type of a variable or of its field; None for other expressions."""
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
