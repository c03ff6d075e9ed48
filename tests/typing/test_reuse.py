"""Types from an earlier inference, alone."""

from __future__ import annotations

import pytest

from relaylang.ir import Function, FuncType, GlobalVar, IncompleteType, TupleType, Type, Var, scalar_type
from relaylang.ir.typed import typed, typed_var
from relaylang.typing.reuse import Stale
from relaylang.typing.terms import Unknown, find
from tests.typing.parts import Parts

INT, FLOAT = scalar_type("int32"), scalar_type("float32")


def test_a_known_type_is_taken_over() -> None:
    parts = Parts(fresh=False)
    x = typed_var("x", INT)
    assert parts.earlier.take(x) and parts.type_of(x) == INT and parts.earlier.used


@pytest.mark.parametrize("ty", [None, IncompleteType(), TupleType([IncompleteType()])])
def test_an_open_type_is_not(ty: Type | None) -> None:
    parts = Parts(fresh=False)
    assert not parts.earlier.take(typed(Var("x"), ty)) and not parts.earlier.used


def test_a_fresh_inference_takes_nothing() -> None:
    parts = Parts()
    x = typed_var("x", INT)
    assert not parts.earlier.take(x) and not parts.earlier.has(x)
    assert parts.earlier.agreed(x, FLOAT) is FLOAT


def test_a_function_and_its_name() -> None:
    parts = Parts(fresh=False)
    ty = FuncType([], INT)
    function, name = typed(Function([], Var("x")), ty), GlobalVar("f")
    assert parts.earlier.take_function(name, function)
    assert parts.type_of(name) == ty and parts.found.order == [name]
    with pytest.raises(Stale):
        parts.earlier.take_function(typed(GlobalVar("f"), FuncType([], FLOAT)), function)


def test_a_variable_must_have_the_type_that_it_had() -> None:
    parts = Parts(fresh=False)
    x = typed_var("x", INT)
    unknown = Unknown()
    assert parts.earlier.has(x)
    assert find(parts.earlier.agreed(x, unknown)) == INT
    assert parts.earlier.agreed(x, INT) == INT
    with pytest.raises(Stale):
        parts.earlier.agreed(x, FLOAT)


def test_names_that_got_another_type() -> None:
    parts = Parts(fresh=False)
    name = typed(GlobalVar("f"), INT)
    parts.found.put(name, INT)
    parts.earlier.check_names()
    parts.found.put(name, FLOAT)
    with pytest.raises(Stale):
        parts.earlier.check_names()
