"""What the processor can do at most in a second: multiply-adds, and bytes read from each level of its memory.

A library for profiles measures both with the instructions that it is compiled for. What disturbs a measurement makes it
lower, so the highest of all measurements of a machine counts. They are kept in the user's cache directory.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import platform
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from relaylang.runtime.files import atomic_write
from relaylang.syntax.tables import cache_directory

#: The sizes of the memory that is read, in bytes: what the levels of caches hold, and more.
SIZES = (1 << 14, 1 << 17, 1 << 19, 1 << 21, 1 << 23, 1 << 26)
_FLOATS, _INTEGERS, _READS = 0, 1, 2
#: Element types by the measurement that bounds them, and their speed in it.
_KINDS = {"float64": ("floats", 0.5), "int8": ("integers", 1.0), "uint8": ("integers", 1.0)}


@dataclass(frozen=True)
class Peaks:
    """Multiply-adds in a second of floats and of small integers; bytes in a second for memory of each of `SIZES`."""

    floats: float
    integers: float
    reads: tuple[float, ...]

    def macs(self, dtype: str) -> float:
        """Multiply-adds in a second on elements of a type."""
        kind, factor = _KINDS.get(dtype, ("floats", 1.0))
        return getattr(self, kind) * factor

    def bytes(self, size: int) -> float:
        """Bytes in a second that lie among `size` bytes in use."""
        return self.reads[min(bisect_left(SIZES, size), len(SIZES) - 1)]


def measured(peak: Callable[[int, Any, int, int, int], int], threads: int, isa: str) -> Peaks:
    """The peaks of `threads` threads, by a library's `relay_peak`."""
    memory = np.ones(SIZES[-1] + 64, np.uint8)  # untouched memory would be one page of zeros
    place = ctypes.c_void_p(memory.ctypes.data + -memory.ctypes.data % 64)

    def best(kind: int, size: int, times: int) -> float:
        """The highest speed within 30 ms. A try takes long enough that the threads' start does not count."""
        speed, end = 0.0, perf_counter() + 0.03
        while True:
            begin = perf_counter()
            done = peak(kind, place, size, times, threads)
            now = perf_counter()
            speed = max(speed, threads * done / (now - begin))
            if now > end:
                return speed

    parts = [(max(size // threads // 1024, 1) * 1024, size) for size in SIZES]
    speeds = [best(kind, 0, 200_000) for kind in (_FLOATS, _INTEGERS)]
    speeds += [best(_READS, part, max(1, SIZES[-1] // size)) for part, size in parts]
    # More memory is never faster than less.
    for n in range(len(speeds) - 2, 1, -1):
        speeds[n] = max(speeds[n], speeds[n + 1])
    known = _kept(_key(threads, isa), speeds)
    return Peaks(known[0], known[1], tuple(known[2:]))


def _key(threads: int, isa: str) -> str:
    return f"{processor()}, {isa}, {threads} threads"


def processor() -> str:
    """The name of this machine's processor, as the system says it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "uarch")):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _kept(key: str, speeds: list[float]) -> list[float]:
    """The highest of these measurements and of earlier ones."""
    known: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads((cache_directory() / "peaks.json").read_text())
    try:
        speeds = [max(a, float(b)) for a, b in zip(speeds, known[key], strict=True)]
    except (KeyError, TypeError, ValueError):
        known = known if isinstance(known, dict) else {}
    known[key] = speeds
    with contextlib.suppress(OSError):
        cache_directory().mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_write(cache_directory() / "peaks.json", json.dumps(known), durable=False)
    return speeds
