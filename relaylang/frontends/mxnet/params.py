"""Reads MXNet's parameter files: lists of arrays with names, as `mx.nd.save` writes them."""

from __future__ import annotations

import math
import struct
from typing import Any

import ml_dtypes
import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.files import damaged
from relaylang.runtime.budget import Budget

#: The number that a file begins with.
MAGIC = 0x112
#: The numbers that arrays begin with. An array of a version before them begins with its number of axes.
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
#: Kinds of storage, with their number of index arrays.
_DENSE, _ROWS, _CSR = 0, 1, 2
_INDICES = {_DENSE: 0, _ROWS: 1, _CSR: 2}
_MOST_AXES = 32
#: Element types by MXNet's numbers.
DTYPES: dict[int, Any] = {
    0: np.float32,
    1: np.float64,
    2: np.float16,
    3: np.uint8,
    4: np.int32,
    5: np.int8,
    6: np.int64,
    7: np.bool_,
    8: np.int16,
    9: np.uint16,
    10: np.uint32,
    11: np.uint64,
    12: ml_dtypes.bfloat16,
}


class _Reader:
    """The bytes of a file, read in order. No size is believed before there are so many bytes."""

    def __init__(self, data: bytes | memoryview, file: str, budget: Budget) -> None:
        self.data = memoryview(data)
        self.file = file
        self.budget = budget
        self.at = 0
        self.what = "its header"

    def wrong(self, said: str) -> RelayError:
        return damaged(self.file, said)

    def take(self, count: int) -> memoryview:
        if count > len(self.data) - self.at:
            raise self.wrong(f"it ends within {self.what}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form: str) -> int:
        return int(struct.unpack("<" + form, self.take(struct.calcsize(form)))[0])

    def count(self, size: int) -> int:
        """A number of things that take at least `size` bytes each."""
        count = self.number("Q")
        if count > (len(self.data) - self.at) // size:
            raise self.wrong(f"it claims {count:,} entries in {self.what}, more than it has room for")
        return count

    def shape(self, form: str = "q", axes: int | None = None) -> tuple[int, ...] | None:
        """A shape; None for one that is not known."""
        axes = self.number("i") if axes is None else axes
        if axes < 0:
            return None
        if axes > _MOST_AXES:
            raise self.wrong(f"{self.what} has {axes} axes")
        extents = tuple(self.number(form) for _ in range(axes))
        if any(d < 0 for d in extents):
            raise self.wrong(f"{self.what} has the shape {extents}")
        return extents

    def dtype(self) -> np.dtype:
        code = self.number("i")
        if code not in DTYPES:
            raise self.wrong(f"{self.what} has elements of type {code}, which MXNet does not have")
        return np.dtype(DTYPES[code])

    def elements(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        raw = self.take(math.prod(shape) * dtype.itemsize)
        array = np.frombuffer(raw, np.uint8) if dtype == np.bool_ else np.frombuffer(raw, dtype)
        return (array != 0 if dtype == np.bool_ else array).reshape(shape)

    def array(self) -> np.ndarray | None:
        """An array; None for one without a value."""
        magic = self.number("I")
        kind, stored = _DENSE, None
        if magic in (_V2, _V3):
            kind = self.number("i")
            if kind not in _INDICES:
                raise self.wrong(f"{self.what} has the storage {kind}, which MXNet does not have")
            stored = self.shape() if kind != _DENSE else None
            shape = self.shape()
        elif magic == _V1:
            shape = self.shape()
        else:
            shape = self.shape("I", magic)
        if shape is None or (not shape and magic != _V3):
            return None
        self.take(8)  # the device
        dtype = self.dtype()
        if kind == _DENSE:
            return self.elements(shape, dtype)
        return self.sparse(kind, shape, stored or (), dtype)

    def sparse(self, kind: int, shape: tuple[int, ...], stored: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """A sparse array as a dense one."""
        headers = [(self.dtype(), self.shape() or ()) for _ in range(_INDICES[kind])]
        values = self.elements(stored, dtype)
        parts = [self.elements(extents, own) for own, extents in headers]
        self.budget.take_bytes(math.prod(shape) * dtype.itemsize, f"writing the elements of {self.what} out")
        dense = np.zeros(shape, dtype)
        if kind == _ROWS:
            rows = parts[0]
            if rows.ndim != 1 or values.shape != (len(rows), *shape[1:]) or not _within(rows, shape[0]):
                raise self.wrong(f"the rows of {self.what} do not fit its shape {shape}")
            dense[rows] = values
            return dense
        starts, columns = parts
        fits = len(shape) == 2 and starts.shape == (shape[0] + 1,) and columns.shape == values.shape == (columns.size,)
        if not fits or not _within(columns, shape[1]) or starts[0] != 0 or starts[-1] != len(columns) or (np.diff(starts) < 0).any():
            raise self.wrong(f"the rows and columns of {self.what} do not fit its shape {shape}")
        dense[np.repeat(np.arange(shape[0]), np.diff(starts)), columns] = values
        return dense


def _within(indices: np.ndarray, extent: int) -> bool:
    return indices.dtype.kind in "iu" and bool(((indices >= 0) & (indices < extent)).all())


def read_params(data: bytes | memoryview, file: str, budget: Budget) -> dict[str, np.ndarray]:
    """The arrays of a file by their names, without the marks `arg:` and `aux:`. Raises `RelayError` (R0802)."""
    reader = _Reader(data, file, budget)
    if data[:16] != struct.pack("<QQ", MAGIC, 0):
        raise reader.wrong("this is not a parameter file of MXNet: it begins with other bytes")
    reader.take(16)
    reader.what = "the list of arrays"
    arrays = []
    for number in range(reader.count(8)):
        reader.what = f"array {number}"
        arrays.append(reader.array())
    reader.what = "the list of names"
    names = []
    for number in range(reader.count(8)):
        reader.what = f"name {number}"
        try:
            names.append(bytes(reader.take(reader.count(1))).decode("utf-8"))
        except UnicodeDecodeError:
            raise reader.wrong(f"name {number} is not UTF-8") from None
    if len(names) != len(arrays):
        raise reader.wrong(f"it has {len(names)} names for {len(arrays)} arrays")
    plain_arrays: dict[str, np.ndarray] = {}
    for name, array in zip(names, arrays):
        plain = plain_name(name)
        if plain in plain_arrays:
            raise reader.wrong(f"it has two arrays called {plain[:60]!r}")
        if array is not None:
            plain_arrays[plain] = array
    return plain_arrays


def plain_name(name: str) -> str:
    """A parameter's name without the mark of its kind."""
    return name.partition(":")[2] if name.startswith(("arg:", "aux:")) else name


__all__ = ["DTYPES", "MAGIC", "plain_name", "read_params"]
