"""The one way to start a program. Nothing of the working directory, or of a text's folder, is run or imported.

Programs are found in absolute folders of `PATH` alone. They start in the root folder unless the caller names another one. A
`relay` of its own imports from the folders of its Python, and from the folder of this package.
No other module starts processes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from subprocess import PIPE
from types import FrameType
from typing import Any

from relaylang.runtime.machine import virtual_memory

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: Variables with folders in which programs look for code. An empty or relative one is the working directory, or below it.
_SEARCHED = (
    "PATH",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "CPATH",
    "C_INCLUDE_PATH",
)
#: Variables with a folder, which may be relative to this process's working directory.
_PLACES = ("RELAYLANG_CACHE", "TMPDIR")
#: Where programs start that need no folder: nothing of a stranger's lies there.
_ROOT = os.path.abspath(os.sep)
#: The folder that this package is imported from.
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
#: How one of our modules starts in a process of its own: by a call of its `main`. With `-c`, Python searches the working
#: directory first, under the name "". The option `-P`, which prevents that, is new in Python 3.11.
_START = """import sys
home, name = sys.argv.pop(1), sys.argv.pop(1)
sys.path[:] = [folder for folder in sys.path if folder]
home in sys.path or sys.path.insert(0, home)
from importlib import import_module
sys.exit(import_module("relaylang." + name).main())
"""


def _absolute(folders: str) -> str:
    return os.pathsep.join([folder for folder in folders.split(os.pathsep) if os.path.isabs(folder)])


def environment() -> dict[str, str]:
    """This process's environment, with search paths that do not depend on the working directory."""
    variables = dict(os.environ)
    for name in _SEARCHED:
        folders = _absolute(variables.pop(name, ""))
        if folders:
            variables[name] = folders
    variables.update({name: os.path.abspath(variables[name]) for name in _PLACES if variables.get(name)})
    return {**variables, "PYTHONSAFEPATH": "1"}  # for programs that are written in Python


def program(name: str) -> str | None:
    """The absolute path of a program, which is named by its path or lies in an absolute folder of `PATH`. None where it is missing."""
    if os.path.dirname(name):
        path = shutil.which(name)
        return os.path.abspath(path) if path else None
    return shutil.which(name, path=_absolute(os.environ.get("PATH", os.defpath)))


def relay(*arguments: str) -> list[str]:
    """The command that calls `relay` in a process of its own, with this Python."""
    return main_of("cli", *arguments)


def main_of(module: str, *arguments: str) -> list[str]:
    """The command that calls `main` of a module of relaylang (`cli`) in a process of its own, with this Python."""
    return [sys.executable, "-c", _START, _HOME, module, *arguments]


def start(
    command: Sequence[str], *, folder: str | None = None, variables: Mapping[str, str] | None = None, **streams: Any
) -> subprocess.Popen[bytes]:
    """Start a command with streams as `Popen` takes them. `variables` are added to its environment.

    Raises `OSError` where it does not start.
    """
    path = program(command[0])
    if path is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    return subprocess.Popen([path, *command[1:]], cwd=folder or _ROOT, env={**environment(), **(variables or {})}, **streams)


def run(command: Sequence[str], data: bytes = b"", timeout: float | None = None, **options: Any) -> Ended:
    """Run one command to its end, as `Processes.run` does."""
    return Processes().run(command, data, timeout, **options)


def browser() -> Callable[[str], object] | None:
    """Opens an address in the browser. None where there is none but in the terminal, unless BROWSER names it."""
    try:
        with _safe_environment():
            controller = webbrowser.get()
    except webbrowser.Error:
        return None
    if type(controller) is webbrowser.GenericBrowser and not os.environ.get("BROWSER"):
        return None

    def show(address: str) -> object:
        with _safe_environment():
            return controller.open(address)

    return show


@contextlib.contextmanager
def _safe_environment() -> Iterator[None]:
    """`environment` as the environment of this process."""
    before = dict(os.environ)
    try:
        os.environ.update(environment())
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


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


