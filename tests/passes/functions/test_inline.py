"""Inline, and RemoveUnusedFunctions behind it."""

from __future__ import annotations

import relaylang as relay
from relaylang.ir import GlobalVar, post_order
from tests.passes.texts import after, module, ops

CALLS = """
def @twice(%a: Tensor[(2, 3), float32], Inline=1) { let %t = add(%a, %a); %t }
def @other(%a: Tensor[(2, 3), float32]) { @unused(%a) }
def @unused(%a: Tensor[(2, 3), float32]) { %a }
def @main(%x: Tensor[(2, 3), float32]) { add(@twice(%x), @twice(exp(%x))) }
"""


def test_marked_functions_that_nobody_calls_stay() -> None:
    mod = after("Inline", CALLS + "def @entry(%a: Tensor[(2, 3), float32], Inline=1) { @other(%a) }")
    assert "entry" in mod and "twice" not in mod


def test_functions_are_inlined_and_unused_ones_go() -> None:
    mod = after("Inline", CALLS)
    assert [gv.name_hint for gv in mod.functions] == ["other", "unused", "main"]
    assert ops(mod).count("add") == 3 and not any(isinstance(n, GlobalVar) for n in post_order(mod["main"]))
    kept = after("RemoveUnusedFunctions", CALLS)
    assert [gv.name_hint for gv in kept.functions] == ["twice", "main"]
    some = relay.transform.RemoveUnusedFunctions(["other"])(module(CALLS))
    assert [gv.name_hint for gv in some.functions] == ["other", "unused"]
