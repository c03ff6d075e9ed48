"""Matches: patterns take values apart and bind variables; the clauses cover every value."""

from __future__ import annotations

from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from relaylang.ir.types import TupleType, Type, TypeCall
from relaylang.typing.definitions import Definitions
from relaylang.typing.exhaustive import Undecided, missing_value
from relaylang.typing.program import Found
from relaylang.typing.repairs import without_parentheses
from relaylang.typing.report import Report
from relaylang.typing.scopes import Scopes
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, Unknown, find, fresh_for, substitute
from relaylang.typing.texts import name_of, note_of


class Matches:
    """Types the patterns of matches."""

    def __init__(self, solver: Solver, found: Found, report: Report, scopes: Scopes, definitions: Definitions) -> None:
        self._solver = solver
        self._found = found
        self._report = report
        self._scopes = scopes
        self._definitions = definitions
        self._misfits: set[int] = set()  # matches with a pattern that does not fit

    def bind(self, match: Match, clause: Clause) -> None:
        """Bind the variables of a clause's pattern to the parts of the matched value."""
        stack: list[tuple[Pattern, Type]] = [(clause.lhs, self._found.types[match.data])]
        while stack:
            pattern, ty = stack.pop()
            ty = find(ty)
            span = pattern.span or clause.span or match.span
            if isinstance(pattern, PatternVar):
                bound = self._scopes.bind(pattern.var, ty)
                if not self._solver.unify(bound, ty):
                    what = f"the value of {name_of(pattern.var)}"
                    self._report.mismatch(what, bound, ty, pattern.var.span or span)
            elif isinstance(pattern, PatternConstructor):
                stack.extend(reversed(self._constructor(match, pattern, ty, span)))
            elif isinstance(pattern, PatternTuple):
                stack.extend(reversed(self._tuple(match, pattern, ty, span)))

    def check(self, match: Match) -> None:
        """Report a value that no clause takes, unless the match says that it may miss some."""
        if not match.complete or id(match) in self._misfits:
            return
        try:
            missing = missing_value(match.clauses, self._definitions.all)
        except Undecided:
            title = "the checker could not decide whether this match covers every value"
            self._report.say("R0308", title, match.span, severity="warning")
            return
        if missing is not None:
            self._report.say(
                "R0308",
                f"the match does not cover `{missing}`",
                match.span,
                notes=("add a clause for it, or write `match?` where the value cannot occur",),
            )

    def _tuple(self, match: Match, pattern: PatternTuple, ty: Type, span: Span | None) -> list[tuple[Pattern, Type]]:
        """The patterns of a tuple's fields, each with the type of its field."""
        count = len(pattern.patterns)
        tuple_type = ty
        if type(ty) is Unknown:
            tuple_type = TupleType([Unknown(match) for _ in range(count)])
            self._solver.unify(ty, tuple_type)
        if isinstance(tuple_type, TupleType) and len(tuple_type.fields) == count:
            return list(zip(pattern.patterns, tuple_type.fields))
        if tuple_type is not POISON:
            self._report.say(
                "R0309",
                f"a pattern of {count} fields cannot take apart `{self._report.shown(tuple_type)}`",
                span,
                also=self._report.origin_of_variable(match.data),
                fix=without_parentheses(pattern),
            )
            self._misfits.add(id(match))
        return _poisoned(pattern)

    def _constructor(self, match: Match, pattern: PatternConstructor, ty: Type, span: Span | None) -> list[tuple[Pattern, Type]]:
        """The patterns of a constructor's fields, each with the type of its field in a value of type `ty`."""
        report = self._report
        constructor = pattern.constructor
        data = self._definitions.get(constructor.belong_to)
        if data is None:
            self._definitions.constructor_type(constructor, span)
            self._misfits.add(id(match))
            return _poisoned(pattern)
        if len(pattern.patterns) != len(constructor.inputs):
            report.say(
                "R0303",
                f"{name_of(constructor)} has {len(constructor.inputs)} fields, but the pattern {len(pattern.patterns)}",
                span,
                also=[(constructor.span, "it is defined here")],
                notes=["a pattern has one for each field: a variable, or `_` for a field that it does not use"],
            )
            self._misfits.add(id(match))
            return _poisoned(pattern)
        if isinstance(ty, TypeCall) and ty.func is constructor.belong_to and len(ty.args) == len(data.type_vars):
            mapping: dict[int, Type] = {id(v): a for v, a in zip(data.type_vars, ty.args)}
        else:
            mapping = fresh_for(data.type_vars, match)
            data_type = TypeCall(constructor.belong_to, [mapping[id(v)] for v in data.type_vars])
            if not self._solver.unify(ty, data_type):
                shown, own = report.shown(ty), report.shown(data_type)
                report.say(
                    "R0309",
                    f"{name_of(constructor)} makes a `{own}`, but the matched value is `{shown}`",
                    span,
                    also=[*report.definitions(ty, data_type), *report.origin_of_variable(match.data)],
                    notes=note_of(ty, data_type),
                )
                self._misfits.add(id(match))
                return _poisoned(pattern)
        if not mapping:
            return list(zip(pattern.patterns, constructor.inputs))
        return [(p, substitute(t, mapping)) for p, t in zip(pattern.patterns, constructor.inputs)]


def _poisoned(pattern: PatternConstructor | PatternTuple) -> list[tuple[Pattern, Type]]:
    return [(part, POISON) for part in pattern.patterns]


__all__ = ["Matches"]
