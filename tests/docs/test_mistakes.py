"""The page of typical mistakes has the messages that the programs get."""

from __future__ import annotations

import re
import runpy

import pytest

from tests.shared import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts/mistakes_page.py"))
TEXT = SCRIPT["PAGE"].read_text(encoding="utf-8")
CASES = [(m["program"], m["message"] or "") for m in SCRIPT["CASE"].finditer(TEXT)]


def test_the_page_has_seventy_mistakes() -> None:
    assert len(CASES) == TEXT.count("\n### ") >= 70


@pytest.mark.parametrize(("program", "wanted"), CASES, ids=re.findall(r"^### (.*)", TEXT, re.M))
def test_a_mistake_gets_its_message(program: str, wanted: str) -> None:
    found = SCRIPT["message"](program)
    assert found == wanted, "run python scripts/mistakes_page.py"
    assert found.startswith("net.relay:")
