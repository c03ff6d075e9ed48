"""The process in which Vela's native part runs. A crash ends that process, not the user's, and is reported.

One process serves all compilations. It starts with the first one, which takes some 20 ms, and again behind a crash.
"""

from __future__ import annotations

import atexit
import contextlib
import marshal
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from relaylang.runtime.processes import PIPE, start

#: The program of the process.
_PROGRAM = Path(__file__).with_name("regor_server.py")


class Failure(Exception):
    """Vela refuses a graph, with its own words, or crashes."""


class _Server:
    """A process that has loaded the package in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.owner = folder, os.getpid()
        self._said = tempfile.TemporaryFile()
        command = [sys.executable, "-I", "-S", str(_PROGRAM), str(folder.absolute())]
        self._process = start(command, stdin=PIPE, stdout=PIPE, stderr=self._said)

    def ask(self, request: tuple[Any, ...]) -> Any:
        """The reply to a request. Raises `Failure` where the process ends instead."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._said.seek(0)  # also for the process, which shares the place
        self._said.truncate()
        try:
            marshal.dump(request, self._process.stdin)
            self._process.stdin.flush()
            return marshal.load(self._process.stdout)
        except (EOFError, OSError, ValueError, TypeError):
            raise Failure(self._end()) from None

    def _end(self) -> str:
        """How the process has ended, with its last line."""
        self._process.wait()
        status = self._process.returncode
        how = f"it crashes with {_signal_name(-status)}" if status < 0 else f"its process ends with the status {status}"
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        self.close()
        return f"{how}: {last}" if last else how

    def close(self) -> None:
        """End the process. It has nothing to finish, and forked processes may hold its input open."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()
        self._said.close()


class _Compiler:
    """The server of this process, which threads share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def ask(self, folder: Path, request: tuple[Any, ...]) -> Any:
        """As `compiled`."""
        with self._lock:
            if self._server is not None and (self._server.folder, self._server.owner) != (folder, os.getpid()):
                self._drop()
            if self._server is None:
                self._server = _Server(folder)
            server, self._server = self._server, None
            try:
                reply = server.ask(request)
            except Failure:
                raise
            except BaseException:  # the reply to come is nobody's
                server.close()
                raise
            self._server = server
        return reply

    def _drop(self) -> None:
        """Forget the server, and end it where it is not that of a process this one was forked from."""
        server, self._server = self._server, None
        if server is not None and server.owner == os.getpid():
            server.close()

    def close(self) -> None:
        """End the server."""
        with self._lock:
            self._drop()


_COMPILER = _Compiler()
atexit.register(_COMPILER.close)


def compiled(folder: Path, *request: Any) -> dict[str, Any]:
    """What Vela makes of the arguments of `regor.compile`. `folder` has the package `ethosu`. Raises `Failure`."""
    reply = _COMPILER.ask(folder, request)
    if isinstance(reply, str):
        raise Failure(" ".join(reply.split()))
    answer: dict[str, Any] = reply
    return answer


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"the signal {number}"
