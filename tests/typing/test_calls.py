"""Calls of functions and constructors alone."""

from __future__ import annotations

from relaylang.ir import (
    Call,
    Constructor,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    IncompleteType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    scalar_type,
    var,
)
from relaylang.typing.terms import POISON, Unknown, find
from tests.typing.parts import Parts

INT, FLOAT = scalar_type("int32"), scalar_type("float32")
LIST, A, B = GlobalTypeVar("List"), TypeVar("A"), TypeVar("B")
CONS, NIL = Constructor("Cons", [A, TypeCall(LIST, [A])], LIST), Constructor("Nil", [], LIST)
DEFINITIONS = {LIST: TypeData(LIST, [A], [CONS, NIL])}


def result(parts: Parts, callee: Type, *types: Type, type_args: tuple[Type, ...] = ()) -> Type:
    args = [parts.value(f"x{i}", ty) for i, ty in enumerate(types)]
    return parts.solver.resolve(parts.calls.call(Call(parts.value("f", callee), args, None, type_args)))


def test_a_function() -> None:
    parts = Parts()
    assert result(parts, FuncType([INT, FLOAT], FLOAT), INT, FLOAT) == FLOAT
    assert parts.said == []


def test_an_unknown_callee_becomes_a_function() -> None:
    parts, callee = Parts(), Unknown()
    made = parts.calls.call(Call(parts.value("f", callee), [parts.value("x", INT)]))
    assert isinstance(made, Unknown)
    parts.solver.unify(made, FLOAT)
    assert parts.solver.resolve(callee) == FuncType([INT], FLOAT)


def test_an_unknown_argument_becomes_the_parameter() -> None:
    parts, unknown = Parts(), Unknown()
    assert result(parts, FuncType([INT], FLOAT), unknown) == FLOAT
    assert find(unknown) == INT


def test_type_parameters_are_instantiated_for_each_call() -> None:
    parts = Parts()
    pair = FuncType([A, B], TupleType([B, A]), [A, B])
    assert result(parts, pair, INT, FLOAT) == TupleType([FLOAT, INT])
    assert result(parts, pair, FLOAT, FLOAT) == TupleType([FLOAT, FLOAT])


def test_type_arguments() -> None:
    parts = Parts()
    callee = FuncType([], A, [A])
    assert result(parts, callee, type_args=(INT,)) == INT
    opened = result(parts, callee, type_args=(IncompleteType(),))
    assert isinstance(opened, Unknown)
    assert parts.said == []


def test_too_many_type_arguments() -> None:
    parts = Parts()
    result(parts, FuncType([], A, [A]), type_args=(INT, INT))
    assert parts.said == [("R0303", "`%f` has 1 type parameters, not 2")]


def test_constructors() -> None:
    parts = Parts(definitions=DEFINITIONS)
    empty = parts.calls.call(Call(NIL, []))
    rest = parts.value("rest", empty)
    made = parts.calls.call(Call(CONS, [parts.value("x", INT), rest]))
    assert made == TypeCall(LIST, [INT])
    assert parts.solver.resolve(empty) == TypeCall(LIST, [INT])


def test_a_wrong_argument() -> None:
    parts = Parts()
    assert result(parts, FuncType([INT], FLOAT), FLOAT) is POISON
    assert parts.said == [("R0302", "argument 1 of `%f` must be `int32`, not `float32`")]


def test_every_wrong_argument_is_reported() -> None:
    parts = Parts()
    result(parts, FuncType([INT, INT], FLOAT), FLOAT, FLOAT)
    assert len(parts.said) == 2


def test_the_argument_that_fixed_a_type_parameter_is_shown() -> None:
    parts = Parts()
    assert result(parts, FuncType([A, A], A, [A]), INT, FLOAT) is POISON
    assert parts.said == [("R0302", "argument 2 of `%f` must be `int32`, not `float32`")]


def test_the_parameter_is_shown() -> None:
    x = var("x", "int32")
    parts = Parts({"f": Function([x], x, INT)})
    name = GlobalVar("f")
    parts.found.put(name, FuncType([INT], INT))
    assert parts.calls.call(Call(name, [parts.value("y", FLOAT)])) is POISON
    assert parts.report.parameter(name, 0)[1] == "the parameter `%x` is declared here"


def test_wrong_numbers_and_callees() -> None:
    parts = Parts()
    assert result(parts, FuncType([INT], FLOAT)) is POISON
    assert result(parts, INT, INT) is POISON
    assert result(parts, POISON, INT) is POISON
    assert parts.said == [
        ("R0303", "`%f` takes 1 argument, not 0"),
        ("R0305", "`%f` is called, but it is not a function: it is `int32`"),
    ]


def test_a_call_of_itself_with_itself() -> None:
    parts = Parts()
    f = parts.value("f", Unknown())
    assert parts.calls.call(Call(f, [f])) is POISON
    assert parts.said[0][0] == "R0310"
