"""Stages of long work: the time of each, and a progress bar on the terminal after a second.

    with Stages() as stages:
        with stages.stage("parse"):
            ...
        with stages.stage("evaluate", total=94) as step:
            step(1)

It draws only if stderr is a terminal, and wipes the bar before other output.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

_DELAY = 1.0
_INTERVAL = 0.1


def clock(seconds: float) -> str:
    """`12 ms`, `3.4 s`, `2 min 05 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


class Stages:
    """Named stages, one after the other. `times` holds what each took, in seconds."""

    def __init__(self, delay: float = _DELAY) -> None:
        self.times: dict[str, float] = {}
        self._delay = delay
        self._name = ""
        self._done = 0
        self._total: int | None = None
        self._begin = self._stage_begin = time.perf_counter()
        self._drawn = False
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stream = sys.stderr  # a check of `relay test` puts another in its place for a moment
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._thread = threading.Thread(target=self._draw, daemon=True)

    @property
    def visible(self) -> bool:
        """Whether anybody may see a bar, so that counting steps is worth its time."""
        return self._thread is not None

    def __enter__(self) -> Stages:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._wipe()

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Time the body. Call the yielded function with the number of steps done, where `total` is known."""
        with self._lock:
            self._name, self._done, self._total = name, 0, total
            self._stage_begin = time.perf_counter()
        try:
            yield self._advance
        finally:
            self.times[name] = self.times.get(name, 0.0) + time.perf_counter() - self._stage_begin
            self._wipe()

    def rename(self, name: str) -> None:
        """Name the running stage anew: the bar shows it."""
        self._name = name

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """No bar is on the terminal while the body writes."""
        with self._lock:
            self._erase()
            yield

    def _advance(self, steps: int = 1) -> None:
        self._done += steps

    def _draw(self) -> None:
        while not self._stop.wait(_INTERVAL):
            if time.perf_counter() - self._begin >= self._delay:
                with self._lock:
                    if not self._stop.is_set():
                        self._stream.write(f"\r\x1b[K{self._line()}")
                        self._stream.flush()
                        self._drawn = True

    def _line(self) -> str:
        width = shutil.get_terminal_size().columns - 1
        elapsed = clock(time.perf_counter() - self._stage_begin)
        name = f"{self._name or 'working'} "
        counts = f" {self._done}/{self._total} " if self._total else " " * 6
        room = min(30, width - len(name) - len(counts) - len(elapsed) - 2)
        if room < 4:
            return f"{name}{elapsed}"[: max(0, width)]
        if self._total:
            share = min(1.0, self._done / self._total)
            filled = int(room * share)
            return f"{name}[{'#' * filled}{'.' * (room - filled)}]{counts}{elapsed}"[:width]
        at = int((time.perf_counter() - self._stage_begin) * 8) % (2 * room - 4)
        at = at if at < room - 2 else 2 * room - 5 - at
        bar = "." * at + "###" + "." * (room - 3 - at)
        return f"{name}[{bar[:room]}]{counts}{elapsed}"[:width]

    def _wipe(self) -> None:
        with self._lock:
            self._erase()

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
