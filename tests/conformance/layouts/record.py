"""Asks TVM what it makes of the programs: `RELAY_ORACLE=PYTHON python -m tests.conformance.layouts.record`.

Writes recorded.json: of each program a number for what TVM makes of it (see `digest`), or that it refuses it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from relaylang.diagnostics import RelayError
from relaylang.typing import infer
from tests.conformance.layouts.cases import cases, digest, read
from tests.shared import GOLDEN, SHARED

HERE = Path(__file__).parent
NETWORKS = ("resnet18", "mobilenet", "squeezenet")


def networks() -> dict[str, str]:
    """The networks' texts, if available."""
    files = {name: GOLDEN / f"{name}.typed.relay" for name in NETWORKS}
    return {name: file.read_text() for name, file in files.items() if file.is_file()}


def main() -> None:
    if not os.environ.get("RELAY_ORACLE"):
        sys.exit("RELAY_ORACLE names no Python with TVM")
    asked = json.dumps(cases(networks()))
    done = subprocess.run(
        [os.environ["RELAY_ORACLE"], str(HERE / "worker.py"), str(SHARED / "oracle")],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
        timeout=1800,
    )
    found = {}
    for name, text in json.loads(done.stdout.splitlines()[-1]).items():
        if text.startswith("!"):
            found[name] = "refused"
            continue
        try:
            mod = read(text)
            infer(mod)
            found[name] = digest(mod)
        except RelayError as problem:
            found[name] = f"not read: {problem.diagnostics[0].title}"
    (HERE / "recorded.json").write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
