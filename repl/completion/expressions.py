"""Types of expressions in an unfinished text: the checker looks at each one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Call,
    Expr,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    IncompleteType,
    IRModule,
    TupleType,
    Type,
    TypeData,
    Var,
    is_incomplete,
)
from relaylang.syntax import parse
from relaylang.syntax.literals import string
from relaylang.syntax.tokeniser import Brackets, Token
from relaylang.typing import infer

#: The longest expression that is read, in characters.
_LONGEST = 1000
#: How many expressions are read for one cursor.
_MOST_READ = 24

Variables = Mapping[str, "Type | None"]


class Expressions:
    """Types of a text's expressions. `functions` are those that they may call, by name."""

    def __init__(self, text: str, functions: Variables, definitions: Mapping[GlobalTypeVar, TypeData]) -> None:
        self._text = text
        self._functions = functions
        self._definitions = definitions
        self._left = _MOST_READ

    def type_of(self, tokens: Sequence[Token], variables: Variables) -> Type | None:
        """The type of an expression with variables of these types; None where it is unknown or wrong."""
        while [t.text for t in (*tokens[:2], *tokens[-2:])] == ["(", "(", ")", ")"]:
            tokens = tokens[1:-1]
        if not tokens:
            return None
        if tokens[0].kind == "local":
            ty, rest = variables.get(tokens[0].text), [t.text for t in tokens[1:]]
            while len(rest) > 1 and rest[0] == "." and rest[1].isdigit() and isinstance(ty, TupleType):
                ty = ty.fields[int(rest[1])] if int(rest[1]) < len(ty.fields) else None
                rest = rest[2:]
            return ty if not rest else self._read(tokens, variables)
        parts = _parts(tokens)
        if not parts:
            return self._read(tokens, variables)
        if len(parts) == 1:
            return self.type_of(parts[0], variables)
        return TupleType([self.type_of(part, variables) or IncompleteType() for part in parts if part])

    def _read(self, tokens: Sequence[Token], variables: Variables) -> Type | None:
        text = self._text[tokens[0].start : tokens[-1].end]
        if len(text) > _LONGEST or not self._left:
            return None
        self._left -= 1
        used = {variable_name(t.text): variables[t.text] for t in tokens if t.kind == "local" and t.text in variables}
        called = {t.text[1:]: self._functions.get(t.text[1:]) for t in tokens if t.kind == "global"}
        module = IRModule(
            {(var := GlobalVar(name)): _of_type(var, ty) for name, ty in called.items() if isinstance(ty, FuncType)},
            self._definitions,
        )
        try:
            result = parse(text, "<expression>", module, {name: Var(name, ty) for name, ty in used.items()})
            expr = result.expr
            if not isinstance(expr, Expr) or result.module is not None:
                return None
            wrong = any(d.severity == "error" for d in infer(expr, fragment=True, module=module))
        except RelayError:
            return None
        ty = expr.checked_type
        return None if wrong or ty is None or is_incomplete(ty) else ty


def _parts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The stretches between the commas of brackets around all of an expression; none where there are no such brackets."""
    pairs = Brackets(tokens)
    alone = len(tokens) > 2 and tokens[0].text == "(" and pairs.closing.get(0) == len(tokens) - 1
    return [tokens[begin:end] for begin, end in pairs.parts(0)] if alone else []


def variable_name(text: str) -> str:
    """A variable's name without its sign and quotes."""
    return string(text[1:]) if text[1:2] == '"' else text[1:]


def _of_type(var: GlobalVar, ty: FuncType) -> Function:
    """A function of a type."""
    params = [Var(f"p{i}", arg) for i, arg in enumerate(ty.arg_types)]
    return Function(params, Call(var, params), ty.ret_type, ty.type_params)


__all__ = ["Expressions", "Variables", "variable_name"]
