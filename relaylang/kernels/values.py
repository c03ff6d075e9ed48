"""Values of the loop language in numpy: memory, conversions, and what operations and intrinsics compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from relaylang.kernels import ir
from relaylang.kernels.ops import DOTS, OPERATIONS


class NotEvaluated(Exception):
    """A kernel that has no meaning in numpy."""


class OutOfBounds(Exception):
    """An access outside the memory of a buffer: its name, the offset and the number of elements there."""


@cache
def dtype_of(name: str) -> np.dtype:
    return np.dtype(np.int64 if name == ir.INDEX else name)


class Pointer:
    """A place in memory: an array of one axis, and the offset of an element of `dtype` (or of a vector of them)."""

    __slots__ = ("memory", "offset", "lanes")

    def __init__(self, memory: np.ndarray, offset: int = 0, lanes: int = 1) -> None:
        self.memory, self.offset, self.lanes = memory, offset, lanes

    def seen_as(self, ty: str) -> Pointer:
        """The same place as a pointer to another element type."""
        dtype = dtype_of(ir.element_of(ty))
        if dtype == self.memory.dtype:
            return self
        start = self.offset * self.memory.itemsize
        raw = self.memory.view(np.uint8)[start % dtype.itemsize :]
        raw = raw[: raw.size // dtype.itemsize * dtype.itemsize]
        return Pointer(raw.view(dtype), start // dtype.itemsize)

    def part(self, index: int, ty: str, name: str) -> tuple[np.ndarray, int, int]:
        """The memory of a value at an index: an array of the type's elements, and the first and last of the value's."""
        element, lanes = ir.vector_of(ty)
        first = self.offset + index * self.lanes
        dtype, memory = dtype_of(element), self.memory
        if dtype != memory.dtype and lanes > 1:
            place = Pointer(memory, first).seen_as(element)
            memory, first = place.memory, place.offset
        if first < 0 or first + lanes > memory.size:
            raise OutOfBounds(f"{name}[{index}] of {lanes} {element} lies outside {memory.size} elements")
        return memory, first, first + lanes


def wrapped(value: int) -> int:
    """A number as a C long."""
    return (value + 2**63) % 2**64 - 2**63


def converted(value: Any, source: str, ty: str) -> Any:
    """A value as another type; see `relaylang.kernels.ops.cast_form`."""
    (one, _), (two, _) = ir.vector_of(source), ir.vector_of(ty)
    value = np.asarray(value, dtype_of(one))
    if two == "bool":
        return (value < 0) | (value > 0)
    dtype = dtype_of(two)
    if value.dtype.kind == "f" and dtype.kind in "iu":
        wide = np.int64 if two in ("int64", "uint32", "uint64", ir.INDEX) else np.int32
        limit = 2.0 ** (8 * np.dtype(wide).itemsize - 1)
        fits = (value >= -limit) & (value < limit)
        return np.where(fits, np.where(fits, value, 0).astype(wide), np.iinfo(wide).min).astype(dtype)
    return value.astype(dtype)


def fused(x: Any, y: Any, z: Any) -> Any:
    """x * y + z of float32, rounded once. The product is exact in float64, and the sum's last bit says that it is not."""
    product, z = np.asarray(x, np.float64) * y, np.asarray(z, np.float64)
    total = product + z
    part = total - product
    error = (product - (total - part)) + (z - part)
    bits = np.asarray(total).view(np.int64)
    odd = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    towards = np.where((error > 0) == (total > 0), bits + 1, bits - 1)
    return np.where(odd, towards, bits).view(np.float64).astype(np.float32)


