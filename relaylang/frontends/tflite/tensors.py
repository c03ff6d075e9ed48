"""TFLite's tensors as numpy arrays: element types, packed and sparse forms."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes  # noqa: F401  (gives numpy the names int4 and bfloat16)
import numpy as np

from relaylang.frontends.common.complexes import PARTS
from relaylang.frontends.common.files import damaged
from relaylang.runtime.budget import Budget

#: TensorType of the schema to element types that Relay has.
DTYPES = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    6: "bool",
    7: "int16",
    9: "int8",
    10: "float64",
    12: "uint64",
    15: "uint32",
    16: "uint16",
    17: "int4",
    18: "bfloat16",
}
#: Element types that only stand for handles or texts; a layer that uses one may still be converted.
OTHER = {5: "string", 8: "complex64", 11: "complex128", 13: "resource", 14: "variant"}


def dtype_of(number: int, file: str, name: str) -> str:
    """The element type of the schema's number. Raises `RelayError` for one that is newer than the schema."""
    dtype = DTYPES.get(number) or OTHER.get(number)
    if dtype is None:
        raise damaged(file, f"{name} has the unknown element type {number}")
    return dtype


def array_of(
    raw: np.ndarray, shape: tuple[int, ...], dtype: str, sparsity: Any, file: str, name: str, budget: Budget
) -> np.ndarray | None:
    """The array of a buffer's bytes; None for texts. Raises `RelayError` where the bytes do not fit the shape."""
    if dtype in OTHER.values() and dtype not in PARTS:
        return None
    if any(d < 0 for d in shape):
        raise damaged(file, f"{name} is constant, and an extent of it is {min(shape)}")
    count = math.prod(shape)
    kind = np.dtype(dtype)
    if sparsity is not None and sparsity.TraversalOrderLength():
        values = raw.view(kind)
        # The elements, and for each of them its place along the axes and blocks, and along the whole axes.
        levels = sparsity.TraversalOrderLength() + len(shape)
        budget.take_bytes(count * (kind.itemsize + 8 * levels), "laying sparse weights out")
        return _dense(values, shape, sparsity, file, name)
    if dtype == "int4":
        budget.take_bytes(2 * raw.size, "unpacking weights of four bits")
        halves = np.stack([raw & 15, raw >> 4], -1).reshape(-1)[:count].astype(np.int8)
        if halves.size != count:
            raise damaged(file, f"{name} has {raw.size} bytes, but its shape {shape} of int4 needs {(count + 1) // 2}")
        return (halves - np.where(halves > 7, 16, 0).astype(np.int8)).reshape(shape)
    if raw.size != count * kind.itemsize:
        raise damaged(file, f"{name} has {raw.size} bytes, but its shape {shape} of {dtype} needs {count * kind.itemsize}")
    return raw.view(kind).reshape(shape)


def _index_vector(dimension: Any, what: str) -> np.ndarray:
    """A vector of positions, in one of three widths."""
    from tflite import Int32Vector, Uint8Vector, Uint16Vector

    kind = getattr(dimension, f"Array{what}Type")()
    table = getattr(dimension, f"Array{what}")()
    vector = {1: Int32Vector, 2: Uint16Vector, 3: Uint8Vector}[kind]()
    vector.Init(table.Bytes, table.Pos)
    indices: np.ndarray = vector.ValuesAsNumpy()
    return indices.astype(np.int64)


def _dense(values: np.ndarray, shape: tuple[int, ...], sparsity: Any, file: str, name: str) -> np.ndarray:
    """A sparse tensor with its zeros. The levels of the storage are the axes, then the blocks, in the stated order.

    Source: the paper of the TACO compiler, whose format the schema takes over.
    """
    order = sparsity.TraversalOrderAsNumpy().tolist()
    blocks = sparsity.BlockMapAsNumpy().tolist() if sparsity.BlockMapLength() else []
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocks))) or not set(blocks) <= set(range(rank)):
        raise damaged(file, f"{name} is sparse, and the order of its axes is no order")
    size = [sparsity.DimMetadata(rank + i).DenseSize() for i in range(len(blocks))]
    places = [np.zeros(1, np.int64)]  # for each level, its index at every position so far
    for level in range(len(order)):
        dimension, held = sparsity.DimMetadata(level), places[0].size
        if dimension.Format() == 0:
            counts = dimension.DenseSize()
            if counts < 0 or counts * held > max(math.prod(shape), 1):
                raise damaged(file, f"{name} is sparse, and its levels are larger than its shape")
            indices = np.tile(np.arange(counts), held)
        else:
            counts, indices = np.diff(_index_vector(dimension, "Segments")), _index_vector(dimension, "Indices")
            if counts.size != held or (counts < 0).any() or counts.sum() != indices.size:
                raise damaged(file, f"{name} is sparse, and its positions do not fit together")
        places = [*(np.repeat(p, counts) for p in places), indices]
    at = dict(zip(order, places[1:]))
    if at[order[0]].size != values.size:
        raise damaged(file, f"{name} is sparse, with {values.size} values at {at[order[0]].size} places")
    full = [at[a] for a in range(rank)]
    for i, axis in enumerate(blocks):
        full[axis] = full[axis] * size[i] + at[rank + i]
    if any(p.size and (p.min() < 0 or p.max() >= n) for p, n in zip(full, shape)):
        raise damaged(file, f"{name} is sparse, and a value lies outside its shape")
    dense = np.zeros(shape, values.dtype)
    dense[tuple(full)] = values
    return dense


__all__ = ["DTYPES", "OTHER", "PARTS", "array_of", "dtype_of"]
