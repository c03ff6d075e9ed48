"""What is no expression is refused where a program is made of it, not when it is printed or checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relaylang.ir import Call, Function, If, Let, Tuple, Var, const
from relaylang.ops import OPS

X = Var("x")
MAKERS: dict[str, Callable[[object], object]] = {
    "the body of a function": lambda p: Function([X], p),  # type: ignore[arg-type]
    "an argument of a call": lambda p: Call(OPS["add"], [X, p]),  # type: ignore[list-item]
    "a field of a tuple": lambda p: Tuple([X, p]),  # type: ignore[list-item]
    "the value of a let": lambda p: Let(X, p, X),  # type: ignore[arg-type]
    "the body of a let": lambda p: Let(X, X, p),  # type: ignore[arg-type]
    "the condition of an if": lambda p: If(p, X, X),  # type: ignore[arg-type]
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
