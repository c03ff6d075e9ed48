"""Type definitions: the types of their constructors, and the checks of the definitions themselves."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.diagnostics import Diagnostic
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Constructor, TypeData
from relaylang.ir.types import FuncType, GlobalTypeVar, Type, TypeCall
from relaylang.typing.annotations import Annotations
from relaylang.typing.program import Program
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON
from relaylang.typing.texts import name_of


class Definitions:
    """The type definitions that an inference may refer to."""

    def __init__(self, report: Report, annotations: Annotations, definitions: Mapping[GlobalTypeVar, TypeData]) -> None:
        self.all = definitions
        self._report = report
        self._annotations = annotations
        self._constructors: dict[int, FuncType] = {}  # their types, by the constructor's id
        self._names: dict[str, Constructor] = {}

    def get(self, header: GlobalTypeVar) -> TypeData | None:
        """The definition with a header, if there is one."""
        return self.all.get(header)

    def constructor_type(self, constructor: Constructor, span: Span | None) -> Type:
        """The function type of a constructor. `POISON` where its definition is missing, which is reported."""
        ty = self._constructors.get(id(constructor))
        if ty is None:
            data = self.all.get(constructor.belong_to)
            if data is None:
                name = constructor.belong_to.name_hint
                self._report.undefined(f"{name_of(constructor)} belongs to the type `{name}`, which is not defined", span)
                return POISON
            ty = FuncType(constructor.inputs, TypeCall(data.header, data.type_vars), data.type_vars)
            self._constructors[id(constructor)] = ty
        return ty

    def check(self, data: TypeData) -> None:
        """Check a definition: its parameters and constructors are distinct, and the constructors hold types."""
        say = self._report.say
        self._annotations.bind(data.type_vars)
        name = data.header.name_hint
        for i, var in enumerate(data.type_vars):
            if any(var is other for other in data.type_vars[:i]):
                say("R0316", f"`{name}` binds its type parameter `{var.name_hint}` twice", var.span or data.span)
        for constructor in data.constructors:
            before = self._names.setdefault(constructor.name_hint, constructor)
            if before is not constructor:
                say(
                    "R0316",
                    f"the constructor {name_of(constructor)} is defined twice",
                    constructor.span or data.span,
                    also=[(before.span, "it is defined here, too")],
                )
            if constructor.belong_to is not data.header:
                say(
                    "R0311",
                    f"{name_of(constructor)} stands in `{name}`, but belongs to `{constructor.belong_to.name_hint}`",
                    constructor.span or data.span,
                )
            for ty in constructor.inputs:
                self._annotations.well_formed(ty, constructor.span or data.span)


def check_definitions(definitions: Mapping[GlobalTypeVar, TypeData]) -> list[Diagnostic]:
    """Check type definitions alone, without any function. Returns the errors."""
    solver = Solver()
    report = Report(solver, {}, Program(definitions=definitions))
    annotations = Annotations(solver, report, definitions)
    checked = Definitions(report, annotations, definitions)
    for data in definitions.values():
        checked.check(data)
    annotations.report_unbound()
    return report.diagnostics


__all__ = ["Definitions", "check_definitions"]
