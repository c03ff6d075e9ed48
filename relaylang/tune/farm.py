"""A farm: workers of Dask (`distributed`) build and measure. Needs `pip install 'relaylang[farm]'`.

    dask scheduler                                          # on one machine
    dask worker tcp://host:8786 --resources "avx2=1"        # on each machine that measures
    relay tune net.relay --scheduler tcp://host:8786 --resources avx2=1 -o log.jsonl

A worker measures one candidate at a time, in a process of its own (`worker`). Where a worker is lost, or the scheduler starts
again, the candidates without an answer are given to the farm once more. Names, places and encryption of the machines are Dask's.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from relaylang.diagnostics import RelayError, error
from relaylang.tune.measure import Measurement, Process, measurement_of, request_of
from relaylang.tune.space import Point
from relaylang.tune.task import Task

#: The seconds in which a scheduler answers at the start of a search, and those that one is waited for that went away.
_CONNECT, _PATIENCE = 10.0, 60.0
#: The seconds in which the answer of a measurement comes from its worker.
_GATHER = 15.0
#: How often a measurement is given to the farm once more.
_RETRIES = 4
#: How often the connection is looked at, in seconds.
_LOOK = 1.0
#: What TVM's tracker and a client of it send first.
_TRACKER = (0x2F271).to_bytes(4, "little")
#: The packages whose versions must be one.
_PACKAGES = ("distributed", "relaylang")

_PROCESS: Process | None = None
_LOCK = threading.Lock()


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request on a worker of the farm, by the machine's one process that measures."""
    global _PROCESS
    with _LOCK:
        if _PROCESS is None:
            folder = distributed().get_worker().local_directory
            _PROCESS = Process(os.path.join(folder, "relay-tune"))
    return _PROCESS.answer(request)


def distributed() -> Any:
    """The package of Dask. Raises `RelayError` (R0645) where it is missing."""
    try:
        import distributed as package
    except ImportError:
        raise _wrong("a farm needs the package distributed", "pip install 'relaylang[farm]'") from None
    return package


def _wrong(what: str, *notes: str) -> RelayError:
    return RelayError(error("R0645", what, notes=notes))


def resources_of(text: str | None) -> dict[str, float]:
    """Resources as Dask's worker takes them: `avx2=1 big=2`. Raises `RelayError` (R0645)."""
    out = {}
    for word in re.split(r"[\s,]+", (text or "").strip()):
        name, _, count = word.partition("=")
        try:
            if word:
                out[name] = float(count or 1)
        except ValueError:
            raise _wrong(f"`{word}` is no resource", "write NAME=NUMBER: avx2=1") from None
    return out


