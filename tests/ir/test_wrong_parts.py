"""Values that are no expressions are refused when a program is built, not when it is printed or checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relaylang.ir import Call, Function, If, IRModule, Let, TensorType, Tuple, TupleGetItem, Var, const
from relaylang.ops import OPS

X = Var("x")
MAKERS: dict[str, Callable[[object], object]] = {
    "the body of a function": lambda p: Function([X], p),  # type: ignore[arg-type]
    "an argument of a call": lambda p: Call(OPS["add"], [X, p]),  # type: ignore[list-item]
    "a field of a tuple": lambda p: Tuple([X, p]),  # type: ignore[list-item]
    "the value of a let": lambda p: Let(X, p, X),  # type: ignore[arg-type]
    "the body of a let": lambda p: Let(X, X, p),  # type: ignore[arg-type]
    "the condition of an if": lambda p: If(p, X, X),  # type: ignore[arg-type]
    "a call's callee": lambda p: Call(p, [X]),  # type: ignore[arg-type]
    "the tuple that a field is taken of": lambda p: TupleGetItem(p, 0),  # type: ignore[arg-type]
    "the false branch of an if": lambda p: If(X, X, p),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", MAKERS)
@pytest.mark.parametrize("part", [3, 1.5, "x", [X]])
def test_a_part_that_is_no_expression(what: str, part: object) -> None:
    with pytest.raises(TypeError, match=f"^{what} is an expression"):
        MAKERS[what](part)


def test_a_parameter_is_a_variable() -> None:
    with pytest.raises(TypeError, match="a function's parameter is a Var"):
        Function([const(1)], X)  # type: ignore[list-item]


def test_lists_and_numbers_are_named() -> None:
    with pytest.raises(TypeError, match="a function's parameters are a list"):
        Function(X, X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a call's arguments are a list"):
        Call(OPS["negative"], X)  # type: ignore[arg-type]
    for index in ("0", 1.0, None, True):
        with pytest.raises(TypeError, match="the number of a tuple's field is an int"):
            TupleGetItem(X, index)  # type: ignore[arg-type]


def test_a_module_holds_functions() -> None:
    with pytest.raises(TypeError, match="a module's function is"):
        IRModule({"main": 3})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="a module's function is"):
        IRModule()["main"] = "x"


@pytest.mark.parametrize("dtype", [None, 3, ["int8"]])
def test_an_element_type_has_a_name(dtype: object) -> None:
    with pytest.raises(TypeError, match="an element type is a name"):
        TensorType((2,), dtype)  # type: ignore[arg-type]
