"""numpy's makers of arrays, which take their bytes from a file's budget before they allocate.

The extents of a conversion's arrays come from the file, which may claim any number. So conversions make arrays here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common.report import Malformed
from relaylang.runtime.budget import Budget

Extents = int | Sequence[int]
_WHAT = "computing its constants"


class Arrays:
    """Arrays under one budget. Each method has the arguments of numpy's function of its name.

    A method raises `Malformed` for a negative extent, and `Exhausted` where the budget does not suffice.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def reserve(self, extents: Extents, what: str = _WHAT, size: int = 8) -> Any:
        """The extents, after their elements of `size` bytes are taken from the budget."""
        sizes = [int(n) for n in ([extents] if isinstance(extents, (int, np.integer)) else extents)]
        if any(n < 0 for n in sizes):
            raise Malformed(f"{what} needs {min(sizes)} elements")
        self.budget.take_bytes(math.prod(sizes) * size, what)
        return extents

    def full(self, shape: Extents, value: Any, dtype: Any = None) -> np.ndarray:
        kind = np.asarray(value).dtype if dtype is None else np.dtype(dtype)
        return np.full(self.reserve(shape, size=kind.itemsize), value, kind)

    def zeros(self, shape: Extents, dtype: Any = np.float64) -> np.ndarray:
        return np.zeros(self.reserve(shape, size=np.dtype(dtype).itemsize), dtype)

    def ones(self, shape: Extents, dtype: Any = np.float64) -> np.ndarray:
        return np.ones(self.reserve(shape, size=np.dtype(dtype).itemsize), dtype)

    def eye(self, rows: int, columns: int | None = None, k: int = 0, dtype: Any = np.float64) -> np.ndarray:
        self.reserve((rows, rows if columns is None else columns), size=np.dtype(dtype).itemsize)
        return np.eye(rows, columns, k, dtype)

    def arange(self, first: int, end: int | None = None, dtype: Any = np.int64) -> np.ndarray:
        """Whole numbers by steps of one."""
        first, end = (0, first) if end is None else (first, end)
        self.reserve(max(end - first, 0), size=np.dtype(dtype).itemsize)
        return np.arange(first, end, dtype=dtype)

    def windows(self, extent: int, size: int, step: int) -> np.ndarray:
        """The places of each window of `size` elements, one window a row, every `step` elements of an axis."""
        self.reserve(((extent - size) // step + 1, size))
        return np.arange(extent - size + 1)[::step, None] + np.arange(size)

    def linspace(self, start: float, stop: float, num: int) -> np.ndarray:
        return np.linspace(start, stop, self.reserve(num))

    def repeat(self, values: np.ndarray, counts: Any) -> np.ndarray:
        """The elements of a vector, each as often as its count says."""
        counts = np.broadcast_to(counts, values.shape)
        self.reserve(sum(counts.tolist()) if (counts >= 0).all() else int(counts.min()), size=values.itemsize)
        return np.repeat(values, counts)

    def tile(self, values: np.ndarray, counts: Sequence[int]) -> np.ndarray:
        self.reserve((values.size, *counts), size=values.itemsize)
        return np.tile(values, counts)

    def outer(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        self.reserve((left.size, right.size))
        return np.outer(left, right)


#: The columns of a strip: a line of the cache has 16 of float32.
_STRIP = 16


def contiguous(array: np.ndarray) -> np.ndarray:
    """An array in the order of its axes. A large matrix is turned by strips, whose lines stay in the cache."""
    if array.ndim != 2 or array.flags.c_contiguous or array.nbytes < 1 << 20:
        return np.ascontiguousarray(array).reshape(array.shape)
    turned = np.empty(array.shape, array.dtype)
    for first in range(0, array.shape[1], _STRIP):
        turned[:, first : first + _STRIP] = array[:, first : first + _STRIP]
    return turned


__all__ = ["Arrays", "contiguous"]
