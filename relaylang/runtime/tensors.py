"""Tensors of callers without copies: numpy arrays, and what other libraries share by DLPack (`__dlpack__`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error

_LINE = 64


def empty(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """A tensor for a result, without values. Raises `RelayError` (R0408) where there is not enough memory."""
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError):
        size = math.prod(shape) * np.dtype(dtype).itemsize
        raise RelayError(error("R0408", f"there is not enough memory: {size} bytes are needed")) from None


def aligned(size: int) -> np.ndarray:
    """Memory of so many bytes whose address is a multiple of 64. Raises `RelayError` (R0408) where there is not enough."""
    try:
        raw = np.empty(size + _LINE, np.uint8)
    except (MemoryError, ValueError):  # numpy refuses more bytes than there are addresses by a ValueError
        raise RelayError(error("R0408", f"there is not enough memory: {size} bytes are needed")) from None
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size]


def at_lines(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Contiguous arrays, or copies of them, whose addresses are multiples of 64.

    The copies lie in one piece of memory. A large one has large pages where the system has them, which are read faster.
    Raises `RelayError` (R0408).
    """
    moved = [n for n, array in enumerate(arrays) if array.ctypes.data % _LINE]
    memory = aligned(sum([-(-arrays[n].nbytes // _LINE) * _LINE for n in moved]))
    out, start = list(arrays), 0
    for n in moved:
        size = arrays[n].nbytes
        out[n] = memory[start : start + size].view(arrays[n].dtype).reshape(arrays[n].shape)
        out[n][...] = arrays[n]
        start += -(-size // _LINE) * _LINE
    return out


def shared(name: str, value: Any) -> np.ndarray:
    """An array over the memory that a value shares by DLPack. Raises `RelayError` (R0640) where it shares none."""
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as e:
        why = str(e).partition("\n")[0].rstrip(".") or type(e).__name__
        raise RelayError(error("R0640", f"{name} cannot be read in place: {why[:1].lower()}{why[1:]}")) from None


def _writable(name: str, value: Any) -> np.ndarray:
    """An array over the memory of a value that may be written. Raises `RelayError` (R0640)."""
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        array = shared(name, value)
        if hasattr(value, "__array__"):
            # numpy takes all that comes by DLPack for constant. What the object itself gives is known better.
            own = np.asarray(value)
            if own.ctypes.data != array.ctypes.data or not own.flags.writeable:
                raise RelayError(error("R0640", f"{name} cannot be written"))
        return array
    else:
        raise RelayError(error("R0640", f"{name} is no array that can be written in place"))
    if not array.flags.writeable:
        raise RelayError(error("R0640", f"{name} cannot be written"))
    return array


def destinations(
    structure: Any, out: Any, wanted: Sequence[tuple[tuple[int, ...], np.dtype]], inputs: Sequence[tuple[str, np.ndarray]]
) -> list[np.ndarray]:
    """The arrays into which a run writes its results: those of `out`, which has the structure of the result.

    `wanted` are the results' shapes and dtypes, `inputs` the arrays that the run reads meanwhile, by name.
    Raises `RelayError` (R0640) for arrays that do not fit, that are not contiguous, or that overlap.
    """
    arrays: list[np.ndarray] = []
    for number, value in _leaves(structure, out):
        shape, dtype = wanted[number]
        name = "out" if isinstance(structure, int) else f"the tensor {number} of out"
        array = _writable(name, value)
        if array.shape != shape or array.dtype != dtype:
            said = f"{name} has the shape {_shape(array.shape)} and the dtype {array.dtype.name}"
            raise RelayError(error("R0640", f"{said}, not {_shape(shape)} and {dtype.name}"))
        if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
            raise RelayError(error("R0640", f"{name} is not C-contiguous and aligned"))
        for other, taken in [*inputs, *((f"tensor {n}", a) for n, a in enumerate(arrays))]:
            if np.may_share_memory(array, taken):
                raise RelayError(error("R0640", f"{name} lies over {other}, which the run still needs"))
        arrays.append(array)
    return arrays


def _leaves(structure: Any, out: Any) -> Iterator[tuple[int, Any]]:
    """The numbers of results with their values, in order. Raises `RelayError` (R0640) for another structure."""
    stack = [(structure, out)]
    while stack:
        place, value = stack.pop()
        if isinstance(place, int):
            yield place, value
        elif isinstance(value, (tuple, list)) and len(value) == len(place):
            stack.extend(reversed(list(zip(place, value))))
        else:
            raise RelayError(error("R0640", f"out must be a tuple of {len(place)} for this part of the result"))


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


__all__ = ["aligned", "at_lines", "destinations", "shared"]
