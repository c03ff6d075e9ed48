"""Prints how many names of TVM that public programs use are here, and the missing ones.

    .venv/bin/python scripts/tvm_census.py [census.tsv]

Each row of the table has a name of TVM 0.16 and the number of repositories that use it. Shares are weighted by these
numbers. The default is `reference/census.tsv` of the shared test data.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import relaylang.tvm.install  # noqa: F401

#: Parts of TVM that relaylang does not have: kernels, tuners, TVM's own scripts and its later IR.
OUTSIDE = ("te", "tir", "topi", "autotvm", "auto_scheduler", "meta_schedule", "rpc", "script", "relax")


def present(name: str) -> bool:
    """Whether a dotted name below `tvm` can be imported or read."""
    first, *parts = name.split(".")
    value, path = importlib.import_module(first), first
    for part in parts:
        path += f".{part}"
        if part == "*":
            return hasattr(value, "__all__")
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(path)
            except ImportError:
                return False
    return True


def main() -> None:
    shared = Path(os.environ.get("RELAY_SHARED", "../shared"))
    table = Path(sys.argv[1]) if len(sys.argv) > 1 else shared / "reference/census.tsv"
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    weights = {name: int(count) for name, count in rows}
    missing = {name: count for name, count in weights.items() if not present(name)}
    for title, names in (("all", weights), ("tvm.relay", [name for name in weights if name.startswith("tvm.relay")])):
        total, lacking = sum(weights[n] for n in names), sum(missing.get(n, 0) for n in names)
        print(f"{title}: {100 * (1 - lacking / total):.1f} % of {total} uses, {len(names)} names")
    for name, count in sorted(missing.items(), key=lambda row: (-row[1], row[0])):
        if name.split(".")[1] not in OUTSIDE:
            print(f"{count:4} {name}")


if __name__ == "__main__":
    main()
