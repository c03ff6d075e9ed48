"""Values between Python and the machine: lists of words that the library reads and writes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes  # (gives numpy the name bfloat16)  # noqa: F401
import numpy as np

from relaylang.interpreter.values import ConstructorValue, RefValue, Value, element_type
from relaylang.ir import Constructor
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.vm.instructions import DTYPE_NUMBERS, DTYPES

TENSOR, TUPLE, DATA, CLOSURE, CELL = range(32, 37)
#: Results of up to so many tensors have a short way.
_FEW = 16


class Unknown(TypeError):
    """A value that programs do not have."""


def bits_scalar(bits: int, dtype: str) -> np.ndarray:
    """The scalar of a number's first bytes."""
    kind = np.dtype(dtype)
    return np.frombuffer(bytearray(bits.to_bytes(8, "little", signed=True)), kind, 1).reshape(())


class Words(NamedTuple):
    """Values as the library reads them (`csrc/exchange.h`): heads and fields of objects, sizes of tensors, the count of values."""

    heads: np.ndarray
    fields: np.ndarray
    sizes: np.ndarray
    values: int


class _Scalars:
    """Scalars of one element type, and the places of their fields."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.kind = _kind(dtype)
        self.dtype = dtype
        self.places: list[int] = []
        self.values: list[Any] = []

    def write(self, pairs: np.ndarray) -> None:
        """Write kinds, and the scalars into the first bytes of words."""
        bits = np.zeros(len(self.places), np.int64)
        bits.view(self.dtype.newbyteorder("="))[:: 8 // self.dtype.itemsize] = np.fromiter(self.values, self.dtype, len(self.values))
        places = _words(self.places)
        pairs[places, 0] = self.kind
        pairs[places, 1] = bits


def encode(
    values: Sequence[Value],
    constructors: Mapping[tuple[str, str], int],
    handle: Callable[[Any], int],
    keep: list[Any],
    copied: bool = False,
) -> Words:
    """The words that build values in order. `keep` gets the arrays that the machine reads in place."""
    if all([isinstance(v, (np.ndarray, np.generic)) and v.flags.carray and v.dtype.isnative for v in values]):
        keep += values
        return _tensors(values, copied)
    heads: list[int] = []
    #: a field's object, -1 for scalars
    targets: list[int] = []
    sizes: list[int] = []
    # Keys are ids: hashes of element types and of constructors take long.
    numbers: dict[int, int] = {}
    tags: dict[int, int] = {}
    scalars: dict[int, _Scalars] = {}
    # Objects get their numbers as they are met; their fields come in the same order.
    waiting: list[Sequence[Value]] = [values]
    with gc_paused():
        for fields in waiting:
            for value in fields:
                kind = type(value)
                if kind is not ConstructorValue and isinstance(value, (np.ndarray, np.generic)) and not value.ndim:
                    table = scalars.get(id(value.dtype))
                    if table is None:
                        table = scalars[id(value.dtype)] = _Scalars(value.dtype)
                    table.places.append(len(targets))
                    table.values.append(value)
                    targets.append(-1)
                    continue
                number = numbers.get(id(value))
                if number is None:
                    number = numbers[id(value)] = len(numbers)
                    if kind is ConstructorValue:
                        constructor = value.constructor
                        tag = tags.get(id(constructor))
                        if tag is None:
                            tag = tags[id(constructor)] = constructors[(constructor.belong_to.name_hint, constructor.name_hint)]
                        heads += (DATA, tag, len(value.fields))
                        waiting.append(value.fields)
                    elif isinstance(value, tuple):
                        heads += (TUPLE, 0, len(value))
                        waiting.append(value)
                    elif isinstance(value, RefValue):
                        heads += (CELL, 0, 1)
                        waiting.append((value.value,))
                    elif isinstance(value, np.ndarray):
                        heads += (TENSOR, _kind(value.dtype), value.ndim)
                        array = value
                        if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
                            array = np.array(array, np.dtype(array.dtype.name), order="C")
                        keep.append(array)
                        sizes += (array.nbytes, array.ctypes.data, int(copied), *array.shape)
                    else:
                        heads += (CLOSURE, 0, handle(value))
                targets.append(number)
    objects = _words(heads)
    pairs = np.empty((len(targets), 2), np.int64)
    pairs[:, 1] = _words(targets)
    pairs[:, 0] = objects[::3][pairs[:, 1]] if heads else 0
    for table in scalars.values():
        table.write(pairs)
    count = len(values)
    return Words(objects, np.concatenate([pairs[count:], pairs[:count]]), np.array(sizes, np.int64), count)


def _tensors(values: Sequence[Any], copied: bool) -> Words:
    """The words of scalars, and of arrays that the machine can read where they lie."""
    heads: list[int] = []
    sizes: list[int] = []
    pairs: list[int] = []
    for value in values:
        kind = _kind(value.dtype)
        if value.ndim:
            pairs += (TENSOR, len(heads) // 3)
            heads += (TENSOR, kind, value.ndim)
            sizes += (value.nbytes, value.ctypes.data, int(copied), *value.shape)
        else:
            pairs += (kind, int.from_bytes(value.tobytes().ljust(8, b"\0"), "little", signed=True))
    return Words(_words(heads), _words(pairs).reshape(-1, 2), _words(sizes), len(values))


def _words(numbers: list[int]) -> np.ndarray:
    """Numbers as words; `np.array` takes longer."""
    return np.fromiter(numbers, np.int64, len(numbers))


def _kind(dtype: np.dtype[Any]) -> int:
    kind = DTYPE_NUMBERS.get(element_type(dtype))
    if kind is None:
        raise Unknown(f"elements of {dtype.name}")
    return kind


def decode(
    heads: np.ndarray, fields: np.ndarray, sizes: np.ndarray, constructors: Sequence[Constructor], closure: Callable[[int, int], Value]
) -> Value:
    """The value that a machine describes in words."""
    if len(heads) <= 3 * _FEW and len(fields) <= 4 * _FEW:
        kinds = heads[::3].tolist()
        if kinds.count(TENSOR) == len(kinds) - (kinds[-1:] == [TUPLE]):
            return _flat(heads.tolist(), fields.tolist(), sizes.tolist())
    pairs = fields.reshape(-1, 2)
    with gc_paused():
        values = _scalars(pairs)
        (references,) = (pairs[:, 0] >= TENSOR).nonzero()
        places, targets = [*references.tolist(), len(pairs)], pairs[references, 1].tolist()
        extents: list[int] = sizes.tolist()
        objects: list[Value] = []
        cells: list[tuple[RefValue, int]] = []
        at = done = size = 0
        for kind, tag, count in heads.reshape(-1, 3).tolist():
            if kind in (DATA, TUPLE):
                end = at + count
                while places[done] < end:
                    values[places[done]] = objects[targets[done]]
                    done += 1
                parts = tuple(values[at:end])
                objects.append(parts if kind == TUPLE else ConstructorValue(constructors[tag], parts))
                at = end
            elif kind == TENSOR:
                objects.append(_array(tag, extents[size : size + 3 + count]))
                size += 3 + count
            elif kind == CLOSURE:
                objects.append(closure(count, tag))
            else:  # its content may come later
                done += places[done] == at
                objects.append(RefValue())
                cells.append((objects[-1], at))
                at += 1
    for cell, place in cells:
        cell.value = objects[pairs[place, 1]] if pairs[place, 0] >= TENSOR else values[place]
    return objects[pairs[-1, 1]] if pairs[-1, 0] >= TENSOR else values[-1]


def _flat(heads: Sequence[int], fields: Sequence[int], sizes: Sequence[int]) -> Value:
    """A scalar, a tensor, or a tuple of scalars and tensors."""
    objects: list[Value] = []
    at = 0
    for kind, tag, count in zip(heads[::3], heads[1::3], heads[2::3]):
        if kind == TENSOR:
            objects.append(_array(tag, sizes[at : at + 3 + count]))
            at += 3 + count
    values = [
        objects[word] if kind == TENSOR else bits_scalar(word, DTYPES[kind]) for kind, word in zip(fields[:-2:2], fields[1:-2:2])
    ]
    kind, word = fields[-2:]
    return tuple(values) if kind == TUPLE else objects[word] if kind == TENSOR else bits_scalar(word, DTYPES[kind])


def _array(kind: int, sizes: Sequence[int]) -> np.ndarray:
    """A copy of a tensor from its bytes, its address, a flag, and its extents."""
    array = np.empty(sizes[3:], np.dtype(DTYPES[kind]))
    ctypes.memmove(array.ctypes.data, sizes[1], sizes[0])
    return array


def _scalars(pairs: np.ndarray) -> list[Value]:
    """The scalars among fields, each at its place."""
    values: list[Value] = [None] * len(pairs)
    kinds, bits = pairs[:, 0], np.ascontiguousarray(pairs[:, 1])
    if kinds.min() >= TENSOR:
        return values
    for kind in np.flatnonzero(np.bincount(kinds)).tolist():
        if 0 < kind < TENSOR:
            places = np.flatnonzero(kinds == kind)
            dtype = np.dtype(DTYPES[kind])
            column = bits.view(dtype)[:: 8 // dtype.itemsize][places]
            for number, place in enumerate(places.tolist()):
                values[place] = column[number, ...]
    return values
