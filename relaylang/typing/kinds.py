"""The kind of a type, as TVM's `relay.analysis.check_kind` gives it."""

from __future__ import annotations

from enum import IntEnum

from relaylang.diagnostics import RelayError
from relaylang.ir.expr import TypeData
from relaylang.ir.module import IRModule
from relaylang.ir.types import KINDS, GlobalTypeVar, Type, TypeVar
from relaylang.typing.annotations import Annotations
from relaylang.typing.definitions import Definitions
from relaylang.typing.program import Program
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver


class TypeKind(IntEnum):
    """The meaning of a type expression: a type, an extent, the name of a type definition, or the definition."""

    Type = KINDS["Type"]
    ShapeVar = KINDS["ShapeVar"]
    BaseType = KINDS["BaseType"]
    Constraint = KINDS["Constraint"]
    AdtHandle = KINDS["AdtHandle"]
    TypeData = KINDS["TypeData"]

    def __eq__(self, other: object) -> bool:
        """A kind is its number and its name: a variable's `kind` is a name."""
        return other == self.name if isinstance(other, str) else int.__eq__(self, other)  # type: ignore[operator]

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = IntEnum.__hash__


def check_kind(ty: Type | TypeData, mod: IRModule | None = None) -> TypeKind:
    """The kind of a type; `mod` has the type definitions that it names.

    Raises `RelayError` where a part of it is of the wrong kind. Examples are a definition without its arguments, an
    extent in a type's place, and a negative extent.
    """
    if isinstance(ty, (GlobalTypeVar, TypeVar)):
        return TypeKind[ty.kind]
    definitions = dict(mod.type_definitions) if mod is not None else {}
    if isinstance(ty, TypeData):
        definitions.setdefault(ty.header, ty)
    solver = Solver()
    report = Report(solver, {}, Program(definitions=definitions))
    annotations = Annotations(solver, report, definitions)
    if isinstance(ty, TypeData):
        Definitions(report, annotations, definitions).check(ty)
    else:
        annotations.well_formed(ty, None)
    if report.diagnostics:
        raise RelayError(report.diagnostics)
    return TypeKind.TypeData if isinstance(ty, TypeData) else TypeKind.Type


__all__ = ["TypeKind", "check_kind"]
