"""FastMath and DivToMul."""

from __future__ import annotations

import numpy as np

from relaylang.interpreter import evaluate
from relaylang.testing.generators.programs import inputs
from relaylang.transform import PASSES, PassContext, Sequential
from tests.passes.texts import after, main, module, ops


def test_fast_math_and_reciprocals() -> None:
    mod = module(main("nn.softmax(tanh(exp(%x)))"))
    with PassContext(opt_level=4):
        fast = Sequential([PASSES["FastMath"]()])(mod)
    assert ops(fast) == ["fast_exp", "fast_tanh", "nn.fast_softmax"]
    x = inputs(0, mod["main"])
    np.testing.assert_allclose(evaluate(mod, *x), evaluate(fast, *x), rtol=1e-3, atol=1e-4)
    assert ops(after("DivToMul", main("divide(%x, 4f)"))) == ["multiply"]
