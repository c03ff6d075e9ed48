"""The report of an inference: failures become diagnostics with places, notes and fixes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from relaylang.diagnostics import Diagnostic, Fix, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Constructor, Expr, Function, GlobalVar, Let, Tuple, TupleGetItem, Var
from relaylang.ir.types import GlobalTypeVar, TensorType, Type, TypeCall
from relaylang.ops.record import Op, RelationError
from relaylang.typing.call_text import call_span
from relaylang.typing.places import argument_span, attribute_span, plain
from relaylang.typing.program import Program
from relaylang.typing.repairs import number_of_type, repair
from relaylang.typing.solver import Solver
from relaylang.typing.texts import difference, name_of, show

#: A place and the text beside it.
Label = tuple["Span | None", str]
#: A relation's message that begins with an attribute's name points at that attribute.
_ATTRIBUTE = r"(\w+)(?:=|: )"
#: A relation's message begins with one of these where it says what the argument is or does.
_VERBS = frozenset("must has is are cannot needs takes gives holds does may can wants".split())


def _sources(node: Call, arg: int, message: str) -> Iterable[Expr]:
    """The values that a call's arguments come from: the fields of argument `arg` that the message names, and tuples."""
    sources: dict[Expr, None] = dict.fromkeys(node.args)
    tuple_arg = node.args[arg]
    if isinstance(tuple_arg, Tuple):
        numbers = [int(n) for n in re.findall(r"field (\d+)", message)]
        sources.update(dict.fromkeys(tuple_arg.fields[n] for n in numbers if n < len(tuple_arg.fields)))
    sources.update({a.tuple_value: None for a in node.args if isinstance(a, TupleGetItem)})
    return sources


