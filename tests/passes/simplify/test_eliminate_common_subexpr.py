"""EliminateCommonSubexpr: one node for equal ones."""

from __future__ import annotations

import relaylang as relay
from tests.passes.texts import after, main, module, ops


def test_common_subexpressions_are_one_node() -> None:
    mod = after("EliminateCommonSubexpr", main("%0 = add(%x, 1f); %1 = add(%x, 1f); multiply(nn.relu(%0), nn.relu(%1))"))
    assert ops(mod) == ["add", "nn.relu", "multiply"]
    mod = after("EliminateCommonSubexpr", main("add(sum(%x, axis=[0]), sum(%x, axis=[1], keepdims=True))"))
    assert ops(mod).count("sum") == 2
    kept = relay.transform.EliminateCommonSubexpr(lambda e: True)(module(main("add(exp(%x), exp(%x))")))
    assert ops(kept).count("exp") == 2
