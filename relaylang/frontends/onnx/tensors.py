"""ONNX tensors and types as numpy arrays and Relay types, checked against the bytes that are there."""

from __future__ import annotations

import math
import stat
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (gives numpy the names of small element types)
import numpy as np

from relaylang.frontends.common.extents import Extents
from relaylang.frontends.common.files import damaged
from relaylang.ir import ANY, TensorType
from relaylang.ir.types import Dim
from relaylang.runtime.budget import Budget

#: ONNX's TensorProto.DataType to element types. Texts (8) and complex numbers (14, 15) have none.
DTYPES: dict[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
}

#: The number of texts, which have the form of bytes.
TEXTS = 8
#: numpy's arrays have at most so many axes.
MAX_RANK = 32
#: Element types of less than a byte, and their bits.
_PACKED = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}
#: The fields of a TensorProto that hold its elements where `raw_data` is empty.
_FIELDS = {
    "float_data": ("float32",),
    "double_data": ("float64",),
    "int64_data": ("int64",),
    "uint64_data": ("uint32", "uint64"),
}


def dtype_of(number: int, file: str, what: str) -> str:
    """The element type of ONNX's number. Raises `RelayError` for one that Relay does not have."""
    if number not in DTYPES:
        kind = {0: "no element type", TEXTS: "texts", 14: "complex numbers", 15: "complex numbers"}.get(number)
        raise damaged(file, f"{what} has {kind or f'the unknown element type {number}'}", "Relay has numbers and bool only")
    return DTYPES[number]


def type_of(proto: Any, file: str, what: str) -> TensorType | None:
    """The type of a ValueInfoProto's tensor; None where it states no rank. Raises `RelayError` for strings."""
    kind = proto.type.WhichOneof("value")
    if kind != "tensor_type":
        return None
    return tensor_type(proto.type.tensor_type, file, what)


def tensor_type(tensor: Any, file: str, what: str, extents: Extents | None = None) -> TensorType | None:
    """The type of a TypeProto's tensor; None where it states no rank. Raises `RelayError` for strings.

    A named extent is one of `extents`, or else `?`.
    """
    dtype = dtype_of(tensor.elem_type, file, what)
    if not tensor.HasField("shape"):
        return None
    return TensorType([_dim(d, extents) for d in tensor.shape.dim], dtype)


def _dim(dim: Any, extents: Extents | None) -> Dim:
    if dim.WhichOneof("value") == "dim_value":
        return int(dim.dim_value) if dim.dim_value >= 0 else ANY
    return extents.dim(dim.dim_param) if extents is not None else ANY


def array_of(proto: Any, file: str, folder: str, budget: Budget) -> np.ndarray:
    """The array of a TensorProto. Raises `RelayError` where the bytes do not fit the shape, or lie outside `folder`."""
    name = f"the tensor {proto.name}" if proto.name else "a constant"
    dtype = dtype_of(proto.data_type, file, name)
    shape = tuple(int(d) for d in proto.dims)
    count = math.prod(shape)
    if any(d < 0 for d in shape) or len(shape) > MAX_RANK or math.prod(d for d in shape if d) >= 1 << 48:
        raise damaged(file, f"{name} has the impossible shape {_shown(shape)}")
    bits = _PACKED.get(dtype, np.dtype(dtype).itemsize * 8)
    size = (count * bits + 7) // 8
    if proto.data_location == 1:
        data = _external(proto, file, folder, size, name, budget)
    elif proto.raw_data:
        data = proto.raw_data
    else:
        return _from_field(proto, dtype, shape, count, file, name)
    if len(data) != size:
        raise damaged(file, f"{name} has {len(data)} bytes, but its shape {shape} of {dtype} needs {size}")
    if dtype in _PACKED:
        return _unpacked(np.frombuffer(data, np.uint8), dtype, count).reshape(shape)
    kind = np.dtype(dtype)
    return np.frombuffer(data, kind.newbyteorder("<") if kind.isbuiltin == 1 else kind).astype(kind, copy=False).reshape(shape)


def _from_field(proto: Any, dtype: str, shape: tuple[int, ...], count: int, file: str, name: str) -> np.ndarray:
    for field, dtypes in _FIELDS.items():
        if dtype in dtypes:
            values = getattr(proto, field)
            break
    else:
        values = proto.int32_data
    wanted = (count * _PACKED.get(dtype, 8) + 7) // 8
    if len(values) != wanted:
        raise damaged(file, f"{name} has {len(values)} elements, but its shape {shape} needs {wanted}")
    array = np.array(values)
    if dtype in _PACKED:
        return _unpacked(array.astype(np.uint8), dtype, count).reshape(shape)
    if dtype in ("float16", "bfloat16"):
        return array.astype(np.uint16).view(np.dtype(dtype)).reshape(shape)
    if dtype.startswith("float8"):
        return array.astype(np.uint8).view(np.dtype(dtype)).reshape(shape)
    return array.astype(np.dtype(dtype)).reshape(shape)


def _unpacked(packed: np.ndarray, dtype: str, count: int) -> np.ndarray:
    """Elements of 2 or 4 bits, several to a byte, the first in the lowest bits."""
    bits = _PACKED[dtype]
    places = np.array(range(0, 8, bits), np.uint8)
    parts = ((packed[:, None] >> places) & np.uint8((1 << bits) - 1)).reshape(-1)[:count]
    if dtype.startswith("float"):
        return parts.view(np.dtype(dtype))
    if dtype.startswith("u"):
        return parts.astype(np.dtype(dtype))
    return (parts.astype(np.int8) - ((parts >> (bits - 1)).astype(np.int8) << bits)).astype(np.dtype(dtype))


def _shown(shape: tuple[int, ...]) -> str:
    return str(shape) if len(shape) <= MAX_RANK else f"of {len(shape)} axes"


def _external(proto: Any, file: str, folder: str, size: int, name: str, budget: Budget) -> bytes:
    """The bytes of a regular file inside the model's folder: no link out of it, no device, no pipe."""
    entries = {e.key: e.value for e in proto.external_data}
    location = entries.get("location", "")
    if not folder:
        raise damaged(file, f"{name} is in the file {location}, and the model's folder is not known", "import it by its path")
    if not location or "\0" in location:
        raise damaged(file, f"{name} is in a file whose path {location[:60]!r} is none")
    try:
        root = Path(folder).resolve()
        path = (root / location).resolve()
    except (OSError, RuntimeError):  # a path that is too long, or links in a circle
        raise damaged(file, f"{name} is in a file whose path {location[:60]!r} leads nowhere") from None
    if root not in path.parents:
        raise damaged(file, f"{name} is in the file {location}, outside the model's folder")
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries.get("length", str(size)))
    except ValueError:
        raise damaged(file, f"{name} has an offset or a length that is not a number") from None
    if offset < 0:
        raise damaged(file, f"{name} has an offset below 0")
    if length != size:
        raise damaged(file, f"{name} has {length} bytes in {location}, but its shape needs {size}")
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise damaged(file, f"{name} is in {location}, which is {_kind(state.st_mode)}, not a regular file")
        if offset + size > state.st_size:
            raise damaged(file, f"{name} has the bytes {offset} to {offset + size} of {location}, which has {state.st_size}")
        budget.grant_file(str(path), state.st_size)
        budget.take_bytes(size, "reading the files beside it")
        with path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)
    except OSError as e:
        raise damaged(file, f"{name}: cannot read {location}: {e.strerror or e}") from None


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((text for test, text in kinds if test(mode)), "a device")


__all__ = ["DTYPES", "MAX_RANK", "TEXTS", "array_of", "dtype_of", "tensor_type", "type_of"]
