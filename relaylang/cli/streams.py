"""Prepares the standard streams for every text.

A closed stream fails like a full disk. Characters outside of the terminal's encoding appear as `\\u00e9`, which a string of
Relay text reads back.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import NoReturn


def _escaped(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    letters = problem.object[problem.start : problem.end]
    return "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in letters), problem.end


codecs.register_error("relay.escape", _escaped)


class _Closed(io.TextIOBase):
    """A stream that the caller has closed (`relay print net.relay >&-`): using it is an error of the system's."""

    @property
    def buffer(self) -> _Closed:
        return self

    def _fail(self) -> NoReturn:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def write(self, text: object) -> NoReturn:
        self._fail()

    def read(self, size: int | None = -1) -> NoReturn:
        self._fail()

    def readline(self, size: int = -1) -> NoReturn:  # type: ignore[override]
        self._fail()


def prepare() -> None:
    """Replace streams that are closed, and let the others write any character."""
    if sys.stdin is None:
        sys.stdin = _Closed()
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="relay.escape")


def can_show(text: str) -> bool:
    """Whether the standard output's encoding has these characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def close_stdout() -> None:
    """Discard further output to stdout: its reader is gone, or its disk is full."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")
