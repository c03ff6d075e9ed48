"""Measurers: they answer for each point of a batch how long it takes, or how it failed.

`LocalMeasurer` has processes of its own (`worker`). Candidates are compiled side by side, and measured one after the
other, so that they do not disturb each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from relaylang.diagnostics import RelayError, error
from relaylang.runtime import processes
from relaylang.runtime.machine import usable_cpus
from relaylang.tune.space import Point
from relaylang.tune.task import Machine, Task
from relaylang.tune.worker import LIMITS


@dataclass(frozen=True)
class Measurement:
    """What a measurement of a point found.

    `ratio` is its time beside the default's, between `low` and `high`, from `pairs` turns; `reference` are the default's
    seconds. One that failed has a `failure` of `tuning_log.FAILURES`. `machine` is where it ran.
    """

    point: Point
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    reference: float | None = None
    failure: str | None = None
    message: str = ""
    machine: Machine | None = None


class Measurer(Protocol):
    """What a search measures with."""

    #: How many points it takes at a time to keep busy.
    batch: int

    def measure(self, task: Task, points: Sequence[Point], best: float = 1.0, thorough: bool = False) -> Iterator[Measurement]:
        """Measure points of a task, in any order. `best` is the ratio to beat; `thorough` measures to the end of the limits."""

    def close(self) -> None:
        """End what it started."""


def request_of(task: Task, point: Point, limits: Mapping[str, float], best: float, thorough: bool) -> dict[str, Any]:
    """The request for a worker."""
    more = dict(limits)
    if thorough:
        pairs = int(more.get("pairs", LIMITS["pairs"]))
        more.update(pairs=3 * pairs, least=3 * pairs, seconds=3 * more.get("seconds", LIMITS["seconds"]))
    return {"task": task.json(), "choice": dict(point.choice), "best": best, "limits": more}


def measurement_of(point: Point, answer: Mapping[str, Any]) -> Measurement:
    """The measurement of a worker's answer."""
    if answer.get("failure"):
        return Measurement(point, failure=str(answer["failure"]), message=str(answer.get("message", "")))
    machine = Machine(**answer["machine"])
    ratio, low, high = (float(answer[name]) for name in ("ratio", "low", "high"))
    return Measurement(point, ratio, low, high, int(answer["pairs"]), float(answer["reference"]), machine=machine)


class Process:
    """A worker process. It starts with its first request, and again where something ended it."""

    def __init__(self, cache: str | None = None) -> None:
        self._process: Any = None
        self._lock = threading.Lock()
        self._closed = False
        self._cache = cache

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request. Raises `RelayError` (R0645) where no process starts."""
        content = json.dumps(request).encode() + b"\n"
        with self._lock:
            for _ in range(2):
                process = self._started()
                try:
                    process.stdin.write(content)
                    process.stdin.flush()
                    line = process.stdout.readline()
                except OSError:
                    line = b""
                if line.endswith(b"\n"):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
                self._end()
                if self._closed:
                    break
        return {"failure": "crash", "message": "the process that measures was ended twice"}

    def _started(self) -> Any:
        if self._process is None:
            variables = {"RELAYLANG_CACHE": self._cache} if self._cache else None
            try:
                self._process = processes.start(
                    processes.main_of("tune.worker"), variables=variables, stdin=processes.PIPE, stdout=processes.PIPE
                )
            except OSError as e:
                raise RelayError(error("R0645", f"no process starts to measure in: {e.strerror}")) from None
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def close(self) -> None:
        """End the process. A fork that still measures ends by its limits."""
        self._closed = True
        process = self._process
        if process is not None:
            with contextlib.suppress(OSError):
                process.terminate()
        self._end()


class LocalMeasurer:
    """Measures on this machine."""

    def __init__(self, limits: Mapping[str, float] | None = None, builders: int | None = None) -> None:
        self.limits = dict(limits or {})
        self.batch = 2 * max(1, builders or usable_cpus())
        # What candidates leave in the compiler's cache goes with the search.
        self._folder = tempfile.TemporaryDirectory(prefix="relay-tune-", ignore_cleanup_errors=True)
        cache = os.path.join(self._folder.name, "cache")
        self._workers = [Process(cache) for _ in range(max(1, builders or usable_cpus()))]

    def measure(self, task: Task, points: Sequence[Point], best: float = 1.0, thorough: bool = False) -> Iterator[Measurement]:
        requests = [request_of(task, point, self.limits, best, thorough) for point in points]
        built: list[dict[str, Any]] = [{} for _ in points]
        if len(points) > 1 and len(self._workers) > 1:
            free = list(self._workers)

            def build(request: dict[str, Any]) -> dict[str, Any]:
                worker = free.pop()
                try:
                    return worker.answer({**request, "phase": "build"})
                finally:
                    free.append(worker)

            with ThreadPoolExecutor(len(self._workers)) as pool:
                try:
                    built = list(pool.map(build, requests))
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    self.close()
                    raise
        for point, request, before in zip(points, requests, built):
            answer = before if before.get("failure") else self._workers[0].answer(request)
            yield measurement_of(point, answer)

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self._folder.cleanup()

    def __enter__(self) -> LocalMeasurer:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


__all__ = ["LocalMeasurer", "Measurement", "Measurer", "Process", "measurement_of", "request_of"]
