"""Weights of a seed for networks of PaddlePaddle, and the file of weights that PaddlePaddle writes.

The file is written here from the public format, apart from the importer's reader.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

import numpy as np

_DTYPES = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6, "uint8": 20, "int8": 21}


def weight(name: str, shape: Sequence[int], dtype: str = "float32") -> np.ndarray:
    """The values of a weight: variances are positive, factors near 1, and others small."""
    rng = np.random.default_rng(crc32(name.encode()))
    if dtype != "float32":
        return rng.integers(0, 3, shape).astype(dtype)
    if name.endswith(".w_2"):
        return rng.uniform(0.5, 1.5, shape).astype("float32")
    if len(shape) < 2:
        return (rng.normal(size=shape) * 0.1 + (1.0 if name.endswith(".w_0") else 0.0)).astype("float32")
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape) / max(shape))).astype("float32")


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def number(at: int, value: int) -> bytes:
    return varint(at << 3) + varint(value)


def part(at: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return varint(at << 3 | 2) + varint(len(data)) + data


def tensor(array: np.ndarray) -> bytes:
    """A tensor with its description, in PaddlePaddle's form."""
    described = number(1, _DTYPES[array.dtype.name]) + b"".join(number(2, d) for d in array.shape)
    return struct.pack("<IQIi", 0, 0, 0, len(described)) + described + array.tobytes()


def pdiparams(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The file of weights: tensors in the order of their names."""
    return b"".join(tensor(arrays[name]) for name in sorted(arrays))


# ---- programs of PaddlePaddle 2


def variable(name: str, shape: Sequence[int], dtype: str = "float32", weight: bool = False) -> bytes:
    described = number(1, _DTYPES[dtype]) + b"".join(number(2, d) for d in shape)
    return part(1, name) + part(2, number(1, 7) + part(3, part(1, described))) + number(3, weight) + number(4, not weight)


def operation(
    type: str, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, Sequence[str]], attributes: Iterable[bytes] = ()
) -> bytes:
    sides = [(1, inputs), (2, outputs)]
    made = [part(at, part(1, name) + b"".join(part(2, a) for a in names)) for at, side in sides for name, names in side.items()]
    return b"".join(made) + part(3, type) + b"".join(part(4, a) for a in attributes)


def integer(name: str, value: int) -> bytes:
    return part(1, name) + number(2, 0) + number(3, value)


def integers(name: str, values: Sequence[int]) -> bytes:
    return part(1, name) + number(2, 3) + b"".join(number(6, v) for v in values)


def real(name: str, value: float) -> bytes:
    return part(1, name) + number(2, 1) + varint(4 << 3 | 5) + struct.pack("<f", value)


def text(name: str, value: str) -> bytes:
    return part(1, name) + number(2, 2) + part(5, value)


def truth(name: str, value: bool) -> bytes:
    return part(1, name) + number(2, 6) + number(10, value)


def pdmodel(variables: Iterable[bytes], operations: Iterable[bytes], feeds: Sequence[str], fetches: Sequence[str]) -> bytes:
    """A program of one block."""
    fed = [operation("feed", {"X": ["feed"]}, {"Out": [name]}, [integer("col", i)]) for i, name in enumerate(feeds)]
    got = [operation("fetch", {"X": [name]}, {"Out": ["fetch"]}, [integer("col", i)]) for i, name in enumerate(fetches)]
    block = number(1, 0) + number(2, -1) + b"".join(part(3, v) for v in variables)
    return part(1, block + b"".join(part(4, o) for o in (*fed, *operations, *got))) + part(4, number(1, 0))
