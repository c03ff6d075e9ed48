"""Times the import of real networks, compares their outputs with those of their runtimes, and imports 100 000 layers.

    RELAY_ORACLE=/path/to/python python benchmarks/importers.py [--write] [--limit 60] [NAME...]

The networks come from PyPI packages: `tests/frontends/networks.py` describes the places. RELAY_ORACLE is a Python with
TVM 0.16, onnx < 1.17 and tflite; without it, the tables have relaylang's times only. `--write` puts the output into
benchmarks/results/importers.md.

Each time is the least processor time of several imports of a file's bytes. It includes the reading of the file and all types.
relaylang and TVM take turns in one run. TVM has a process for each format, and `--limit` seconds for a run. RELAY_PEERS names
the folder of the frameworks that TVM needs for other formats, as `benchmarks/importers_peer.py` says.
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

from importers_files import FORMATS, Shapes

from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError
from relaylang.frontends.common import Imported
from relaylang.frontends.contents import main_file
from relaylang.frontends.formats import import_bytes, import_file
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


class Peer:
    """TVM's importer of a format, in a process that waits for files. After its end, the next file starts another one."""

    def __init__(self, kind: str, times: int, limit: float) -> None:
        worker = Path(__file__).with_name("importers_peer.py")
        self.command = [str(ORACLE), str(worker), str(SHARED / "oracle"), kind, str(times)]
        self.limit = limit
        self.patience = limit * times
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, file: Path, shapes: Shapes) -> float | str:
        """Seconds, or what became of TVM."""
        if not ORACLE:
            return "-"
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen(self.command, bufsize=0, **pipes)  # type: ignore[call-overload]
            if not self._line(STARTING):
                self.close()
                return "does not start"
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(file), shapes]).encode() + b"\n")
        answer = self._line(self.patience)
        if not answer:
            ended = None if answer is None else self.process.wait()
            self.close()
            return f"> {self.limit:.0f} s" if ended is None else "dies" if ended < 0 else "fails"
        return answer if answer.startswith("refuses") else float(answer)

    def _line(self, seconds: float) -> str | None:
        """The next line; "" where the process ended, None after so many seconds."""
        assert self.process is not None and self.process.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            return self.process.stdout.readline().decode().strip() if waiting.select(seconds) else None

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


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
    peers = {kind: Peer(kind, 2, limit) for kind in ("onnx", "tflite")}
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
        other = peers[name.rpartition(".")[2]](networks.path(name), shapes)
        cells = [name, str(len(made.listing.layers)), shown(mine), shown(other), ratio(mine, other)]
        cells += [apart(lambda run=run, made=made, inputs=inputs: run(made, inputs), wanted) for run in (interpreted, compiled)]
        yield f"| {' | '.join(cells)} |"
    for peer in peers.values():
        peer.close()


def formats(limit: float) -> Iterator[str]:
    """A row per network of the formats that TVM reads by their frameworks."""
    yield "| format | network | layers | relaylang (s) | TVM 0.16 (s) | ratio |"
    yield "|---|---|---|---|---|---|"
    for kind, written in FORMATS.items():
        peer, ratios = Peer(kind, 3, limit), []
        with tempfile.TemporaryDirectory() as folder:
            for _, name, path, shapes in written(Path(folder)):
                made = imported(path, shapes)
                shapes = {
                    v.name_hint: [d if isinstance(d, int) else 1 for d in v.checked_type.shape] for v in made.module["main"].params
                }
                mine, made = timed(lambda path=path, shapes=shapes: imported(path, shapes))
                other = peer(path, shapes)
                ratios += [mine / other] if isinstance(other, float) else []
                yield f"| {kind} | {name} | {len(made.listing.layers)} | {shown(mine)} | {shown(other)} | {ratio(mine, other)} |"
        peer.close()
        if ratios:
            yield f"| {kind} | the largest of {len(ratios)} | | | | {max(ratios):.3f} |"


def imported(path: Path, shapes: Shapes) -> Imported:
    made = import_file(main_file(str(path)), Options(shapes, folder=str(path if path.is_dir() else path.parent)))
    assert made is not None
    return made


def large(limit: float) -> Iterator[str]:
    """A row per format and size."""
    yield "| format | layers | relaylang (s) | grows | TVM 0.16 (s) | ratio |"
    yield "|---|---|---|---|---|---|"
    for kind, written in chains.FORMATS.items():
        before = 0.0
        late = False
        peer = Peer(kind, 1, limit)
        for size in SIZES:
            data = written.write(chains.chain(size))
            mine, _ = timed(lambda data=data, kind=kind: chains.read(kind, data), 2)
            grows = f"{mine / before * SIZES[0] / size:.1f}" if before else ""
            before = mine
            other: float | str = "-"
            if ORACLE and kind in ("onnx", "tflite"):
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder) / f"chain.{kind}"
                    file.write_bytes(data)
                    other = f"> {limit:.0f} s" if late else peer(file, {})
                late = isinstance(other, str) or other * 10 > limit
            yield f"| {kind} | {size:,} | {shown(mine)} | {grows} | {shown(other)} | {ratio(mine, other)} |".replace(",", " ")
        peer.close()


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
    yield from """
## Formats that TVM reads by their frameworks

TVM's time includes the framework's reader: MXNet 1.9.1, TensorFlow 2.12, Core ML Tools, PaddlePaddle, Darknet, and Caffe's messages.
The networks are those of the tests, and some of model zoos (`benchmarks/importers_files.py`). TVM has no reader of StableHLO,
of ML programs, of `.keras` archives, or of PaddlePaddle 3.
""".splitlines()
    yield ""
    yield from formats(limit)
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
