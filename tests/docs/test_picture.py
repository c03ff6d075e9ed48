"""The pictures of README and of the first page show what relay prints and draws."""

from __future__ import annotations

import re
import runpy

import pytest

from tests.shared import ROOT


@pytest.mark.sweep
def test_the_picture_is_what_the_calls_print() -> None:
    made = runpy.run_path(str(ROOT / "scripts/picture.py"))
    shown = (ROOT / "docs/session.svg").read_text(encoding="utf-8")
    assert made["picture"](made["session"]()) == shown, "run python scripts/picture.py"


def test_the_graph_is_that_of_the_network() -> None:
    made = runpy.run_path(str(ROOT / "scripts/picture.py"))
    labels = re.compile(r"<text[^>]*>([^<]*)</text>")
    shown = (ROOT / "docs/graph.svg").read_text(encoding="utf-8")
    assert labels.findall(made["graph"]()) == labels.findall(shown), "run python scripts/picture.py"
