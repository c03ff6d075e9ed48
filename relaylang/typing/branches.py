"""Branches, matches, references and fields: where values meet, and where they are taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.diagnostics import error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import (
    Clause,
    Expr,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    TupleGetItem,
    Var,
)
from relaylang.ir.types import RefType, TupleType, Type, TypeCall
from relaylang.typing.bindings import Bindings
from relaylang.typing.calls import Waiting
from relaylang.typing.exhaustive import Undecided, missing_value
from relaylang.typing.repairs import without_parentheses
from relaylang.typing.report import last_value, name_of, note_of, place, show
from relaylang.typing.solver import POISON, Unknown, find


class Branches(Bindings):
    """The part of an inference that joins branches and takes values apart."""

    def origin_of_variable(self, expr: Expr) -> list[tuple[Span | None, str]]:
        """Where a variable's type comes from."""
        return [self.origin(expr)] if isinstance(expr, Var) else []

    def join_arms(self, node: Expr, arms: Sequence[Expr], what: str) -> Type:
        """The one type of several branches."""
        result: Type = self.types[id(arms[0])] if arms else Unknown(node)
        for arm in arms[1:]:
            joined = self.join(result, self.types[id(arm)])
            if joined is None:
                first, other = self.resolve(result), self.resolve(self.types[id(arm)])
                self.say(
                    "R0302", f"{what} have different types: `{show(first)}` and `{show(other)}`",
                    place(last_value(arm), node.span), f"this is `{show(other)}`",
                    also=[(place(last_value(arms[0]), node.span), f"this is `{show(first)}`")], notes=note_of(first, other),
                )  # fmt: skip
                return POISON
            result = joined
        return result

    def referred(self, node: Expr, ref: Expr) -> Type:
        """What a reference refers to."""
        ty = find(self.types[id(ref)])
        if isinstance(ty, RefType):
            return ty.value
        inner = Unknown(node, True)
        if not self.unify(ty, RefType(inner)):
            self.say(
                "R0313", f"this is no reference, but `{show(self.resolve(ty))}`", place(ref, node.span),
                also=self.origin_of_variable(ref),
            )  # fmt: skip
            return POISON
        return inner

    def bind_pattern(self, match: Match, clause: Clause) -> None:
        stack: list[tuple[Pattern, Type]] = [(clause.lhs, self.types[id(match.data)])]
        while stack:
            pattern, ty = stack.pop()
            ty = find(ty)
            span = pattern.span or clause.span or match.span
            if isinstance(pattern, PatternVar):
                bound = self.bind_var(pattern.var, ty)
                if not self.unify(bound, ty):
                    self.mismatch(f"what {name_of(pattern.var)} is bound to", bound, ty, pattern.var.span or span)
            elif isinstance(pattern, PatternConstructor):
                stack.extend(reversed(self.match_constructor(match, pattern, ty, span)))
            elif isinstance(pattern, PatternTuple):
                count = len(pattern.patterns)
                made: Type = ty
                if type(ty) is Unknown:
                    made = TupleType([Unknown(match) for _ in range(count)])
                    self.unify(ty, made)
                if isinstance(made, TupleType) and len(made.fields) == count:
                    stack.extend(reversed(list(zip(pattern.patterns, made.fields))))
                    continue
                if made is not POISON:
                    shown = show(self.resolve(made))
                    self.say(
                        "R0309", f"a pattern of {count} fields cannot take apart `{shown}`", span,
                        also=self.origin_of_variable(match.data), fix=without_parentheses(pattern),
                    )  # fmt: skip
                    self.misfits.add(id(match))
                stack.extend((p, POISON) for p in reversed(pattern.patterns))

    def match_constructor(
        self, match: Match, pattern: PatternConstructor, ty: Type, span: Span | None
    ) -> list[tuple[Pattern, Type]]:
        """What a constructor's fields are, where it takes apart a value of a type."""
        constructor = pattern.constructor
        poisoned: list[tuple[Pattern, Type]] = [(p, POISON) for p in pattern.patterns]
        data = self.definitions.get(constructor.belong_to)
        if data is None:
            self.constructor_type(constructor, span)
            self.misfits.add(id(match))
            return poisoned
        if len(pattern.patterns) != len(constructor.inputs):
            self.say(
                "R0303",
                f"{name_of(constructor)} has {len(constructor.inputs)} fields, but the pattern {len(pattern.patterns)}",
                span, also=[(constructor.span, "it is defined here")],
            )  # fmt: skip
            self.misfits.add(id(match))
            return poisoned
        if isinstance(ty, TypeCall) and ty.func is constructor.belong_to and len(ty.args) == len(data.type_vars):
            mapping: dict[int, Type] = {id(v): a for v, a in zip(data.type_vars, ty.args)}
        else:
            mapping = self.fresh_for(data.type_vars, match)
            made = TypeCall(constructor.belong_to, [mapping[id(v)] for v in data.type_vars])
            if not self.unify(ty, made):
                shown, own = show(self.resolve(ty)), show(self.resolve(made))
                self.say(
                    "R0309", f"{name_of(constructor)} makes a `{own}`, but what is matched is `{shown}`", span,
                    also=[*self.definition_labels(ty, made), *self.origin_of_variable(match.data)],
                    notes=note_of(ty, made),
                )  # fmt: skip
                self.misfits.add(id(match))
                return poisoned
        if not mapping:
            return list(zip(pattern.patterns, constructor.inputs))
        return [(p, self.substitute(t, mapping)) for p, t in zip(pattern.patterns, constructor.inputs)]

    def check_exhaustive(self, match: Match) -> None:
        if not match.complete or id(match) in self.misfits:
            return
        try:
            missing = missing_value(match.clauses, self.definitions)
        except Undecided:
            self.diagnostics.append(
                error(
                    "R0308",
                    "it could not be told whether this match covers every value",
                    match.span,
                    severity="warning",
                )
            )
            return
        if missing is not None:
            self.say(
                "R0308", f"the match does not cover `{missing}`", match.span,
                notes=("add a clause for it, or write `match?` where the value cannot occur",),
            )  # fmt: skip

    def project(self, node: TupleGetItem) -> Type:
        ty = find(self.types[id(node.tuple_value)])
        if isinstance(ty, TupleType):
            if 0 <= node.index < len(ty.fields):
                return ty.fields[node.index]
            count = len(ty.fields)
            self.say(
                "R0306", f"there is no field {node.index} in a tuple of {count} field{'s' * (count != 1)}", node.span,
                notes=(f"its type is `{show(self.resolve(ty))}`",), also=self.origin_of_variable(node.tuple_value),
            )  # fmt: skip
            return POISON
        if ty is POISON:
            return POISON
        if type(ty) is Unknown:
            waiting = Waiting(node, Unknown(node, True))
            self.wait(waiting, [ty])
            return waiting.result
        self.say(
            "R0306", f"a field can only be taken of a tuple, not of `{show(self.resolve(ty))}`", node.span,
            also=self.origin_of_variable(node.tuple_value),
        )  # fmt: skip
        return POISON
