"""Runs TVM 0.16's own tests of Relay through `relaylang.tvm`, and compares them with the table `tests/tvm/suite.tsv`.

    RELAY_TVM_TESTS=tvm/tests/python/relay scripts/tvm_suite.py                   all of them
    RELAY_TVM_TESTS=... scripts/tvm_suite.py test_op_level1.py test_adt.py::test_f   some files or tests
    ... --write                                                                   write the table anew; reasons stay
    ... --results FILE                                                            write every test's result and message

The table has a row for each test that does not pass here: its name and the reason. A test without a row passes. Each
file runs in a process of its own; a test that takes longer than `--seconds` fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/tvm/suite.tsv"
HEAD = "test\treason\n"
#: Name of a test -> (outcome, message).
Results = dict[str, tuple[str, str]]


def read_table() -> dict[str, str]:
    """The tests that do not pass, and why."""
    if not TABLE.exists():
        return {}
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    return {name: reason for name, reason in rows}


def write_table(rows: dict[str, str]) -> None:
    TABLE.write_text(HEAD + "".join(f"{name}\t{reason}\n" for name, reason in sorted(rows.items())), encoding="utf-8")


def run_file(tests: Path, selected: list[str], seconds: int) -> Results:
    """The results of one file's tests."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as out:
        base = tests.parents[2]
        env = {
            **os.environ,
            "RELAY_TVM_RESULTS": out.name,
            "RELAY_TVM_SECONDS": str(seconds),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scripts"), str(tests)]),
        }
        options = [
            "-q",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            "-p",
            "relaylang.tvm.testing.plugin",
            "-p",
            "tvm_suite_results",
            "--rootdir",
            str(base),
            "-W",
            "ignore",
        ]
        limit = seconds * 40
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *selected], cwd=base, env=env, capture_output=True, text=True, timeout=limit
            )
            said = done.stdout[-2000:]
        except subprocess.TimeoutExpired:
            said = f"the file took longer than {limit} s"
        found: Results = {}
        started = None
        for line in out.read().splitlines():
            name, outcome, message = json.loads(line)
            if outcome == "started":
                started = name
                continue
            found[name] = (outcome, message)
        if started is not None and started not in found:
            found[started] = ("failed", f"the process ended: {said[-300:]}")
        if not found:
            found[selected[0]] = ("failed", f"not collected: {said}")
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="files below the folder, or tests in them")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=60, help="the most that one test may take")
    parser.add_argument("--write", action="store_true", help="write the table anew")
    parser.add_argument("--results", metavar="FILE", help="write every test's result and message there")
    args = parser.parse_args()
    folder = os.environ.get("RELAY_TVM_TESTS")
    if not folder or not Path(folder).is_dir():
        print("RELAY_TVM_TESTS names no folder: give it that of TVM 0.16's tests, tests/python/relay", file=sys.stderr)
        return 2
    tests = Path(folder).resolve()
    if args.tests:
        chosen: dict[str, list[str]] = {}
        for name in args.tests:
            chosen.setdefault(name.partition("::")[0], []).append(f"{tests.relative_to(tests.parents[2])}/{name}")
        jobs = list(chosen.values())
    else:
        files = sorted([*tests.rglob("test_*.py"), *(tests.parent / "ir").rglob("test_*.py")])
        jobs = [[str(file.relative_to(tests.parents[2]))] for file in files]
    results: Results = {}
    table = read_table()
    wrong = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for selected, found in zip(jobs, pool.map(lambda job: run_file(tests, job, args.seconds), jobs)):
            results |= found
            counts = Counter(outcome for outcome, _ in found.values())
            new = [name for name, (outcome, _) in found.items() if outcome == "failed" and name not in table]
            mended = [name for name, (outcome, _) in found.items() if outcome == "passed" and name in table]
            wrong += len(new) + len(mended)
            print(f"{counts['passed']:5} passed {counts['failed']:5} failed {counts['skipped']:5} skipped  {selected[0]}", flush=True)
            for name in new:
                print(f"      fails, though the table has no row for it: {name}")
            for name in mended:
                print(f"      passes, though the table has a row for it: {name}")
    counts = Counter(outcome for outcome, _ in results.values())
    print(f"{counts['passed']:5} passed {counts['failed']:5} failed {counts['skipped']:5} skipped")
    if args.results:
        lines = [f"{name}\t{outcome}\t{' '.join(message.split())[:400]}\n" for name, (outcome, message) in sorted(results.items())]
        Path(args.results).write_text("".join(lines), encoding="utf-8")
    if args.write:
        rows = {name: reason for name, reason in table.items() if results.get(name, ("failed",))[0] == "failed"}
        rows |= {name: table.get(name, "") for name, (outcome, _) in results.items() if outcome == "failed"}
        write_table(rows)
        return 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
