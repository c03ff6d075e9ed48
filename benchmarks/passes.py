"""Times passes: against TVM 0.16, and on programs of 100 000 nodes.

    RELAY_ORACLE=/path/to/python python benchmarks/passes.py [--write]

RELAY_ORACLE is a Python with TVM 0.16; without it, the tables have relaylang's times only. `--write` puts the output into
benchmarks/results/passes.md. Each time is the least processor time of several runs of a pass on a typed module. It includes
the types of the result. relaylang and TVM take turns in one run. TVM gets a process and an unlimited stack for each pass,
and `--limit` seconds. It skips 100 000 nodes where linear growth would exceed this limit.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import relaylang as relay
from relaylang.ir import Call, Expr, Function, IRModule, Let, TensorType, Var
from relaylang.ops import get
from relaylang.patterns import is_op, wildcard
from relaylang.runtime.files import atomic_write
from relaylang.transform import (
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    Pass,
    PassContext,
    parse_passes,
)
from tests.shared import GOLDEN, SHARED

RESULTS = Path(__file__).parent / "results" / "passes.md"
ORACLE = os.environ.get("RELAY_ORACLE")
SMALL, LARGE = 10_000, 100_000
STARTING = 300  # seconds for TVM to make a program and find its types
TABLE = [
    ("toy.conv_relu", is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))),
    ("toy.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))),
    ("toy.add", is_op("add")(wildcard(), wildcard())),
]
TIMED = ["ToANormalForm", "FuseOps(3)", "FoldConstant", "SimplifyInference", "EliminateCommonSubexpr", "MergeComposite"]
ALL = [
    "ToANormalForm",
    "ToGraphNormalForm",
    "ToBasicBlockNormalForm",
    "FoldConstant",
    "EliminateCommonSubexpr",
    "DeadCodeElimination",
    "DeadCodeElimination(inline_once=True)",
    "Inline",
    "RemoveUnusedFunctions",
    "SimplifyExpr",
    "SimplifyInference",
    "CanonicalizeOps",
    "CanonicalizeCast",
    "FuseOps",
    "DefuseOps",
    "EtaExpand",
    "LambdaLift",
    "FastMath",
    "DivToMul",
    "FoldExplicitPadding",
    "FlattenAtrousConv",
    "FoldScaleAxis",
    "DynamicToStatic",
    "SplitArgs(3)",
    "AnnotateSpans",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "CombineParallelBatchMatmul",
    "QnnCanonicalizeOps",
    "FakeQuantizationToInteger",
    "ToMixedPrecision",
    "ConvertLayout({'nn.conv2d': ['NHWC', 'default']})",
    "Legalize",
    "FirstOrderGradient",
    "LazyGradientInit",
    "Defunctionalization",
    "PartialEvaluate",
    "ToCPS",
]


def chain(n: int) -> IRModule:
    """`n` additions, each of the one before and the parameter."""
    x = Var("x", TensorType((10,)))
    node: Expr = x
    for _ in range(n):
        node = Call(get("add"), [node, x])
    return IRModule.from_expr(Function([x], node))


def lets(n: int) -> IRModule:
    """As `chain`, each bound by a let."""
    return _bound(n, lambda before, x, _: Call(get("add"), [before, x]))


def _mixed(before: Expr, x: Expr, i: int) -> Expr:
    return Call(get(("nn.relu", "add", "exp")[i % 3]), [before, x] if i % 3 == 1 else [before])


def mixed_chain(n: int) -> IRModule:
    """nn.relu, add, exp, and again, `n` together."""
    x = Var("x", TensorType((10,)))
    node: Expr = x
    for i in range(n):
        node = _mixed(node, x, i)
    return IRModule.from_expr(Function([x], node))


def mixed_lets(n: int) -> IRModule:
    return _bound(n, _mixed)


def _bound(n: int, make: Callable[[Expr, Expr, int], Expr]) -> IRModule:
    x = Var("x", TensorType((10,)))
    names = [Var(f"v{i}") for i in range(n)]
    body: Expr = names[-1]
    for i in reversed(range(n)):
        body = Let(names[i], make(names[i - 1] if i else x, x, i), body)
    return IRModule.from_expr(Function([x], body))


#: The steps of partitioning, each on what the one before made.
PARTITION: dict[str, Callable[[], Pass]] = {
    "MergeComposite": lambda: MergeComposite(TABLE),
    "AnnotateTarget": lambda: AnnotateTarget("toy"),
    "MergeCompilerRegions": MergeCompilerRegions,
    "PartitionGraph": PartitionGraph,
}


def made(name: str) -> Pass:
    return PARTITION[name]() if name in PARTITION else parse_passes(name)[0]


def ours(mod: IRModule, name: str, times: int) -> float:
    """Seconds of a pass on a typed module, with the types of what it makes."""
    best = float("inf")
    run = made(name)
    with PassContext(opt_level=4):
        for _ in range(times):
            gc.collect()
            start = time.process_time()
            new = InferType()(run(mod))
            best = min(best, time.process_time() - start)
            del new
    return best


def _stack() -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))


def theirs(program: str, name: str, times: int, limit: float) -> float | str:
    """Seconds, or what became of TVM."""
    worker = Path(__file__).with_name("passes_peer.py")
    command = [str(ORACLE), str(worker), str(SHARED / "oracle"), program, name, str(times)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=_stack) as process:
        assert process.stdout is not None
        try:
            answer = ""
            for seconds in (STARTING, limit):
                with selectors.DefaultSelector() as waiting:
                    waiting.register(process.stdout, selectors.EVENT_READ)
                    if not waiting.select(seconds):
                        return f"> {limit:.0f} s"
                answer = process.stdout.readline().strip()
                if not answer:
                    return "dies" if process.wait() < 0 else "fails"
            return float(answer)
        finally:
            process.kill()


def milliseconds(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value * 1e3:,.1f}".replace(",", " ")


def beside_tvm(limit: float) -> Iterator[str]:
    yield "| program | pass | relaylang (ms) | TVM 0.16 (ms) | ratio | grows | TVM grows |"
    yield "|---|---|---|---|---|---|---|"
    small: dict[tuple[str, str], tuple[float, float | str]] = {}
    for program, size in [("resnet18", 0), ("mobilenet", 0), *[(p, n) for n in (SMALL, LARGE) for p in ("chain", "lets")]]:
        times = {0: 7, SMALL: 3, LARGE: 2}[size]
        if size:
            shown = f"{program} of {size:,}".replace(",", " ")
            mod = InferType()({"chain": chain, "lets": lets}[program](size))
            peer = f"{program} {size}"
        else:
            file = GOLDEN / f"{program}.typed.relay"
            shown, mod, peer = program, InferType()(relay.parse(file.read_text())), str(file)
        for name in TIMED:
            mine = ours(mod, name, times)
            before = small.get((program, name))
            if not ORACLE:
                other: float | str = "-"
            elif before is not None and (isinstance(before[1], str) or before[1] * LARGE / SMALL > limit):
                other = f"> {limit:.0f} s" if not isinstance(before[1], str) else before[1]
            else:
                other = theirs(peer, name, min(times, 3), limit)
            ratio = "-" if isinstance(other, str) else f"{mine / other:.2f}"
            grows = ["", ""]
            if before is not None:
                grows[0] = f"{mine / before[0] * SMALL / LARGE:.1f}"
                if not isinstance(other, str) and not isinstance(before[1], str):
                    grows[1] = f"{other / before[1] * SMALL / LARGE:.1f}"
            small[program, name] = mine, other
            yield f"| {shown} | {name} | {milliseconds(mine)} | {milliseconds(other)} | {ratio} | {grows[0]} | {grows[1]} |"


def large() -> Iterator[str]:
    yield "| pass | chain (s) | grows | lets (s) | grows |"
    yield "|---|---|---|---|---|"
    programs = [[InferType()(f(n)) for n in (SMALL, LARGE)] for f in (mixed_chain, mixed_lets)]
    for name in [*ALL, *PARTITION]:
        cells = []
        for pair in programs:
            few, many = ours(pair[0], name, 3), ours(pair[1], name, 2)
            cells.append(f"{many:.2f} | {many / few * SMALL / LARGE:.1f}")
            if name in PARTITION:
                pair[:] = [made(name)(mod) for mod in pair]
        yield f"| {name} | {' | '.join(cells)} |"


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def report(limit: float) -> Iterator[str]:
    at_first = load()
    yield from f"""# The time of passes

