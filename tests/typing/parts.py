"""The parts of an inference, for tests of one of them. Each is made as `Inference` makes it, without a program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from relaylang.ir import Expr, Function, GlobalTypeVar, Type, TypeData, Var
from relaylang.typing.annotations import Annotations
from relaylang.typing.calls import Calls
from relaylang.typing.definitions import Definitions
from relaylang.typing.functions import Functions
from relaylang.typing.matches import Matches
from relaylang.typing.operators import Operators
from relaylang.typing.program import Found, Program
from relaylang.typing.report import Report
from relaylang.typing.results import Results
from relaylang.typing.reuse import Earlier
from relaylang.typing.scopes import Scopes
from relaylang.typing.solver import Solver
from relaylang.typing.values import Values
from relaylang.typing.worklist import Worklist


class Parts:
    """Parts that share a solver, a table of types and a report. Only those that a test asks for are made."""

    def __init__(
        self,
        functions: Mapping[str, Function] | None = None,
        definitions: Mapping[GlobalTypeVar, TypeData] | None = None,
        given: Mapping[str, Type] | None = None,
        *,
        fresh: bool = True,
        assume: Mapping[Var, Type] | None = None,
    ) -> None:
        self.program = Program(functions or {}, definitions or {}, given or {})
        self.assume = assume
        self.solver = Solver()
        self.found = Found()
        self.report = Report(self.solver, self.found.types, self.program)
        self.earlier = Earlier(self.solver, self.found, fresh)

    @cached_property
    def annotations(self) -> Annotations:
        return Annotations(self.solver, self.report, self.program.definitions)

    @cached_property
    def definitions(self) -> Definitions:
        return Definitions(self.report, self.annotations, self.program.definitions)

    @cached_property
    def operators(self) -> Operators:
        return Operators(self.solver, self.report, self.found.types, self.program.definitions)

    @cached_property
    def calls(self) -> Calls:
        return Calls(self.solver, self.report, self.found.types, self.definitions)

    @cached_property
    def scopes(self) -> Scopes:
        return Scopes(self.solver, self.found, self.report, self.annotations, self.earlier, self.assume)

    @cached_property
    def functions(self) -> Functions:
        return Functions(self.solver, self.found, self.report, self.annotations, self.scopes, self.earlier, self.program)

    @cached_property
    def matches(self) -> Matches:
        return Matches(self.solver, self.found, self.report, self.scopes, self.definitions)

    @cached_property
    def values(self) -> Values:
        return Values(self.solver, self.report, self.found.types)

    @cached_property
    def worklist(self) -> Worklist:
        return Worklist(self.solver, self.report)

    def results(self, parameters: frozenset[int] = frozenset(), fragment: bool = False) -> Results:
        return Results(self.solver, self.found, self.report, parameters, fragment)

    def value(self, name: str, ty: Type) -> Var:
        """A variable whose type has been found."""
        var = Var(name)
        self.found.put(var, ty)
        return var

    def type_of(self, node: Expr) -> Type:
        """A node's type as it is known now."""
        return self.solver.resolve(self.found.types[node])

    @property
    def said(self) -> list[tuple[str, str]]:
        """The codes and titles of the reported diagnostics."""
        return [(d.code, d.title) for d in self.report.diagnostics]


__all__ = ["Parts"]
