"""A farm: workers of Dask (`distributed`) build and measure. Needs `pip install 'relaylang[farm]'`.

    dask scheduler                                          # on one machine
    dask worker tcp://host:8786 --resources "avx2=1"        # on each machine that measures
    relay tune net.relay --scheduler tcp://host:8786 --resources avx2=1 -o log.jsonl

A worker measures one candidate at a time, in a process of its own (`worker`). Dask gives the work of a lost worker to
another one. Names, places and encryption of the machines are Dask's.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.tune.measure import Measurement, Process, measurement_of, request_of
from relaylang.tune.space import Point
from relaylang.tune.task import Task

#: The seconds in which a scheduler answers, and those that a farm without workers is waited for.
_PATIENCE = 10.0
#: How often a measurement is given to another worker after it was lost.
_RETRIES = 3

_PROCESS: Process | None = None
_LOCK = threading.Lock()


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker of the farm runs: the answer to a request, from this machine's one process that measures."""
    global _PROCESS
    with _LOCK:
        if _PROCESS is None:
            _PROCESS = Process()
    return _PROCESS.answer(request)


def distributed() -> Any:
    """The package of Dask. Raises `RelayError` (R0645) where it is missing."""
    try:
        import distributed as found
    except ImportError:
        notes = ["pip install 'relaylang[farm]'"]
        raise RelayError(error("R0645", "a farm needs the package distributed", notes=notes)) from None
    return found


def resources_of(text: str | None) -> dict[str, float]:
    """Resources as Dask's worker takes them: `avx2=1 big=2`. Raises `RelayError` (R0645)."""
    out = {}
    for word in re.split(r"[\s,]+", (text or "").strip()):
        name, _, count = word.partition("=")
        try:
            if word:
                out[name] = float(count or 1)
        except ValueError:
            raise RelayError(error("R0645", f"`{word}` is no resource", notes=["write NAME=NUMBER: avx2=1"])) from None
    return out


class FarmMeasurer:
    """Measures on the workers of a Dask scheduler that have some resources."""

    def __init__(self, scheduler: Any, resources: str | Mapping[str, float] | None = None, limits: Mapping[str, float] | None = None):
        """`scheduler` is an address (`tcp://host:8786`) or a `distributed.Client`. Raises `RelayError` (R0645)."""
        package = distributed()
        self.limits = dict(limits or {})
        self.resources = resources_of(resources) if isinstance(resources, str) or resources is None else dict(resources)
        self._own = isinstance(scheduler, str)
        self._client = _connected(package, scheduler) if self._own else scheduler
        self._package = package
        self.batch = 2 * max(1, len(self._workers()))
        if not self._workers():
            self.close()
            asked = " with " + ", ".join(f"{k}={v:g}" for k, v in self.resources.items()) if self.resources else ""
            notes = ['start one: dask worker tcp://host:8786 --resources "avx2=1"']
            raise RelayError(error("R0645", f"the farm has no worker{asked}", notes=notes))

    def _workers(self) -> list[str]:
        """The addresses of the workers that have the resources."""
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        return [
            address
            for address, about in known.items()
            if all(about.get("resources", {}).get(name, 0) >= count for name, count in self.resources.items())
        ]

    def measure(self, task: Task, points: Sequence[Point], best: float = 1.0, thorough: bool = False) -> Iterator[Measurement]:
        requests = [request_of(task, point, self.limits, best, thorough) for point in points]
        futures = {
            self._client.submit(answer, request, resources=self.resources or None, pure=False, retries=_RETRIES): point
            for request, point in zip(requests, points)
        }
        with self._client.as_current():
            ended = self._package.as_completed(list(futures))
        try:
            for future in ended:
                point = futures[future]
                if future.status == "finished":
                    yield measurement_of(point, future.result())
                else:
                    yield Measurement(point, failure="crash", message=f"the farm: {future.exception()}"[:400])
        finally:
            self._client.cancel([future for future in futures if not future.done()])

    def close(self) -> None:
        if self._own:
            self._client.close()

    def __enter__(self) -> FarmMeasurer:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


def _connected(package: Any, address: str) -> Any:
    try:
        return package.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as e:
        notes = ["dask scheduler starts one; its address is tcp://host:8786"]
        raise RelayError(error("R0645", f"no Dask scheduler answers at {address}: {str(e)[:200]}", notes=notes)) from None


__all__ = ["FarmMeasurer", "answer", "resources_of"]
