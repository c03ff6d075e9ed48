"""What a program may take: --memory-limit and --time-limit, for every executor."""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from relaylang.cli.inputs import bad_value
from relaylang.cli.reporting import end, report
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.interpreter.memory import size_text
from relaylang.interpreter.time_limit import OutOfTime, time_limit
from relaylang.runtime.machine import resident_memory

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(i?)B?", re.I)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h)?")
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, None: 1.0}
#: Seconds between two looks at compiled code, and those that a program gets to end by itself.
_EVERY, _PATIENCE = 0.02, 0.5


def memory_size(text: str, option: str = "--memory-limit") -> int:
    """Bytes: `500M`, `1.5GB`, `64KiB`, `1000000`. Raises `RelayError`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise bad_value(f"{option} {text} is no size", ["sizes: 500M, 1.5G, 64KiB, 1000000"])
    step = 1024 if match[3] else 1000
    return int(float(match[1]) * step ** " kmgt".index((match[2] or " ").lower()))


def duration(text: str, option: str = "--time-limit") -> float:
    """Seconds: `10`, `1.5s`, `500ms`, `2min`, `1h`. Raises `RelayError`."""
    match = _TIME.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise bad_value(f"{option} {text} is no time", ["times: 10 (seconds), 1.5s, 500ms, 2min, 1h"])
    return float(match[1]) * _UNITS[match[2]]


def add_limit_options(parser: argparse._ActionsContainer, what: str) -> None:
    """The options; `what` is what they stop."""
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help=f"stop {what} whose memory grows by more: 500M, 2GiB (default, for recursion: half of what is left, up to 4GiB)",
    )
    parser.add_argument("--time-limit", metavar="TIME", help=f"stop {what} that takes longer: 10 (seconds), 500ms, 2min")


class Limits:
    """The limits of a call: bytes and seconds, None where there is none. Raises `RelayError` (R0705)."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.memory = memory_size(args.memory_limit) if args.memory_limit is not None else None
        self.seconds = duration(args.time_limit) if args.time_limit is not None else None

    @contextmanager
    def running(self, compiled: bool = False) -> Iterator[None]:
        """Around a program's run. If it still runs half a second after the limit, the process ends.

        The interpreter and the VM keep to limits themselves; `compiled` says that nobody else does. Raises `RelayError`
        (R0408, R0413).
        """
        watched = self.memory if compiled else None
        if watched is None and self.seconds is None:
            yield
            return
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended, watched), name="relay-limits", daemon=True)
        watcher.start()
        try:
            with time_limit(self.seconds if compiled else None):  # the others do so themselves
                yield
        except OutOfTime as late:
            raise RelayError(error(late.code, late.message)) from None
        finally:
            ended.set()
            watcher.join()

    def _watch(self, ended: threading.Event, memory: int | None) -> None:
        begin, base = time.monotonic(), resident_memory() or 0
        while not ended.wait(_EVERY if memory is not None else _PATIENCE / 4):
            if self.seconds is not None and time.monotonic() - begin > self.seconds + _PATIENCE:
                late = type("OutOfTime", (OutOfTime,), {"seconds": self.seconds})()
                _stop(error(late.code, late.message, notes=["compiled code ran, so the process was ended"]))
            if memory is not None and (resident_memory() or 0) - base > memory:
                _stop(error("R0408", f"the program needs more than the {size_text(memory)} that it may use"))


def _stop(reason: Diagnostic) -> None:
    """End the process with an error, from another thread than the program's."""
    report([reason])
    end(1)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


__all__ = ["Limits", "add_limit_options", "duration", "memory_size"]
