"""How long a compiled program runs: repeated measurements, and their summary."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from relaylang.diagnostics import RelayError, error


@dataclass(frozen=True)
class BenchmarkResult:
    """The seconds of one run, from each of several measurements; `str` is a table in milliseconds."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def std(self) -> float:
        """The standard deviation of the measurements themselves, 0 for a single one."""
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        names = "mean median max min std".split()
        head = " ".join(f"{f'{name} (ms)':^12}" for name in names)
        return f"Execution time summary:\n{head}\n{' '.join(f'{1e3 * getattr(self, name):^12.4f}' for name in names)}"


def timed(run: Callable[[], object], repeat: int = 5, number: int = 5, min_repeat_ms: float = 0) -> BenchmarkResult:
    """Measure `repeat` times the mean of `number` runs, after one run that does not count.

    A measurement takes at least `min_repeat_ms`: `number` grows until it does. Raises `RelayError` (R0640).
    """
    for name, value, least in (("repeat", repeat, 1), ("number", number, 1), ("min_repeat_ms", min_repeat_ms, 0)):
        if value < least:
            raise RelayError(error("R0640", f"{name} of a benchmark must be {least} or more, not {value}"))
    run()
    results: list[float] = []
    while len(results) < repeat:
        begin = perf_counter()
        for _ in range(number):
            run()
        took = perf_counter() - begin
        if 1e3 * took < min_repeat_ms:
            number = max(int(number * min_repeat_ms / (1e3 * took)) + 1 if took > 0 else 0, 2 * number)
        else:
            results.append(took / number)
    return BenchmarkResult(tuple(results))
