"""Functions alone: signatures, results, names of a module."""

from __future__ import annotations

import pytest

from relaylang.ir import ANY, Function, FuncType, GlobalVar, TensorType, Type, Var, scalar_type, var
from relaylang.typing import check
from relaylang.typing.terms import POISON, Unknown, find
from tests.typing.parts import Parts

INT, FLOAT = scalar_type("int32"), scalar_type("float32")


def body_of(parts: Parts, ty: Type) -> Var:
    return parts.value("body", ty)


def test_a_signature_is_what_annotations_say() -> None:
    parts = Parts()
    x, y = var("x", "int32"), Var("y")
    function = Function([x, y], x, FLOAT)
    signature = parts.functions.signature(function)
    assert signature.arg_types[0] == INT and signature.ret_type == FLOAT
    assert isinstance(signature.arg_types[1], Unknown)
    assert parts.functions.signature(function) is signature
    assert parts.functions.parameters == {id(x), id(y)}


def test_the_body_gives_the_result() -> None:
    parts = Parts()
    function = Function([var("x", "int32")], body_of(parts, FLOAT))
    parts.functions.signature(function)
    parts.functions.leave(function)
    assert parts.type_of(function) == FuncType([INT], FLOAT)


def test_a_declared_result_stands() -> None:
    parts = Parts()
    function = Function([], body_of(parts, INT), FLOAT)
    parts.functions.signature(function)
    parts.functions.leave(function)
    assert parts.type_of(function) == FuncType([], FLOAT)
    assert parts.said == [("R0302", "a function's result must be `float32`, not `int32`")]


def test_an_open_result_stays_open() -> None:
    parts = Parts()
    open_type = TensorType((ANY,), "int8")
    function = Function([], body_of(parts, TensorType((3,), "int8")), open_type)
    parts.functions.signature(function)
    parts.functions.leave(function)
    assert parts.type_of(function) == FuncType([], open_type)


def test_a_recursive_function_is_known_by_its_name() -> None:
    name = GlobalVar("f")
    x = var("x", "int32")
    parts = Parts()
    function = Function([x], body_of(parts, FLOAT))
    parts.functions.start(function, name)
    assert parts.functions.has_started(function)
    inner = parts.type_of(name)
    assert isinstance(inner, FuncType) and isinstance(inner.ret_type, Unknown)
    parts.functions.leave(function)
    assert find(inner.ret_type) == FLOAT  # the recursive call learns it, too


def test_names_of_a_module() -> None:
    x = var("x", "int32")
    function = Function([x], x, INT)
    parts = Parts({"f": function}, given={"g": FuncType([], FLOAT)})
    known, given, missing = GlobalVar("f"), GlobalVar("g"), GlobalVar("h")
    assert parts.functions.name(known) is function  # to be looked at first
    parts.functions.start(function, known)
    again = GlobalVar("f")
    assert parts.functions.name(again) is None and parts.type_of(again) == FuncType([INT], INT)
    assert parts.functions.name(given) is None and parts.type_of(given) == FuncType([], FLOAT)
    assert parts.functions.name(missing) is None and parts.found.types[missing] is POISON
    assert parts.said == [("R0312", "the module has no function `@h`")]


def test_a_function_that_was_typed_before_is_taken_over() -> None:
    x = var("x", "int32")
    function = Function([x], x, INT)
    check(function)
    name = GlobalVar("f")
    parts = Parts({"f": function}, fresh=False)
    assert parts.functions.name(name) is None and parts.type_of(name) == FuncType([INT], INT)
    assert parts.earlier.used


@pytest.mark.parametrize("result", [None, INT])
def test_an_external_function(result: Type | None) -> None:
    parts = Parts()
    function = Function([var("x", "int32")], None, result)  # type: ignore[arg-type]
    parts.functions.signature(function)
    parts.functions.leave(function)
    assert [code for code, _ in parts.said] == ([] if result is not None else ["R0304"])


def test_a_parameter_twice() -> None:
    parts = Parts()
    x = var("x", "int32")
    parts.functions.signature(Function([x, x], x))
    assert parts.said == [("R0316", "the parameter `%x` is bound twice")]
