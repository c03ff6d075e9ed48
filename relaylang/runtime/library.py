"""A shared library of compiled code, loaded from memory and unloaded with its last reference."""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.external import Calls
from relaylang.runtime.interrupts import watch
from relaylang.runtime.text import reason

try:
    from _ctypes import dlclose
except ImportError:  # Windows

    def dlclose(handle: int, /) -> None:
        ctypes.windll.kernel32.FreeLibrary(ctypes.c_void_p(handle))  # type: ignore[attr-defined]


_PLACE = ctypes.c_void_p
_PREPARE = ctypes.CFUNCTYPE(None, _PLACE, _PLACE, _PLACE)
_RUN = ctypes.CFUNCTYPE(None, _PLACE, _PLACE, _PLACE, _PLACE, _PLACE, ctypes.c_int)
_CLOSE = ctypes.CFUNCTYPE(None)
_PEAK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int, _PLACE, ctypes.c_long, ctypes.c_long, ctypes.c_int)


class Library:
    """A loaded library. `about` is its own description, `content` its bytes.

    A library for profiles has `peak`, which tries what the processor can do. `times` copies when each instruction of the
    last run began and ended (ns); `profiling` is held meanwhile. Other libraries have None.
    The last reference ends its threads and unloads its code; hold a reference during a call.
    Raises `RelayError` (R0641) if it cannot be loaded.
    """

    __slots__ = ("__weakref__", "_asks", "_table", "about", "calls", "content", "peak", "prepare", "profiling", "run", "times")

    def __init__(self, content: bytes) -> None:
        self.content = content
        #: Python functions that it calls, where it has a table for them; see `connect`.
        self.calls: Calls | None = None
        opened = open_library(content)
        try:
            # Not the library's own attributes: those would keep its handle in a cycle that the collector has to find.
            self.prepare, self.run = function_in(opened, "relay_prepare", _PREPARE), function_in(opened, "relay_run", _RUN)
            close = function_in(opened, "relay_close", _CLOSE)
            self.peak = function_in(opened, "relay_peak", _PEAK) if hasattr(opened, "relay_peak") else None
            self.times = _times(opened) if self.peak is not None else None
            self._table, self._asks = table_in(opened), watch(opened)
            self.profiling = threading.Lock()
            self.about = ctypes.string_at(address_in(opened, "relay_about"))
        except (AttributeError, ValueError):
            unload(opened, None)
            raise RelayError(error("R0641", "the compiled program cannot be loaded: relaylang did not make the library")) from None
        # At the end of the process other threads may still be in it.
        weakref.finalize(self, unload, opened, close).atexit = False

    def connect(self, calls: Calls) -> None:
        """Let the library call Python functions. Raises `RelayError` (R0641) where it has no table for them."""
        connect(self._table, calls)
        self.calls = calls


def table_in(opened: ctypes.CDLL) -> int:
    """The address of a library's table of external code, 0 where it has none."""
    return address_in(opened, "relay_calls") if hasattr(opened, "relay_calls") else 0


def connect(table: int, calls: Calls) -> None:
    """Write Python functions into a library's table. Raises `RelayError` (R0641) where there is none."""
    if not table:
        raise RelayError(error("R0641", "the compiled program cannot be loaded: its library calls no external code"))
    for number, entry in enumerate(calls.entries):
        ctypes.c_void_p.from_address(table + number * ctypes.sizeof(ctypes.c_void_p)).value = ctypes.cast(entry, ctypes.c_void_p).value


def unload(opened: ctypes.CDLL, close: Callable[[], object] | None) -> None:
    """Unload a library, after a call of its function that ends it."""
    if close is not None:
        close()
    dlclose(opened._handle)


def address_in(opened: ctypes.CDLL, name: str) -> int:
    """The address of what a library shows. Raises `ValueError`."""
    return ctypes.addressof(ctypes.c_char.in_dll(opened, name))


def function_in(opened: ctypes.CDLL, name: str, kind: Any) -> Any:
    """A library's function of a type, apart from the library's own attributes. Raises `ValueError`."""
    return kind(address_in(opened, name))


def _times(opened: ctypes.CDLL) -> Callable[[], np.ndarray]:
    place, count = address_in(opened, "relay_times"), ctypes.c_long.in_dll(opened, "relay_steps").value

    def times() -> np.ndarray:
        return np.frombuffer(ctypes.string_at(place, 16 * count), np.int64).reshape(count, 2)

    return times


def open_library(content: bytes) -> ctypes.CDLL:
    """Load a library from memory. The file that this takes is gone afterwards."""
    try:
        handle, name = tempfile.mkstemp(prefix="relay-", suffix=".so")
    except OSError as e:
        raise temporary_failure(e) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    except OSError as e:
        Path(name).unlink(missing_ok=True)
        raise temporary_failure(e) from None
    try:
        return ctypes.CDLL(name)
    except OSError as e:
        folder = os.path.dirname(name)
        if _forbids_code(folder):
            notes = [f"the file system of {folder} is mounted with noexec", _OTHER]
            raise RelayError(error("R0642", f"no code can be loaded from the temporary directory {folder}", notes=notes)) from None
        said = str(e).replace(f"{name}: ", "").replace(name, "the library")
        raise RelayError(error("R0641", f"the compiled program cannot be loaded: {said}")) from None
    finally:
        Path(name).unlink(missing_ok=True)


_OTHER = "TMPDIR names another directory: `TMPDIR=/var/tmp relay ...`"


def _forbids_code(folder: str) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)
    except (AttributeError, OSError):
        return False


def temporary_failure(e: OSError) -> RelayError:
    """The error of a temporary directory that cannot be written (R0642)."""
    try:
        folder = tempfile.gettempdir()
    except OSError:
        return RelayError(error("R0642", f"there is no temporary directory: {reason(e)}", notes=[_OTHER]))
    return RelayError(error("R0642", f"the temporary directory {folder} cannot be used: {reason(e)}", notes=[_OTHER]))
