"""Reads the weights of PaddlePaddle: `.pdiparams` files with all tensors behind each other, and files of one tensor each.

A tensor is a version, its levels of detail, a TensorDesc, and its elements.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.protobuf import parsed
from relaylang.frontends.paddle.program import Given
from relaylang.frontends.paddle.schema import DTYPES, paddle
from relaylang.runtime.budget import Budget
from relaylang.runtime.params import read_view

#: Tensors have at most so many axes.
_MOST_AXES = 32


class _Stream:
    """The bytes of a file from its start on."""

    def __init__(self, data: bytes | memoryview, file: str) -> None:
        self.data = memoryview(data)
        self.file = file
        self.at = 0

    def take(self, size: int, what: str) -> memoryview:
        if not 0 <= size <= len(self.data) - self.at:
            raise damaged(
                self.file, f"{what} has {size} bytes, and {len(self.data) - self.at} are left: the file is cut short or damaged"
            )
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str, what: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form), what))[0])

    def tensor(self, name: str) -> np.ndarray:
        """The next tensor. Raises `RelayError` (R0802)."""
        what = f"the weight {name[:60]!r}"
        version = self.number("<I", what)
        levels = self.number("<Q", what)
        if version or levels > _MOST_AXES:
            raise damaged(self.file, f"{what} has the version {version} and {levels} levels of detail")
        for _ in range(levels):
            self.take(self.number("<Q", what), what)
        if self.number("<I", what):
            raise damaged(self.file, f"{what} is a tensor of another version")
        described = parsed(paddle()["TensorDesc"], bytes(self.take(self.number("<i", what), what)), self.file, what)
        dtype = DTYPES.get(described.data_type)
        dims = tuple(described.dims)
        if dtype is None or len(dims) > _MOST_AXES or any(d < 0 for d in dims):
            raise damaged(self.file, f"{what} has the element type {described.data_type} and the shape {dims[:8]}")
        kind = np.dtype(dtype)
        return np.frombuffer(self.take(math.prod(dims) * kind.itemsize, what), kind).reshape(dims)


def combined(data: bytes | memoryview, file: str, weights: Sequence[Given]) -> dict[str, np.ndarray]:
    """The tensors of one file by name. They stand in the order of their names. Raises `RelayError` (R0802)."""
    stream = _Stream(data, file)
    tensors = {name: stream.tensor(name) for name in sorted({w.name for w in weights})}
    if stream.at != len(data):
        raise damaged(file, f"it has {len(data) - stream.at} bytes behind its {len(tensors)} weights: it belongs to another program")
    return tensors


def separate(folder: str, weights: Sequence[Given], budget: Budget) -> dict[str, np.ndarray]:
    """The tensors of a folder with a file for each. Raises `RelayError` (R0802) where one is missing."""
    tensors = {}
    for weight in weights:
        if os.path.basename(weight.name) != weight.name or weight.name in ("", ".", ".."):
            raise damaged(folder, f"the weight {weight.name[:60]!r} names no file of this folder")
        path = os.path.join(folder, weight.name)
        data = read_view(path)
        budget.grant_file(path, len(data))
        tensors[weight.name] = _Stream(data, path).tensor(weight.name)
    return tensors


def missing(file: str, count: int) -> RelayError:
    """The error for a program whose weights are nowhere."""
    said = f"{count} of its tensors {'are weights' if count != 1 else 'is a weight'}, and their file is missing"
    return damaged(file, said, "--weights names the .pdiparams; else it is looked for beside the program")


__all__ = ["combined", "missing", "separate"]
