"""Annotations alone: the types that a program states, and the errors in them."""

from __future__ import annotations

import pytest

from relaylang.ir import (
    ANY,
    Constructor,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
    scalar_type,
)
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, Unknown
from tests.typing.parts import Parts

INT = scalar_type("int32")
LIST, A, N = GlobalTypeVar("List"), TypeVar("A"), TypeVar("n", "ShapeVar")
LISTS = TypeData(LIST, [A], [Constructor("Nil", [], LIST)])
OWNER = Var("x")


def test_holes_become_unknowns() -> None:
    parts = Parts()
    hole = IncompleteType()
    made = parts.annotations.open(TupleType([hole, INT, hole]), OWNER)
    assert isinstance(made, TupleType)
    first, middle, last = made.fields
    assert isinstance(first, Unknown) and first is last and first.origin is OWNER and middle == INT
    assert parts.annotations.open(hole, OWNER) is first


def test_an_annotation_is_opened_once() -> None:
    parts = Parts()
    ty = TupleType([IncompleteType()])
    assert parts.annotations.open(ty, OWNER) is parts.annotations.open(ty, Var("y"))


def test_tensor_types_are_interned() -> None:
    parts = Parts()
    ty = TensorType((2, ANY), "int8")
    assert parts.annotations.open(ty, OWNER) is parts.solver.intern(TensorType((2, ANY), "int8"))
    assert isinstance(parts.solver, Solver) and parts.said == []


@pytest.mark.parametrize(
    ("ty", "title"),
    [
        (TensorType((-1,), "int8"), "`Tensor[(-1), int8]` is no type: dimension 0 is -1, which is negative"),
        (TensorType((2,), "int9"), "`Tensor[(2), int9]` is no type: `int9` is not an element type"),
        (TensorType((A,), "int8"), "dimension 0 of `Tensor[(A), int8]` is `A`, which stands for a type; it must be an extent"),
        (TupleType([N]), "`n` stands for an extent, not for a type"),
        (LIST, "`List` is a type definition; a type is `List[...]`"),
        (TypeCall(LIST, []), "`List` has 1 type parameter, not 0"),
        (TypeCall(GlobalTypeVar("Tree"), []), "the type `Tree` is not defined"),
        (TypeCall(A, [INT]), "`A`, a type parameter, takes no type arguments"),
    ],
)
def test_what_is_not_well_formed(ty: Type, title: str) -> None:
    parts = Parts(definitions={LIST: LISTS})
    assert parts.annotations.open(ty, OWNER) is POISON
    assert [text for _, text in parts.said] == [title]


def test_a_definition_with_its_arguments_is_a_type() -> None:
    parts = Parts(definitions={LIST: LISTS})
    ty = TypeCall(LIST, [INT])
    assert parts.annotations.open(ty, OWNER) == ty
    assert parts.annotations.well_formed(FuncType([ty], A, [A]), None) and parts.said == []


def test_type_variables_that_nothing_binds() -> None:
    parts = Parts()
    b = TypeVar("B")
    parts.annotations.bind([A])
    parts.annotations.open(TupleType([A, b, TensorType((N,), "int8")]), OWNER)
    parts.annotations.report_unbound()
    assert parts.said == [
        ("R0312", "nothing binds the type variable `B`"),
        ("R0312", "nothing binds the type variable `n`"),
    ]


def test_a_function_type_binds_its_parameters() -> None:
    parts = Parts()
    parts.annotations.open(FuncType([A], A, [A]), OWNER)
    parts.annotations.report_unbound()
    assert parts.said == []


def test_depth() -> None:
    ty: Type = INT
    for _ in range(3_000):
        ty = TupleType([ty])
    assert Parts().annotations.open(ty, OWNER) is ty
