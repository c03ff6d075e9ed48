"""`tvm.rpc`: sessions in this process, alone or with a server of this process; those with other machines are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import read_file
from relaylang.tvm.contrib.utils import tempdir
from relaylang.tvm.runtime import ndarray
from relaylang.tvm.runtime.program import Program, load_module
from relaylang.tvm.runtime.vm import Library


def _refused(name: str) -> NoReturn:
    notes = [
        'compile for the other machine: relay.build(mod, "llvm -mtriple=aarch64-linux-gnu").save("net.so")',
        "copy the file, and run it there: relay run net.so",
        "in this process: rpc.LocalSession()",
    ]
    raise RelayError(error("R0609", f"rpc.{name}: there are no sessions with other machines", notes=notes))


class LocalSession:
    """A session with this process: files in a folder of their own, programs, and the CPU."""

    def __init__(self) -> None:
        self._folder = tempdir()

    def upload(self, data: Any, target: str | None = None) -> None:
        """Copy a file, or bytes, into the session's folder under a name."""
        content = bytes(data) if isinstance(data, (bytes, bytearray)) else read_file(data)
        (self._folder / Path(target or str(data)).name).write_bytes(content)

    def download(self, path: str) -> bytearray:
        """The bytes of a file of the session. Raises `RelayError` (R0001)."""
        return bytearray(read_file(self._folder / Path(path).name))

    def remove(self, path: str) -> None:
        """Remove a file of the session, or all of them (`"."`)."""
        if path == ".":
            shutil.rmtree(self._folder.path, ignore_errors=True)
            self._folder.path.mkdir(exist_ok=True)
        else:
            (self._folder / Path(path).name).unlink(missing_ok=True)

    def listdir(self, path: str = ".") -> str:
        """The names of the session's files, separated by commas."""
        return ",".join(sorted(self._folder.listdir()))

    def load_module(self, path: str) -> Program | Library:
        """The program of an uploaded file. Raises `RelayError` (R0001, R0641)."""
        return load_module(self._folder / Path(path).name)

    def device(self, dev_type: str | int, dev_id: int = 0) -> ndarray.Device:
        """A device of this process."""
        return ndarray.device(dev_type, dev_id)

    def cpu(self, dev_id: int = 0) -> ndarray.Device:
        """The CPU."""
        return ndarray.cpu(dev_id)


class Server:
    """A server in this process, for scripts that start their own: `connect` makes a session with it. It opens no port."""

    def __init__(self, host: str = "0.0.0.0", port: int = 9091, port_end: int = 9199, **_options: Any) -> None:
        free = [number for number in range(port, port_end) if number not in _SERVERS]
        if not free:
            raise RelayError(error("R0609", f"rpc.Server: no port from {port} to {port_end} is free"))
        self.host, self.port = host, free[0]
        _SERVERS[self.port] = self

    def terminate(self) -> None:
        """End the server; there are no more sessions with it."""
        _SERVERS.pop(self.port, None)


#: The servers of this process by their ports. A server that nobody holds ends.
_SERVERS: WeakValueDictionary[int, Server] = WeakValueDictionary()


def connect(
    url: str, port: int, key: str = "", session_timeout: int = 0, session_constructor_args: Any = None, enable_logging: bool = False
) -> LocalSession:
    """A session with a `Server` of this process. Raises `RelayError` (R0609) for any other."""
    server = _SERVERS.get(port)
    if server is None or url not in (server.host, "127.0.0.1", "localhost"):
        _refused("connect")
    return LocalSession()


def connect_tracker(url: str, port: int) -> NoReturn:
    """Raises `RelayError` (R0609)."""
    _refused("connect_tracker")


def with_minrpc(compile_func: Any, server: str = "posix_popen_server", runtime: str = "libtvm") -> NoReturn:
    """Raises `RelayError` (R0609)."""
    _refused("with_minrpc")


class _Refused:
    """A class of remote sessions: it cannot be made."""

    def __init__(self, *_args: Any, **_named: Any) -> None:
        _refused(type(self).__name__)


class RPCSession(_Refused):
    """Raises `RelayError` (R0609)."""


class PopenSession(_Refused):
    """Raises `RelayError` (R0609)."""


class TrackerSession(_Refused):
    """Raises `RelayError` (R0609)."""


__all__ = [
    "LocalSession",
    "PopenSession",
    "RPCSession",
    "Server",
    "TrackerSession",
    "connect",
    "connect_tracker",
    "with_minrpc",
]
