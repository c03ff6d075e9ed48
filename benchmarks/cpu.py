"""Times compiled networks on one thread against TVM 0.16, and products against numpy's BLAS.

    RELAY_ORACLE=/path/to/python python benchmarks/cpu.py [NAME ...] [--rounds N] [--write]

RELAY_ORACLE is a Python with TVM 0.16; without it, the table has relaylang's figures only. Both sides compile the same
text for this machine's processor, and bind the same random weights. TVM uses `relay.build` at level 3 with the graph
executor, or the virtual machine for a program with functions. Each round runs both in turn, many times. The round with the
least processor time counts, in milliseconds for a run. relaylang's time is a whole call from numpy arrays to numpy arrays,
TVM's the run alone. The build time is wall time in seconds, without relaylang's cache. `worst` is the greatest difference
of the results, relative to the greatest value. `--write` puts the tables into benchmarks/results/cpu.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.ir import IRModule
from relaylang.runtime.random import random_params
from relaylang.syntax import parse
from relaylang.typing import check

ROOT = Path(__file__).resolve().parent.parent
#: Libraries read these when they are loaded.
ONE_THREAD = {n: "1" for n in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")}
SHARED = Path(os.environ.get("RELAY_SHARED", ROOT.parent / "shared"))
RESULTS = Path(__file__).parent / "results" / "cpu.md"
NETWORKS = ["resnet18", "mobilenet", "squeezenet", "resnet3d18", "dqn", "mlp", "lstm", "synthetic"]
#: rows, columns, depth of `x @ w.T`
PRODUCTS = [(1, 1000, 512), (1, 4096, 4096), (16, 1024, 1024), (64, 512, 512), (128, 3072, 768), (512, 512, 512),
            (1024, 1024, 1024)]  # fmt: skip

#: Runs in the other Python. "build" answers the seconds that took and the results, "run" the milliseconds of one of N runs.
_PEER = r"""
import json, sys, time
sys.path.insert(0, sys.argv[1])
import x86
import numpy as np, tvm
from tvm import relay
from tvm.contrib import graph_executor
for line in sys.stdin:
    what, *rest = json.loads(line)
    if what == "build":
        text, inputs, params, results = rest
        mod = relay.fromtext(open(text).read())
        bound, given = dict(np.load(params)), dict(np.load(inputs))
        start = time.perf_counter()
        with tvm.transform.PassContext(opt_level=3):
            try:
                lib = relay.build(mod, target=sys.argv[2], params=bound)
                answer = time.perf_counter() - start
                module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
                module.set_input(**given)
                run = module.run
                run()
                found = [module.get_output(n) for n in range(module.get_num_outputs())]
            except tvm.TVMError:
                # The graph executor has no functions: the virtual machine.
                mod = relay.fromtext(open(text).read())
                start = time.perf_counter()
                executable = relay.vm.compile(mod, target=sys.argv[2], params=bound)
                answer = time.perf_counter() - start
                machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
                machine.set_input("main", **given)
                run = lambda: machine.invoke_stateful("main")
                run()
                todo, found = [machine.run(**given)], []
                while todo:
                    value = todo.pop()
                    if hasattr(value, "numpy"):
                        found.append(value)
                    else:
                        todo += [value[n] for n in reversed(range(len(value)))]
        np.savez(results, *[value.numpy() for value in found])
    else:
        start = time.process_time()
        for _ in range(rest[0]):
            run()
        answer = 1e3 * (time.process_time() - start) / rest[0]
    print(json.dumps(answer), flush=True)
"""


def peer_target() -> str:
    """What TVM compiles for: this processor, as the C compiler names it."""
    try:
        said = subprocess.run(["cc", "-march=native", "-Q", "--help=target"], capture_output=True, text=True, timeout=60).stdout
        found = next((line.split()[1] for line in said.splitlines() if line.split()[:1] == ["-march="]), "native")
    except (OSError, IndexError, subprocess.TimeoutExpired):
        found = "native"
    # cc knows only older names for some processors; the instruction sets are what counts.
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if found.startswith("znver") and "avx512f" in flags:
        found = "znver4"
    return f"llvm -mcpu={found}"


class Peer:
    def __init__(self, python: str) -> None:
        command = [python, "-c", _PEER, str(SHARED / "oracle"), peer_target()]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, *request: object) -> float:
        """A time. Raises `EOFError` where the peer has died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise EOFError("the peer ended") from None
        answer = self.process.stdout.readline()
        if not answer:
            raise EOFError("the peer ended")
        return float(answer)


def timed(repeat: int, f: Callable[[], object]) -> float:
    """The processor's time for one of so many calls, in milliseconds."""
    start = time.process_time()
    for _ in range(repeat):
        f()
    return 1e3 * (time.process_time() - start) / repeat


def difference(ours: Any, theirs: list[np.ndarray]) -> float:
    flat = list(ours) if isinstance(ours, tuple) else [ours]
    worst = 0.0
    for a, b in zip(flat, theirs):
        worst = max(worst, float(np.abs(a.astype("f8") - b).max()) / max(float(np.abs(b).max()), 1e-30))
    return worst


