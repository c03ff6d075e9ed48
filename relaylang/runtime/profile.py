"""Where a compiled program's time goes: each kernel's cost as a table, as JSON, or for Chrome's trace viewer."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relaylang.runtime.manifest import Step
from relaylang.runtime.peaks import Peaks
from relaylang.runtime.timeline import Span, chrome_trace


@dataclass(frozen=True)
class Cost:
    """A kernel's cost: its median time in seconds, its share of the program's time, and its work.

    `roofline` is the time that the processor's peaks allow, divided by the kernel's own. 1 is as fast as can be.
    `bound` names the peak that limits it, "compute" or "memory". `others` are the places of the calls that the kernel
    also computes.
    """

    operators: str
    type: str
    place: str
    line: str
    seconds: float
    share: float
    macs: int
    gflops: float
    bytes: int
    gbytes: float
    roofline: float
    bound: str
    others: tuple[str, ...] = ()


def columns(rows: Sequence[Sequence[str]], left: Collection[int]) -> list[str]:
    """The lines of a table; columns of `left` begin at the same place, others end there."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(c.ljust(w) if n in left else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths))).rstrip() for row in rows]


class Profile:
    """The times of a program's kernels. `costs` has them in the order in which they run, `str` is the table.

    `times` has the beginnings and ends in nanoseconds, shape (runs, kernels, 2). A kernel of a branch that was not taken
    has zeros.
    """

    def __init__(self, steps: Sequence[Step], times: np.ndarray, peaks: Peaks, threads: int) -> None:
        self.times = times
        self.peaks = peaks
        self.threads = threads
        seconds = np.median(times[:, :, 1] - times[:, :, 0], axis=0) / 1e9
        self.seconds = float(seconds.sum())
        self.costs = [self._cost(step, float(t), sum(s.weights for s in steps)) for step, t in zip(steps, seconds)]

    def _cost(self, step: Step, seconds: float, weights: int) -> Cost:
        size = step.weights + step.data
        compute = step.macs / self.peaks.macs(step.dtype)
        # Weights were read a run ago, and all others since then.
        memory = step.data / self.peaks.bytes(size) + step.weights / self.peaks.bytes(max(size, weights))
        per = 1 / seconds if seconds > 0 else 0.0
        return Cost(
            step.operators,
            step.type,
            step.place,
            step.line,
            seconds,
            seconds / self.seconds if self.seconds else 0.0,
            step.macs,
            2 * step.macs * per / 1e9,
            size,
            size * per / 1e9,
            max(compute, memory) * per,
            "compute" if compute > memory else "memory",
            step.others,
        )

    def table(self, most: int | None = None) -> str:
        """The table as text, the costliest kernels first; `most` limits their number."""
        head = ("kernel", "us", "share", "GFLOP/s", "MB", "GB/s", "roofline", "bound", "type", "place")
        rows = [head]
        for cost in sorted(self.costs, key=lambda c: -c.seconds)[:most]:
            rows.append(
                (
                    cost.operators if len(cost.operators) <= 60 else cost.operators[:57] + "...",
                    f"{1e6 * cost.seconds:.1f}",
                    f"{100 * cost.share:.1f}%",
                    f"{cost.gflops:.1f}" if cost.macs else "-",
                    f"{cost.bytes / 1e6:.3f}",
                    f"{cost.gbytes:.1f}",
                    f"{100 * cost.roofline:.0f}%",
                    cost.bound,
                    cost.type,
                    cost.place,
                )
            )
        macs = sum(c.macs for c in self.costs)
        least = sum(c.roofline * c.seconds for c in self.costs)
        per = 1 / self.seconds if self.seconds else 0.0
        size = sum(c.bytes for c in self.costs)
        rows.append(
            (
                "all",
                f"{1e6 * self.seconds:.1f}",
                "100%",
                f"{2e-9 * macs * per:.1f}",
                f"{size / 1e6:.3f}",
                f"{1e-9 * size * per:.1f}",
                f"{100 * least * per:.0f}%",
                "",
                "",
                "",
            )
        )
        return "\n".join([*columns(rows, {0, 7, 8, 9}), self._peaks()])

    __str__ = table

    def _peaks(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (
            f"peaks of {threads}: {2e-9 * self.peaks.floats:.0f} GFLOP/s (float32), {2e-9 * self.peaks.integers:.0f} GOP/s (int8), "
            f"reads of {1e-9 * self.peaks.reads[0]:.0f} (cache) to {1e-9 * self.peaks.reads[-1]:.0f} GB/s (memory)"
        )

    def record(self) -> dict[str, Any]:
        """The profile as JSON has it: kernels in order, in seconds, bytes, and 1e9 operations or bytes in a second."""
        peaks = {
            "float32_gflops": 2e-9 * self.peaks.floats,
            "int8_gops": 2e-9 * self.peaks.integers,
            "read_gbytes": [1e-9 * r for r in self.peaks.reads],
        }
        return {
            "threads": self.threads,
            "runs": len(self.times),
            "seconds": self.seconds,
            "peaks": peaks,
            "kernels": [{**asdict(cost), "others": list(cost.others)} for cost in self.costs],
        }

    def json(self) -> str:
        """The same as text."""
        return json.dumps(self.record(), indent=1)

    def chrome_trace(self) -> str:
        """The last run for `chrome://tracing` or Perfetto, times in microseconds from the first kernel's beginning."""
        last = self.times[-1]
        ran = [n for n in range(len(self.costs)) if last[n, 1]]
        start = last[ran[0], 0] if ran else 0
        spans = []
        for n in ran:
            cost = asdict(self.costs[n])
            begin, end = (float(time - start) / 1e3 for time in last[n])
            spans.append(Span(cost.pop("operators"), "kernel", begin, end, "kernel", cost))
        return chrome_trace(spans)
