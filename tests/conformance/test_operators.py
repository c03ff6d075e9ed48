"""Every operator's type relation against what TVM 0.16 says of the same calls.

recorded.json.gz holds the calls and TVM's answers, differences.txt where ours are others, and why. Without TVM the
recorded answers are compared; `make conformance` generates the calls anew, asks TVM, and compares the same way.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from relaylang.ops import OPS
from tests.conformance.differences import STRICTER, agree, reason
from tests.conformance.ours import answer
from tests.conformance.seeds import LEFT_OUT

HERE = Path(__file__).parent
RECORDED: dict[str, list[Any]] = json.loads(gzip.decompress((HERE / "recorded.json.gz").read_bytes()))


def line(op: str, args: list[str], attrs: dict[str, Any], theirs: str, ours: str, why: str | None) -> str:
    ours = ours if ours.startswith("= ") else "refused"
    theirs = theirs if theirs.startswith("= ") else theirs.split()[0]
    return f"{op} {' '.join(args)} {json.dumps(attrs)} | TVM {theirs} | here {ours} | {why}"


def differences() -> list[str]:
    out = []
    for op, calls in RECORDED.items():
        for args, attrs, theirs in calls:
            ours = answer(op, args, attrs)
            if not agree(theirs, ours):
                out.append(line(op, args, attrs, theirs, ours, reason(op, attrs, theirs, ours)))
    return out


def test_every_operator_is_tried() -> None:
    assert set(RECORDED) | set(LEFT_OUT) == set(OPS) and len(OPS) == 296
    assert sum(map(len, RECORDED.values())) > 8_000
    for op, calls in RECORDED.items():
        said = Counter(theirs.split()[0] for _, _, theirs in calls)
        assert len(calls) >= 3 and said["="], op


def test_answers_are_tvms_or_explained() -> None:
    found = differences()
    assert [d for d in found if d.endswith("| None")] == []
    assert found == (HERE / "differences.txt").read_text().splitlines()
    total = sum(map(len, RECORDED.values()))
    stricter = [d for d in found if d.rpartition(" | ")[2] in STRICTER]
    assert len(found) - len(stricter) <= 0.01 * total and len(stricter) <= 0.0904 * total