def module(text: str) -> IRModule:
    found = parse(text).module
    assert found is not None
    check(found)
    return found


def network(name: str, rounds: int, peer: Peer | None) -> str:
    """One line of the table."""
    path = SHARED / "golden" / f"{name}.typed.relay"
    mod = module(path.read_text())
    values = random_params(0, mod["main"].params)
    first = mod["main"].params[0].name_hint
    params = {k: v for k, v in values.items() if k != first}
    data = values[first]
    with tempfile.TemporaryDirectory() as empty:
        os.environ["RELAYLANG_CACHE"] = empty
        start = time.perf_counter()
        artifact = compile_module(mod, "c -num-threads=1", params=params)
        built = time.perf_counter() - start
    result = artifact.run(data)
    repeat = max(1, min(200, int(60 / max(timed(1, lambda: artifact.run(data)), 0.01))))
    if peer is None:
        ours = min(timed(repeat, lambda: artifact.run(data)) for _ in range(rounds))
        return f"| {name} | {ours:.3f} | - | - | {built:.1f} | - | - |"
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, f) for f in ("inputs.npz", "params.npz", "results.npz")]
        np.savez(files[0], **{first: data})
        np.savez(files[1], **params)
        their_built = peer.ask("build", str(path), *files)
        with np.load(files[2]) as stored:
            worst = difference(result, [stored[k] for k in stored.files])
    ours = theirs = float("inf")
    for _ in range(rounds):
        ours = min(ours, timed(repeat, lambda: artifact.run(data)))
        theirs = min(theirs, peer.ask("run", repeat))
    return f"| {name} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} | {built:.1f} | {their_built:.1f} | {worst:.0e} |"


def product(rows: int, columns: int, depth: int, rounds: int) -> str:
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[({rows}, {depth}), float32], %w: Tensor[({columns}, {depth}), float32]) {{
  nn.dense(%x, %w, units={columns})
}}
"""
    mod = module(text)
    values = random_params(0, mod["main"].params)
    x, w = values["x"], values["w"]
    artifact = compile_module(mod, "c -num-threads=1", params={"w": w})
    turned = w.T
    repeat = max(2, min(300, int(2e9 / (2 * rows * columns * depth))))
    ours = theirs = float("inf")
    for _ in range(rounds):
        ours = min(ours, timed(repeat, lambda: artifact.run(x)))
        theirs = min(theirs, timed(repeat, lambda: x @ turned))
    speed = 2e-6 * rows * columns * depth / ours
    return f"| {rows} × {columns} × {depth} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} | {speed:.0f} |"


def machine() -> str:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        text = info.read_text()
        names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
        model = names[0] if names else model
        sets = [s for s in ("avx512f", "avx2", "asimd") if s in text]
        model += f" ({sets[0]})" if sets else ""
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True).stdout.splitlines()[:1]
    return f"{platform.machine()}, {model}, {os.cpu_count()} processors; {compiler[0] if compiler else 'cc'}; numpy {np.__version__}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help="networks (default: all), or `dense`")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        os.environ.update(ONE_THREAD)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    python = os.environ.get("RELAY_ORACLE")
    if given.write and (given.names or not python):
        options.error("--write puts the comparison with TVM of every network into the tables: set RELAY_ORACLE, name none")
    peer = Peer(python) if python else None
    if peer is None:
        print("RELAY_ORACLE is not set: nothing to compare with, our own figures alone\n", file=sys.stderr)
    tables = ["| network | relaylang ms | TVM ms | ratio | build s | TVM build s | worst |\n|---|---|---|---|---|---|---|"]
    print(tables[0])
    for name in NETWORKS:
        if given.names and name not in given.names:
            continue
        if not (SHARED / "golden" / f"{name}.typed.relay").is_file():
            print(f"{name}: no text at {SHARED} (set RELAY_SHARED)", file=sys.stderr)
            continue
        try:
            line = network(name, given.rounds, peer)
        except EOFError:
            print(f"{name}: TVM failed; our own figures alone", file=sys.stderr)
            peer = None
            line = network(name, given.rounds, None)
            peer = Peer(python) if python else None
        print(line, flush=True)
        tables[0] += "\n" + line
    if not given.names or "dense" in given.names:
        tables.append("| rows × columns × depth | relaylang ms | numpy ms | ratio | GFLOP/s |\n|---|---|---|---|---|")
        print("\n" + tables[1])
        for rows, columns, depth in PRODUCTS:
            line = product(rows, columns, depth, given.rounds)
            print(line, flush=True)
            tables[1] += "\n" + line
    if given.write:
        text = ["# Compiled networks on one thread", machine(),
                f"`RELAY_ORACLE=... python benchmarks/cpu.py --rounds {given.rounds} --write` repeats the measurement; the "
                "head of that file describes it. "
                f"TVM is 0.16, `relay.build` at level 3 for `{peer_target()}`, without tuned schedules.",
                tables[0]]  # fmt: skip
        if len(tables) > 1:
            text += ["## `nn.dense` with bound weights beside numpy's BLAS", tables[1]]
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
