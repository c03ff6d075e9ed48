"""Callbacks, which take each measurement when it ends: `tvm.autotvm.callback`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.tuning_log import Log
from relaylang.tvm.autotvm.measure import MeasureInput, MeasureResult, mean_cost
from relaylang.tvm.autotvm.record import encode, records_of

Callback = Callable[[Any, Sequence[MeasureInput], Sequence[MeasureResult]], None]

#: Prefixes of units and what they stand for.
_PREFIXES = {letter: 10.0 ** (3 * (place - 8)) for place, letter in enumerate("yzafpnµm kMGTPEZY") if letter != " "}


def format_si_prefix(x: float, si_prefix: str) -> float:
    """A number in units of a prefix: 2e9 in "G" is 2. Raises `ValueError` for a prefix that there is not."""
    if si_prefix not in _PREFIXES:
        raise ValueError(f"there is no prefix {si_prefix!r}; prefixes: {' '.join(_PREFIXES)}")
    return x / _PREFIXES[si_prefix]


class _ToFile:
    """Appends to a log: the default's record, trials, and second measurements of a point."""

    #: It takes more than trials.
    every_record = True

    def __init__(self, file_out: Any, protocol: str) -> None:
        self.file, self.protocol = file_out, protocol

    def __call__(self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        if isinstance(self.file, (str, os.PathLike)):
            with Log(os.fspath(self.file)) as log:
                for record in records_of(list(zip(inputs, results))):
                    log.append(record)
        else:
            self.file.write("".join(encode(inp, result, self.protocol) + "\n" for inp, result in zip(inputs, results)))


def log_to_file(file_out: Any, protocol: str = "json") -> Callback:
    """Appends each measurement to a log, a path or an open file. Raises `RelayError` (R0645) where it cannot be written."""
    return _ToFile(file_out, protocol)


class Monitor:
    """Gathers the speed of each trial in operations per second, and when it ended."""

    def __init__(self) -> None:
        self.reset()

    def __call__(self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            self.scores.append(inp.task.flop / mean_cost(result))
            self.timestamps.append(result.timestamp)

    def reset(self) -> None:
        """Forget all trials."""
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def trial_scores(self) -> np.ndarray:
        """The speeds: float64."""
        return np.array(self.scores)

    def trial_timestamps(self) -> np.ndarray:
        """When trials ended, in seconds since 1970: float64."""
        return np.array(self.timestamps)


class _Progress:
    """A line of a search's progress. A terminal sees it after each trial, a pipe at the end."""

    def __init__(self, total: int, prefix: str, si_prefix: str) -> None:
        format_si_prefix(0, si_prefix)
        self.total, self.prefix, self.si_prefix = total, prefix, si_prefix
        self.count, self.now, self.best = 0, 0.0, 0.0
        self.begin = time.monotonic()
        self.open = True

    def __call__(self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        self.count += len(inputs)
        for inp, result in zip(inputs, results):
            self.now = inp.task.flop / mean_cost(result)
        self.best = tuner.best_flops
        if sys.stdout.isatty():
            sys.stdout.write(f"\r{self.line()}")
            sys.stdout.flush()

    def line(self) -> str:
        """The line, as TVM writes it."""
        now, best = (format_si_prefix(speed, self.si_prefix) for speed in (self.now, self.best))
        unit = f"{self.si_prefix}FLOPS"
        seconds = time.monotonic() - self.begin
        return f"{self.prefix} Current/Best: {now:7.2f}/{best:7.2f} {unit} | Progress: ({self.count}/{self.total}) | {seconds:.2f} s"

    def close(self) -> None:
        """End the line."""
        if self.open:
            self.open = False
            sys.stdout.write("\r" * sys.stdout.isatty() + f"{self.line()} Done.\n")
            sys.stdout.flush()


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """Shows the speed of the last and of the best trial, and how many of `total` there were. Raises `ValueError`."""
    return _Progress(total, prefix, si_prefix)


__all__ = ["Monitor", "format_si_prefix", "log_to_file", "progress_bar"]
