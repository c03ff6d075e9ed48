"""Values: branches join, tuples give their fields, references are read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.ir.expr import Expr, If, RefRead, RefWrite, TupleGetItem
from relaylang.ir.types import RefType, TupleType, Type, scalar_type
from relaylang.typing.places import last_value, place
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, Unknown, find
from relaylang.typing.texts import note_of, show
from relaylang.typing.worklist import Waiting

_BOOL = scalar_type("bool")
_UNIT = TupleType(())


def _numbers(count: int) -> tuple[str, ...]:
    """How the fields of a tuple are numbered."""
    return (f"fields are numbered from `.0` to `.{count - 1}`",) if count > 1 else ()


class Values:
    """Types branches, fields and references. `types` has the types of their operands."""

    def __init__(self, solver: Solver, report: Report, types: Mapping[Expr, Type]) -> None:
        self._solver = solver
        self._report = report
        self._types = types

    def choose(self, node: If) -> Type:
        """The type of an `if`, whose condition must be `bool`."""
        cond = self._types[node.cond]
        if not self._solver.unify(cond, _BOOL):
            self._report.say(
                "R0307",
                f"the condition of an `if` must be `bool`, not `{self._report.shown(cond)}`",
                place(node.cond, node.span),
                also=self._report.origin_of_variable(node.cond),
                notes=("a comparison gives one, such as `%x != 0`",),
            )
        return self.join(node, [node.true_branch, node.false_branch], "the branches of an `if`")

    def join(self, node: Expr, arms: Sequence[Expr], what: str) -> Type:
        """The one type of several branches. `POISON` where they differ, which is reported; `what` names them."""
        types = self._types
        result: Type = types[arms[0]] if arms else Unknown(node)
        for arm in arms[1:]:
            joined = self._solver.join(result, types[arm])
            if joined is None:
                first, other = self._solver.resolve(result), self._solver.resolve(types[arm])
                self._report.say(
                    "R0302",
                    f"{what} have different types: `{show(first)}` and `{show(other)}`",
                    place(last_value(arm), node.span),
                    f"this is `{show(other)}`",
                    also=[(place(last_value(arms[0]), node.span), f"this is `{show(first)}`")],
                    notes=note_of(first, other),
                )
                return POISON
            result = joined
        return result

    def field(self, node: TupleGetItem) -> Type:
        """The type of a tuple's field; an unknown that waits where the tuple's type is not known."""
        ty = find(self._types[node.tuple_value])
        report = self._report
        if isinstance(ty, TupleType):
            if 0 <= node.index < len(ty.fields):
                return ty.fields[node.index]
            count = len(ty.fields)
            report.say(
                "R0306",
                f"there is no field {node.index} in a tuple of {count} field{'s' * (count != 1)}",
                node.span,
                notes=(f"its type is `{report.shown(ty)}`", *_numbers(count)),
                also=report.origin_of_variable(node.tuple_value),
            )
            return POISON
        if ty is POISON:
            return POISON
        if type(ty) is Unknown:
            waiting = Waiting(node, Unknown(node, True), self._field_again)
            self._solver.wait(waiting, [ty])
            return waiting.result
        report.say(
            "R0306",
            f"a field can only be taken of a tuple, not of `{report.shown(ty)}`",
            node.span,
            also=report.origin_of_variable(node.tuple_value),
            notes=(f"leave out `.{node.index}`",),
        )
        return POISON

    def read(self, node: RefRead) -> Type:
        """The type of the value that a reference holds."""
        return self._referred(node, node.ref)

    def write(self, node: RefWrite) -> Type:
        """The type of a write: the empty tuple. The value must have the type that the reference holds."""
        inner = self._referred(node, node.ref)
        value = self._types[node.value]
        if not self._solver.unify(inner, value):
            origins = self._report.origin_of_variable
            self._report.mismatch(
                "the new value of a reference",
                inner,
                value,
                place(node.value, node.span),
                also=[*origins(node.ref), *origins(node.value)],
                node=node.value,
            )
        return _UNIT

    def _field_again(self, waiting: Waiting) -> Type:
        assert isinstance(waiting.node, TupleGetItem)
        waiting.done = True
        return self.field(waiting.node)

    def _referred(self, node: Expr, ref: Expr) -> Type:
        """The type of the value of a reference."""
        ty = find(self._types[ref])
        if isinstance(ty, RefType):
            return ty.value
        inner = Unknown(node, True)
        if not self._solver.unify(ty, RefType(inner)):
            self._report.say(
                "R0313",
                f"this is no reference, but `{self._report.shown(ty)}`",
                place(ref, node.span),
                also=self._report.origin_of_variable(ref),
            )
            return POISON
        return inner


__all__ = ["Values"]
