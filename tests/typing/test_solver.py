"""The solver alone: it unifies types without any program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relaylang.ir import (
    ANY,
    FuncType,
    GlobalTypeVar,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    scalar_type,
)
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, DimUnknown, OpenTensor, Unknown, find, find_dim
from tests.growth import assert_linear

INT, FLOAT = scalar_type("int32"), scalar_type("float32")
LIST, TREE = GlobalTypeVar("List"), GlobalTypeVar("Tree")


def tensor(*shape: object, dtype: str = "float32") -> TensorType:
    return TensorType(shape, dtype)  # type: ignore[arg-type]


# --- unify ---


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (tensor(2, 3), tensor(2, 3), True),
        (tensor(2, 3), tensor(3, 2), False),
        (tensor(2, 3), tensor(2), False),
        (tensor(2), tensor(2, dtype="int8"), False),
        (tensor(2, ANY), tensor(2, 3), True),
        (tensor(ANY), tensor(ANY, ANY), False),
        (TupleType([INT, FLOAT]), TupleType([INT, FLOAT]), True),
        (TupleType([INT]), TupleType([INT, INT]), False),
        (TupleType([]), INT, False),
        (FuncType([INT], FLOAT), FuncType([INT], FLOAT), True),
        (FuncType([INT], FLOAT), FuncType([FLOAT], FLOAT), False),
        (FuncType([INT], FLOAT), FuncType([], FLOAT), False),
        (RefType(INT), RefType(INT), True),
        (RefType(INT), RefType(FLOAT), False),
        (TypeCall(LIST, [INT]), TypeCall(LIST, [INT]), True),
        (TypeCall(LIST, [INT]), TypeCall(LIST, [FLOAT]), False),
        (TypeCall(LIST, [INT]), TypeCall(TREE, [INT]), False),
        (TypeVar("A"), TypeVar("A"), False),
        (POISON, tensor(2), True),
        (TupleType([POISON]), TupleType([INT]), True),
    ],
)
def test_known_types(left: Type, right: Type, same: bool) -> None:
    assert Solver().unify(left, right) is same
    assert Solver().unify(right, left) is same


def test_an_unknown_becomes_the_other() -> None:
    solver, unknown = Solver(), Unknown()
    assert solver.unify(unknown, INT)
    assert find(unknown) is INT
    assert not solver.unify(unknown, FLOAT)
    assert solver.conflict == (INT, FLOAT)


def test_unknowns_inside_types() -> None:
    solver, a, b = Solver(), Unknown(), Unknown()
    assert solver.unify(TupleType([a, INT]), TupleType([FLOAT, b]))
    assert solver.resolve(TupleType([a, b])) == TupleType([FLOAT, INT])


def test_unknowns_that_are_the_same() -> None:
    solver, a, b, c = Solver(), Unknown(), Unknown(), Unknown()
    assert solver.unify(a, b) and solver.unify(b, c) and solver.unify(c, INT)
    assert find(a) is find(b) is INT


def test_the_one_that_is_reported_stays() -> None:
    """A free unknown outlives a derived one, and that one an unknown of its own."""
    solver = Solver()
    plain, derived, free = Unknown(), Unknown(derived=True), Unknown(free=True)
    assert solver.unify(free, plain) and find(plain) is find(free) is plain
    assert solver.unify(derived, free) and find(derived) is plain


def test_a_conflict_inside_is_kept() -> None:
    solver = Solver()
    assert not solver.unify(TupleType([INT, tensor(2)]), TupleType([INT, tensor(3)]))
    assert solver.conflict == (tensor(2), tensor(3))


def test_a_type_cannot_contain_itself() -> None:
    solver, unknown = Solver(), Unknown()
    assert not solver.unify(unknown, TupleType([unknown]))
    assert solver.infinite
    assert not solver.unify(INT, FLOAT) and not solver.infinite


def test_polymorphic_functions_agree_up_to_names() -> None:
    a, b = TypeVar("A"), TypeVar("B")
    solver = Solver()
    assert solver.unify(FuncType([a], a, [a]), FuncType([b], b, [b]))
    assert not solver.unify(FuncType([a], INT, [a]), FuncType([b], b, [b]))


def test_a_polymorphic_function_stands_for_its_instances() -> None:
    a = TypeVar("A")
    identity = FuncType([a], a, [a])
    assert Solver().unify(identity, FuncType([INT], INT))
    assert not Solver().unify(identity, FuncType([INT], FLOAT))


# --- extents ---


def test_extents() -> None:
    solver = Solver()
    n = DimUnknown("n")
    assert solver.unify_dims(n, 4) and find_dim(n) == 4
    assert solver.unify_dims(n, 4) and not solver.unify_dims(n, 5)
    assert solver.unify_dims(ANY, 5)


def test_shape_variables_are_their_own() -> None:
    n, m = TypeVar("n", "ShapeVar"), TypeVar("m", "ShapeVar")
    assert Solver().unify(tensor(n), tensor(n))
    assert not Solver().unify(tensor(n), tensor(m))
    assert not Solver().unify(tensor(n), tensor(3))


def test_open_tensors_resolve_to_tensors() -> None:
    solver, n = Solver(), DimUnknown("n")
    ty = OpenTensor((n, 2), "float32")
    assert not solver.is_known(solver.resolve(ty))
    assert solver.close_dims(ty) == tensor(ANY, 2)
    assert solver.unify(ty, tensor(5, 2))
    assert solver.resolve(ty) is solver.intern(tensor(5, 2))


# --- agree and join ---


def test_agreeing_types_are_open_where_one_is() -> None:
    solver = Solver()
    assert solver.agree(tensor(2, ANY), tensor(2, 3)) == tensor(2, ANY)
    assert solver.agree(tensor(2, 3), tensor(2, 3)) == tensor(2, 3)
    assert solver.agree(INT, FLOAT) is None


def test_what_is_bound_is_loosened() -> None:
    solver, unknown = Solver(), Unknown()
    solver.unify(unknown, tensor(2, 3))
    assert solver.agree(unknown, tensor(ANY, 3)) == tensor(ANY, 3)
    assert solver.resolve(unknown) == tensor(ANY, 3)


def test_joined_branches() -> None:
    solver = Solver()
    assert solver.join(TupleType([tensor(2), INT]), TupleType([tensor(ANY), INT])) == TupleType([tensor(ANY), INT])
    assert solver.join(tensor(2), tensor(3)) is None
    assert solver.join(POISON, INT) is INT
    assert solver.join(INT, POISON) is INT


def test_a_reference_is_not_loosened_by_a_join() -> None:
    cell = RefType(tensor(2))
    assert Solver().join(cell, RefType(tensor(ANY))) is cell


# --- known types ---


def test_equal_tensor_types_are_one_object() -> None:
    solver = Solver()
    assert solver.intern(tensor(2, 3)) is solver.intern(tensor(2, 3))
    assert solver.intern(tensor(2, 3)) is not solver.intern(tensor(2, ANY))


def test_known_types_have_no_unknowns() -> None:
    solver, unknown = Solver(), Unknown()
    ty = TupleType([unknown, INT])
    assert not solver.is_known(solver.resolve(ty))
    assert solver.unknowns_in(ty) == [unknown]
    solver.unify(unknown, FLOAT)
    assert solver.is_known(solver.resolve(ty))
    assert solver.unknowns_in(ty) == []


def test_unknowns_in_their_order() -> None:
    a, b = Unknown(), Unknown()
    assert Solver().unknowns_in(FuncType([a, TupleType([b, a])], INT)) == [a, b]


def test_poison_is_seen_inside() -> None:
    solver, unknown = Solver(), Unknown()
    ty = TupleType([INT, unknown])
    assert not solver.is_poisoned(ty)
    solver.bind(unknown, TupleType([POISON]))
    assert solver.is_poisoned(ty)


# --- what waits ---


def test_an_item_is_ready_once_its_unknown_is_bound() -> None:
    solver, a, b = Solver(), Unknown(), Unknown()
    solver.wait("first", [TupleType([a, b])])
    solver.wait_for("second", b)
    assert solver.ready == []
    solver.unify(b, INT)
    assert solver.ready == ["second"]
    solver.unify(a, INT)
    assert solver.ready == ["second", "first"]


def test_waiting_moves_to_the_unknown_that_stays() -> None:
    solver, a, b = Solver(), Unknown(), Unknown()
    solver.wait_for("a", a)
    solver.wait_for("b", b)
    solver.unify(a, b)
    assert solver.ready == []
    solver.unify(a, INT)
    assert sorted(map(str, solver.ready)) == ["a", "b"]


def test_nothing_waits_for_what_is_bound() -> None:
    solver, unknown = Solver(), Unknown()
    solver.unify(unknown, INT)
    solver.wait_for("late", unknown)
    solver.wait("known", [INT])
    assert solver.ready == []


# --- size ---


def nest(n: int, inner: Type) -> Type:
    for _ in range(n):
        inner = TupleType([inner])
    return inner


def test_depth_and_sharing() -> None:
    unknown = Unknown()
    assert Solver().unify(nest(3_000, INT), nest(3_000, unknown))
    assert find(unknown) is INT
    wide, other = nest(1, INT), nest(1, INT)
    for _ in range(60):  # 2^60 paths
        wide, other = TupleType([wide, wide]), TupleType([other, other])
    assert Solver().unify(wide, other)


def test_the_cost_of_unifying_is_linear() -> None:
    def prepare(n: int) -> Callable[[], object]:
        left = TupleType([nest(50, Unknown()) for _ in range(n // 50)])
        right = TupleType([nest(50, INT) for _ in range(n // 50)])
        return lambda: Solver().unify(left, right)

    assert_linear(prepare)
