"""Times of runs, alone and in turns with onnxruntime's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best(run: Callable[[], Any], seconds: float = 0.4) -> float:
    """The least time of a run (ms)."""
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or found == float("inf"):
        begin = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - begin)
    return found * 1e3


def peer_session(network: Any) -> Any:
    """A session of onnxruntime for an ONNX model, with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(network.SerializeToString(), options, providers=["CPUExecutionProvider"])


def paired(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float, float]:
    """The median of the ratios of times in turns, since the clock of the processor changes; and its two times (ms)."""
    ratios = []
    for _ in range(7):
        own, other = best(ours, 0.1), best(theirs, 0.1)
        ratios.append((own / other, own, other))
    return sorted(ratios)[len(ratios) // 2]
