"""The time of a search's parts: `tvm.meta_schedule.Profiler`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Profiler:
    """Gathers seconds by name inside a `with` block: what `timeit` measures, and "Total"."""

    _current: list[Profiler] = []

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def __enter__(self) -> Profiler:
        self._begin = time.monotonic()
        Profiler._current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        Profiler._current.remove(self)
        self._seconds["Total"] = time.monotonic() - self._begin

    def get(self) -> dict[str, float]:
        """Seconds by name."""
        return dict(self._seconds)

    def table(self) -> str:
        """A line for each name: seconds, and the share of the total."""
        total = self._seconds.get("Total", 0.0) or 1.0
        rows = [f"{name:24} {seconds:10.3f} s {100 * seconds / total:6.1f} %" for name, seconds in self._seconds.items()]
        return "\n".join(rows)

    @staticmethod
    def current() -> Profiler | None:
        """The innermost profiler."""
        return Profiler._current[-1] if Profiler._current else None

    @staticmethod
    @contextmanager
    def timeit(name: str) -> Iterator[None]:
        """Add the time of the block to the innermost profiler's name."""
        begin = time.monotonic()
        try:
            yield
        finally:
            profiler = Profiler.current()
            if profiler is not None:
                profiler._seconds[name] = profiler._seconds.get(name, 0.0) + time.monotonic() - begin


__all__ = ["Profiler"]
