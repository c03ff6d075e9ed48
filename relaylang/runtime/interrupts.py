"""Ctrl-C inside compiled code, which asks from time to time whether its caller wants its end.

The question lets Python run the handlers of signals, whatever they are. What a handler raises ends the run, and then
comes from the call of the run.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

_ASK = ctypes.CFUNCTYPE(ctypes.c_int)
#: What ended a run, by the thread that raises it next.
_raised: dict[int, BaseException] = {}


def _answers() -> Iterator[int]:
    """1 where a handler raised something for this thread, else 0: one library may run another's code, and both end."""
    while True:
        # Python runs handlers as a frame goes on. A function goes on before its first `try`, a generator within it.
        try:
            while True:
                yield int(threading.get_ident() in _raised)
        except BaseException as problem:  # C cannot pass it on: `check` raises it again
            if isinstance(problem, GeneratorExit):
                raise
            _raised[threading.get_ident()] = problem


def watch(opened: ctypes.CDLL) -> Any:
    """Let a library ask. The result must live as long as the library; a library without the question has None."""
    if not hasattr(opened, "relay_interrupted"):
        return None
    answers = _answers()
    next(answers)  # up to the first `try`
    entry = _ASK(answers.__next__)
    ctypes.c_void_p.in_dll(opened, "relay_interrupted").value = ctypes.cast(entry, ctypes.c_void_p).value
    ctypes.c_ulong.in_dll(opened, "relay_main").value = threading.main_thread().ident or 0
    return entry


def check() -> None:
    """Raise what ended the run that this thread has made."""
    if _raised and (problem := _raised.pop(threading.get_ident(), None)) is not None:
        raise problem


__all__ = ["check", "watch"]
