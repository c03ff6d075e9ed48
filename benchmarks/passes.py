"""Passes beside TVM 0.16: the time that each takes, and whether both make the same program.

    RELAY_ORACLE=/path/to/python python benchmarks/passes.py [--compare] > benchmarks/results/passes.md

Without RELAY_ORACLE only our times are shown. Programs are the golden networks, chains and lets; times are the least of
several runs, in milliseconds, of the pass alone on a typed module, both sides in one call of this script.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import relaylang as relay
from relaylang.cli.bisect import difference
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, Let, TensorType, Var
from relaylang.ir.structural import structural_diff
from relaylang.ops import get
from relaylang.patterns import is_op, wildcard
from relaylang.syntax import astext
from relaylang.transform import InferType, MergeComposite, Pass, PassContext, parse_passes
from tests.passes.programs import Programs, inputs
from tests.shared import GOLDEN, SHARED

ORACLE = os.environ.get("RELAY_ORACLE")
TABLE = [
    ("toy.conv_relu", is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))),
    ("toy.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))),
    ("toy.add", is_op("add")(wildcard(), wildcard())),
]
TIMED = ["ToANormalForm", "FuseOps(3)", "FoldConstant", "SimplifyInference", "EliminateCommonSubexpr", "MergeComposite"]
COMPARED = [*TIMED, "SimplifyExpr", "CanonicalizeOps", "CanonicalizeCast", "DeadCodeElimination", "FastMath", "EtaExpand(True)",
            "LambdaLift", "Inline", "RemoveUnusedFunctions", "FoldExplicitPadding", "FoldScaleAxis", "DefuseOps",
            "CombineParallelConv2D", "CombineParallelDense", "ToMixedPrecision"]  # fmt: skip
LIMIT = 60


def chain(n: int) -> IRModule:
    x = Var("x", TensorType((10,)))
    node: Expr = x
    for _ in range(n):
        node = Call(get("add"), [node, x])
    return IRModule.from_expr(Function([x], node))


def lets(n: int) -> IRModule:
    x = Var("x", TensorType((10,)))
    names = [Var(f"v{i}") for i in range(n)]
    body: Expr = names[-1]
    for i in reversed(range(n)):
        body = Let(names[i], Call(get("add"), [names[i - 1] if i else x, x]), body)
    return IRModule.from_expr(Function([x], body))


def made(name: str) -> Pass:
    return MergeComposite(TABLE) if name == "MergeComposite" else parse_passes(name)[0]


def ours(text: str, name: str, times: int) -> tuple[float, IRModule]:
    best = float("inf")
    run = made(name)
    with PassContext(opt_level=4):
        for _ in range(times):
            mod = InferType()(relay.parse(text))
            gc.collect()
            start = time.perf_counter()
            new = run(mod)
            best = min(best, time.perf_counter() - start)
    return best, new


def theirs(file: Path, name: str, times: int, out: str) -> float | str:
    worker = Path(__file__).with_name("passes_peer.py")
    command = [str(ORACLE), str(worker), str(SHARED / "oracle"), str(file), name, str(times), out]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"> {LIMIT} s"
    lines = run.stdout.split()
    if not lines:
        return "crash" if run.returncode < 0 else "error"
    return float(lines[0])


def shown(seconds: float | str) -> str:
    return seconds if isinstance(seconds, str) else f"{seconds * 1e3:.1f}"


def timing(folder: Path, sizes: list[int], networks: bool) -> None:
    programs: dict[str, str] = {n: (GOLDEN / f"{n}.typed.relay").read_text() for n in ("resnet18", "mobilenet")}
    if not networks:
        programs = {}
    for n in sizes:
        programs[f"chain of {n:,}"] = astext(InferType()(chain(n)), show_types=False)
        programs[f"lets of {n:,}"] = astext(InferType()(lets(n)), show_types=False)
    print("| program | pass | relaylang (ms) | TVM 0.16 (ms) |\n|---|---|---|---|")
    for number, (program, text) in enumerate(programs.items()):
        file = folder / f"{number}.relay"
        file.write_text(text)
        for name in TIMED:
            large = program.endswith("100,000")
            mine, _ = ours(text, name, 1 if large else 5 if "of" not in program else 2)
            other = theirs(file, name, 1 if large else 5 if "of" not in program else 2, "-") if ORACLE else "-"
            print(f"| {program} | {name} | {shown(mine)} | {shown(other)} |", flush=True)


def compare(folder: Path) -> None:
    texts = {p.name.split(".")[0]: p.read_text() for p in sorted(GOLDEN.glob("*.typed.relay"))}
    for seed in range(6):
        texts[f"random {seed}"] = astext(Programs(seed).module(10), show_types=False)
    counts: dict[str, dict[str, list[str]]] = {}
    for number, (program, text) in enumerate(texts.items()):
        file = folder / f"c{number}.relay"
        file.write_text(text)
        theirs(file, ";".join(COMPARED), 1, str(folder / f"out{number}"))
        for i, name in enumerate(COMPARED):
            out = folder / f"out{number}.{i}"
            verdict = "TVM fails"
            if out.exists():
                verdict = judged(text, name, out.read_text(), program.startswith("random"))
            counts.setdefault(name, {}).setdefault(verdict, []).append(program)
    print("\n| pass | same program | same meaning | other | TVM fails |\n|---|---|---|---|---|")
    for name, found in counts.items():
        other = [f"{p}: {v}" for v, ps in found.items() if v not in ("same", "meaning", "TVM fails") for p in ps]
        cells = [str(len(found.get(k, []))) for k in ("same", "meaning")]
        fails = len(found.get("TVM fails", []))
        print(f"| {name} | {cells[0]} | {cells[1]} | {'; '.join(other) or '0'} | {fails} |", flush=True)


def judged(text: str, name: str, other: str, run: bool) -> str:
    try:
        their_mod = InferType()(relay.parse(other))
    except RelayError:
        return "TVM's text does not read"
    try:
        _, mine = ours(text, name, 1)
        if structural_diff(InferType()(mine), their_mod) is None:
            return "same"
        if not run:
            return "meaning" if mine["main"].checked_type == their_mod["main"].checked_type else "another type"
        given = inputs(0, mine["main"])
        return "meaning" if difference(evaluate(mine, *given), evaluate(their_mod, *given)) is None else "another value"
    except RelayError as problem:
        return problem.diagnostics[0].title[:80].replace("|", "/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compare", action="store_true", help="compare results, not times")
    parser.add_argument("--no-networks", action="store_true", help="chains and lets only")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if args.compare:
            compare(Path(name))
        else:
            timing(Path(name), args.sizes, not args.no_networks)


if __name__ == "__main__":
    main()
