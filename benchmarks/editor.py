"""How fast an edit in a long file is answered, beside a fresh reading of the file.

    python benchmarks/editor.py [--lines 50000] [--times 15] [--write]

A letter changes in the middle of the file. "Diagnostics" reads and checks the new text. "Hover" and "completion" then answer
at this place, and "all" is their sum. "Fresh" does the same on a text that nobody has read before. The figures are processor
milliseconds: medians, with maxima in brackets. The protocol and the rest of 50 ms before a check are not in them; `lsp.py`
has these. The last columns count the definitions that are parsed again, and the functions that are checked again.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.lsp import network, processor  # noqa: E402
from relaylang.lsp import features  # noqa: E402
from relaylang.lsp.analysis import Analysis  # noqa: E402
from relaylang.lsp.completion import completion  # noqa: E402
from relaylang.lsp.document import Document  # noqa: E402

RESULTS = ROOT / "benchmarks/results/editor.md"
LIMIT = 50.0


def functions(lines: int, each: int) -> str:
    """Networks of `each` lines, with a name each."""
    out = ['#[version = "0.0.5"]']
    for number in range(lines // each):
        head, *body = network(each)
        out += [head.replace("@main", f"@net{number}"), *body]
        out += ["// end"] * (each - len(body) - 1)
    return "\n".join(out) + "\n"


PROGRAMS: dict[str, Callable[[int], str]] = {
    "functions of 100 lines": lambda lines: functions(lines, 100),
    "functions of 1 000 lines": lambda lines: functions(lines, 1000),
    "one function": lambda lines: functions(lines, lines),
}


def spent(act: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and the processor milliseconds that it took."""
    began = time.process_time()
    made = act()
    return made, (time.process_time() - began) * 1000


def answers(text: str, at: int, before: Analysis | None, wrong: bool) -> tuple[Analysis, list[float]]:
    """The analysis of a text, and the times of its diagnostics, of hover and of completion at a place."""
    analysis, read = spent(lambda: Analysis(text, "net.relay", before=before))
    assert any(d.severity == "error" for d in analysis.diagnostics) == wrong
    said, hovered = spent(lambda: features.hover(analysis, at + 5))
    assert said is not None and "Tensor" in said[1]
    offers, completed = spent(lambda: completion(text, text.index("(", at) + 1, analysis))
    assert offers
    return analysis, [read, hovered, completed, read + hovered + completed]


def says(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ({max(times):.0f})"


def measure(name: str, lines: int, times: int) -> tuple[list[str], float]:
    """The rows of a program, and the median of an answer in ms."""
    text = PROGRAMS[name](lines)
    at = text.index("let %b", text.index("let", len(text) // 2))
    value = text.index("= ", at) + 2
    analysis, fresh = answers(text, at, None, False)
    rows, most = [], 0.0
    for what, piece in (("a space", " "), ("an unknown name", "x"), ("an open bracket", "(")):
        found: list[list[float]] = []
        parsed = checked = 0
        for _ in range(times):
            new = text[:value] + piece + text[value:]
            old = set(map(id, analysis.reading.parts)) if isinstance(analysis.reading, Document) else set()
            changed, took = answers(new, at, analysis, piece != " ")
            found.append(took)
            assert isinstance(changed.reading, Document)
            parsed = sum(id(part) not in old for part in changed.reading.parts)
            checked = len(changed.reading.checker.looked_at)
            analysis = answers(text, at, changed, False)[0]
        columns = list(zip(*found))
        most = max(most, statistics.median(columns[-1]))
        rows.append(f"| {name} | {what} | {' | '.join(map(says, map(list, columns)))} | {fresh[-1]:.0f} | {parsed} | {checked} |")
    return rows, most


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--lines", type=int, default=50_000)
    options.add_argument("--times", type=int, default=15)
    options.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    args = options.parse_args()
    rows: list[str] = []
    verdicts: list[str] = []
    for name in PROGRAMS:
        made, most = measure(name, args.lines, args.times)
        rows += made
        print(*made, sep="\n", flush=True)
        verdicts.append(f"- {name}: {most:.0f} ms, {'within' if most <= LIMIT else 'above'} the limit of {LIMIT:.0f} ms")
    head = "| file | edit | diagnostics | hover | completion | all | fresh | parsed | checked |"
    text = "\n".join(
        [
            "# An edit in a long file",
            "",
            f"{processor()} ({platform.machine()}), {os.cpu_count()} processors that others used at the same time, "
            f"Python {platform.python_version()}; load {os.getloadavg()[0]:.1f}.",
            "`python benchmarks/editor.py --write` repeats the measurement.",
            "",
            *(__doc__ or "").split("\n\n", 2)[2].strip().split("\n"),
            f"Each file has {args.lines} lines and gets {args.times} edits of each kind.",
            "",
            *verdicts,
            "",
            head,
            "|---" * (head.count("|") - 1) + "|",
            *rows,
            "",
        ]
    )
    if args.write:
        RESULTS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
