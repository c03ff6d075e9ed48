"""The start of the `relay` command. Ctrl-C ends the process at once while it starts and ends.

An exception would come out of an import, of which Python prints a traceback, or be lost in one. Nothing is written yet that
would have to be cleaned up. This module imports what Python has loaded at its start: `_signal` instead of `signal`.
"""

from __future__ import annotations

import os
import sys
from _signal import SIG_IGN, SIGINT, default_int_handler, getsignal, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def end(*_: object) -> NoReturn:
    """End the process as after Ctrl-C."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(130)


def end_at_once() -> None:
    """End the process at Ctrl-C, where Python would raise an exception. Ignored signals and other handlers stay."""
    if getsignal(SIGINT) is default_int_handler:
        try:
            signal(SIGINT, end)
        except ValueError:
            pass  # only the main thread may set handlers


def ignore() -> None:
    """Ignore Ctrl-C when all is done. Python's end would drop the handler, and a signal after that end the process with -2."""
    if getsignal(SIGINT) is end:
        signal(SIGINT, SIG_IGN)


def raise_again() -> None:
    """Raise `KeyboardInterrupt` at Ctrl-C again, so that unfinished work can clean up."""
    if getsignal(SIGINT) is end:
        signal(SIGINT, default_int_handler)


def begin() -> None:
    """Prepare this process where it is a call of `relay`, and not of a program that imports this package."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    module = name == "-m" and "relaylang" in sys.orig_argv
    if module and not getattr(sys.flags, "safe_path", False) and sys.path[:1] == [os.getcwd()]:
        del sys.path[0]  # `-m` puts the working directory first: nothing else is imported from it
    if module or name in ("relay", "relay.exe", "relay-script.py"):
        end_at_once()


__all__ = ["begin", "end", "end_at_once", "ignore", "raise_again"]
