"""SimplifyExpr: neutral booleans and casts, as TVM's own tests have them."""

from __future__ import annotations

import pytest

from relaylang.transform import (
    SimplifyExpr,
)
from tests.passes.texts import module, same


@pytest.mark.parametrize(
    "written",
    [
        'add(%x, zeros(shape=[3], dtype="bool"))',
        'multiply(%x, ones(shape=[3], dtype="bool"))',
        "multiply(%x, ones_like(%x))",
    ],
)
def test_neutral_booleans(written: str) -> None:
    mod = module(f"def @main(%x: Tensor[(3), bool]) {{ {written} }}")
    assert same(SimplifyExpr()(mod), "def @main(%x: Tensor[(3), bool]) { %x }")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('cast(cast(%c, dtype="uint8"), dtype="int32")', 'cast(%c, dtype="int32")'),
        ('cast(cast(cast(%c, dtype="uint8"), dtype="int16"), dtype="int32")', 'cast(%c, dtype="int32")'),
        ('cast(cast(%c, dtype="int8"), dtype="int32")', None),
        ('cast(cast(%c, dtype="uint8"), dtype="float32")', None),
        ('cast(cast(%c, dtype="int32"), dtype="int8")', None),
    ],
)
def test_casts_of_clipped_floats(written: str, expected: str | None) -> None:
    text = "def @main(%x: Tensor[(3), float32]) {{ %0 = clip(%x, a_min=0f, a_max=255f); {} }}"
    mod = module(text.format(written.replace("%c", "%0")))
    assert same(SimplifyExpr()(mod), text.format((expected or written).replace("%c", "%0")))


def test_a_cast_to_bool_says_whether_an_integer_is_zero() -> None:
    text = 'def @main(%x: Tensor[(3), int32]) { cast(cast(clip(%x, a_min=-1f, a_max=1f), dtype="bool"), dtype="int32") }'
    assert same(SimplifyExpr()(module(text)), text)
