"""Unknowns, and types with variables replaced: without any inference."""

from __future__ import annotations

import itertools

from relaylang.ir import FuncType, IncompleteType, TensorType, TupleType, Type, TypeVar, scalar_type
from relaylang.typing.terms import (
    POISON,
    DimUnknown,
    OpenTensor,
    Unknown,
    find,
    find_dim,
    fresh_for,
    map_type,
    substitute,
)

INT, FLOAT = scalar_type("int32"), scalar_type("float32")


def test_an_open_unknown_is_found_as_itself() -> None:
    unknown = Unknown()
    assert find(unknown) is unknown
    assert find(INT) is INT


def test_finding_shortens_the_way() -> None:
    chain = [Unknown() for _ in range(50)]
    for one, other in itertools.pairwise(chain):
        one.link = other
    chain[-1].link = INT
    assert find(chain[0]) is INT
    steps = 0
    ty: Type = chain[0]
    while isinstance(ty, Unknown):
        assert ty.link is not None
        ty = ty.link
        steps += 1
    assert steps <= 26  # each step was taken over the next one


def test_extents() -> None:
    first, second = DimUnknown("n"), DimUnknown("m")
    first.link = second
    assert find_dim(first) is second
    second.link = 7
    assert find_dim(first) == 7
    assert find_dim(3) == 3


def test_map_type_applies_to_leaves_and_keeps_what_does_not_change() -> None:
    kept = TupleType([INT, INT])
    ty = TupleType([kept, FLOAT])
    made = map_type(ty, lambda t: INT if t is FLOAT else t)
    assert made == TupleType([kept, INT])
    assert isinstance(made, TupleType) and made.fields[0] is kept
    assert map_type(ty, lambda t: t) is ty


def test_map_type_looks_at_shared_parts_once() -> None:
    seen: list[Type] = []
    ty: Type = INT
    for _ in range(100):
        ty = TupleType([ty, ty])

    def leaf(node: Type) -> Type:
        seen.append(node)
        return node

    map_type(ty, leaf)
    assert seen == [INT]


def test_map_type_does_not_recurse() -> None:
    ty: Type = FLOAT
    for _ in range(3_000):
        ty = TupleType([ty])
    made = map_type(ty, lambda t: INT)
    depth = 0
    while isinstance(made, TupleType):
        made = made.fields[0]
        depth += 1
    assert depth == 3_000 and made is INT


def test_substitute_replaces_type_variables() -> None:
    a, b = TypeVar("A"), TypeVar("B")
    ty = FuncType([a, TupleType([b, a])], b)
    assert substitute(ty, {id(a): INT, id(b): FLOAT}) == FuncType([INT, TupleType([FLOAT, INT])], FLOAT)


def test_substitute_replaces_extents() -> None:
    n, m = TypeVar("n", "ShapeVar"), TypeVar("m", "ShapeVar")
    made = substitute(TensorType((n, 3), "int8"), {id(n): m})
    assert isinstance(made, OpenTensor) and made.shape == (m, 3)


def test_substitute_looks_behind_unknowns() -> None:
    a, unknown = TypeVar("A"), Unknown()
    unknown.link = a
    assert substitute(TupleType([unknown]), {id(a): INT}) == TupleType([INT])


def test_fresh_unknowns_for_type_parameters() -> None:
    a, n = TypeVar("A"), TypeVar("n", "ShapeVar")
    made = fresh_for([a, n], None)
    assert isinstance(made[id(a)], Unknown) and made[id(a)].free  # type: ignore[attr-defined]
    assert isinstance(made[id(n)], DimUnknown)


def test_poison_is_no_type_of_a_program() -> None:
    assert isinstance(POISON, IncompleteType) and find(POISON) is POISON
