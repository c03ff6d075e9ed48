"""Times reading, checking and printing of Relay text against TVM 0.16, both in one run.

    RELAY_ORACLE=/path/to/python python benchmarks/text.py [--rounds N] [--write]

RELAY_ORACLE is a Python with TVM 0.16 (the wheel `hhb-tvm` 3.2.3 holds one), which also makes the programs. Without it, the
tables have relaylang's figures only, on the available programs. Each round times both sides in turn; the least of all
rounds counts. TVM's parser alone is `relay.parser.ParseExpr` on the same text with `fn` in place of `def @main`. It builds
the same IR and does not check types. `--write` puts the tables into benchmarks/results/text.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from lark_bars import parser as lark_parser

from relaylang.ir import Call, Constant, Expr, IRModule, var
from relaylang.ops import OPS
from relaylang.syntax import astext, parse
from relaylang.syntax.reader import tables
from relaylang.typing import infer

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "text.md"

SMALL = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8), float32], %w: Tensor[(4, 8), float32]) -> Tensor[(1, 4), float32] {
  %0 = nn.dense(%x, %w, units=4);
  %1 = nn.relu(%0);
  %2 = add(%1, 1f);
  %3 = multiply(%2, %1);
  // the last one
  %4 = nn.softmax(%3);
  tanh(%4)
}
"""

Row = list[str]


class Peer:
    """TVM in a process of its own, with one program."""

    def __init__(self, python: str, name: str) -> None:
        self.process = subprocess.Popen(
            [python, str(HERE / "text_peer.py"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.text = str(self._answer())

    def _answer(self) -> str | float:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the Python in RELAY_ORACLE has no TVM with Relay, or ended before it answered")
        answer: str | float = json.loads(line)
        return answer

    def timer(self, path: Path, what: str) -> Callable[[], float]:
        """Measures TVM on a text in a file: `parse` alone, `check`, or `print`."""

        def seconds() -> float:
            assert self.process.stdin is not None
            self.process.stdin.write(f"{path}\t{what}\n")
            self.process.stdin.flush()
            return float(self._answer())

        return seconds

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def lets(count: int) -> str:
    lines = "".join(f"  let %v{i} = add(%x, %x);\n" for i in range(count))
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(10), float32]) {{\n{lines}  %v0\n}}\n'


def chain(count: int) -> str:
    lines = "".join(f"  %{i} = add(%{i - 1}, %x);\n" for i in range(1, count)).replace("%0,", "%x,", 1)
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(10), float32]) {{\n{lines}  %{count - 1}\n}}\n'


def programs() -> list[str]:
    """The programs by name; the zoo's come from TVM, or, without it, from RELAY_SHARED."""
    return ["resnet18", "mobilenet", "resnet50", "chain of 100 000 adds", "1 000 lets", "10 000 lets", "20 MB of constants"]


def own_text(name: str) -> str | None:
    """A program's text without TVM, or None."""
    if name.endswith("lets"):
        return lets(int(name.removesuffix("lets").replace(" ", "")))
    if name.startswith("chain"):
        return chain(100_000)
    golden = Path(os.environ.get("RELAY_SHARED", HERE.parent.parent / "shared")) / "golden" / f"{name}.typed.relay"
    if golden.exists():
        return golden.read_text()
    if name.endswith("constants"):
        values = np.random.default_rng(0)
        value: Expr = var("x", shape=(512, 512))
        for _ in range(20):
            value = Call(OPS["add"], [value, Constant(values.standard_normal((512, 512), "float32"))])
        return astext(IRModule.from_expr(value))
    return None


