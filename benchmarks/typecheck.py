"""How fast types are found, beside TVM 0.16's InferType, both in one run.

    RELAY_ORACLE=/path/to/python python benchmarks/typecheck.py [--rounds N] [--write]

RELAY_ORACLE is a Python that has TVM 0.16; without it our own figures are shown. Both sides find the types of the whole
module again, whatever they knew; the least of all rounds counts. TVM has a time limit and a memory limit for a program,
and one process for each. `--write` puts the table into benchmarks/results/typing.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import subprocess
import time
from pathlib import Path

from relaylang.ir import Call, Expr, Function, IRModule, Let, Tuple, Var, const, var
from relaylang.ops import get, make_attrs
from relaylang.syntax import parse
from relaylang.typing import Checker, infer

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "typing.md"
GOLDEN = Path(os.environ.get("RELAY_SHARED", HERE.parent.parent / "shared")) / "golden"
LIMIT_SECONDS, LIMIT_GIGABYTES = 180, 10

NETWORKS = ("resnet18", "mobilenet")
SYNTHETIC = (
    ("chain", 10_000),
    ("chain", 100_000),
    ("lets", 10_000),
    ("lets", 100_000),
    ("wide", 1_000),
    ("wide", 10_000),
)


def synthetic(kind: str, n: int) -> IRModule:
    """A chain of n additions, n lets, or one tuple of n calls, which is joined."""
    x = var("x", shape=(10,))
    body: Expr = x
    add, negative = get("add"), get("negative")
    if kind == "chain":
        for _ in range(n):
            body = Call(add, [body, x])
    elif kind == "wide":
        body = Call(
            get("concatenate"), [Tuple([Call(negative, [x]) for _ in range(n)])], make_attrs(get("concatenate").attrs, {"axis": 0})
        )
    else:
        names = [Var(f"v{i}") for i in range(n)]
        body = names[-1]
        for i in range(n - 1, -1, -1):
            body = Let(names[i], Call(add, [names[i - 1] if i else x, x]), body)
    return IRModule.from_expr(Function([x], body))


def ours(module: IRModule, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = time.perf_counter()
        said = infer(module, fresh=True)
        best = min(best, time.perf_counter() - start)
        assert not said
    return best


def theirs(python: str, name: str, n: int, rounds: int) -> float | str:
    """Seconds, or why there are none."""
    path = str(GOLDEN / f"{name}.typed.relay") if n == 0 else ""
    call = [python, str(HERE / "typecheck_peer.py"), name, str(n), path, str(rounds), str(LIMIT_GIGABYTES)]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"> {LIMIT_SECONDS} s"
    lines = done.stdout.split()
    return float(lines[-1]) if done.returncode == 0 and lines else "ended without an answer"


def shown(seconds: float | str) -> str:
    return seconds if isinstance(seconds, str) else f"{seconds * 1e3:,.1f}"


def incremental() -> str:
    """What a change costs a module of 1 000 functions that is kept checked."""
    module = IRModule()
    for i in range(1_000):
        x = var("x", shape=(10,))
        body: Expr = x
        for _ in range(20):
            body = Call(get("add"), [body, const(1.0)])
        module[f"f{i}"] = Function([x], body)
    start = time.perf_counter()
    checker = Checker(module)
    first = time.perf_counter() - start
    x = var("x", shape=(10,))
    start = time.perf_counter()
    checker.update({"f500": Function([x], Call(get("negative"), [x]))})
    again = time.perf_counter() - start
    return (
        f"A module of 1 000 functions of 20 calls: {first * 1e3:,.1f} ms to check, {again * 1e3:,.2f} ms after one function changed."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/results/typing.md")
    args = parser.parse_args()
    oracle = os.environ.get("RELAY_ORACLE")
    if args.write and not oracle:
        parser.error("--write puts the comparison with TVM into the tables: set RELAY_ORACLE")
    rows = ["| program | relaylang, ms | TVM InferType, ms | times |", "|---|---|---|---|"]
    for name, n in (*((name, 0) for name in NETWORKS), *SYNTHETIC):
        if n == 0:
            path = GOLDEN / f"{name}.typed.relay"
            if not path.is_file():
                continue
            module = parse(path.read_text(), name).module
            assert module is not None
        else:
            module = synthetic(name, n)
        rounds = args.rounds if n < 100_000 else 3
        mine = ours(module, rounds)
        peer = theirs(oracle, name, n, rounds if name != "wide" else 1) if oracle else "-"
        times = f"{peer / mine:,.1f}" if isinstance(peer, float) else ""
        rows.append(f"| {name}{f' {n:,}'.replace(',', ' ') if n else ''} | {shown(mine)} | {shown(peer)} | {times} |")
        print(rows[-1], flush=True)
    text = (
        f"# Type inference\n\n`benchmarks/typecheck.py --write` measured these times with Python {platform.python_version()} on "
        f"{os.cpu_count()} cores of {platform.machine()}. Each is the least of {args.rounds} inferences of the whole module (3 from "
        "100 000 nodes, 1 for TVM's tuples). `chain` is n additions, `lets` n lets, `wide` one tuple of n calls, joined. "
        f"TVM has {LIMIT_SECONDS} s and {LIMIT_GIGABYTES} GB for a program.\n\n" + "\n".join(rows) + f"\n\n{incremental()}\n"
    )
    if args.write:
        RESULTS.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
