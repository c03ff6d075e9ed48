"""A process that measures. It reads a request in a line of its input, and answers in a line of its output.

Each request runs in a fork of the process (`processes.apart`), with limits of time and memory. So nothing that a candidate
does ends the search. The fork reports what it does, so that a limit names it. Modules are imported once, before the first fork.

A request is a JSON object: `task`, `choice`, `phase` ("build" or "run"), `reference` (the choice to measure beside, by
default the default schedule), `best` (the ratio to beat) and `limits`. An answer has `ratio`, `low`, `high`, `pairs` and
`reference` (seconds), or `failure` and `message`.
"""

from __future__ import annotations

import json
import math
import signal
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from relaylang.backends.cpu.cc import Compiler
from relaylang.diagnostics import RelayError
from relaylang.runtime import processes
from relaylang.tune.task import Task, machine_of, task_of

#: The limits of a request: seconds for lowering and compiling, seconds for running, bytes beyond those of the process.
LIMITS: Mapping[str, float] = {
    "build": 60.0,
    "run": 20.0,
    "memory": 4e9,
    "pairs": 12,
    "least": 4,
    "milliseconds": 1.0,
    "seconds": 2.0,
}
#: The means of a measurement, of which the least counts.
_REPEAT = 4
#: A candidate that takes so many times as long as the reference is measured no further.
_HOPELESS = 4.0
#: The relative half-width of an interval from which on further pairs would tell nothing.
_NARROW = 0.002
#: The greatest difference of float results from the default's, in units of the last place of the greatest value. Sums are
#: taken in other orders, and Winograd's tiles round more.
_PLACES = {"float64": 512, "float32": 512, "float16": 8, "bfloat16": 8}
_BITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The median of ratios, and the interval in which the true one lies in about 95 of 100 cases.

    Its width comes from the median distance to the median, so that a few disturbed measurements do not count.
    """
    logs = [math.log(r) for r in ratios]
    middle = statistics.median(logs)
    spread = statistics.median(abs(v - middle) for v in logs)
    half = 2 * 1.2533 * 1.4826 * spread / math.sqrt(len(logs)) + _NARROW / 2
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def difference(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> str | None:
    """Where results differ by more than other orders of sums explain; None where they agree."""
    for number, (one, two) in enumerate(zip(ours, theirs)):
        name = two.dtype.name
        if name not in _PLACES:
            if not np.array_equal(one, two):
                return f"result {number} has {int(np.sum(one != two))} other values"
            continue
        x, y = one.astype(np.float64), two.astype(np.float64)
        plain = np.isfinite(y)
        if not np.array_equal(np.isfinite(x), plain) or not np.array_equal(x[~plain], y[~plain], equal_nan=True):
            return f"result {number} has other infinite values or nans"
        if not plain.any():
            continue
        scale = float(np.max(np.abs(y[plain])))
        most = float(np.max(np.abs(x[plain] - y[plain])))
        if most > _PLACES[name] * 2.0 ** -_BITS[name] * scale:
            return f"result {number} differs by {most:.3g}, where the greatest value is {scale:.3g}"
    return None


def compare(
    candidate: Callable[[int], float],
    reference: Callable[[int], float],
    limits: Mapping[str, float],
    best: float,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Measure two programs by turns, until it is clear whether the candidate beats `best`, or the limits end it.

    `candidate(n)` and `reference(n)` are the seconds of a run, from n of them. Drift of the machine meets both, and cancels in the
    ratio. The order of the two changes from pair to pair.
    """
    begin = clock()
    once = max(reference(1), 1e-9)
    number = max(1, min(10_000, math.ceil(limits["milliseconds"] / 1e3 / once)))
    ratios: list[float] = []
    seconds: list[float] = []
    while True:
        first = reference(number) if len(ratios) % 2 == 0 else None
        ours = candidate(number)
        theirs = reference(number) if first is None else first
        ratios.append(ours / max(theirs, 1e-12))
        seconds.append(theirs)
        ratio, low, high = interval(ratios)
        if len(ratios) >= limits["pairs"] or clock() - begin > limits["seconds"]:
            break
        clear = low > best or (high < best and high / low < 1 + 4 * _NARROW)
        if ratios[0] > _HOPELESS or (len(ratios) >= limits["least"] and clear):
            break
    return {"ratio": ratio, "low": low, "high": high, "pairs": len(ratios), "reference": statistics.median(seconds)}


def _runner(artifact: Any, inputs: Mapping[str, np.ndarray]) -> Callable[[int], float]:
    """The seconds of a run: the least of a few means, which other processes have disturbed the least."""
    return lambda number: float(artifact.benchmark(repeat=_REPEAT, number=number, inputs=inputs).min)


def _results(artifact: Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The results of a run. Elements between those of the kernel are zero."""
    out = [np.zeros(shape, dtype) for shape, dtype in artifact.manifest["outputs"]]
    artifact.run(**inputs, out=tuple(out))
    return out


def measure(task: Task, request: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """The answer to a request, computed in this process. `say` is called with what begins."""
    limits = {**LIMITS, **request.get("limits", {})}
    machine = machine_of(task.options)
    missing = set(task.features) - Compiler(task.options).isa.features
    if machine.isa != task.isa or missing:
        lowered = task.isa + (f" with {', '.join(sorted(missing))}" if missing else "")
        what = f"the kernel is lowered for {lowered}, and this machine's compiler makes code for {machine.isa}" + " alone" * bool(
            missing
        )
        return {"failure": "error", "message": what + ": label the workers, or choose the processor by -mcpu"}
    say("build")
    candidate = task.compile(request["choice"])
    default = task.compile(request.get("default") or {})
    if request.get("phase") == "build":
        return {"built": True}
    say("run")
    for artifact in (candidate, default):
        artifact.threads = task.threads  # type: ignore[attr-defined]
    inputs = task.inputs()
    wrong = difference(_results(candidate, inputs), _results(default, inputs))
    if wrong is not None:
        return {"failure": "wrong result", "message": wrong}
    comparison = compare(_runner(candidate, inputs), _runner(default, inputs), limits, float(request.get("best") or 1.0))
    return {**comparison, "machine": asdict(machine)}


def _answer(request: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """The answer to a request. Exceptions are failures."""
    try:
        return measure(task_of(request["task"]), request, say)
    except MemoryError:
        return {"failure": "memory", "message": "it needs more memory than it may use"}
    except RelayError as wrong:
        first = wrong.diagnostics[0]
        kind = "compiler" if first.code in ("R0630", "R0631") else "error"
        return {"failure": kind, "message": f"{first.title}{'; ' * bool(first.notes)}{' '.join(first.notes[:2])}"[:400]}
    except Exception as fault:
        return {"failure": "error", "message": f"{type(fault).__name__}: {fault}"[:400]}


def answered(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request, from a fork of this process that the limits end."""
    limits = {**LIMITS, **request.get("limits", {})}
    ended = processes.apart(lambda say: _answer(request, say), limits, "build", int(limits["memory"]))
    if ended.answer is not None:
        return ended.answer
    what = {"build": "the compilation", "run": "the kernel"}[ended.phase]
    if ended.late:
        return {"failure": "timeout", "message": f"{what} takes more than {limits[ended.phase]:g} seconds"}
    return {"failure": "crash", "message": f"{what} ended by {ended.how}"}


def main() -> int:
    """Answer requests until the input ends, or nobody reads the answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the search ends this process
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for line in sys.stdin.buffer:
        answer = answered(json.loads(line))
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    return 0


__all__ = ["LIMITS", "answered", "compare", "difference", "interval", "main", "measure"]
