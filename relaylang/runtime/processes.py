"""Programs that are called while something is made, and that end when it is given up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType


class Terminated(BaseException):
    """The process is to end by a signal, as soon as what it was doing is cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def cleaned_up() -> Iterator[None]:
    """Clean up after an interrupted block: SIGTERM and SIGHUP raise an exception in it, then end the process.

    The block keeps existing handlers and ignored signals. Outside of the main thread it changes nothing, because Python
    allows no handlers there.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        for each in ours:  # a second signal does not disturb the cleaning
            signal.signal(each, signal.SIG_IGN)
        raise Terminated(number)

    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, end)
                ours.append(number)
    ended = None
    try:
        yield
    except Terminated as e:
        if not ours:
            raise
        ended = e.number
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
    if ended is not None:
        os.kill(os.getpid(), ended)


class Processes:
    """Processes that run side by side, each in a group of its own with what it starts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._ended = False

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command and gather what it writes. Raises `OSError` where it does not start, `InterruptedError` where `end` was
        called before it has ended."""
        with self._lock:
            if self._ended:
                raise InterruptedError("the work was given up")
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                errors="replace", env=environment, start_new_session=True,
            )  # fmt: skip
            self._running.add(process)
        try:
            out, err = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
                ended = self._ended
        if ended:
            raise InterruptedError("the work was given up")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def end(self) -> None:
        """End the running process and its children, and start no other."""
        with self._lock:
            self._ended = True
            running = list(self._running)
        for process in running:
            # Whether it is still there is known to who waits for it: until then, its group's number is nobody else's.
            if process.returncode is None:
                with contextlib.suppress(OSError):
                    if hasattr(os, "killpg"):
                        os.killpg(process.pid, signal.SIGKILL)
                    else:
                        process.kill()


__all__ = ["Processes", "Terminated", "cleaned_up"]
