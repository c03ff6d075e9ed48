"""Actions for unreadable pieces of syntax: each is an unknown value, which holds the readable expressions inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any as AnyValue

from relaylang.ir.expr import Clause, Expr, Pattern, PatternWildcard, Var
from relaylang.ir.types import ANY, POISON, TypeVar
from relaylang.syntax.actions.attributes import WRONG
from relaylang.syntax.actions.functions import FunctionActions, Signature
from relaylang.syntax.actions.globals import FunctionNames, TypeNames
from relaylang.syntax.actions.locals import Locals, local_key
from relaylang.syntax.actions.patterns import MatchActions, variables
from relaylang.syntax.actions.reports import Reports
from relaylang.syntax.actions.statements import Block, StatementActions
from relaylang.syntax.literals import string


class Missing(str):
    """The text of a token that recovery puts in and whose meaning nobody knows."""

    __slots__ = ()


class Unread:
    """What recovery leaves out of a text: the values that were read of it, the grammar's ERROR."""

    __slots__ = ("values",)

    def __init__(self, values: list[AnyValue]) -> None:
        self.values = values


class ErrorActions:
    """Makes unknown values, and ends the scopes of unfinished phrases."""

    def __init__(
        self,
        reports: Reports,
        locals: Locals,
        functions: FunctionNames,
        types: TypeNames,
        statements: StatementActions,
        function_actions: FunctionActions,
        matches: MatchActions,
    ) -> None:
        self.reports = reports
        self.locals = locals
        self.functions = functions
        self.types = types
        self.statements = statements
        self.function_actions = function_actions
        self.matches = matches
        #: The values of a phrase with a missing token in it, by the phrase.
        self.unknown: dict[str, Callable[[int, int], AnyValue]] = {
            "def": lambda first, last: reports.doubtful.add(reports.tokens[first + 1]),
            "operand": reports.unknown_value,
            "open": lambda first, last: [reports.unknown_value(first, last), first],
            "type": lambda first, last: POISON,
            "type_arg": lambda first, last: POISON,
            "dim": lambda first, last: ANY,
            **dict.fromkeys(("avalue", "aterm", "aoperand", "aplain"), lambda first, last: WRONG),
            "pattern": lambda first, last: PatternWildcard(reports.span(first, last)),
        }

    def kept(self, values: list[AnyValue], first: int, last: int) -> list[Expr]:
        """The expressions in values that were read of a phrase, in their order. The scopes that it began end here."""
        exprs: list[Expr] = []
        for value in reversed(values):
            if value.__class__ is Block:
                unknown = self.reports.unknown_value(first, last)
                exprs = [self.statements.close(value, self._call(exprs, first, last) if exprs else unknown, first, last)]
            elif value.__class__ is Signature:
                if value.name is None:
                    self.locals.fn_depth -= 1
                    for key, hidden in reversed(value.hid):
                        self.locals.unbind(key, hidden)
                self.types.close_variables(value.binders)
                self._loose(value.params)
            elif isinstance(value, str):
                if value[:1] == "%" and len(value) > 1 and not isinstance(value, Missing):
                    key = local_key(value.partition(":")[0].rstrip("= "))
                    self.locals.names.setdefault(key, self.reports.unknown_value(first, last, key[1:]))
            else:
                exprs[:0] = self._inside(value)
        return exprs

    def _inside(self, value: AnyValue) -> Iterator[Expr]:
        """The expressions in one value, which is no scope."""
        match value:
            case Expr():
                yield value
            case Clause(_, body):
                yield body
            case Pattern():
                self._loose(variables([value]))
            case Unread():
                yield from self.kept(value.values, 0, 0)
            case (str() as key, _, None, int(), Var() as var):  # a let without its value
                self._loose([var])
                self.locals.names[key] = var
            case (_, _, Expr() as bound, int(), Var() | None):  # a statement
                yield bound
            case (Pattern() as pattern, list() as bound):  # the head of a clause
                self._loose(variables([pattern]))
                for key, hidden, _ in reversed(bound):
                    self.locals.unbind(key, hidden)
            case [(str(), TypeVar() | None, TypeVar()), *_]:
                self.types.close_variables(value)
            case list():
                for item in value:
                    if isinstance(item, (Expr, Clause, Pattern, list)):
                        yield from self._inside(item)

    def _loose(self, variables: AnyValue) -> None:
        """Nothing binds these any more, and nothing is known of them."""
        for var in variables:
            var.type_annotation = POISON

    def _call(self, exprs: list[Expr], first: int, last: int) -> Expr:
        return self.reports.unknown_call(exprs, first, last)

    def _value(self, unread: Unread, first: int, last: int) -> Expr:
        """The unknown value of a phrase that is left out. It holds the expressions of the phrase."""
        for key, hidden, _ in reversed(self.matches.bound):
            self.locals.unbind(key, hidden)
        self.matches.bound, self.matches.in_case = [], False
        exprs = self.kept(unread.values, first, last)
        return self._call(exprs, first, last) if exprs else self.reports.unknown_value(first, last)

    # -- definitions

    def on_def_error(self, v: Unread, first: int, last: int) -> None:
        depth = self.locals.fn_depth
        signature = next((x for x in v.values if isinstance(x, Signature) and x.name is not None), None)
        body = self._value(v, first, last)
        if signature is not None and signature.name is not None:
            for param in signature.params:
                param.type_annotation = POISON
            self.functions.define(signature.name, self.function_actions.function(signature, body, first, last), first + 1)
        for value in v.values:
            match value:
                case (str() as name, int() as at):
                    self.functions.defined.setdefault(name, at)
                case str() if value[:1] == "@" and len(value) > 1:
                    self.functions.defined.setdefault(string(value[1:]) if value[1] == '"' else value[1:], first)
                case (str() as name, int(), list() | tuple() as binders):
                    self.types.close_variables(binders)
                    self.reports.doubtful.add(name)
        self.locals.fn_depth = min(depth, 0)
        self.locals.end_definition()

    def on_ctor_error(self, v: Unread, first: int, last: int) -> None:
        return None

    def on_param_error(self, v: Unread, first: int, last: int) -> AnyValue:
        name = next((x.partition(":")[0] for x in v.values if isinstance(x, str) and x[:1] == "%"), f"%?{first}")
        if not self.locals.fn_depth:
            self.functions.unsure = True
        return name, POISON, first

    # -- expressions

    def on_inner_error(self, v: Unread, first: int, last: int) -> Expr:
        return self._value(v, first, last)

    def on_block_error(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self.statements.close(v[0], self._value(v[1], first, last), first, last)

    def on_stmt_error(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        value = self._value(v[0], first, last)
        return None, None, value, first, Var("_", None, self.reports.span(first, last))

    def on_call_error(self, v: list[AnyValue], first: int, last: int) -> Expr:
        opened = v[0]
        return self._call([*opened[2:], self._value(v[1], first, last)], opened[1], last)

    def on_open_error(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[0].append(self._value(v[1], first, last))
        v[0][0] = self.reports.unknown_value(first, last)
        return v[0]

    def on_attrs_error(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[0].append(v[2])
        return v[0]

    def on_clause_error(self, v: Unread, first: int, last: int) -> Clause:
        return Clause(PatternWildcard(self.reports.span(first, last)), self._value(v, first, last), self.reports.span(first, last))


__all__ = ["ErrorActions", "Missing", "Unread"]