{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} processors; `benchmarks/passes.py --write`.
Each time is the least processor time of several runs of a pass on a typed module. It includes the types of the result.
A ratio is relaylang's time by TVM's. "Grows" is the time for a node at 100 000 nodes by that at 10 000: 1 is linear. The
larger program exceeds the caches of the processor.

[tests/conformance/passes/table.md](../../tests/conformance/passes/table.md) compares the results with TVM's.

## Compared with TVM

In chain and lets, each addition uses the one before and the parameter. MergeComposite makes composites of every addition,
every nn.relu after an addition, and every nn.relu after a convolution. relaylang keeps the types that a rewrite cannot
change. TVM infers all types of the result again, which explains most of the difference on networks. TVM has a process and
an unlimited stack for every pass, and {limit:.0f} s. The table omits TVM at 100 000 nodes where linear growth would exceed this.
""".splitlines()
    yield ""
    yield from beside_tvm(limit)
    yield from """
## 100 000 nodes

A chain of 100 000 calls (nn.relu, add, exp, and again), and as many lets. The last four rows are the steps of partitioning,
each on the result of the previous one. MergeComposite makes a composite of every add.
""".splitlines()
    yield ""
    yield from large()
    yield ""
    yield f"The load of the machine was {at_first} at the start and {load()} at the end. The benchmark itself is 1 of it."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.relative_to(RESULTS.parent.parent.parent)}")
    parser.add_argument("--limit", type=float, default=60, help="seconds that TVM has for a pass")
    args = parser.parse_args()
    lines = []
    for line in report(args.limit):
        print(line, flush=True)
        lines.append(line)
    if args.write:
        atomic_write(RESULTS, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
