"""Numbers in Core ML's files as numpy's arrays: weights of neural networks, values of ML programs, and their file of blobs."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common.arrays import Arrays
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.coreml.reader import Files

#: The element types of ML programs by their numbers: numpy's name, and the bits that an element takes in files.
DTYPES: dict[int, tuple[str, int]] = {
    1: ("bool", 8),
    10: ("float16", 16),
    11: ("float32", 32),
    12: ("float64", 64),
    13: ("bfloat16", 16),
    21: ("int8", 8),
    22: ("int16", 16),
    23: ("int32", 32),
    24: ("int64", 64),
    25: ("int8", 4),
    31: ("uint8", 8),
    32: ("uint16", 16),
    33: ("uint32", 32),
    34: ("uint64", 64),
    35: ("uint8", 4),
    36: ("uint8", 2),
    37: ("uint8", 1),
    38: ("uint8", 6),
    39: ("uint8", 3),
    40: ("float8_e4m3fn", 8),
    41: ("float8_e5m2", 8),
}
_TEXT = 2
#: The element types of the file of blobs by their numbers, as those of programs.
_BLOBS = {
    1: 10,
    2: 11,
    3: 31,
    4: 21,
    5: 13,
    6: 22,
    7: 32,
    8: 25,
    9: 37,
    10: 36,
    11: 35,
    12: 39,
    13: 38,
    14: 23,
    15: 33,
    16: 40,
    17: 41,
}
#: A blob's head: a mark, the element type, the bytes of the numbers, where they begin, and the bits that are not used.
_HEAD = struct.Struct("<IIQQQ")
_MARK = 0xDEADBEEF
_ALIGNMENT = 64


def packed(parts: Sequence[bytes] | memoryview | bytes, kind: str) -> np.ndarray:
    """The numbers of a packed field. Raises `Malformed`."""
    data = parts if isinstance(parts, (bytes, memoryview)) else parts[0] if len(parts) == 1 else b"".join(parts)
    if len(data) % np.dtype(kind).itemsize:
        raise Malformed(f"it has numbers of {len(data)} bytes, which are no whole number of elements")
    return np.frombuffer(data, kind)


def unpacked(arrays: Arrays, data: bytes | memoryview, bits: int, count: int, order: Any = "little") -> np.ndarray:
    """Whole numbers of a few bits each, one behind the other, as uint8. Raises `Malformed`."""
    if not 1 <= bits <= 8 or len(data) * 8 < count * bits:
        raise Malformed(f"its {count} numbers of {bits} bits are not in {len(data)} bytes")
    arrays.reserve(count * (bits + 1), "unpacking its weights", 1)
    rows = np.unpackbits(np.frombuffer(data, np.uint8), count=count * bits, bitorder=order).reshape(count, bits)
    places = range(bits) if order == "little" else reversed(range(bits))
    numbers = arrays.zeros(count, np.uint8)
    for column, place in enumerate(places):
        numbers |= rows[:, column] << np.uint8(place)
    return numbers


# ---- weights of neural networks


def weight(arrays: Arrays, made: Any, shape: Sequence[int], what: str, axis: int = 0) -> np.ndarray:
    """A weight as float32 in a shape. Scales of quantised ones are along `axis`. Raises `Malformed`."""
    count = math.prod(shape)
    if min(shape, default=1) < 0:
        raise Malformed(f"its {what} has the shape {tuple(shape)}")
    numbers = _numbers(arrays, made, count, what)
    if numbers.size != count:
        raise Malformed(f"its {what} has {numbers.size} elements, and the layer needs the shape {tuple(shape)}")
    numbers = numbers.reshape(tuple(shape))
    if made.quantization.WhichOneof("QuantizationType") != "linearQuantization":
        return numbers
    how = made.quantization.linearQuantization
    arrays.reserve(count, "unpacking its weights", 4)
    for parts, join in ((how.scale, np.multiply), (how.bias, np.add)):
        factor = packed(parts, "<f4")
        if factor.size > 1 and factor.size != shape[axis]:
            raise Malformed(f"its {what} has {factor.size} scales for {shape[axis]} channels")
        if factor.size:
            along = [-1 if i == axis and factor.size > 1 else 1 for i in range(len(shape))]
            numbers = join(numbers, factor.reshape(along))
    return numbers


def _numbers(arrays: Arrays, weights: Any, count: int, what: str) -> np.ndarray:
    """The numbers of a weight as float32, before their scales."""
    if weights.floatValue:
        return packed(weights.floatValue, "<f4")
    if weights.float16Value:
        return packed(weights.float16Value, "<f2").astype(np.float32)
    if weights.int8RawValue:
        return packed(weights.int8RawValue, "i1").astype(np.float32)
    if not weights.rawValue:
        if count:
            raise Malformed(f"its {what} has no numbers in the file")
        return np.zeros(0, np.float32)
    bits, kind = weights.quantization.numberOfBits, weights.quantization.WhichOneof("QuantizationType")
    if kind is None:
        raise Malformed(f"its {what} has whole numbers, and the file does not say what they stand for")
    places = unpacked(arrays, weights.rawValue, bits, count, "big")
    if kind == "linearQuantization":
        return places.astype(np.float32)
    table = packed(weights.quantization.lookupTableQuantization.floatValue, "<f4")
    if places.size and int(places.max()) >= table.size:
        raise Malformed(f"its {what} names the place {int(places.max())} of a table of {table.size} numbers")
    return table[places]


# ---- values of programs


def extents(made: Any) -> list[int | None]:
    """The extents of a tensor's type, None for unknown ones. Raises `Malformed`."""
    dims = [int(d.constant.size) if d.WhichOneof("dimension") == "constant" else None for d in made.dimensions]
    if len(dims) > 32 or any(d is not None and d >= 1 << 31 for d in dims):
        raise Malformed(f"it has a tensor of the shape {str(dims)[:80]}")
    return dims


