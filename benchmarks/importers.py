"""Times the import of real networks, compares their outputs with those of their runtimes, and imports 100 000 layers.

    RELAY_ORACLE=/path/to/python python benchmarks/importers.py [--write] [--limit 60] [NAME...]

The networks come from PyPI packages: `tests/frontends/networks.py` describes the places. RELAY_ORACLE is a Python with
TVM 0.16, onnx < 1.17 and tflite; without it, the tables have relaylang's times only. `--write` puts the output into
benchmarks/results/importers.md.

Each time is the least processor time of several imports of a file's bytes. It includes the reading of the file and all types.
relaylang and TVM take turns in one run. TVM gets a process for each network, and `--limit` seconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError
from relaylang.frontends.common import Imported
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.runtime.files import atomic_write
from tests.frontends import chains, networks, originals
from tests.shared import SHARED

RESULTS = Path(__file__).parent / "results" / "importers.md"
ORACLE = os.environ.get("RELAY_ORACLE")
STARTING = 120  # seconds for TVM to start
SIZES = (10_000, 100_000)


def timed(run: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least processor time of several runs, and the last result."""
    best, result = float("inf"), None
    for _ in range(times):
        result = None
        gc.collect()
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    return best, result


def theirs(file: Path, shapes: dict[str, Sequence[int]], times: int, limit: float) -> float | str:
    """Seconds, or what became of TVM."""
    worker = Path(__file__).with_name("importers_peer.py")
    command = [str(ORACLE), str(worker), str(SHARED / "oracle"), str(file), json.dumps(shapes), str(times)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            answer = ""
            for seconds in (STARTING, limit * times):
                with selectors.DefaultSelector() as waiting:
                    waiting.register(process.stdout, selectors.EVENT_READ)
                    if not waiting.select(seconds):
                        return f"> {limit:.0f} s"
                answer = process.stdout.readline().strip()
                if not answer:
                    return "dies" if process.wait() < 0 else "fails"
            return answer if answer.startswith("refuses") else float(answer)
        finally:
            process.kill()


def shown(seconds: float | str) -> str:
    return f"{seconds:.3f}" if isinstance(seconds, float) else seconds.partition(":")[0]


def ratio(mine: float, other: float | str) -> str:
    return f"{mine / other:.3f}" if isinstance(other, float) else "-"


def apart(run: Callable[[], Sequence[Any]], wanted: Sequence[Any] | str) -> str:
    """The difference to the original runtime; the reason where there is none."""
    if isinstance(wanted, str):
        return wanted
    try:
        return f"{originals.difference(run(), wanted):.1e}"
    except (RelayError, AssertionError) as wrong:
        return f"fails: {str(wrong).splitlines()[0][:60]}"


def outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def interpreted(made: Imported, inputs: dict[str, Any]) -> list[Any]:
    return outputs(Evaluator(made.module, made.params).call("main", (), dict(inputs)))


def compiled(made: Imported, inputs: dict[str, Any]) -> list[Any]:
    return outputs(compile_module(made.module, "c", params=made.params).run(**inputs))


def real(names: Sequence[str], limit: float) -> Iterator[str]:
    """A row per real network."""
    yield "| network | layers | relaylang (s) | TVM 0.16 (s) | ratio | interpreted | compiled |"
    yield "|---|---|---|---|---|---|---|"
    for name in names:
        try:
            data = networks.read(name)
        except networks.Absent as absent:
            yield f"| {name} | - | {absent} | | | | |"
            continue
        inputs, wanted = originals.known(name, data)
        shapes = {key: value.shape for key, value in inputs.items()}
        options = Options(shapes) if name.endswith(".onnx") else Options()
        try:
            mine, made = timed(lambda data=data, name=name, options=options: import_bytes(data, name, options))
        except RelayError as wrong:
            yield f"| {name} | - | {wrong.diagnostics[0].title} | | | | |"
            continue
        other = theirs(networks.path(name), shapes, 2, limit) if ORACLE else "-"
        cells = [name, str(len(made.listing.layers)), shown(mine), shown(other), ratio(mine, other)]
        cells += [apart(lambda run=run, made=made, inputs=inputs: run(made, inputs), wanted) for run in (interpreted, compiled)]
        yield f"| {' | '.join(cells)} |"


def large(limit: float) -> Iterator[str]:
    """A row per format and size."""
    yield "| format | layers | relaylang (s) | grows | TVM 0.16 (s) | ratio |"
    yield "|---|---|---|---|---|---|"
    for kind, make in chains.CHAINS.items():
        before = 0.0
        late = False
        for size in SIZES:
            data = make(size)
            mine, _ = timed(lambda data=data, kind=kind: import_bytes(data, f"chain{kind}"), 2)
            grows = f"{mine / before * SIZES[0] / size:.1f}" if before else ""
            before = mine
            other: float | str = "-"
            if ORACLE and kind in (".onnx", ".tflite"):
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder) / f"chain{kind}"
                    file.write_bytes(data)
                    other = f"> {limit:.0f} s" if late else theirs(file, {}, 1, limit)
                late = isinstance(other, str) or other * 10 > limit
            yield f"| {kind} | {size:,} | {shown(mine)} | {grows} | {shown(other)} | {ratio(mine, other)} |".replace(",", " ")


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def report(names: Sequence[str], limit: float) -> Iterator[str]:
    at_first = load()
    yield from f"""# The time of imports

{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} processors; `make bench-import WRITE=1`.
`RELAY_ORACLE` names a Python with TVM 0.16; the head of `benchmarks/importers.py` describes the measurement.
Each time is the least processor time of several imports. It includes the reading of the file and all types.
A ratio is relaylang's time by TVM's.

## Real networks

The networks lie in PyPI packages (`tests/frontends/networks.py`). ONNX networks get the shapes of `tests/frontends/originals.py`.
The last two columns compare the outputs with those of onnxruntime or LiteRT. They show the largest difference, relative to
the largest value. "refuses" is an import that ends in an error.
""".splitlines()
    yield ""
    yield from real(names, limit)
    yield from f"""
## 100 000 layers

A chain of additions and activations. "Grows" is the time for a layer at 100 000 layers by that at 10 000: 1 is linear.
TVM has {limit:.0f} s. The table omits TVM at 100 000 layers where linear growth would exceed this.
""".splitlines()
    yield ""
    yield from large(limit)
    yield ""
    yield f"The load of the machine was {at_first} at the start and {load()} at the end. The benchmark itself is 1 of it."


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of the networks; all of them by default")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.relative_to(RESULTS.parent.parent.parent)}")
    parser.add_argument("--limit", type=float, default=60, help="seconds that TVM has for an import")
    args = parser.parse_args()
    lines = []
    for line in report(args.names or [n for n in networks.NETWORKS if not n.endswith(".jit")], args.limit):
        print(line, flush=True)
        lines.append(line)
    if args.write:
        atomic_write(RESULTS, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
