"""A limit to the time that a program may take."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from relaylang.interpreter.errors import Trap

#: Seconds after which the exception is raised again, where it was lost.
_AGAIN = 1.0


class OutOfTime(Trap):
    """The program takes longer than it may. The interpreter and the VM add the place."""

    seconds = 0.0
    #: Whether one was sent to the thread, and did not come yet.
    pending = False

    def __init__(self) -> None:
        type(self).pending = False
        super().__init__("R0413", f"the program takes longer than the {self.seconds:g} s that it may take")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `OutOfTime` in the block after so many seconds, counted from its start. None and infinity are no limit.

    The exception comes between two steps in Python. A kernel of the interpreter ends first. Compiled code asks for it at
    times (`relaylang.runtime.interrupts`).
    """
    if seconds is None or seconds == math.inf:
        yield
        return
    kind: type[OutOfTime] = type("OutOfTime", (OutOfTime,), {"seconds": seconds})
    thread, lock, ended = threading.get_ident(), threading.Lock(), threading.Event()

    def watch() -> None:
        left = min(seconds, threading.TIMEOUT_MAX)
        while not ended.wait(left):
            with lock:
                if not ended.is_set():
                    kind.pending = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
            left = _AGAIN

    try:
        threading.Thread(target=watch, name="relay-time-limit", daemon=True).start()
        yield
    finally:
        # The exception may come here, too. One on its way is awaited: Python 3.11 never forgets one that is taken back.
        # Such a process looks for it at every step, and does not end under a profiler.
        over = False
        while not over:
            try:
                with lock:
                    ended.set()
                over = not kind.pending
            except OutOfTime:
                pass


__all__ = ["OutOfTime", "time_limit"]
