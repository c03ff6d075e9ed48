"""Asks TVM about every generated call: `python -m tests.conformance.record` (`make conformance`).

`RELAY_ORACLE` names the Python that has TVM. Writes recorded.json.gz and differences.txt, and says how many agree.
Fails if a difference has no reason. Fails, too, if more than one in a hundred calls differ that a kernel could compute.
Without TVM it compares with the recorded answers.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from relaylang.ops import OPS
from tests.conformance.differences import STRICTER
from tests.conformance.generate import cases
from tests.shared import SHARED

HERE = Path(__file__).parent
FILE = HERE / "recorded.json.gz"


def record(oracle: str) -> dict[str, list[Any]]:
    calls = list(cases())
    lines = [json.dumps([op, getattr(OPS[op].attrs, "type_key", ""), args, attrs]) for op, args, attrs in calls]
    done = subprocess.run(
        [oracle, str(HERE / "worker.py"), str(SHARED / "oracle")],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=3000,
    )
    answers = done.stdout.splitlines()
    assert len(answers) == len(calls), (len(answers), len(calls))
    rows: dict[str, list[Any]] = {}
    for (op, args, attrs), said in zip(calls, answers):
        rows.setdefault(op, []).append([args, attrs, said])
    text = json.dumps(rows, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return rows


def main() -> None:
    oracle = os.environ.get("RELAY_ORACLE")
    if oracle:
        record(oracle)
    else:
        print("RELAY_ORACLE names no Python with TVM: compared with what is recorded")
    from tests.conformance import test_operators  # reads the file written above

    rows, found = test_operators.RECORDED, test_operators.differences()
    if oracle:
        (HERE / "differences.txt").write_text("\n".join(found) + "\n")
    count = sum(map(len, rows.values()))
    print(f"{count} calls of {len(rows)} of {len(OPS)} operators: {count - len(found)} agree ({1 - len(found) / count:.2%})")
    for why, many in Counter(d.rpartition(" | ")[2] for d in found).most_common():
        print(f"{many:5d}  {why}")
    other = [d for d in found if d.rpartition(" | ")[2] not in STRICTER]
    sys.exit(any(d.endswith("| None") for d in found) or len(other) > 0.01 * count)


if __name__ == "__main__":
    main()
