"""Times evaluation and A-normal form against TVM 0.16's debug interpreter and virtual machine.

    RELAY_ORACLE=/path/to/python python benchmarks/interpreter.py [--rounds N] [--long] [--write]

RELAY_ORACLE is a Python with TVM 0.16; without it, the tables have relaylang's figures only. Each round times both sides in
turn; the least of all rounds counts, in milliseconds. `--long` adds programs that TVM cannot run, with their memory. They
are a loop of ten million, a recursion a million deep, and a hundred thousand lets. `--write` puts the tables into
benchmarks/results/interpreter.md. TVM's interpreter recurses on the C++ stack, and gets an unlimited one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.interpreter import Evaluator
from relaylang.ir import IRModule
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.stdlib.library import read
from relaylang.syntax import astext, parse
from relaylang.typing import infer

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("RELAY_SHARED", ROOT.parent / "shared"))
RESULTS = Path(__file__).parent / "results" / "interpreter.md"

PROGRAMS = """#[version = "0.0.5"]
import "prelude.rly"
def @loop(%i: int32, %acc: int32) -> int32 {
  if (equal(%i, 0)) { %acc } else { @loop(subtract(%i, 1), add(%acc, %i)) }
}
def @fib(%n: int32) -> int32 {
  if (less(%n, 2)) { %n } else { add(@fib(subtract(%n, 1)), @fib(subtract(%n, 2))) }
}
def @deep(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { add(%n, @deep(subtract(%n, 1))) } }
def @numbers(%n: int32, %l: List[int32]) -> List[int32] {
  if (equal(%n, 0)) { %l } else { @numbers(subtract(%n, 1), Cons(%n, %l)) }
}
def @build(%n: int32) -> int32 { @hd(@numbers(%n, Nil)) }
def @list_sum(%n: int32) -> int32 { @sum(@numbers(%n, Nil)) }
def @list_map(%n: int32) -> int32 { @hd(@map(fn (%x: int32) -> int32 { multiply(%x, %x) }, @numbers(%n, Nil))) }
def @list_fold(%n: int32) -> int32 {
  @foldr(fn (%x: int32, %acc: int32) -> int32 { add(%x, %acc) }, 0, @numbers(%n, Nil))
}
"""

#: Runs in the other Python: each line is [what, argument], the answer a time in milliseconds.
_PEER = r"""
import json, sys, time
sys.path.insert(0, sys.argv[1])
import x86
import numpy as np
from tvm import relay
source = json.loads(sys.stdin.readline())
def main_of(name, count):
    args = ", ".join(f"%a{i}: int32" for i in range(count))
    call = ", ".join(f"%a{i}" for i in range(count))
    return relay.fromtext(source + f"def @main({args}) -> int32 {{ @{name}({call}) }}\n")
made = {}
def executor(kind, name, count):
    if (kind, name) not in made:
        if name.endswith(".relay"):
            mod = relay.transform.InferType()(relay.fromtext(open(name).read()))
            random = np.random.default_rng(0)
            values = [random.standard_normal([int(d) for d in p.checked_type.shape]).astype("float32")
                      for p in mod["main"].params]
        else:
            mod, values = main_of(name, count), None
        made[kind, name] = relay.create_executor(kind, mod=mod, target="llvm").evaluate(), values
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
        run, values = executor(what, name, len(args))
        values = [np.asarray(a, "int32") for a in args] if values is None else values
        print(json.dumps(timed(lambda: run(*values))), flush=True)
"""


def _stack() -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))


class Peer:
    """The other side; started again where a request has ended it."""

    def __init__(self, python: str, programs: str) -> None:
        self.command = [python, "-c", _PEER, str(SHARED / "oracle")]
        self.programs = programs
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=_stack,
        )
        self.send(self.programs)

    def send(self, request: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def ask(self, *request: object) -> float | None:
        """A time, or None where the peer could not do it."""
        self.send(request)
        assert self.process.stdout is not None
        answer = self.process.stdout.readline()
        if not answer:
            self.process.wait()
            self.start()
        return float(answer) if answer else None


def timed(f: Callable[[], object]) -> float:
    start = time.perf_counter()
    f()
    return 1e3 * (time.perf_counter() - start)


def module(text: str) -> IRModule:
    found = read(text).module
    assert found is not None
    infer(found)
    return found


def lets(count: int) -> str:
    lines = "".join(f"  let %v{i} = add(%x, add(%x, %x));\n" for i in range(count))
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(10), float32]) {{\n{lines}  %v{count - 1}\n}}\n'


def network(path: Path) -> Callable[[], object]:
    """A golden program's @main, with random parameters."""
    program = parse(path.read_text()).module
    assert program is not None
    infer(program)
    random = np.random.default_rng(0)
    values: list[Any] = []
    for p in program["main"].params:
        ty: Any = p.checked_type
        values.append(random.standard_normal(ty.shape).astype(np.float32))
    evaluator = Evaluator(program)
    return lambda: evaluator.call("main", tuple(values))


Row = tuple[str, float, "float | None", "float | None"]


