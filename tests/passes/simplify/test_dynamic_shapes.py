"""DynamicToStatic: shapes that follow from others, and conditions."""

from __future__ import annotations

import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Function, IRModule
from relaylang.transform import (
    DynamicToStatic,
    InferType,
)


def test_conditions_that_are_known_before_types_are() -> None:
    x = relay.var("x", shape=(2, 2), dtype="int64")
    chosen = relay.If(relay.const(1), relay.reshape(x, [1, 4]), relay.reshape(x, [4, 1]))
    made = InferType()(DynamicToStatic()(IRModule.from_expr(Function([x], chosen))))
    assert repr(made["main"].body.checked_type) == "Tensor[(1, 4), int64]"


def test_shapes_whose_length_follows_from_another() -> None:
    x, y = relay.var("x", shape=(), dtype="int32"), relay.var("y", shape=(1, 2, 3), dtype="int64")
    shape = relay.shape_of(y)
    body = relay.full(x, relay.strided_slice(shape, [0], relay.shape_of(shape)), "int32")
    made = InferType()(DynamicToStatic()(IRModule.from_expr(Function([x, y], body))))
    assert repr(made["main"].body.checked_type) == "Tensor[(1, 2, 3), int32]"


def test_what_stays_without_types_is_refused() -> None:
    mod = relay.parse("def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }")
    with pytest.raises(RelayError) as wrong:
        DynamicToStatic()(mod)
    assert wrong.value.diagnostics[0].code == "R0301"
