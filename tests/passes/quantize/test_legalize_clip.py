"""Legalize: clips of requantized tensors."""

from __future__ import annotations

import pytest

from relaylang.transform import (
    Legalize,
)
from tests.passes.texts import module


@pytest.mark.parametrize(
    ("low", "high", "dtype", "kept"),
    [
        (-128, 127, "int8", False),
        (-127, 127, "int8", True),
        (-128, 127, "int16", True),
    ],
)
def test_clips_of_what_is_requantized(low: int, high: int, dtype: str, kept: bool) -> None:
    text = (
        f'def @main(%x: Tensor[(2), int32]) {{ %0 = qnn.requantize(%x, 1f, 0, 1f, 0, out_dtype="{dtype}"); '
        f"clip(%0, a_min={low}f, a_max={high}f) }}"
    )
    assert ("clip" in Legalize()(module(text)).astext()) is kept