class FarmMeasurer:
    """Measures on the workers of a Dask scheduler that have some resources."""

    def __init__(self, scheduler: Any, resources: str | Mapping[str, float] | None = None, limits: Mapping[str, float] | None = None):
        """`scheduler` is an address (`tcp://host:8786`) or a `distributed.Client`. Raises `RelayError` (R0645)."""
        self._package = distributed()
        self.limits = dict(limits or {})
        self.resources = resources_of(resources) if isinstance(resources, str) or resources is None else dict(resources)
        self._address = scheduler if isinstance(scheduler, str) else None
        self._client = self._connected() if self._address is not None else scheduler
        try:
            self._check_versions()
            workers = self._workers()
            if not workers:
                asked = " with " + ", ".join(f"{k}={v:g}" for k, v in self.resources.items()) if self.resources else ""
                raise _wrong(f"the farm has no worker{asked}", 'start one: dask worker tcp://host:8786 --resources "avx2=1"')
        except BaseException:
            self.close()
            raise
        self.batch = 4 * len(workers)

    def _connected(self) -> Any:
        """A client of the scheduler. Raises `RelayError` (R0645)."""
        try:
            return self._package.Client(self._address, timeout=_CONNECT, set_as_default=False)
        except Exception as e:  # of Dask, whose event loop may fail, too
            if _is_tracker(str(self._address)):
                what = f"a tracker of TVM answers at {self._address}, and no Dask scheduler"
                raise _wrong(what, "dask scheduler starts one; its workers take the place of TVM's servers") from None
            notes = ["dask scheduler starts one; its address is tcp://host:8786", str(e)[:200]]
            raise _wrong(f"no Dask scheduler answers at {self._address}", *notes) from None

    def _check_versions(self) -> None:
        """Raise `RelayError` (R0645) where scheduler or workers have other versions than this process."""
        try:
            versions = self._client.get_versions(packages=["relaylang"])
        except Exception as e:
            raise _wrong(f"the Dask scheduler speaks another version: {str(e)[:200]}") from None
        own = versions["client"]["packages"]
        places: dict[str, tuple[Any, tuple[str, ...]]] = {"the scheduler": (versions["scheduler"], _PACKAGES[:1])}
        places |= {f"the worker {name}": (about, _PACKAGES) for name, about in versions["workers"].items()}
        notes = [
            f"{place} has {package} {about['packages'].get(package) or 'not installed'}, and this process {own[package]}"
            for place, (about, packages) in places.items()
            for package in packages
            if about and about["packages"].get(package) != own[package]
        ]
        if notes:
            raise _wrong("the farm has other versions of its packages", *notes[:8])

    def _workers(self) -> list[str]:
        """The addresses of the workers that have the resources."""
        known = self._client.scheduler_info()["workers"]
        return [
            address
            for address, about in known.items()
            if all(about.get("resources", {}).get(name, 0) >= count for name, count in self.resources.items())
        ]

    def measure(self, task: Task, points: Sequence[Point], best: float = 1.0, thorough: bool = False) -> Iterator[Measurement]:
        requests = [request_of(task, point, self.limits, best, thorough) for point in points]
        left = set(range(len(points)))
        lost: Counter[int] = Counter()
        ended: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        futures: dict[int, Any] = {}

        def give(number: int) -> None:
            future = self._client.submit(answer, requests[number], resources=self.resources or None, pure=False)
            futures[number] = future
            future.add_done_callback(lambda done: ended.put((number, done)))

        try:
            for number in sorted(left):
                give(number)
            while left:
                try:
                    number, future = ended.get(timeout=_LOOK)
                except queue.Empty:
                    if self._is_away():
                        self._reconnect()
                        for number in sorted(left):
                            give(number)
                    continue
                if number not in left or futures[number] is not future:
                    continue
                reply, reason = _answer_of(future)
                if reply is not None:
                    left.discard(number)
                    yield measurement_of(points[number], reply)
                    continue
                if self._is_away():
                    continue  # all are given again
                lost[number] += 1
                if lost[number] > _RETRIES:
                    left.discard(number)
                    yield Measurement(points[number], failure="crash", message=f"the farm: {reason}"[:400])
                else:
                    give(number)
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel([futures[number] for number in left if number in futures])

    def _is_away(self) -> bool:
        return bool(self._client.status != "running")

    def _reconnect(self) -> None:
        """Wait for a scheduler that went away, and its workers. Raises `RelayError` (R0645) where it stays away."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(RelayError):
                if self._address is not None and self._is_away():
                    self.close()
                    self._client = self._connected()
                if not self._is_away() and self._workers():
                    return
            time.sleep(_LOOK)
        raise _wrong("the Dask scheduler went away", "the log has every record; the same call goes on from it")

    def close(self) -> None:
        if self._address is not None and getattr(self, "_client", None) is not None:
            with contextlib.suppress(Exception):
                self._client.close(timeout=2)

    def __enter__(self) -> FarmMeasurer:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


def _answer_of(future: Any) -> tuple[dict[str, Any] | None, str]:
    """The answer of a measurement that ended; None, with the reason, where worker or scheduler are lost."""
    try:
        if future.status == "finished":
            return dict(future.result(timeout=_GATHER)), ""
        return None, str(future.exception(timeout=_GATHER)) if future.status == "error" else future.status
    except Exception as e:
        return None, f"{type(e).__name__}: {e}"


def _is_tracker(address: str) -> bool:
    """Whether TVM's tracker answers at an address: client and tracker send the same number first."""
    try:
        place = urlsplit(address if "//" in address else f"//{address}")
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=2) as connection:
            connection.settimeout(2)
            connection.sendall(_TRACKER)
            return connection.recv(4) == _TRACKER
    except (OSError, ValueError):
        return False


__all__ = ["FarmMeasurer", "answer", "resources_of"]
