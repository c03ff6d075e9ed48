"""Inline: names of functions as values."""

from __future__ import annotations

import numpy as np

from relaylang.interpreter import evaluate
from relaylang.transform import (
    InferType,
    Inline,
)
from tests.passes.texts import module


def test_inlined_names_as_values() -> None:
    text = """
        def @f(%x: int32, Inline=1) -> int32 { add(%x, 1) }
        def @g(%x: int32, Inline=1) -> int32 { multiply(@f(%x), 2) }
        def @main(%p: bool, %x: int32) -> int32 { %0 = if (%p) { @f } else { @g }; add(%0(%x), @f(%x)) }
    """
    mod = module(text)
    made = InferType()(Inline()(mod))
    assert [gv.name_hint for gv in made.functions] == ["main"]
    for p in (True, False):
        assert evaluate(made, p, np.int32(5)) == evaluate(mod, p, np.int32(5))
