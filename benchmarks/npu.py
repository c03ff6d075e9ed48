"""Networks compiled for the Ethos-U, beside Vela's own compilation of the same TFLite file: `make bench-npu`.

Cycles and memory are Vela's estimates for both. The simulator's results are compared with those of the C backend.
`--write` writes the table to benchmarks/results/npu.md. Needs relaylang[ethosu,tflite].
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import relaylang as relay
from benchmarks.machine import model
from benchmarks.npu_networks import NETWORKS
from relaylang.backends import compile_module, ethosu
from relaylang.backends.ethosu import vela

RESULTS = Path(__file__).parent / "results" / "npu.md"
ACCELERATORS = ("ethos-u55-256", "ethos-u65-512", "ethos-u85-512")


def timed(run: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[Any, float]:
    """The result of a call and its time (s)."""
    begin = time.perf_counter()
    return run(*arguments, **named), time.perf_counter() - begin


def row(name: str, data: bytes, accelerator: str) -> str:
    """A network on an accelerator."""
    theirs, their_time = timed(vela.compile_model, data, vela.settings({"accelerator": accelerator}), "TFLITE")
    mod, params = relay.frontend.from_tflite(data)
    artifact, our_time = timed(ethosu.compile, mod, {"accelerator": accelerator}, params)
    estimates = [code.details["estimate"] for code in artifact.regions.values()]
    cycles = sum(estimate["total_cycles"] for estimate in estimates)
    sram = max(estimate["memory"]["Sram"]["peak_bytes"] for estimate in estimates)
    their_sram = {memory.name: memory.peak for memory in theirs.memories}["Sram"]
    calls = artifact.details["operations"]
    x = np.random.default_rng(0).integers(-128, 128, artifact.inputs[0][1].shape).astype("int8")
    artifact.executor = "ethosu-sim"
    found, seconds = timed(artifact.run, x)
    different = int(np.count_nonzero(found != compile_module(mod, "c", params=params).run(x)))
    cells = [
        name,
        accelerator,
        f"{calls['accelerator']} of {sum(calls.values())}",
        f"{cycles:,}",
        f"{theirs.total_cycles:,}",
        f"{cycles / theirs.total_cycles:.2f}",
        f"{sram / 1024:.0f}",
        f"{their_sram / 1024:.0f}",
        f"{our_time:.2f}",
        f"{their_time:.2f}",
        f"{seconds:.2f}",
        f"{different} of {found.size}",
    ]
    return f"| {' | '.join(cells)} |"


def table() -> Iterator[str]:
    columns = [
        "network",
        "accelerator",
        "calls on it",
        "cycles",
        "Vela",
        "ratio",
        "SRAM (KiB)",
        "Vela",
        "compile (s)",
        "Vela",
        "simulate (s)",
        "different",
    ]
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for name, make in NETWORKS.items():
        data = make()
        for accelerator in ACCELERATORS:
            yield row(name, data, accelerator)


HEAD = """# Networks on the Ethos-U

int8 networks with random weights, from TFLite files. "Vela" is Vela's own compilation of the same file; our columns are
relaylang's import, partition and compilation. Cycles and memory are Vela's estimates for both. A run of the simulator takes
"simulate" seconds. "Different" counts its integers that are not those of the C backend.
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/npu.md")
    given = parser.parse_args()
    made = "\n".join(table()) + "\n"
    print(made)
    if given.write:
        where = f"{model()}, {os.cpu_count()} processors; Vela {metadata.version('ethos-u-vela')}; `make bench-npu WRITE=1`."
        RESULTS.write_text(f"{HEAD}\n{where}\n\n{made}")


if __name__ == "__main__":
    main()
