"""Scopes: variables get their types from annotations, from the values that lets bind, and from earlier inferences."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ir.expr import Expr, Let, Var
from relaylang.ir.types import FuncType, Type
from relaylang.typing.annotations import Annotations
from relaylang.typing.places import place
from relaylang.typing.program import Found
from relaylang.typing.report import Report
from relaylang.typing.reuse import Earlier
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, Unknown
from relaylang.typing.texts import name_of


class Scopes:
    """Binds variables. `assume` has types for variables that their annotations do not give."""

    def __init__(
        self,
        solver: Solver,
        found: Found,
        report: Report,
        annotations: Annotations,
        earlier: Earlier,
        assume: Mapping[Var, Type] | None = None,
    ) -> None:
        self._solver = solver
        self._found = found
        self._types = found.types
        self._order = found.order
        self._report = report
        self._annotations = annotations
        self._earlier = earlier
        self._assume = dict(assume or {})
        self._declared: dict[int, FuncType] = {}  # of variables that stand for a function inside its own body
        self._late: set[int] = set()  # variables of lets whose values use them
        self._loose: list[Var] = []  # variables met where nothing had bound them

    def bind(self, var: Var, given: Type | None) -> Type:
        """Give a variable its type: the one its annotation says, else `given`, else an unknown."""
        if self._assume and var in self._assume:
            ty = self._annotations.open(self._assume[var], var)
        elif var.type_annotation is not None:
            ty = self._annotations.open(var.type_annotation, var)
        else:
            ty = Unknown(var) if given is None else given
        if var.checked_type is not None:
            ty = self._earlier.agreed(var, ty)
        self._types[var] = ty
        self._order.append(var)
        return ty

    def meet(self, var: Var) -> None:
        """Type a variable that occurs before anything has bound it: one that is declared, or a loose one."""
        declared = self._declared.get(id(var))
        if declared is not None:
            self._found.put(var, declared)
            return
        self.bind(var, None)
        self._loose.append(var)

    def declare(self, variable: Var, signature: FuncType) -> None:
        """Say what a let's variable is inside its value: a function, which may call itself."""
        self._declared[id(variable)] = signature

    def is_met(self, variable: Var) -> bool:
        """Whether a variable has occurred already."""
        return variable in self._types

    def bind_let(self, let: Let, variable: Var, value: Expr) -> None:
        """Bind a let's variable to its value, whose type is known as far as it will be."""
        types = self._types
        ty = types[value]
        if id(variable) in self._declared:
            if variable not in types:
                self._found.put(variable, ty)
            if variable.type_annotation is not None:
                wanted = self._annotations.open(variable.type_annotation, variable)
                if not self._solver.unify(wanted, ty):
                    what = f"the value of {name_of(variable)}"
                    self._report.mismatch(what, wanted, ty, place(value, let.span), node=value)
            return
        if variable in types and not self._earlier.has(variable):
            self._late.add(id(variable))
            self._report.refuted.append(types[variable])
            self._report.say(
                "R0314",
                f"the variable {name_of(variable)} is used in its own value, which is not a function",
                variable.span or let.span,
            )
            return
        bound = self.bind(variable, ty)
        if bound is ty:
            return
        agreed = self._solver.agree(bound, ty)
        if agreed is not None:
            types[variable] = agreed
        else:
            self._report.mismatch(
                f"the value of {name_of(variable)}",
                bound,
                ty,
                place(value, let.span),
                also=[(variable.span, "declared here")],
                node=value,
            )

    @property
    def has_loose(self) -> bool:
        """Whether a variable was met where nothing had bound it. Unknown values are no such variables."""
        return any(var.type_annotation is not POISON for var in self._loose)

    def report_loose(self) -> None:
        """Report the variables that nothing binds."""
        for var in dict.fromkeys(self._loose):
            self._report.refuted.append(self._types[var])
            if id(var) not in self._late:
                self._report.undefined(f"nothing binds the variable {name_of(var)}", var.span)


__all__ = ["Scopes"]