@dataclass(frozen=True)
class Ended:
    """A program that has ended: its status and what it wrote."""

    status: int
    out: bytes
    err: bytes

    def text(self) -> str:
        """What it wrote to its standard output."""
        return self.out.decode("utf-8", "replace")

    def words(self) -> str:
        """What it wrote to its standard error."""
        return self.err.decode("utf-8", "replace")


class Processes:
    """Processes that run side by side, each in a group of its own with what it starts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def run(
        self,
        command: Sequence[str],
        data: bytes = b"",
        timeout: float | None = None,
        *,
        folder: str | None = None,
        variables: Mapping[str, str] | None = None,
        together: bool = False,
    ) -> Ended:
        """Run a command with an input, and gather what it writes; `together` puts its errors into its output.

        Raises `OSError` where it does not start, and `TimeoutError` where it takes more than `timeout` seconds. Raises
        `InterruptedError` where `end` was called before it has ended. The process and its children then end.
        """
        with self._lock:
            if self._ended:
                raise InterruptedError("the work was given up")
            errors = subprocess.STDOUT if together else PIPE
            process = start(
                command, folder=folder, variables=variables, stdin=PIPE, stdout=PIPE, stderr=errors, start_new_session=True
            )
            self._running.add(process)
        try:
            out, err = process.communicate(data, timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise TimeoutError(errno.ETIMEDOUT, f"it takes more than {timeout:g} seconds") from None
        except BaseException:
            _kill(process)
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process)
                ended = self._ended
        if ended:
            raise InterruptedError("the work was given up")
        return Ended(process.returncode, out, err or b"")

    def end(self) -> None:
        """End the running process and its children, and start no other."""
        with self._lock:
            self._ended = True
            running = list(self._running)
        for process in running:
            _kill(process)


@dataclass(frozen=True)
class Apart:
    """How a fork ended: its answer, or what it did last (`phase`), whether that took too long (`late`), and its end (`how`)."""

    answer: dict[str, Any] | None
    phase: str
    late: bool = False
    how: str = ""


def apart(
    work: Callable[[Callable[[str], None]], dict[str, Any]], seconds: Mapping[str, float], phase: str, memory: int | None = None
) -> Apart:
    """Run a function in a fork of this process, in a group of its own, without streams.

    The function returns an answer that JSON can hold, and calls its argument with the name of each phase that begins.
    `seconds` are the limits of the phases, of which `phase` is the first. `memory` are the bytes that it may take beyond
    those of this process. The fork and all that it started end with this call. Only a process with one thread may call it.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _work_apart(work, write, memory)
    os.close(write)
    answer, late, rest = None, False, b""
    deadline = time.monotonic() + seconds[phase]
    try:
        while answer is None:
            ready, _, _ = select.select([read], [], [], max(0.0, deadline - time.monotonic()))
            content = os.read(read, 65536) if ready else b""
            if not content:
                late = not ready
                break
            *lines, rest = (rest + content).split(b"\n")
            for row in map(json.loads, lines):
                if isinstance(row, str):
                    phase, deadline = row, time.monotonic() + seconds[row]
                else:
                    answer = row
    finally:
        os.close(read)
        for end in (os.killpg, os.kill):  # it may not have its group yet
            with contextlib.suppress(OSError):
                end(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
    return Apart(answer, phase, late, how)


def _work_apart(work: Callable[[Callable[[str], None]], dict[str, Any]], pipe: int, memory: int | None) -> None:
    """What the fork does. It does not return."""
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        if resource is not None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if memory is not None:
                with contextlib.suppress(ValueError, OSError):
                    resource.setrlimit(resource.RLIMIT_AS, (memory + (virtual_memory() or 0),) * 2)

        def tell(row: Any) -> None:
            content = json.dumps(row).encode() + b"\n"
            while content:
                content = content[os.write(pipe, content) :]

        tell(work(tell))
        os._exit(0)
    finally:
        os._exit(1)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process with its group."""
    # Whether it is still there is known to who waits for it: until then, its group's number is nobody else's.
    if process.returncode is None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()


__all__ = [
    "PIPE",
    "Apart",
    "Ended",
    "Processes",
    "Terminated",
    "apart",
    "browser",
    "cleaned_up",
    "environment",
    "main_of",
    "program",
    "relay",
    "run",
    "start",
]
