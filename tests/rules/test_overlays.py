"""Rules of users lie on top of the tables, and leave the tables as they are."""

from __future__ import annotations

from typing import Any

import pytest

from relaylang.ir import Call, Expr
from relaylang.ops import get
from relaylang.passes.layout.registry import ALTER, INFER, TempOpAttr
from relaylang.passes.quantize.legalizations import MAPS, register_legalize
from relaylang.rules import layout, legalize


def test_a_layout_rule_of_a_user_goes_with_its_block() -> None:
    def mine(attrs: Any, new: Any, old: Any, types: Any) -> None:
        return None

    before = dict(layout.RULES)
    with TempOpAttr("nn.relu", "FInferCorrectLayout", mine):
        assert INFER["nn.relu"] is mine
        assert layout.RULES == before
    assert INFER["nn.relu"] is layout.RULES["nn.relu"]


def test_a_layout_rule_of_a_user_may_be_for_an_operator_without_a_rule() -> None:
    assert "nn.softmax" not in layout.RULES
    with TempOpAttr("nn.softmax", "FInferCorrectLayout", lambda *about: None):
        assert "nn.softmax" in INFER
    assert "nn.softmax" not in INFER


def test_a_function_that_alters_layouts_goes_with_its_block() -> None:
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", None):
        assert ALTER["nn.conv2d"] is None
    assert "nn.conv2d" not in ALTER


def test_a_legalization_of_a_user_goes_before_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(attrs: Any, inputs: Any, types: Any) -> Expr:
        return Call(get("nn.relu"), inputs)

    monkeypatch.setitem(MAPS, "FTVMLegalize", MAPS["FTVMLegalize"].copy())  # type: ignore[attr-defined]
    register_legalize("clip", mine)
    assert MAPS["FTVMLegalize"]["clip"] is mine
    assert legalize.RULES["clip"] is not mine
