"""The pages of the importers list the operators that the importers have."""

from __future__ import annotations

import importlib.util

from tests.shared import ROOT


def test_the_pages_are_those_of_the_tables() -> None:
    spec = importlib.util.spec_from_file_location("importers_pages", ROOT / "scripts" / "importers_pages.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name, text in script.pages().items():
        assert (ROOT / "docs" / name).read_text() == text, "run scripts/importers_pages.py"
