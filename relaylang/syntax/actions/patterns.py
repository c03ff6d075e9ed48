"""Actions for match expressions and their patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any as AnyValue

from relaylang.diagnostics import Fix, did_you_mean, error
from relaylang.ir.expr import (
    Clause,
    Expr,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    Var,
)
from relaylang.ir.types import POISON
from relaylang.syntax.actions.globals import TypeNames
from relaylang.syntax.actions.locals import Locals, local_key, name_of
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.actions.types import tensor_type


class MatchActions:
    """Makes matches. The variables of a pattern are in scope until its clause ends."""

    def __init__(self, reports: Reports, locals: Locals, types: TypeNames) -> None:
        self.reports = reports
        self.locals = locals
        self.types = types
        #: The variables of the pattern that is being read: key, what it hides, token.
        self.bound: list[tuple[str, AnyValue, int]] = []
        self.in_case = False

    def on_match_head(self, v: list[AnyValue], first: int, last: int) -> tuple[Expr, bool]:
        return v[1], v[0] == "match"

    def on_match_none(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return Match(v[0][0], (), v[0][1], self.reports.span(first, last))

    def on_match(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return Match(v[0][0], v[2], v[0][1], self.reports.span(first, last))

    def on_case(self, v: str, first: int, last: int) -> None:
        self.in_case = True

    def on_clause_head(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        bound, self.bound = self.bound, []
        return v[0], bound

    def on_case_head(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        self.in_case = False
        bound, self.bound = self.bound, []
        return v[1], bound

    def on_clause(self, v: list[AnyValue], first: int, last: int) -> Clause:
        return self._clause(v[0], v[1], first, last)

    def on_case_clause(self, v: list[AnyValue], first: int, last: int) -> Clause:
        return self._clause(v[0], v[2], first, last)

    def _clause(self, head: AnyValue, body: Expr, first: int, last: int) -> Clause:
        pattern, bound = head
        for key, hidden, _ in reversed(bound):
            self.locals.unbind(key, hidden)
        return Clause(pattern, body, self.reports.span(first, last))

    # -- patterns

    def _variable(self, key: str, ty: AnyValue, at: int) -> Pattern:
        var = Var(name_of(key), ty, self.reports.span(at, at))
        if len(self.bound) < 64 or key in self.locals.names:
            for known, _, before in self.bound:
                if known == key:
                    self.reports.twice(f"`{shown(key)}`", at, before)
                    break
        self.bound.append((key, self.locals.bind(key, var), at))
        return PatternVar(var, self.reports.span(at, at))

    def on_pat_var(self, v: str, first: int, last: int) -> Pattern:
        return self._variable(local_key(v), None, first)

    def on_pat_typed(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return self._variable(local_key(v[0]), v[2], first)

    def on_pat_coarse(self, v: str, first: int, last: int) -> Pattern:
        name, _, ty = v.partition(": ")
        return self._variable(name, tensor_type(ty, first, self.reports), first)

    def on_pat_name(self, v: str, first: int, last: int) -> Pattern:
        if v == "_":
            return PatternWildcard(self.reports.span(first, last))
        ctor = self.types.constructor(v, first)
        if ctor is not None:
            return PatternConstructor(ctor, (), self.reports.span(first, last))
        if self.in_case:
            self.locals.bare = True
            return self._variable("%" + v, None, first)
        self._unknown(v, first)
        return PatternWildcard(self.reports.span(first, last))

    def _unknown(self, name: str, at: int) -> None:
        reports = self.reports
        known = list(chain(self.types.constructors, self.types.ahead()))
        if name[:1].islower() and did_you_mean(name, known) is None:
            begin = reports.within(at, 0, 0)
            if reports.once("R0114", name):
                fix = Fix(begin, "%", f"write `%{shown(name)}`")
                title = "a variable in a pattern begins with `%`"
                reports.add(error("R0114", title, reports.within(at, 0, len(name)), fix=fix))
            return
        reports.unknown("R0210", "constructor", name, reports.within(at, 0, len(name)), known)

    def _constructor(self, name: str, patterns: AnyValue, first: int, last: int) -> Pattern:
        ctor = self.types.constructor(name, first)
        if ctor is None:
            self._unknown(name, first)
            for var in variables(patterns):
                var.type_annotation = POISON
            return PatternWildcard(self.reports.span(first, last))
        return PatternConstructor(ctor, patterns, self.reports.span(first, last))

    def on_pat_ctor_empty(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return self._constructor(v[0].rstrip("("), (), first, last)

    def on_pat_ctor(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return self._constructor(v[0][:-1], v[1], first, last)

    def on_pat_ctor_spaced(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return self._constructor(v[0], v[2], first, last)

    def on_pat_unit(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return PatternTuple((), self.reports.span(first, last))

    def on_pat_tuple(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return PatternTuple(v[1], self.reports.span(first, last))


def variables(patterns: Iterable[Pattern]) -> Iterator[Var]:
    """The variables that patterns bind."""
    stack = list(patterns)
    while stack:
        match stack.pop():
            case PatternVar(var):
                yield var
            case PatternConstructor(_, inner) | PatternTuple(inner):
                stack += inner


__all__ = ["MatchActions", "variables"]
