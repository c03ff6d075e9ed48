"""The picture in README shows what relay prints."""

from __future__ import annotations

import runpy

from tests.shared import ROOT


def test_the_picture_is_what_the_calls_print() -> None:
    made = runpy.run_path(str(ROOT / "scripts/picture.py"))
    shown = (ROOT / "docs/session.svg").read_text(encoding="utf-8")
    assert made["picture"](made["session"]()) == shown, "run python scripts/picture.py"
