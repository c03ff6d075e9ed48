"""Defunctionalization: polymorphic functions as operands."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.transform import (
    Defunctionalization,
    InferType,
)
from tests.passes.texts import module


def test_polymorphic_functions_as_operands_become_data() -> None:
    text = """
        def @twice[A](%f: fn(A) -> A, %x: A) -> A { %f(%f(%x)) }
        def @same[A](%x: A) -> A { %x }
        def @main(%x: int32) -> int32 {
          %0 = fn[A](%a: A) -> A { %a };
          add(@twice(@same, %x), @twice(%0, %x))
        }
    """
    mod = module(text)
    made = InferType()(Defunctionalization()(mod))
    assert evaluate(made, np.int32(7)) == evaluate(mod, np.int32(7)) == 14
    again = module(text)
    again["main"] = Defunctionalization(again["main"], again)
    assert evaluate(InferType()(again), np.int32(7)) == 14


def test_a_polymorphic_function_without_a_use_that_fixes_it_is_refused() -> None:
    text = "def @main(%x: int32) -> int32 { %0 = (fn[A](%a: A) -> A { %a }, %x); %0.1 }"
    with pytest.raises(RelayError) as wrong:
        Defunctionalization()(module(text))
    assert wrong.value.diagnostics[0].code == "R0515"
