"""Where third-party test data lies; tests that need it skip where it is absent."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("RELAY_SHARED", ROOT.parent / "shared"))
GOLDEN = SHARED / "golden"
FRAGMENTS = SHARED / "fragments"
CORPUS = SHARED / "corpus"

needs_shared = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no shared data at {SHARED} (set RELAY_SHARED)")


def golden(kind: str) -> list[Path]:
    """The golden files of one kind ("typed", "anf", "simplified", "fused"), or an empty list."""
    return sorted(GOLDEN.glob(f"*.{kind}.relay"))
