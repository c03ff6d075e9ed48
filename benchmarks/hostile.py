"""Measures hostile texts at full size: the result of each, its time and its memory.

    python benchmarks/hostile.py [--size 1000000] [--long 10000000] [--write] [NAME...]

A separate process reads each text of `relaylang.testing.hostile.TEXTS`. It checks, prints, reads again, compares and hashes
a program, converts it to A-normal form, and drops it. It does so at a quarter of the size and at the full size. Linear cost
is a ratio of 4. `--size` counts the levels or items of deep and wide texts, `--long` the letters of long words and comments.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import resource
import time
from multiprocessing.connection import Connection
from pathlib import Path

from relaylang.diagnostics import RelayError
from relaylang.testing.hostile import TEXTS, survive

RESULTS = Path(__file__).resolve().parent / "results" / "hostile.md"


def measured(name: str, size: int, answer: Connection) -> None:
    """Run one text and send its result, the seconds, the text's megabytes and the peak of memory in MB."""
    survive("log(1f)")
    text = TEXTS[name](size)
    start = time.process_time()
    result = survive(text)
    said = result.diagnostics[0].code if isinstance(result, RelayError) else type(result).__name__
    del result
    seconds = time.process_time() - start
    answer.send((said, seconds, len(text) / 1e6, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def run(name: str, size: int) -> tuple[str, float, float, float]:
    """`measured` in a separate process; the result names the death of a process."""
    mine, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=measured, args=(name, size, theirs))
    process.start()
    theirs.close()
    try:
        answer: tuple[str, float, float, float] = mine.recv()
    except EOFError:
        process.join()
        return f"died ({process.exitcode})", 0.0, 0.0, 0.0
    process.join()
    return answer


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("names", nargs="*", metavar="NAME", help="some of the texts; all of them by default")
    arguments.add_argument("--size", type=int, default=1_000_000)
    arguments.add_argument("--long", type=int, default=10_000_000)
    arguments.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = arguments.parse_args()
    lines = ["| text | n | MB | result | s | to a quarter of n | peak MB |", "|---|---|---|---|---|---|---|"]
    print("\n".join(lines))
    for name in options.names or TEXTS:
        of_many = "list" in name or "dashed" in name or "dotted" in name
        size = options.long if name.startswith("a long") and not of_many else options.size
        _, quarter, _, _ = run(name, size // 4)
        said, seconds, megabytes, peak = run(name, size)
        times = f"{seconds / quarter:.1f}" if quarter > 0.02 else "-"
        lines.append(f"| {name} | {size:,} | {megabytes:.1f} | {said} | {seconds:.2f} | {times} | {peak:.0f} |")
        print(lines[-1], flush=True)
    if options.write:
        head = [
            "# Hostile texts at full size",
            "",
            f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}; "
            "`python benchmarks/hostile.py --write` repeats the measurement, and its head describes it.",
            "",
        ]
        RESULTS.write_text("\n".join([*head, *lines, ""]))


if __name__ == "__main__":
    main()
