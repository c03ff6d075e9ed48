"""What scripts take from `tvm._ffi`: decorators of classes and functions, files of libraries, C's view of a tensor.

Nothing here crosses into another language: registered classes stay as they are.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.tvm.runtime.dltensor import TVMArray, TVMArrayHandle
from relaylang.tvm.runtime.ndarray import Device

string_types = (str,)
numeric_types = (int, np.int32, float, np.float16, np.float32)


def decorate(func: Callable[..., Any], fwrapped: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the name and parameters of `func` that returns `fwrapped(func, *args, **named)`."""

    @functools.wraps(func)
    def call(*args: Any, **named: Any) -> Any:
        return fwrapped(func, *args, **named)

    return call


def register_error(func_name: str | type | None = None, cls: type | None = None) -> Any:
    """A decorator of an error's class, or the class itself. Python's errors are raised as they are."""
    if isinstance(func_name, type):
        return func_name
    return cls if cls is not None else lambda own: own


def register_extension(cls: type, fcreate: Callable[..., Any] | None = None) -> type:
    """A class whose objects functions take and return: it stays as it is."""
    return cls


def _folders(search_path: str | Sequence[str] | None) -> list[str]:
    own = [search_path] if isinstance(search_path, str) else list(search_path or ())
    variable = {"darwin": "DYLD_LIBRARY_PATH", "win32": "PATH"}.get(sys.platform, "LD_LIBRARY_PATH")
    return [folder for folder in [*own, *os.environ.get(variable, "").split(os.pathsep)] if folder]


def _files(names: Sequence[str], folders: Sequence[str], optional: bool, test: Callable[[str], bool]) -> list[str] | None:
    paths = [path for name in names for folder in folders if test(path := os.path.join(os.path.realpath(folder), name))]
    if not paths and not optional:
        said = f"cannot find {', '.join(names)} in {', '.join(folders) or 'no folder'}"
        raise RuntimeError(f"{said}: name and search_path say where to look")
    return paths or None


def find_lib_path(
    name: str | Sequence[str] | None = None, search_path: str | Sequence[str] | None = None, optional: bool = False
) -> list[str] | None:
    """The paths of libraries by name, in `search_path` and in the folders of the system's variable.

    The default name is TVM's own library, which relaylang does not need. None with `optional`, where there is none; else
    raises `RuntimeError`.
    """
    default = {"darwin": "libtvm.dylib", "win32": "tvm.dll"}.get(sys.platform, "libtvm.so")
    names = [name] if isinstance(name, str) else list(name or [default])
    return _files(names, _folders(search_path), optional, os.path.isfile)


def find_include_path(
    name: str | Sequence[str] | None = None, search_path: str | Sequence[str] | None = None, optional: bool = False
) -> list[str] | None:
    """The paths of folders of headers by name, in `search_path`. None with `optional`; else raises `RuntimeError`."""
    names = [name] if isinstance(name, str) else list(name or ["include"])
    return _files(names, [search_path] if isinstance(search_path, str) else list(search_path or ()), optional, os.path.isdir)


class TVMByteArray(ctypes.Structure):
    """Bytes for C: `data` and `size`."""

    _fields_ = [("data", ctypes.POINTER(ctypes.c_byte)), ("size", ctypes.c_size_t)]


def _address(data: Any) -> int:
    return int(ctypes.cast(data, ctypes.c_void_p).value or 0) if not isinstance(data, int) else data


def _bytes_of(handle: Any, nbytes: Any) -> tuple[int, int]:
    """The address of a tensor's elements, and the number of bytes. Raises `ValueError` where they are not its size."""
    array, size = handle.contents, int(getattr(nbytes, "value", nbytes))
    own = array.dtype.bits // 8
    for axis in range(array.ndim):
        own *= array.shape[axis]
    if size != own:
        raise ValueError(f"the tensor has {own} bytes, not {size}")
    return int(array.data or 0) + array.byte_offset, size


class _Functions:
    """The C functions that scripts call directly: copies between tensors and memory."""

    @staticmethod
    def TVMArrayCopyFromBytes(handle: Any, data: Any, nbytes: Any) -> int:
        """Copy `nbytes` from an address into a tensor. Raises `ValueError` for another number of bytes than the tensor's."""
        address, size = _bytes_of(handle, nbytes)
        ctypes.memmove(address, _address(data), size)
        return 0

    @staticmethod
    def TVMArrayCopyToBytes(handle: Any, data: Any, nbytes: Any) -> int:
        """Copy a tensor to an address. Raises `ValueError` for another number of bytes than the tensor's."""
        address, size = _bytes_of(handle, nbytes)
        ctypes.memmove(_address(data), address, size)
        return 0


_LIB = _Functions()


def check_call(ret: int) -> None:
    """Raise `RuntimeError` unless a C function returned 0."""
    if ret != 0:
        raise RuntimeError(f"a C function returned {ret}")


__all__ = [
    "Device",
    "TVMArray",
    "TVMArrayHandle",
    "TVMByteArray",
    "check_call",
    "decorate",
    "find_include_path",
    "find_lib_path",
    "numeric_types",
    "register_error",
    "register_extension",
    "string_types",
]
