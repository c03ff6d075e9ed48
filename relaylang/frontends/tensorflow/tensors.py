"""TensorFlow's tensors as numpy arrays, and its element types and shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.report import Malformed
from relaylang.ir import ANY
from relaylang.ir.types import Dim
from relaylang.runtime.budget import Budget

#: Element types by number. Quantised types are the whole numbers that they are stored as.
DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    9: "int64",
    10: "bool",
    11: "int8",
    12: "uint8",
    13: "int32",
    14: "bfloat16",
    15: "int16",
    16: "uint16",
    17: "uint16",
    19: "float16",
    22: "uint32",
    23: "uint64",
    24: "float8_e5m2",
    25: "float8_e4m3fn",
}
#: Others, with their names.
OTHER = {
    0: "no type",
    7: "strings",
    8: "complex numbers",
    18: "complex numbers",
    20: "resources",
    21: "variants",
    29: "int4",
    30: "uint4",
}
#: The field that has an element type's values, unless they are bytes.
_FIELDS = {
    1: "float_val",
    2: "double_val",
    9: "int64_val",
    10: "bool_val",
    14: "half_val",
    19: "half_val",
    22: "uint32_val",
    23: "uint64_val",
}
_MAX_RANK = 64
_WHAT = "laying its constants out"


def dtype_of(number: int, what: str) -> str:
    """The element type of TensorFlow's number. Raises `Unsupported` for one that Relay lacks."""
    dtype = DTYPES.get(number % 100)
    if dtype is None:
        raise Unsupported(f"{what} has {OTHER.get(number % 100, f'the element type {number}')}, not numbers of Relay's types")
    return dtype


def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's element type of a name."""
    return np.dtype(getattr(ml_dtypes, name)) if name.startswith(("bfloat", "float8")) else np.dtype(name)


def shape_of(proto: Any) -> tuple[Dim, ...] | None:
    """The extents of a TensorShapeProto, `ANY` for unknown ones; None where the rank is unknown."""
    if proto.unknown_rank:
        return None
    return tuple([ANY if d.size < 0 else int(d.size) for d in proto.dim])


def extents_of(proto: Any, what: str) -> tuple[int, ...]:
    """The extents of a shape without unknown ones. Raises `Malformed`."""
    shape = shape_of(proto)
    if shape is None or len(shape) > _MAX_RANK or not all(isinstance(d, int) for d in shape):
        raise Malformed(f"{what} has no known shape")
    return tuple(int(d) for d in shape if isinstance(d, int))


def array_of(proto: Any, budget: Budget, what: str = "the tensor") -> np.ndarray:
    """The array of a TensorProto; its last value stands for those that are left out. Texts are an array of bytes.

    Raises `Malformed` where its values do not fit its shape, `Unsupported` for another element type.
    """
    shape, number = extents_of(proto.tensor_shape, what), int(proto.dtype)
    count = math.prod(shape)
    if number % 100 == 7:
        budget.take_bytes(8 * count, _WHAT)
        return _filled(list(proto.string_val) or [b""], shape, np.dtype(object), what)
    name = dtype_of(number, what)
    kind = numpy_dtype(name)
    budget.take_bytes(count * kind.itemsize, _WHAT)
    content = proto.tensor_content  # each access copies it
    if content:
        if len(content) != count * kind.itemsize:
            raise Malformed(f"{what} has {len(content)} bytes, and its shape {list(shape)} needs {count * kind.itemsize}")
        return np.frombuffer(content, kind).reshape(shape)
    if name.startswith("float8"):
        values: Any = np.frombuffer(proto.float8_val, np.uint8)
    else:
        values = getattr(proto, _FIELDS.get(number % 100, "int_val"))
    if name in ("float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"):
        bits = np.dtype(f"uint{8 * kind.itemsize}")
        return _filled(np.array(values, np.int64).astype(bits), shape, bits, what).view(kind)
    with np.errstate(all="ignore"):
        numbers: Any = np.array(values, "float64" if kind.kind == "f" else None).astype(kind) if len(values) else []
        return _filled(numbers, shape, kind, what)


def _filled(values: Sequence[Any] | np.ndarray, shape: tuple[int, ...], kind: np.dtype[Any], what: str) -> np.ndarray:
    """An array of a shape from its first values; the last one fills the rest, 0 where there are none."""
    count = math.prod(shape)
    if len(values) > count:
        raise Malformed(f"{what} has {len(values)} values, and its shape {list(shape)} has {count}")
    array = np.zeros(count, kind)
    if len(values):
        array[: len(values)] = values
        array[len(values) :] = values[-1]
    return array.reshape(shape)


__all__ = ["DTYPES", "OTHER", "array_of", "dtype_of", "extents_of", "numpy_dtype", "shape_of"]