def dtype_of(number: int) -> str:
    """The name of an element type. Raises `Malformed`."""
    if number not in DTYPES:
        raise Malformed(f"it has the element type {number}, which ML programs do not know")
    return DTYPES[number][0]


def value(arrays: Arrays, files: Files, made: Any) -> Any:
    """A value: an array, a text, or a list of values. Raises `Malformed`."""
    kind = made.type.WhichOneof("type")
    if made.WhichOneof("value") == "blobFileValue":
        if kind != "tensorType":
            raise Malformed("it has a value in a file that is no tensor")
        return _shaped(arrays, made.type.tensorType, _blob(files, made.blobFileValue, made.type.tensorType.dataType))
    inner = made.immediateValue
    if inner.WhichOneof("value") in ("list", "tuple"):
        return [value(arrays, files, part) for part in getattr(inner, inner.WhichOneof("value")).values]
    if inner.WhichOneof("value") != "tensor" or kind not in ("tensorType", "listType"):
        raise Malformed("it has a value of a kind that is not known")
    return _immediate(arrays, made.type.tensorType, inner.tensor)


def _immediate(arrays: Arrays, ty: Any, immediate: Any) -> Any:
    kind = immediate.WhichOneof("value")
    if ty.dataType == _TEXT or kind == "strings":
        texts = [str(text) for text in immediate.strings.values]
        return texts[0] if len(texts) == 1 and not ty.dimensions else texts
    name = dtype_of(ty.dataType)
    if kind == "bytes":
        return _shaped(arrays, ty, immediate.bytes.values)
    if kind is None:
        numbers = np.zeros(0, np.dtype(name))
    elif kind in ("floats", "doubles"):
        numbers = packed(getattr(immediate, kind).values, "<f4" if kind == "floats" else "<f8")
    else:
        numbers = np.array(list(getattr(immediate, kind).values), np.int64)
    with np.errstate(all="ignore"):
        numbers = numbers.astype(np.dtype(name), copy=False)
    return _in_shape(ty, numbers)


def _in_shape(ty: Any, numbers: np.ndarray) -> np.ndarray:
    shape = extents(ty)
    if None in shape or math.prod(d for d in shape if d is not None) != numbers.size:
        raise Malformed(f"it has {numbers.size} numbers for the shape {str(shape)[:80]}")
    return numbers.reshape([d for d in shape if d is not None])


def _shaped(arrays: Arrays, ty: Any, data: bytes | memoryview) -> np.ndarray:
    """The numbers in bytes of a tensor's type. Those of few bits become bytes."""
    name, bits = DTYPES.get(ty.dataType, ("", 0))
    if not name:
        raise Malformed(f"it has the element type {ty.dataType}, which ML programs do not know")
    if bits >= 8:
        return _in_shape(ty, packed(data, name))
    count = math.prod(d or 0 for d in extents(ty))
    numbers = unpacked(arrays, data, bits, count)
    if name == "int8":
        numbers = ((numbers << np.uint8(8 - bits)).view(np.int8)) >> np.int8(8 - bits)
    return _in_shape(ty, numbers)


def _blob(files: Files, blob: Any, dtype: int) -> memoryview:
    """The bytes of a blob in a file, which its head describes. Raises `Malformed`."""
    data, at = files.read(blob.fileName), int(blob.offset)
    if at % _ALIGNMENT or at + _ALIGNMENT > len(data):
        raise Malformed(f"its weight is at the byte {at} of a file of {len(data)} bytes")
    mark, kind, size, start, _ = _HEAD.unpack_from(data, at)
    if mark != _MARK:
        raise Malformed(f"there is no weight at the byte {at} of the file of weights")
    if start > len(data) or size > len(data) - start:
        raise Malformed(f"its weight of {size} bytes ends beyond the file of weights")
    if _BLOBS.get(kind, 0) != dtype:
        raise Malformed(f"its weight has the element type {kind} in the file of weights, which is not that of the program")
    return memoryview(data)[start : start + size]


__all__ = ["DTYPES", "dtype_of", "extents", "packed", "unpacked", "value", "weight"]
