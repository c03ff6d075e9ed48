"""A tensor as functions of C see it: a `DLTensor` over its memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int), ("device_id", ctypes.c_int)]


class _DataType(ctypes.Structure):
    _fields_ = [("type_code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class TVMArray(ctypes.Structure):
    """A tensor for C, as DLPack has it."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


TVMArrayHandle = ctypes.POINTER(TVMArray)

#: DLPack's numbers of kinds of elements, by numpy's letters.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 1, "c": 5}


def handle_of(array: np.ndarray) -> Any:
    """A `TVMArrayHandle` of a dense array, for functions of C. The array must outlive it."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    code = 4 if array.dtype.name == "bfloat16" else _CODES[array.dtype.kind]
    kind = _DataType(code, 8 * array.dtype.itemsize, 1)
    array_struct = TVMArray(array.ctypes.data, _Device(1, 0), array.ndim, kind, ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)))
    array_struct.shape_memory = shape  # C reads it as long as the handle lives
    return ctypes.pointer(array_struct)


__all__ = ["TVMArray", "TVMArrayHandle", "handle_of"]