def timed(call: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    kept = call()
    seconds = time.perf_counter() - start
    del kept
    return seconds


def both(rounds: int, budget: float, ours: Callable[[], object], theirs: Callable[[], float] | None) -> tuple[float, float | None]:
    """The least times of both sides in ms, of at least two rounds within the budget of seconds."""
    mine: list[float] = []
    other: list[float] = []
    begun = time.perf_counter()
    while len(mine) < 2 or (len(mine) < rounds and time.perf_counter() - begun < budget):
        mine.append(timed(ours))
        if theirs is not None:
            other.append(theirs())
    return min(mine) * 1e3, min(other) * 1e3 if other else None


def number(ms: float | None) -> str:
    return "-" if ms is None else f"{ms:.2f}" if ms < 10 else f"{ms:.1f}" if ms < 100 else f"{ms:,.0f}".replace(",", " ")


def ratio(mine: float, other: float | None) -> str:
    return "-" if other is None else f"{mine / other:.2f}"


def table(head: str, rows: list[Row]) -> list[str]:
    columns = head.split(" | ")
    return [f"| {head} |", "|" + "---|" * len(columns), *(f"| {' | '.join(row)} |" for row in rows), ""]


def read_and_checked(text: str) -> IRModule:
    mod = parse(text).value
    assert isinstance(mod, IRModule) and not any(d.severity == "error" for d in infer(mod))
    return mod


def reading_alone(text: str, path: Path, rounds: int, peer: Peer | None) -> list[Row]:
    """Ours, Lark's own lexer and parser on coarse and on fine terminals, TVM's parser."""
    mine, other = both(rounds, 10, lambda: parse(text), peer.timer(path, "parse") if peer else None)
    rows = [["relaylang, the whole IR", number(mine), ratio(mine, other)]]
    for coarse, what in ((True, "coarse terminals"), (False, "a terminal for each bracket")):
        bar = lark_parser(coarse)
        ms, _ = both(rounds, 5, lambda bar=bar: bar.parse(text), None)  # type: ignore[misc]
        rows.append([f"Lark's contextual lexer and parser, {what}, a tree only", number(ms), ratio(ms, other)])
    rows.append(["TVM 0.16's parser, the whole IR", number(other), "1" if other else "-"])
    return rows


def measure(rounds: int, oracle: str | None) -> list[str]:
    """All tables."""
    out: list[str] = []

    def show(title: str, head: str, rows: list[Row]) -> None:
        lines = ["## " + title, "", *table(head, rows)]
        print("\n".join(lines), flush=True)
        out.extend(lines)

    rows, printed = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.relay"
        for name in programs():
            peer = Peer(oracle, name) if oracle else None
            text = own_text(name) if peer is None or name.endswith(("lets", "adds")) else peer.text
            if text is None:
                continue
            path.write_text(text)
            if name == "resnet50":
                alone = reading_alone(text, path, rounds, peer)
                show("Reading alone, resnet50", f"{len(text) / 1000:.0f} kB of text | ms | to TVM", alone)
            mine, other = both(
                rounds,
                12,
                lambda text=text: read_and_checked(text),  # type: ignore[misc]
                peer.timer(path, "check") if peer else None,
            )
            rows.append([name, f"{len(text) / 1000:.0f}", number(mine), number(other), ratio(mine, other)])
            mod = read_and_checked(text)
            mine, other = both(rounds, 8, lambda mod=mod: astext(mod), peer.timer(path, "print") if peer else None)  # type: ignore[misc]
            plain, _ = both(rounds, 4, lambda mod=mod: astext(mod, style="tvm"), None)  # type: ignore[misc]
            printed.append([name, number(mine), number(plain), number(other), ratio(mine, other)])
            del mod, text
            if peer is not None:
                peer.close()
    show("Parse and check", "program | kB | relaylang (ms) | TVM 0.16 (ms) | ratio", rows)
    show("Print", "program | relaylang, lossless (ms) | in TVM's style | TVM 0.16 (ms) | ratio (lossless)", printed)

    rows = []
    texts = {count: lets(count) for count in (1_000, 10_000, 100_000)}
    least = dict.fromkeys(texts, float("inf"))
    for _ in range(5):
        for count, text in texts.items():
            for _ in range(min(20, 100_000 // count)):
                tables().forget()  # as in a new process, which knows no name
                gc.collect()
                start = time.process_time()  # both are ours: what others do on the machine need not be in it
                kept = read_and_checked(text)
                least[count] = min(least[count], time.process_time() - start)
                del kept
    for count, seconds in least.items():
        times = seconds / count / (least[1_000] / 1_000)
        named = f"{count:,} lets".replace(",", " ")
        rows.append([named, number(seconds * 1e3), f"{seconds * 1e6 / count:.1f}", f"{times:.2f}"])
    show("Cost a line, parse and check", "program | ms | µs a line | to that at 1 000", rows)
    show("A million lines", "what | chain of calls (s) | peak (MB) | lets (s) | peak (MB)", million())
    show("A new process", "what | ms | to TVM", start_up(oracle))
    return out


#: Reads, checks, prints and formats a text from standard input; the peaks are those of the operating system.
_MILLION = """
import sys, time
from resource import RUSAGE_SELF, getrusage
from relaylang.syntax import parse
from relaylang.syntax.format import format_text
from relaylang.syntax.printer import text_blocks
from relaylang.typing import infer
text, module = sys.stdin.read(), None
def read(): global module; module = parse(text).value
def formatted(): global module; module = None; format_text(text)
for act in (read, lambda: infer(module), lambda: text_blocks(module), formatted):
    begun = time.process_time()
    act()
    print(time.process_time() - begun, getrusage(RUSAGE_SELF).ru_maxrss // 1024)
"""


def million() -> list[Row]:
    """Processor time and memory for a chain of a million adds and for as many lets, each in a process of its own."""
    rows = [["parse"], ["check"], ["print"], ["format"]]
    for text in (chain(1_000_000), lets(1_000_000)):
        done = subprocess.run([sys.executable, "-c", _MILLION], input=text, check=True, text=True, capture_output=True)
        for row, line in zip(rows, done.stdout.splitlines()):
            seconds, peak = line.split()
            row += [f"{float(seconds):.1f}", peak]
    return rows


def process(*command: str, environment: dict[str, str] | None = None) -> float:
    """The wall time of a new process in ms. Bytecode is kept, as it is in an installed package."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, env={**kept, **(environment or {})}, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1e3


def start_up(oracle: str | None) -> list[Row]:
    """The wall time of a new process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ten.relay"
        path.write_text(SMALL)
        check = (sys.executable, "-m", "relaylang", "check", str(path))
        mine, bare, other = [], [], []
        for _ in range(7):
            mine.append(process(*check))
            bare.append(process(sys.executable, "-c", "import numpy"))
            if oracle:
                other.append(process(oracle, "-c", "import tvm.relay"))
        cold = min(process(*check, environment={"RELAYLANG_CACHE": f"{folder}/{i}"}) for i in range(2))
    theirs = min(other) if other else None
    return [
        ["`relay check` on a file of 10 lines", number(min(mine)), ratio(min(mine), theirs)],
        ["the first time on a machine, when Lark builds the tables", number(cold), ratio(cold, theirs)],
        ["`import numpy` alone", number(min(bare)), ratio(min(bare), theirs)],
        ["TVM 0.16: `import tvm.relay` alone", number(theirs), "1" if theirs else "-"],
    ]


def processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = arguments.parse_args()
    oracle = os.environ.get("RELAY_ORACLE")
    if options.write and not oracle:
        arguments.error("--write puts the comparison with TVM into the tables: set RELAY_ORACLE")
    if not oracle:
        print("RELAY_ORACLE names no Python with TVM 0.16: our own figures only.\n")
    lines = measure(options.rounds, oracle)
    if options.write:
        head = [
            "# Reading, checking and printing Relay text",
            "",
            f"{processor()} ({platform.machine()}), {os.cpu_count()} processors, Python {platform.python_version()}; "
            "one thread. Each time is the least of several rounds; relaylang and TVM take turns in one run.",
            "`RELAY_ORACLE=/path/to/python/with/tvm make bench-text WRITE=1` repeats the measurement; "
            "the head of `benchmarks/text.py` describes it.",
            "",
        ]
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text("\n".join([*head, *lines]))


if __name__ == "__main__":
    main()
