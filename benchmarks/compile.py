"""How long programs of many small calls take to compile, for the CPU and for the virtual machine.

    python benchmarks/compile.py [--write] [COUNT ...]

The calls differ in kind or in extents: elementwise, dense, transposed, sums, maxima and means. Each row is a process of its
own with an empty cache. It compiles a program of one call first, whose parts all programs share. `--write` puts the table
into benchmarks/results/compile.md.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import model

from relaylang.backends import compile_module
from relaylang.backends.vm import compile_vm
from relaylang.ir import IRModule
from relaylang.syntax import parse

RESULTS = Path(__file__).resolve().parent / "results" / "compile.md"
COUNTS = (100, 1_000, 10_000)
RUNTIMES = {"target `c`": "c", "VM": "vm"}


def small_calls(count: int) -> IRModule:
    """A function of so many different calls, of up to 60 by 60 elements; its result is a tuple of theirs."""
    chance = random.Random(0)
    known: set[tuple[str, int, int]] = set()
    params, lines = [], []
    while len(lines) < count:
        n = len(lines)
        kind, rows, columns = (
            ("unary", "dense", "reduction", "transpose", "binary")[n % 5],
            chance.randint(1, 60),
            chance.randint(1, 60),
        )
        if (kind, rows, columns) in known:
            continue
        known.add((kind, rows, columns))
        params.append(f"%x{n}: Tensor[({rows}, {columns}), float32]")
        unary = chance.choice(["nn.relu", "exp", "tanh", "sigmoid", "negative", "sqrt"])
        reduction = chance.choice(["sum", "max", "mean"])
        if kind == "dense":
            params.append(f"%w{n}: Tensor[({rows % 17 + 1}, {columns}), float32]")
        call = {
            "unary": f"{unary}(%x{n})",
            "dense": f"nn.dense(%x{n}, %w{n}, units=None)",
            "reduction": f"{reduction}(%x{n}, axis=[{chance.randint(0, 1)}])",
            "transpose": f"transpose(%x{n}, axes=[1, 0])",
            "binary": f"add(%x{n}, multiply(%x{n}, 2f))",
        }[kind]
        lines.append(f"  %{n} = {call};")
    results = ", ".join(f"%{n}" for n in range(count))
    text = f'#[version = "0.0.5"]\ndef @main({", ".join(params)}) {{\n{chr(10).join(lines)}\n  ({results},)\n}}\n'
    module = parse(text).module
    assert module is not None
    return module


def compiled(runtime: str, mod: IRModule) -> float:
    """The seconds that a compilation takes."""
    start = time.perf_counter()
    compile_vm(mod) if runtime == "vm" else compile_module(mod, "c")
    return time.perf_counter() - start


def measured(runtime: str, count: int) -> str:
    """Seconds, seconds of the C compiler's processes, and the most memory: printed by a process of its own."""
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as folder:
        call = [sys.executable, __file__, "--one", runtime, str(count)]
        done = subprocess.run(call, env={**os.environ, "RELAYLANG_CACHE": folder}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def one(runtime: str, count: int) -> None:
    compiled(runtime, small_calls(1))
    mod = small_calls(count)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    seconds = compiled(runtime, mod)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:.1f} | {children:.1f} | {most:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="*", type=int, default=list(COUNTS))
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/results/compile.md")
    parser.add_argument("--one", choices=tuple(RUNTIMES.values()), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(args.one, args.counts[0])
        return
    rows = ["| calls | for | seconds | of the C compiler, all processors | MB |", "|---|---|---|---|---|"]
    for count in args.counts:
        for title, runtime in RUNTIMES.items():
            rows.append(f"| {count:,} | {title} | {measured(runtime, count)} |".replace(",", " "))
            print(rows[-1], flush=True)
    text = (
        f"# Compilation of many small calls\n\n`benchmarks/compile.py --write` measured these times on {os.cpu_count()} processors of "
        f"{model()}. Each program is a function of different calls of up to 60 by 60 elements: elementwise, dense, transposed and "
        "reductions. The cache is empty but for the parts that all programs share. Memory is the greatest of relaylang's process.\n\n"
        + "\n".join(rows)
        + "\n"
    )
    if args.write:
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
