"""How fast `relay lsp` answers on files of 5 000 lines.

    python benchmarks/lsp.py [--lines 5000] [--times 15] [--write]

A client over stdio changes one letter in the middle of the file, and waits for the new diagnostics. The figures are
processor milliseconds of the server: medians, with maxima in brackets. They cover reading and checking alone, and the
way from the keystroke to the diagnostics. The other columns are later requests of an editor, each after another keystroke.
"Time passed" is the wall time of the keystroke. It includes the 50 ms of rest before a check, and other processes.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from relaylang.lsp.analysis import Analysis  # noqa: E402
from tests.lsp.client import Client  # noqa: E402

RESULTS = ROOT / "benchmarks/results/lsp.md"
LIMIT = 200.0


def chain(lines: int) -> list[str]:
    """One function: a chain of element-wise operators, a statement a line."""
    body = ["  %0 = nn.relu(%x);", *(f"  %{i} = add(%{i - 1}, %x);" for i in range(1, lines - 4))]
    return ["def @main(%x: Tensor[(2, 3), float32]) {", *body, f"  %{lines - 5}", "}"]


def network(lines: int) -> list[str]:
    """One function: convolutions with their attributes, biases and activations, bound by lets."""
    body = []
    before = "%x"
    for i in range((lines - 4) // 3):
        body += [
            f"  let %a{i} = nn.conv2d({before}, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);",
            f"  let %b{i} = nn.bias_add(%a{i}, %b);",
            f"  let %c{i} = nn.relu(%b{i});",
        ]
        before = f"%c{i}"
    head = "def @main(%x: Tensor[(1, 8, 32, 32), float32], %w: Tensor[(8, 8, 3, 3), float32], %b: Tensor[(8), float32]) {"
    return [head, *body, f"  {before}", "}"]


def functions(lines: int) -> list[str]:
    """Functions of five lines, each calling the one before, with tuples, branches and matches."""
    out = ["type Tree { Leaf(int32), Fork(Tree, Tree), }", "def @f0(%t: Tree, %n: int32) -> int32 { %n }"]
    for i in range(1, (lines - 3) // 5):
        out += [
            f"def @f{i}(%t: Tree, %n: int32) -> int32 {{",
            f"  let %m = if (greater(%n, {i})) {{ @f{i - 1}(%t, %n) }} else {{ %n }};",
            "  let %p = (%m, multiply(%n, 2));",
            "  match (%t) { Leaf(%k) => add(%k, %p.0), Fork(%l, %r) => add(%p.1, %m) }",
            "}",
        ]
    return out


PROGRAMS: dict[str, Callable[[int], list[str]]] = {
    "a chain of 5 000 operators": chain,
    "a network of lets": network,
    "1 000 functions": functions,
}


def spent(pid: int | str) -> float:
    """The processor milliseconds that a process has used."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


class Clock:
    """Processor time of the server, and the time that passed, in milliseconds."""

    def __init__(self, pid: int | str) -> None:
        self.pid = pid
        self.passed: list[float] = []

    def __call__(self, act: Callable[[], Any]) -> float:
        began, before = time.perf_counter(), spent(self.pid)
        act()
        used = spent(self.pid) - before
        self.passed.append((time.perf_counter() - began) * 1000)
        return used


def says(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ({max(times):.0f})"


def program(make: Callable[[int], list[str]], lines: int) -> list[str]:
    """A program of exactly that many lines."""
    text = ['#[version = "0.0.5"]', *make(lines)]
    return text + ["// end"] * (lines - len(text))


def measure(make: Callable[[int], list[str]], lines: int, times: int, client: Client) -> tuple[list[str], tuple[float, float]]:
    """A row of the table, and the medians from keystroke to diagnostics in ms, without and with an error."""
    text = program(make, lines)
    assert len(text) == lines
    whole = "\n".join(text) + "\n"
    assert client.open(whole) == []
    middle = next(i for i in range(lines // 2, lines) if "add(" in text[i] or "relu(" in text[i])
    column = len(text[middle])
    screen = {"start": {"line": middle - 30, "character": 0}, "end": {"line": middle + 30, "character": 0}}
    timed, alone_clock = Clock(client.process.pid), Clock("self")
    alone = [alone_clock(lambda i=i: Analysis(whole + "//" + "x" * i, "net.relay")) for i in range(times)]  # type: ignore[misc]

    def keystroke(wrong: bool) -> float:
        """A letter that makes a name unknown, or a space; taken back again."""
        at = text[middle].index("(") if wrong else column

        def act() -> None:
            client.change((middle, at), (middle, at), "x" if wrong else " ")
            assert bool(client.diagnostics()) == wrong

        took = timed(act)
        client.change((middle, at), (middle, at + 1), "")
        assert client.diagnostics() == []
        return took

    right = [keystroke(False) for _ in range(times)]
    passed = timed.passed
    timed = Clock(client.process.pid)
    bad = [keystroke(True) for _ in range(times)]
    asked = []
    for call in (
        lambda: client.whole("semanticTokens/full"),
        lambda: client.whole("inlayHint", range=screen),
        lambda: client.at("hover", middle, text[middle].index("(") - 2),
        lambda: client.at("completion", middle, text[middle].index("(") - 1),
        lambda: client.whole("documentSymbol"),
        lambda: client.whole("formatting", options={"tabSize": 2, "insertSpaces": True}),
    ):
        one = []
        for _ in range(max(3, times // 5)):
            client.change((lines, 0), (lines, 0), " ")
            client.diagnostics()
            one.append(timed(call))
            client.change((lines, 0), (lines, 1), "")
            client.diagnostics()
        asked.append(says(one))
    return [says(alone), says(right), says(passed), says(bad), *asked], (statistics.median(right), statistics.median(bad))


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--lines", type=int, default=5000)
    options.add_argument("--times", type=int, default=15)
    options.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    args = options.parse_args()
    rows: list[str] = []
    good: list[str] = []
    above: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        client = Client(Path(folder))
        for name, make in PROGRAMS.items():
            cells, medians = measure(make, args.lines, args.times, client)
            for what, median in zip((name, f"{name} with an error"), medians):
                (good if median <= LIMIT else above).append(f"{what} ({median:.0f} ms)")
            rows.append(f"| {name} | {' | '.join(cells)} |")
            print(rows[-1], flush=True)
        client.close()
    head = (
        "| file | read and check | keystroke to diagnostics | time passed | the same, an error | colours | hints of 60 lines | hover |"
        " completion | symbols | formatting |"
    )
    text = "\n".join(
        [
            "# The language server",
            "",
            f"{processor()} ({platform.machine()}), {os.cpu_count()} processors that others used at the same time, "
            f"Python {platform.python_version()}; load {os.getloadavg()[0]:.1f}.",
            "`python benchmarks/lsp.py --write` repeats the measurement.",
            "",
            *(__doc__ or "").split("\n\n", 2)[2].strip().split("\n"),
            f"Each file has {args.lines} lines and gets {args.times} keystrokes. The limit from the keystroke to the"
            f" diagnostics is {LIMIT:.0f} ms.",
            "",
            *(f"- {what}: within the limit" for what in good),
            *(f"- {what}: above the limit" for what in above),
            "",
            head,
            "|---" * head.count(" | ") + "|---|",
            *rows,
            "",
        ]
    )
    if args.write:
        RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return 1 if above else 0


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((" ".join(s.partition(": ")[2].split()) for s in lines if s.startswith("model name")), platform.processor())


if __name__ == "__main__":
    sys.exit(main())
