"""The kinds of types."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import Constructor, GlobalTypeVar, IRModule, TensorType, TupleType, Type, TypeData, scalar_type
from relaylang.ir.types import FuncType, RefType, TypeCall, TypeVar
from relaylang.typing.kinds import TypeKind, check_kind

A, N, BOX = TypeVar("A"), TypeVar("N", "ShapeVar"), GlobalTypeVar("Box")
BOX_DATA = TypeData(BOX, [A], [Constructor("Mk", [A], BOX)])
MOD = IRModule(type_definitions={BOX: BOX_DATA})


@pytest.mark.parametrize(
    ("ty", "kind"),
    [
        (scalar_type("int32"), TypeKind.Type),
        (TensorType((N, 3)), TypeKind.Type),
        (FuncType([A, RefType(A)], TupleType([A]), [A]), TypeKind.Type),
        (TypeCall(BOX, [scalar_type("bool")]), TypeKind.Type),
        (A, TypeKind.Type),
        (N, TypeKind.ShapeVar),
        (BOX, TypeKind.AdtHandle),
    ],
)
def test_kind(ty: Type, kind: TypeKind) -> None:
    assert check_kind(ty, MOD) is kind


def test_definitions() -> None:
    assert check_kind(BOX_DATA) is TypeKind.TypeData
    with pytest.raises(RelayError, match="has 1 type parameter, not 0"):
        check_kind(TypeData(BOX, [A], [Constructor("Mk", [TypeCall(BOX, [])], BOX)]))


@pytest.mark.parametrize(
    "ty",
    [
        TupleType([N]),
        RefType(BOX),
        FuncType([BOX], scalar_type("int32")),
        TypeCall(BOX, []),
        TypeCall(BOX, [N]),
        TypeCall(A, [A]),
        TypeCall(GlobalTypeVar("Other"), []),
        TensorType((A,)),
        TensorType((-1,)),
        TensorType((), "no type"),
    ],
)
def test_wrong_kind(ty: Type) -> None:
    with pytest.raises(RelayError):
        check_kind(ty, MOD)