class Report:
    """Collects the diagnostics of one inference.

    It asks the solver for types as they are known now and for the last conflict. It reads the types found so far and
    the program to say where a type comes from.
    """

    def __init__(self, solver: Solver, types: Mapping[Expr, Type], program: Program) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.refuted: list[Type] = []  # types of mismatches that were reported
        self._solver = solver
        self._types = types
        self._program = program

    def say(
        self,
        code: str,
        title: str,
        span: Span | None,
        label: str = "",
        also: Iterable[Label] = (),
        notes: Iterable[str] = (),
        fix: Fix | None = None,
        severity: str = "error",
    ) -> None:
        """Add a diagnostic. Labels of `also` without a place are left out."""
        places = [(plain(place), text) for place, text in also if place is not None]
        self.diagnostics.append(error(code, title, plain(span), label, also=places, notes=notes, fix=fix, severity=severity))

    def undefined(self, title: str, span: Span | None) -> None:
        """Report a name that the program lacks. Of a part of a program, the reader has reported it."""
        if not self._program.partial:
            self.say("R0312", title, span)

    def mismatch(
        self, what: str, wanted: Type, found: Type, span: Span | None, also: Iterable[Label] = (), node: Expr | None = None
    ) -> None:
        """Report two types that must be the same and differ: `what`, which is `node`, must be `wanted`, not `found`."""
        solver = self._solver
        self.refuted += (wanted, found)
        if solver.infinite:
            self.say("R0310", f"{what} would have a type that contains itself", span, also=also)
            return
        wanted, found = solver.resolve(wanted), solver.resolve(found)
        inner = solver.conflict
        text = difference(wanted, found) or (difference(*inner) if inner is not None else "")
        fix = number_of_type(node, wanted) if isinstance(wanted, TensorType) and not wanted.shape else None
        self.say(
            "R0302",
            f"{what} must be `{show(wanted)}`, not `{show(found)}`",
            span,
            also=[*also, *self.definitions(wanted, found)],
            notes=(text,) if text else (),
            fix=fix,
        )

    def cannot_be(self, node: Expr, what: str, wanted: Type, found: Type) -> None:
        """As `mismatch`, at a node."""
        self.mismatch(what, wanted, found, call_span(node) if isinstance(node, Call) else node.span, node=node)

    def shown(self, ty: Type) -> str:
        """The text of a type as it is known now."""
        return show(self._solver.resolve(ty))

    # --- where types come from ---

    def definitions(self, left: Type, right: Type) -> list[Label]:
        """The definitions of two types that differ by name."""
        out: list[Label] = []
        solver = self._solver
        pair = (solver.resolve(left), solver.resolve(right))
        if solver.conflict is not None and not all(isinstance(t, TypeCall) for t in pair):
            pair = solver.conflict
        left, right = pair
        if isinstance(left, TypeCall) and isinstance(right, TypeCall) and left.func is not right.func:
            for ty in dict.fromkeys(t.func for t in pair if isinstance(t, TypeCall)):
                data = self._program.definitions.get(ty) if isinstance(ty, GlobalTypeVar) else None
                if data is not None:
                    out.append((data.span, f"`{data.header.name_hint}` is defined here"))
        return out

    def origin(self, expr: Expr) -> Label:
        """Where the type of an expression comes from."""
        known = self._types.get(expr, expr.checked_type)
        if known is None:
            return expr.span, ""
        shown = self.shown(known)
        if isinstance(expr, Var):
            where = expr.type_annotation.span if expr.type_annotation is not None else None
            return where or expr.span, f"{name_of(expr)} is `{shown}`"
        return expr.span, f"this is `{shown}`"

    def origin_in(self, call: Call, argument: Expr, index: int) -> Label:
        """Where the type of a call's argument comes from: in the call itself, where it is made there."""
        span, text = self.origin(argument)
        if span is None or isinstance(argument, Var):
            return span, text
        return argument_span(call, index), text

    def origin_of_variable(self, expr: Expr) -> list[Label]:
        """Where a variable's type comes from; nothing for another expression."""
        return [self.origin(expr)] if isinstance(expr, Var) else []

    def callee_span(self, callee: Expr) -> Span | None:
        """Where a callee is defined."""
        if isinstance(callee, GlobalVar):
            function = self._program.functions.get(callee.name_hint)
            return function.span if function is not None else None
        if isinstance(callee, Let):
            return None
        return callee.span

    def parameter(self, callee: Expr, index: int) -> Label:
        """Where a callee declares a parameter."""
        function = self._program.functions.get(callee.name_hint) if isinstance(callee, GlobalVar) else callee
        if isinstance(function, Function) and index < len(function.params):
            param = function.params[index]
            where = param.type_annotation.span if param.type_annotation is not None else None
            return where or param.span, f"the parameter {name_of(param)} is declared here"
        return (callee.span, "it is defined here") if isinstance(callee, Constructor) else (None, "")

    # --- operators ---

    def relation_failed(self, node: Call, problem: RelationError, types: Sequence[Type]) -> None:
        """Report that an operator does not accept a call; `types` are those of its arguments."""
        op = node.op
        assert isinstance(op, Op)
        arg = problem.arg
        named = re.match(_ATTRIBUTE, problem.message)
        written = attribute_span(node, named[1]) if named is not None and named[1] in op.schema else None
        if written is not None and arg is not None and arg < len(node.args):
            self.say(
                "R0301",
                f"{name_of(op)}: {problem.message}",
                written,
                also=[self.origin_in(node, node.args[arg], arg)],
                notes=problem.notes,
            )
            return
        if arg is None or arg >= len(node.args):
            self.say("R0301", f"{name_of(op)}: {problem.message}", written or call_span(node), notes=problem.notes)
            return
        word = f" ({op.args[arg]})" if arg < len(op.args) else ""
        what = f"argument {arg + 1}{word}{'' if problem.message.split(' ', 1)[0] in _VERBS else ':'} {problem.message}"
        also = [
            (span, text)
            for span, text in map(self.origin, _sources(node, arg, problem.message))
            if span is not None and not (node.span is not None and _inside(span, node.span))
        ]
        fix = repair(node, types, arg)
        self.say(
            "R0301",
            f"{name_of(op)}: {what}",
            argument_span(node, arg),
            also=also,
            notes=problem.notes if fix is None else (),
            fix=fix,
        )


def _inside(inner: Span, outer: Span) -> bool:
    return inner.source is outer.source and outer.first <= inner.first and inner.last <= outer.last


__all__ = ["Label", "Report"]
