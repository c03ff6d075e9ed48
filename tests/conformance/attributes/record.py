"""Asks TVM how it writes every operator's attributes: `RELAY_ORACLE=PYTHON python -m tests.conformance.attributes.record`.

Writes recorded.json.gz: by operator the metadata section and the function's text.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conformance.attributes.cases import cases
from tests.shared import SHARED

HERE = Path(__file__).parent


def main() -> None:
    if not os.environ.get("RELAY_ORACLE"):
        sys.exit("RELAY_ORACLE names no Python with TVM")
    done = subprocess.run(
        [os.environ["RELAY_ORACLE"], str(HERE / "worker.py"), str(SHARED / "oracle")],
        input=json.dumps(cases()),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    text = json.dumps(found, indent=0, sort_keys=True)
    (HERE / "recorded.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    for name, problem in found.items():
        if isinstance(problem, str):
            print(name, problem)
    print(f"{sum(not isinstance(v, str) for v in found.values())} of {len(found)} recorded")


if __name__ == "__main__":
    main()
