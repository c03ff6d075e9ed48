"""EtaExpand: functions around constructors and globals that are values."""

from __future__ import annotations

import pytest

from relaylang.interpreter import evaluate
from relaylang.ir import Function
from relaylang.transform import PASSES, InferType, Sequential
from tests.passes.texts import module


def test_constructors_are_eta_expanded() -> None:
    text = (
        "type List[A] { Cons(A, List[A]), Nil }\n"
        "def @build(%f: fn (int32, List[int32]) -> List[int32]) { %f(1, Nil) }\ndef @main() { @build(Cons) }"
    )
    mod = Sequential([PASSES["EtaExpand"](expand_constructor=True)])(module(text))
    InferType()(mod)
    call = mod["main"].body
    assert isinstance(call.args[0], Function)
    assert str(evaluate(mod)) == str(evaluate(module(text)))


@pytest.mark.parametrize("body", ["let %f = Cons; (%f(1, Nil), %f(2f, Nil))", "let %f = @first; (%f(1, 2f), %f(2f, 1))"])
def test_what_is_used_with_several_types_is_eta_expanded_with_type_parameters(body: str) -> None:
    text = "type List[A] { Cons(A, List[A]), Nil }\ndef @first[A, B](%x: A, %y: B) -> A { %x }\n" + f"def @main() {{ {body} }}"
    mod = PASSES["EtaExpand"](expand_constructor=True, expand_global_var=True)(module(text))
    assert InferType()(mod)["main"].body.value.type_params
    assert str(evaluate(mod)) == str(evaluate(module(text)))
