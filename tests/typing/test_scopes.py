"""Scopes alone: variables and the lets that bind them."""

from __future__ import annotations

from relaylang.ir import ANY, FuncType, IncompleteType, Let, TensorType, TupleType, Type, Var, scalar_type, var
from relaylang.typing.terms import POISON, Unknown, find
from tests.typing.parts import Parts

INT, FLOAT = scalar_type("int32"), scalar_type("float32")


def let(parts: Parts, variable: Var, value: Type) -> None:
    bound = parts.value("value", value)
    parts.scopes.bind_let(Let(variable, bound, variable), variable, bound)


def test_an_annotation_gives_the_type() -> None:
    parts = Parts()
    x = var("x", "int32")
    assert parts.scopes.bind(x, FLOAT) == INT
    assert parts.found.order == [x] and parts.type_of(x) == INT


def test_without_an_annotation_the_given_type_holds() -> None:
    parts = Parts()
    assert parts.scopes.bind(Var("x"), FLOAT) is FLOAT
    y = Var("y")
    open_type = parts.scopes.bind(y, None)
    assert isinstance(open_type, Unknown) and open_type.origin is y


def test_assumed_types() -> None:
    x = Var("x")
    assert Parts(assume={x: INT}).scopes.bind(x, None) == INT


def test_a_let_binds_its_value() -> None:
    parts, x = Parts(), Var("x")
    let(parts, x, INT)
    assert parts.type_of(x) == INT and parts.said == []


def test_an_annotated_let() -> None:
    parts, x, y = Parts(), var("x", "int32"), var("y", "int32")
    unknown = Unknown()
    let(parts, x, unknown)
    assert find(unknown) == INT
    let(parts, y, FLOAT)
    assert parts.said == [("R0302", "the value of `%y` must be `int32`, not `float32`")]


def test_holes_in_an_annotation_are_filled() -> None:
    parts, x = Parts(), Var("x", TupleType([IncompleteType(), INT]))
    let(parts, x, TupleType([FLOAT, INT]))
    assert parts.type_of(x) == TupleType([FLOAT, INT])


def test_a_let_is_as_open_as_its_annotation() -> None:
    parts = Parts()
    open_type = TensorType((ANY,), "int8")
    x = Var("x", open_type)
    let(parts, x, TensorType((3,), "int8"))
    assert parts.type_of(x) == open_type


def test_a_variable_in_its_own_value() -> None:
    parts, x = Parts(), Var("x")
    parts.scopes.meet(x)
    let(parts, x, INT)
    parts.scopes.report_loose()
    assert parts.said == [("R0314", "the variable `%x` is used in its own value, which is not a function")]


def test_a_loose_variable() -> None:
    parts, x = Parts(), Var("x")
    parts.scopes.meet(x)
    parts.scopes.meet(x)
    parts.scopes.report_loose()
    assert parts.said == [("R0312", "nothing binds the variable `%x`")]


def test_a_function_is_known_inside_its_value() -> None:
    parts, f = Parts(), Var("f", FuncType([INT], FLOAT))
    parts.scopes.declare(f, FuncType([INT], FLOAT))
    let(parts, f, FuncType([INT], FLOAT))
    assert parts.said == []
    let(parts, f, FuncType([INT], INT))
    assert [code for code, _ in parts.said] == ["R0302"]


def test_poison_is_bound_silently() -> None:
    parts, x = Parts(), var("x", "int32")
    let(parts, x, POISON)
    assert parts.type_of(x) == INT and parts.said == []
