"""Values between Python and the machine: lists of words that the library reads and writes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes  # (gives numpy the name bfloat16)  # noqa: F401
import numpy as np

from relaylang.interpreter.values import ConstructorValue, RefValue, Value, is_tensor
from relaylang.ir import Constructor
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.vm.instructions import DTYPE_NUMBERS, DTYPES

TENSOR, TUPLE, DATA, CLOSURE, CELL = range(32, 37)


class Unknown(TypeError):
    """A value that programs do not have."""


def scalar_bits(value: np.ndarray | np.generic) -> int:
    """The bytes of a scalar as a number of 64 bits."""
    return int.from_bytes(np.asarray(value).tobytes().ljust(8, b"\0"), "little", signed=True)


def bits_scalar(bits: int, dtype: str) -> np.ndarray:
    """The scalar of a number's first bytes."""
    kind = np.dtype(dtype)
    return np.frombuffer(bits.to_bytes(8, "little", signed=True)[: kind.itemsize], kind)[0].reshape(())


def encode(values: list[Value], constructors: Mapping[tuple[str, str], int], handle: Callable[[Any], int], keep: list[Any],
           copied: bool = False) -> list[int]:  # fmt: skip
    """The words that build values in order. `keep` gets the arrays that the machine reads in place."""
    words: list[int] = []
    kept: dict[int, int] = {}
    stack: list[tuple[Value, bool]] = [(v, False) for v in reversed(values)]
    parts: tuple[Value, ...]
    while stack:
        value, ready = stack.pop()
        if is_tensor(value):
            array = np.asarray(value)
            if array.dtype.name not in DTYPE_NUMBERS:
                raise Unknown(f"elements of {array.dtype.name}")
            dtype = DTYPE_NUMBERS[array.dtype.name]
            if array.ndim == 0:
                words += (1, dtype, scalar_bits(array))
                continue
            if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
                array = np.array(array, np.dtype(array.dtype.name), order="C")
            keep.append(array)
            words += (2, dtype, array.ndim, array.nbytes, array.ctypes.data, int(copied), *array.shape)
            continue
        if not isinstance(value, (tuple, ConstructorValue, RefValue)):
            words += (4, handle(value))
            continue
        if id(value) in kept:
            words += (5, kept[id(value)])
            continue
        parts = value if isinstance(value, tuple) else value.fields if isinstance(value, ConstructorValue) else (value.value,)
        if not ready:
            stack.append((value, True))
            stack += [(v, False) for v in reversed(parts)]
            continue
        if isinstance(value, tuple):
            words += (3, TUPLE, 0, len(parts), 6)
        elif isinstance(value, ConstructorValue):
            made = value.constructor
            words += (3, DATA, constructors[(made.belong_to.name_hint, made.name_hint)], len(parts), 6)
        else:
            words += (3, CELL, 0, 1, 6)
        keep.append(value)
        kept[id(value)] = len(kept)
    return words


class _Scalars:
    """The scalars among words: the first bytes of a word as an element of a type."""

    def __init__(self, words: np.ndarray) -> None:
        self._words = words
        self._columns: dict[int, np.ndarray] = {}

    def at(self, place: int, kind: int) -> np.ndarray:
        column = self._columns.get(kind)
        if column is None:
            dtype = np.dtype(DTYPES[kind])
            column = self._columns[kind] = self._words.view(dtype)[:: 8 // dtype.itemsize]
        return np.array(column[place])


def decode(described: np.ndarray, constructors: list[Constructor], closure: Callable[[int, int], Value]) -> Value:
    """The value that a machine describes in words of 64 bits."""
    words: list[int] = described.tolist()
    scalars = _Scalars(described)
    objects: list[Value] = []

    def value(place: int) -> Value:
        kind = words[place]
        if kind >= TENSOR:
            return objects[words[place + 1]]
        return scalars.at(place + 1, kind) if kind else None

    at, end = 0, len(words) - 2
    with gc_paused():
        while at < end:
            kind = words[at]
            if kind == TENSOR:
                dtype, size, address, rank = words[at + 1 : at + 5]
                shape = words[at + 5 : at + 5 + rank]
                array = np.empty(shape, np.dtype(DTYPES[dtype]))
                ctypes.memmove(array.ctypes.data, address, size)
                objects.append(array)
                at += 5 + rank
            elif kind == CLOSURE:
                objects.append(closure(words[at + 1], words[at + 2]))
                at += 3
            elif kind == CELL:
                objects.append(RefValue())
                at += 1
            elif kind == 0:
                objects[words[at + 1]].value = value(at + 2)
                at += 4
            else:
                tag, count = words[at + 1], words[at + 2]
                at += 3
                fields = tuple([value(n) for n in range(at, at + 2 * count, 2)])
                objects.append(fields if kind == TUPLE else ConstructorValue(constructors[tag], fields))
                at += 2 * count
    return value(len(words) - 2)