def operation(node: ir.Op) -> Callable[..., Any]:
    """The function of an operation's values."""
    name, ty = node.name, node.type
    if name == "saturate":
        limits = np.iinfo(dtype_of(ir.vector_of(ty)[0]))
        # Two vectors become one of all their lanes.
        return lambda *values: np.clip(np.concatenate(values) if len(values) > 1 else values[0], limits.min, limits.max)
    if name == "bitcast":
        return lambda value: np.asarray(value).view(dtype_of(ir.vector_of(ty)[0]))
    if name == "quotient" and ty == ir.INDEX:
        return lambda x, y: int(abs(int(x)) // abs(int(y))) * (1 if (x < 0) == (y < 0) else -1)
    meaning = OPERATIONS[name].meaning
    dtypes = [dtype_of(ir.vector_of(a.type)[0]) for a in node.args]
    return lambda *values: meaning(*[np.asarray(v, d) for v, d in zip(values, dtypes)])


def dot_products(node: ir.Intrinsic) -> Callable[..., Any]:
    """Sums of products of neighbours; the order of the sums is that of the lanes."""
    name = node.name
    neighbours = DOTS[name][2]

    def dot(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        wide = z.dtype
        if name == "dot_halves":
            return z + (x[:2].astype(wide)[:, None] * y.astype(wide).reshape(2, -1)).sum(0, dtype=wide)
        if name.startswith("square"):
            return z + (x.astype(wide).reshape(-1, 2, 8) @ y.astype(wide).reshape(-1, 2, 8).swapaxes(1, 2)).reshape(z.shape)
        products = x.astype(wide).reshape(-1, neighbours) * y.astype(wide).reshape(-1, neighbours)
        for n in range(neighbours):
            z = z + products[:, n]
        return z

    return dot


def madd(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    products = x.view(np.int16).astype(np.int32) * y.view(np.int16).astype(np.int32)
    return z + products[0::2] + products[1::2]


def scalar(part: np.ndarray, ty: str) -> Any:
    return part.copy() if ir.vector_of(ty)[1] > 1 else part[0]


def read(place: Pointer, index: int, ty: str, name: str) -> Any:
    memory, first, end = place.part(index, ty, name)
    value = scalar(memory[first:end], ty)
    return value if memory.dtype == dtype_of(ir.vector_of(ty)[0]) else typed(value, ty)


def moved(place: Pointer, index: int) -> Pointer:
    return Pointer(place.memory, place.offset + index * place.lanes)


def typed(value: Any, ty: str) -> Any:
    """A result as a number or a vector of its type; integers wrap."""
    if ty == ir.INDEX:
        return wrapped(int(value))
    dtype, lanes = ir.vector_of(ty)
    value = np.asarray(value).astype(dtype_of(dtype))
    return value if lanes > 1 else value.reshape(())[()]


def summed(value: np.ndarray) -> Any:
    total = value[0]
    for part in value[1:]:
        total = total + part
    return total


def _span(place: Pointer, count: Any) -> np.ndarray:
    """So many elements from a place on."""
    first, end = place.offset, place.offset + int(count)
    if first < 0 or end > place.memory.size:
        raise OutOfBounds(f"elements {first}..{end} lie outside {place.memory.size}")
    return place.memory[first:end]


def _copy(to: Pointer, source: Pointer, count: Any) -> None:
    """Convert so many numbers from one place to another."""
    target = _span(to, count)
    target[:] = _span(source, count).astype(target.dtype)


def _copy_bytes(to: Pointer, source: Pointer, count: Any) -> None:
    _span(to.seen_as("uint8"), count)[:] = _span(source.seen_as("uint8"), count)


def _add_wide(to: Pointer, value: np.ndarray, first: Any, shift: Any) -> None:
    part = to.memory[to.offset : to.offset + value.size]
    part[:] = (0 if first else part) + (value.astype(np.int64) << np.int64(shift))


#: The C functions that statements call, of values and pointers.
OUTSIDE: dict[str, Callable[..., None]] = {
    "r_read_halves": _copy,
    "r_write_halves": _copy,
    "r_add_wide": _add_wide,
    "memcpy": _copy_bytes,
    "__builtin_prefetch": lambda *_: None,
}
