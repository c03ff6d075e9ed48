"""Values alone: branches, fields, references."""

from __future__ import annotations

from relaylang.ir import (
    ANY,
    If,
    RefRead,
    RefType,
    RefWrite,
    TensorType,
    TupleGetItem,
    TupleType,
    Type,
    scalar_type,
)
from relaylang.typing.terms import POISON, Unknown, find
from tests.typing.parts import Parts

INT, FLOAT, BOOL = scalar_type("int32"), scalar_type("float32"), scalar_type("bool")


def choose(cond: Type, yes: Type, no: Type) -> tuple[Parts, Type]:
    parts = Parts()
    node = If(parts.value("c", cond), parts.value("a", yes), parts.value("b", no))
    return parts, parts.values.choose(node)


def test_branches_join() -> None:
    parts, made = choose(BOOL, INT, INT)
    assert made == INT and parts.said == []
    parts, made = choose(BOOL, TensorType((2,), "int8"), TensorType((3,), "int8"))
    assert made is POISON
    assert parts.said == [("R0302", "the branches of an `if` have different types: `Tensor[(2), int8]` and `Tensor[(3), int8]`")]
    _, made = choose(BOOL, TensorType((2,), "int8"), TensorType((ANY,), "int8"))
    assert made == TensorType((ANY,), "int8")


def test_a_condition_is_a_truth_value() -> None:
    unknown = Unknown()
    choose(unknown, INT, INT)
    assert find(unknown) == BOOL
    parts, made = choose(FLOAT, INT, INT)
    assert made == INT
    assert parts.said == [("R0307", "the condition of an `if` must be `bool`, not `float32`")]


def test_no_branches_are_unknown() -> None:
    parts = Parts()
    assert isinstance(parts.values.join(parts.value("m", INT), [], "the arms"), Unknown)


def field(ty: Type, index: int) -> tuple[Parts, Type]:
    parts = Parts()
    return parts, parts.values.field(TupleGetItem(parts.value("t", ty), index))


def test_fields() -> None:
    assert field(TupleType([INT, FLOAT]), 1)[1] is FLOAT
    assert field(POISON, 0)[1] is POISON
    parts, made = field(TupleType([INT]), 1)
    assert made is POISON
    assert parts.said == [("R0306", "there is no field 1 in a tuple of 1 field")]
    parts, made = field(INT, 0)
    assert made is POISON
    assert parts.said == [("R0306", "a field can only be taken of a tuple, not of `int32`")]


def test_a_field_of_an_unknown_waits() -> None:
    unknown = Unknown()
    parts, made = field(unknown, 1)
    assert isinstance(made, Unknown)
    parts.solver.unify(unknown, TupleType([INT, FLOAT]))
    parts.worklist.work()
    assert find(made) is FLOAT


def test_a_field_that_never_was_is_reported_late() -> None:
    unknown = Unknown()
    parts, made = field(unknown, 1)
    parts.solver.unify(unknown, INT)
    parts.worklist.work()
    assert find(made) is POISON and [code for code, _ in parts.said] == ["R0306"]


def test_references() -> None:
    parts = Parts()
    ref, value = parts.value("r", RefType(INT)), parts.value("v", INT)
    assert parts.values.read(RefRead(ref)) == INT
    assert parts.values.write(RefWrite(ref, value)) == TupleType([])
    assert parts.said == []


def test_an_unknown_becomes_a_reference() -> None:
    parts, unknown = Parts(), Unknown()
    parts.values.write(RefWrite(parts.value("r", unknown), parts.value("v", FLOAT)))
    assert parts.solver.resolve(unknown) == RefType(FLOAT)


def test_wrong_references() -> None:
    parts = Parts()
    assert parts.values.read(RefRead(parts.value("r", INT))) is POISON
    parts.values.write(RefWrite(parts.value("r", RefType(INT)), parts.value("v", FLOAT)))
    assert parts.said == [
        ("R0313", "this is no reference, but `int32`"),
        ("R0302", "the new value of a reference must be `int32`, not `float32`"),
    ]
