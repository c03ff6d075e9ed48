"""Who takes part in the processor benchmark: relaylang, onnxruntime, OpenVINO; and the processor's own peak.

Each function makes a program ready for a number of threads. A call takes numpy arrays and gives numpy arrays.
"""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu_networks import Case
from relaylang.backends import compile_module
from relaylang.ir import IRModule
from relaylang.runtime.artifact import Artifact

try:
    import onnxruntime
except ImportError:
    onnxruntime = None
try:
    import openvino
except ImportError:
    openvino = None

#: The peers by their packages' names; those without a package take no part.
PEERS = {"onnxruntime": onnxruntime, "openvino": openvino}
Run = Callable[[], Sequence[np.ndarray]]
PAUSE = 0.03  # seconds until a peer's threads stop spinning


def build(mod: IRModule, params: Any, march: str) -> tuple[Artifact, float]:
    """A program of ours, and the seconds of its compilation without the cache."""
    before = os.environ.get("RELAYLANG_CACHE")
    with tempfile.TemporaryDirectory() as empty:
        os.environ["RELAYLANG_CACHE"] = empty
        try:
            start = time.perf_counter()
            artifact = compile_module(mod, f"c -march={march}" if march else "c", params=params)
            return artifact, time.perf_counter() - start
        finally:
            del os.environ["RELAYLANG_CACHE"]
            if before is not None:
                os.environ["RELAYLANG_CACHE"] = before


def ours(artifact: Artifact, inputs: dict[str, np.ndarray], threads: int) -> Run:
    def run() -> Sequence[np.ndarray]:
        found = artifact.run(**inputs)
        return found if isinstance(found, (tuple, list)) else [found]

    artifact.threads = threads
    return run


def in_onnxruntime(case: Case, threads: int) -> Run:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, case.inputs)


def _compiled(case: Case, threads: int, **more: Any) -> Any:
    """OpenVINO's program. It computes in float32: the default on processors with AMX is bfloat16."""
    core = openvino.Core()
    hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    return core.compile_model(core.read_model(case.model), "CPU", {**hints, **more})


def in_openvino(case: Case, threads: int) -> Run:
    compiled = _compiled(case, threads)
    outputs = compiled.outputs

    def run() -> Sequence[np.ndarray]:
        found = compiled(case.inputs)
        return [found[o] for o in outputs]

    return run


def share_of_mlas(case: Case, threads: int) -> float:
    """The part of OpenVINO's time in layers that MLAS computes. ONEDNN_MAX_CPU_ISA does not limit their instructions."""
    request = _compiled(case, threads, PERF_COUNT=True).create_infer_request()
    best: dict[tuple[str, str], float] = {}
    for _ in range(15):
        request.infer(case.inputs)
        for layer in request.profiling_info:
            key = layer.node_name, layer.exec_type
            best[key] = min(layer.real_time.total_seconds(), best.get(key, math.inf))
    return sum(t for (_, kind), t in best.items() if "mlas" in kind) / (sum(best.values()) or 1.0)


def times(runs: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float], seconds: float = 0.2) -> dict[str, list[float]]:
    """The times of all calls of each, in milliseconds.

    In each round, every one runs for some time in turn, after a pause and a call without the clock.
    """
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(PAUSE)
            run()
            end = clock() + seconds
            while (start := clock()) < end:
                run()
                found[name].append(1e3 * (clock() - start))
    return found


#: Multiply-adds of vectors in registers. The number of sums hides their latency, and leaves registers for the operands.
_PEAK = """
typedef float vector __attribute__((vector_size({bytes})));
float peak(long times) {{
  vector x = {{0.5f}}, y = {{0.25f}}, {sums};
  __asm__ volatile("" : "+x"(x), "+x"(y));
  for (long n = 0; n < times; n++) {{ {lines} }}
  vector all = {total};
  return all[0];
}}
"""


def peak(wide: bool) -> tuple[Callable[[], None], float]:
    """A function that multiplies and adds in float32 on one thread at full speed, and its operations in billions."""
    size, times, number = (64 if wide else 32), 200_000, (24 if wide else 12)
    sums = [f"a{n}" for n in range(number)]
    text = _PEAK.format(
        bytes=size,
        sums=", ".join(f"{a} = {{{n}}}" for n, a in enumerate(sums)),
        lines=" ".join(f"{a} = {a} * x + y;" for a in sums),
        total=" + ".join(sums),
    )
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "peak.c", Path(folder) / "peak.so"
        source.write_text(text)
        # The loop stays in 512 bits: compilers prefer 256 by default.
        flags = ["-march=native", "-mprefer-vector-width=512"] if wide else ["-mavx2", "-mfma"]
        subprocess.run(["cc", "-O2", *flags, "-ffp-contract=fast", "-shared", "-fPIC", "-o", library, source], check=True)
        code = ctypes.CDLL(str(library))
    code.peak.argtypes, code.peak.restype = [ctypes.c_long], ctypes.c_float
    return lambda: code.peak(times), 2e-9 * size / 4 * number * times
