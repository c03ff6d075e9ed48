"""Why a result is not TVM's: the first row of reasons.txt whose pass, verdict and words fit.

A row is `pass :: verdict :: words :: reason`. The first three are regular expressions of the pass's name, the verdict,
and the difference's text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROWS = [line.split(" :: ") for line in (Path(__file__).parent / "reasons.txt").read_text().splitlines()]


def reason(row: dict[str, Any]) -> str | None:
    """The reason of a case (a row of `record.py`), or None."""
    for name, verdict, words, why in ROWS:
        if re.match(name, row["pass"]) and re.search(verdict, row["verdict"]) and re.search(words, row["detail"]):
            return why
    return None
