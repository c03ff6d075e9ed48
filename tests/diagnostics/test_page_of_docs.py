"""docs/diagnostics.md says what relaylang says now."""

from __future__ import annotations

import importlib.util
import json

from tests.shared import ROOT


def test_the_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("diagnostics_page", ROOT / "scripts" / "diagnostics_page.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    record = json.loads(script.RECORD.read_text())
    assert list(record) == [title for title, _ in script.PROGRAMS]
    assert script.PAGE.read_text() == script.page(record), "run scripts/diagnostics_page.py"
    for title, text in script.PROGRAMS:
        assert any(d.severity == "error" and d.span is not None for d in script.ours(text)), title
