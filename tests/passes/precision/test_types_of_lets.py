"""ToMixedPrecision: lets take the types of their values."""

from __future__ import annotations

from relaylang.transform import (
    InferType,
    ToMixedPrecision,
)
from tests.passes.texts import module


def test_lets_take_the_type_of_their_values() -> None:
    text = """def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(4, 4), float32]) {
        let %y: Tensor[(1, 4), float32] = nn.dense(%x, %w, units=None);
        let %z = add(%y, %y); nn.dense(%z, %w, units=None) }"""
    made = InferType()(ToMixedPrecision()(module(text)))
    assert repr(made["main"].body.checked_type) == "Tensor[(1, 4), float16]"
    assert repr(made["main"].body.variable.checked_type) == "Tensor[(1, 4), float16]"
