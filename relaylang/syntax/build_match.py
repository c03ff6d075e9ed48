"""Reduce actions for match expressions and their patterns."""

from __future__ import annotations

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
from relaylang.syntax.build_attrs import AttrActions
from relaylang.syntax.scope import local_key, name_of, shown


class MatchActions(AttrActions):
    """What is made where a rule of a match is reduced. The variables of a pattern are in scope until its clause ends."""

    def on_list_one(self, v: AnyValue, first: int, last: int) -> list[AnyValue]:
        return [v]

    def on_list_more(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        v[0].append(v[2])
        return v[0]

    def on_list_two(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        v[0].append(v[1])
        return v[0]

    def on_list_closed(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return v[0]

    def on_match_head(self, v: list[AnyValue], first: int, last: int) -> tuple[Expr, bool]:
        return v[1], v[0] == "match"

    def on_match_none(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return Match(v[0][0], (), v[0][1], self.span(first, last))

    def on_match(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return Match(v[0][0], v[2], v[0][1], self.span(first, last))

    def on_case(self, v: str, first: int, last: int) -> None:
        self.in_case = True

    def on_clause_head(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        names, self.pattern_names = self.pattern_names, []
        return v[0], names

    def on_case_head(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        self.in_case = False
        names, self.pattern_names = self.pattern_names, []
        return v[1], names

    def on_clause(self, v: list[AnyValue], first: int, last: int) -> Clause:
        return self._clause(v[0], v[1], first, last)

    def on_case_clause(self, v: list[AnyValue], first: int, last: int) -> Clause:
        return self._clause(v[0], v[2], first, last)

    def _clause(self, head: AnyValue, body: Expr, first: int, last: int) -> Clause:
        pattern, names = head
        for key, hidden, _ in reversed(names):
            self.unbind(key, hidden)
        return Clause(pattern, body, self.span(first, last))

    # -- patterns

    def _pattern_var(self, key: str, ty: AnyValue, at: int) -> Pattern:
        var = Var(name_of(key), ty, self.span(at, at))
        if len(self.pattern_names) < 64 or key in self.names:
            for known, _, before in self.pattern_names:
                if known == key:
                    self.twice(f"`{shown(key)}`", at, before)
                    break
        self.pattern_names.append((key, self.bind(key, var), at))
        return PatternVar(var, self.span(at, at))

    def on_pat_var(self, v: str, first: int, last: int) -> Pattern:
        return self._pattern_var(local_key(v), None, first)

    def on_pat_typed(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return self._pattern_var(local_key(v[0]), v[2], first)

    def on_pat_coarse(self, v: str, first: int, last: int) -> Pattern:
        name, _, ty = v.partition(": ")
        return self._pattern_var(name, self.on_t_tensor(ty, first, last), first)

    def on_pat_name(self, v: str, first: int, last: int) -> Pattern:
        if v == "_":
            return PatternWildcard(self.span(first, last))
        ctor = self.constructor(v, first)
        if ctor is not None:
            return PatternConstructor(ctor, (), self.span(first, last))
        if self.in_case:
            self.bare = True
            return self._pattern_var("%" + v, None, first)
        self._unknown_constructor(v, first)
        return PatternWildcard(self.span(first, last))

    def _unknown_constructor(self, name: str, at: int) -> None:
        known = list(chain(self.ctors, self._definitions_ahead()))
        if name[:1].islower() and did_you_mean(name, known) is None:
            begin = self.within(at, 0, 0)
            if self.once("R0114", name):
                self.report(error("R0114", "a variable in a pattern begins with `%`", self.within(at, 0, len(name)),
                                  fix=Fix(begin, "%", f"write `%{shown(name)}`")))  # fmt: skip
            return
        self.unknown("R0210", "constructor", name, self.within(at, 0, len(name)), known)

    def _pattern_ctor(self, name: str, patterns: AnyValue, first: int, last: int) -> Pattern:
        ctor = self.constructor(name, first)
        if ctor is None:
            self._unknown_constructor(name, first)
            return PatternWildcard(self.span(first, last))
        return PatternConstructor(ctor, patterns, self.span(first, last))

    def on_pat_ctor_empty(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return self._pattern_ctor(v[0].rstrip("("), (), first, last)

    def on_pat_ctor(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return self._pattern_ctor(v[0][:-1], v[1], first, last)

    def on_pat_ctor_spaced(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return self._pattern_ctor(v[0], v[2], first, last)

    def on_pat_unit(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return PatternTuple((), self.span(first, last))

    def on_pat_tuple(self, v: list[AnyValue], first: int, last: int) -> Pattern:
        return PatternTuple(v[1], self.span(first, last))