def evaluation(rounds: int, peer: Peer | None) -> list[Row]:
    """(what, our time, that of TVM's interpreter, that of its virtual machine)"""
    program = module(PROGRAMS)
    evaluator = Evaluator(program)
    runs: list[tuple[str, str, list[int], Callable[[], object]]] = []
    for title, name, args in (
        ("loop of 10 000", "loop", [10_000, 0]),
        ("loop of 100 000", "loop", [100_000, 0]),
        ("fib(20)", "fib", [20]),
        ("a list of 1 000 elements", "build", [1_000]),
        ("the sum of it", "list_sum", [1_000]),
        ("map over it", "list_map", [1_000]),
        ("fold over it", "list_fold", [1_000]),
    ):
        runs.append((title, name, args, lambda name=name, args=args: evaluator.call(name, tuple(args))))  # type: ignore[misc]
    for name in ("mlp", "lstm"):
        path = SHARED / "golden" / f"{name}.typed.relay"
        if path.is_file():
            runs.append((name, str(path), [], network(path)))
    found = []
    for title, name, args, ours in runs:
        best = float("inf")
        theirs: dict[str, list[float]] = {"debug": [], "vm": []}
        for _ in range(rounds):
            # A fast program is run more often: a single run of a few microseconds varies too much.
            best = min([best, *[timed(ours) for _ in range(5)]])
            for kind, times in theirs.items():
                answer = peer.ask(kind, name, args) if peer is not None else None
                if answer is not None:
                    times.append(answer)
        found.append((title, best, min(theirs["debug"], default=None), min(theirs["vm"], default=None)))
    return found


def normal_form(rounds: int, peer: Peer | None, long: bool) -> list[tuple[str, float, float | None]]:
    """(what, our time, that of TVM's ToANormalForm)"""
    found: list[tuple[str, float, float | None]] = []
    scratch = RESULTS.parent / "lets.relay.tmp"
    scratch.write_text(lets(1_000))
    files = [("1 000 lets", scratch)]
    files += [(name, SHARED / "golden" / f"{name}.typed.relay") for name in ("resnet18", "mobilenet", "lstm")]
    for title, path in files:
        if not path.is_file():
            continue
        program = module(path.read_text())
        times = [timed(lambda program=program: to_anf(program)) for _ in range(rounds)]  # type: ignore[misc]
        theirs = [t for _ in range(rounds) if peer is not None and (t := peer.ask("anf", str(path))) is not None]
        found.append((title, min(times), min(theirs, default=None)))
    scratch.unlink()
    for count in (10_000, 100_000) if long else (10_000,):
        program = module(lets(count))
        times = [timed(lambda program=program: to_anf(program)) for _ in range(3)]  # type: ignore[misc]
        found.append((f"{count} lets", min(times), None))
    return found


def endless() -> list[tuple[str, float, float]]:
    """(what, our time, the growth of the process's largest size in MB)"""
    evaluator = Evaluator(module(PROGRAMS))
    found = []
    for title, name, args in (
        ("loop of 10 000 000", "loop", (10_000_000, 0)),
        ("recursion 1 000 000 deep", "deep", (1_000_000,)),
    ):
        evaluator.call(name, (10, 0)[: len(args)])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        took = timed(lambda name=name, args=args: evaluator.call(name, args))  # type: ignore[misc]
        found.append((title, took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3))
    return found


def shown(time: float | None, ours: float) -> str:
    return f"{time:.2f} | {ours / time:.2f}" if time is not None else "- | -"


def tables(rounds: int, peer: Peer | None, long: bool) -> list[str]:
    lines = []
    if long:
        # First, while the process is small.
        lines += ["| | time | more memory, MB |", "|---|---|---|"]
        lines += [f"| {title} | {took:.0f} | {size:.1f} |" for title, took, size in endless()]
        lines.append("")
    lines += ["| evaluation | relaylang | TVM debug | ratio | TVM vm | ratio |", "|---|---|---|---|---|---|"]
    for title, ours, debug, vm in evaluation(rounds, peer):
        lines.append(f"| {title} | {ours:.2f} | {shown(debug, ours)} | {shown(vm, ours)} |")
    lines += ["", "| A-normal form | relaylang | TVM | ratio |", "|---|---|---|---|"]
    for title, ours, theirs in normal_form(rounds, peer, long):
        lines.append(f"| {title} | {ours:.2f} | {shown(theirs, ours)} |")
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--long", action="store_true")
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    python = os.environ.get("RELAY_ORACLE")
    if given.write and not python:
        options.error("--write puts the comparison with TVM into the tables: set RELAY_ORACLE")
    peer = Peer(python, astext(module(PROGRAMS), style="tvm", show_types=False)) if python else None
    lines = tables(given.rounds, peer, given.long)
    print("\n".join(lines))
    if given.write:
        where = f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} processors"
        text = (
            f"# Evaluation and A-normal form, milliseconds\n\n{where}; `benchmarks/interpreter.py --long --write`. "
            "A ratio is relaylang's time by TVM's.\n\n"
        )
        RESULTS.write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
