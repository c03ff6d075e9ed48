"""How fast programs are evaluated and brought into A-normal form, beside TVM 0.16's virtual machine and debug interpreter.

    RELAY_ORACLE=/path/to/python python benchmarks/interpreter.py [--rounds N] [--long] [--write]

RELAY_ORACLE is a Python that has TVM 0.16. Without it our own figures are shown alone. Each round times both sides one
after the other; the least of all rounds counts. Times are in milliseconds. `--long` adds what TVM cannot do (a loop of
ten million, a recursion a million deep, a hundred thousand lets). `--write` puts the table into
benchmarks/results/interpreter.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from relaylang.interpreter import Evaluator
from relaylang.ir import IRModule
from relaylang.passes.to_anf import to_anf
from relaylang.syntax import parse
from relaylang.typing import infer

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("RELAY_SHARED", ROOT.parent / "shared"))
RESULTS = Path(__file__).parent / "results" / "interpreter.md"

PROGRAMS = """#[version = "0.0.5"]
def @loop(%i: int32, %acc: int32) -> int32 {
  if (equal(%i, 0)) { %acc } else { @loop(subtract(%i, 1), add(%acc, %i)) }
}
def @fib(%n: int32) -> int32 {
  if (less(%n, 2)) { %n } else { add(@fib(subtract(%n, 1)), @fib(subtract(%n, 2))) }
}
def @sum(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { add(%n, @sum(subtract(%n, 1))) } }
"""

#: Runs in the other Python: each line is [what, argument], the answer a time in milliseconds.
_PEER = r"""
import json, sys, time
sys.path.insert(0, sys.argv[1])
import x86
import numpy as np
from tvm import relay
PROGRAMS = sys.stdin.readline()
source = json.loads(PROGRAMS)
def main_of(name, count):
    args = ", ".join(f"%a{i}: int32" for i in range(count))
    call = ", ".join(f"%a{i}" for i in range(count))
    return relay.fromtext(source + f"def @main({args}) -> int32 {{ @{name}({call}) }}\n")
made = {}
def executor(kind, name, count):
    if (kind, name) not in made:
        made[kind, name] = relay.create_executor(kind, mod=main_of(name, count), target="llvm").evaluate()
    return made[kind, name]
def timed(f):
    start = time.perf_counter()
    f()
    return 1e3 * (time.perf_counter() - start)
for line in sys.stdin:
    what, *rest = json.loads(line)
    if what == "anf":
        mod = relay.fromtext(open(rest[0]).read())
        print(json.dumps(timed(lambda: relay.transform.ToANormalForm()(mod))), flush=True)
    else:
        name, args = rest
        run = executor(what, name, len(args))
        values = [np.asarray(a, "int32") for a in args]
        print(json.dumps(timed(lambda: run(*values))), flush=True)
"""


class Peer:
    def __init__(self, python: str) -> None:
        command = [python, "-c", _PEER, str(SHARED / "oracle")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.send(PROGRAMS)

    def send(self, request: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def ask(self, *request: object) -> float | None:
        """A time, or None where the peer could not do it."""
        self.send(request)
        assert self.process.stdout is not None
        answer = self.process.stdout.readline()
        return float(answer) if answer else None


def timed(f: Callable[[], object]) -> float:
    start = time.perf_counter()
    f()
    return 1e3 * (time.perf_counter() - start)


def module(text: str) -> IRModule:
    found = parse(text).module
    assert found is not None
    infer(found)
    return found


def lets(count: int) -> str:
    lines = "".join(f"  let %v{i} = add(%x, add(%x, %x));\n" for i in range(count))
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(10), float32]) {{\n{lines}  %v{count - 1}\n}}\n'


def least(rounds: int, ours: Callable[[], float], theirs: Callable[[], float | None]) -> tuple[float, float | None]:
    best, peer = float("inf"), None
    for _ in range(rounds):
        best = min(best, ours())
        answer = theirs()
        if answer is not None:
            peer = min(answer, peer) if peer is not None else answer
    return best, peer


def rows(rounds: int, peer: Peer | None, long: bool) -> list[tuple[str, float, float | None, str]]:
    """(what, our time, the peer's time, what the peer is)"""
    found = []
    evaluator = Evaluator(module(PROGRAMS))

    def ask(*request: object) -> float | None:
        return peer.ask(*request) if peer is not None else None

    runs = [
        ("loop of 1 000", "loop", [1_000, 0], "debug"),
        ("fib(20)", "fib", [20], "debug"),
        ("loop of 10 000", "loop", [10_000, 0], "vm"),
        ("loop of 100 000", "loop", [100_000, 0], "vm"),
        ("fib(20)", "fib", [20], "vm"),
    ]
    for title, name, args, kind in runs:
        ours, theirs = least(
            rounds,
            lambda name=name, args=args: timed(lambda: evaluator.call(name, tuple(args))),
            lambda kind=kind, name=name, args=args: ask(kind, name, args),
        )
        found.append((title, ours, theirs, kind))
    scratch = RESULTS.parent / "lets.relay.tmp"
    scratch.write_text(lets(1_000))
    program = module(lets(1_000))
    ours, theirs = least(rounds, lambda: timed(lambda: to_anf(program)), lambda: ask("anf", str(scratch)))
    found.append(("A-normal form of 1 000 lets", ours, theirs, "ToANormalForm"))
    scratch.unlink()
    for name in ("resnet18", "mobilenet", "lstm"):
        path = SHARED / "golden" / f"{name}.typed.relay"
        if not path.is_file():
            continue
        program = module(path.read_text())
        ours, theirs = least(
            rounds,
            lambda program=program: timed(lambda: to_anf(program)),
            lambda path=path: ask("anf", str(path)),
        )
        found.append((f"A-normal form of {name}", ours, theirs, "ToANormalForm"))
    if long:
        for count in (10_000, 100_000):
            program = module(lets(count))
            took = timed(lambda program=program: to_anf(program))
            found.append((f"A-normal form of {count} lets", took, None, ""))
        found.append(("loop of 10 000 000", timed(lambda: evaluator.call("loop", (10_000_000, 0))), None, ""))
        found.append(("recursion 1 000 000 deep", timed(lambda: evaluator.call("sum", (1_000_000,))), None, ""))
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--long", action="store_true")
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    python = os.environ.get("RELAY_ORACLE")
    lines = ["| | relaylang | TVM | | ratio |", "|---|---|---|---|---|"]
    for title, ours, theirs, kind in rows(given.rounds, Peer(python) if python else None, given.long):
        other = f"{theirs:.1f} | {kind} | {ours / theirs:.2f}" if theirs is not None else "- | - | -"
        lines.append(f"| {title} | {ours:.1f} | {other} |")
    print("\n".join(lines))
    if given.write:
        where = f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} processors"
        text = (
            f"# Evaluation and A-normal form, milliseconds\n\n{where}; `benchmarks/interpreter.py --long --write`\n\n"
        )
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
