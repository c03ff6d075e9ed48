"""The time of a program on the VM: each kernel's calls and time, and the loop's share."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relaylang.diagnostics.source import Span
from relaylang.runtime.profile import columns
from relaylang.runtime.vm.program import VMProgram


@dataclass(frozen=True)
class KernelTime:
    """A kernel's calls and time in seconds, and the share of the whole. `interpreted` counts calls that the interpreter took."""

    kernel: str
    calls: int
    interpreted: int
    seconds: float
    share: float
    place: str
    line: str


class VMProfile:
    """The times of one call. `kernels` has those that ran, the costliest first. `seconds` is the whole, `str` the table.

    `spent` has a row for each kernel of the program: calls, calls of the interpreter, and nanoseconds.
    """

    def __init__(self, program: VMProgram, spent: np.ndarray, seconds: float, threads: int) -> None:
        self.seconds = seconds
        self.threads = threads
        places = places_of(program)
        self.kernels = []
        for number in sorted(np.flatnonzero(spent[:, 0]).tolist(), key=lambda n: -int(spent[n, 2])):
            calls, interpreted, time = spent[number].tolist()
            span = places.get(number)
            line = span.source.line(span.line).strip() if span is not None else ""
            share = time / 1e9 / seconds if seconds else 0.0
            self.kernels.append(KernelTime(f"k{number}", calls, interpreted, time / 1e9, share, str(span or ""), line))

    def table(self) -> str:
        """The table as text."""
        rows = [("kernel", "calls", "us", "share", "computed by", "place")]
        for k in self.kernels:
            by = "interpreter" if k.interpreted == k.calls else "compiled code" if not k.interpreted else "both"
            rows.append((k.kernel, str(k.calls), *_time(k.seconds, k.share), by, f"{k.place}  {k.line}".strip()))
        rest = max(0.0, self.seconds - sum(k.seconds for k in self.kernels))
        rows.append(("code", "", *_time(rest, rest / self.seconds if self.seconds else 0.0), "", ""))
        rows.append(("all", "", *_time(self.seconds, 1), "", ""))
        return "\n".join(columns(rows, {0, 4, 5}))

    __str__ = table

    def record(self) -> dict[str, Any]:
        """The profile as JSON has it, times in seconds."""
        return {"threads": self.threads, "seconds": self.seconds, "kernels": [asdict(k) for k in self.kernels]}

    def json(self) -> str:
        """The same as text."""
        return json.dumps(self.record(), indent=1)


def _time(seconds: float, share: float) -> tuple[str, str]:
    return f"{1e6 * seconds:.1f}", f"{100 * share:.1f}%"


def places_of(program: VMProgram) -> dict[int, Span | None]:
    """The place of each kernel's first call in the code."""
    places: dict[int, Span | None] = {}
    for at in program.offsets.tolist():
        if program.table[int(program.code[at])].name == "InvokePacked":
            places.setdefault(int(program.code[at + 1]), program.place(at))
    return places
