"""Tensors as bytes, in the layout that TVM's metadata sections and `.params` files use.

The fields, little-endian:

- u64 magic, u64 0
- i32 device type (1: CPU), i32 device number
- i32 rank
- u8 type code, u8 bits, u16 lanes
- i64 per extent, i64 byte count
- the elements
"""

from __future__ import annotations

import struct
from math import prod

import ml_dtypes
import numpy as np

MAGIC = 0xDD5E40F096B4A13F
_HEAD = struct.Struct("<QQiiiBBH")
_SIZE = struct.Struct("<q")
_MAX_RANK = 64

_INT, _UINT, _FLOAT, _BFLOAT, _E4M3, _E5M2 = 0, 1, 2, 4, 6, 7
_BY_CODE: dict[tuple[int, int], np.dtype] = {
    **{(_INT, bits): np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{(_UINT, bits): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{(_FLOAT, bits): np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    (_UINT, 1): np.dtype(bool),
    (_BFLOAT, 16): np.dtype(ml_dtypes.bfloat16),
    (_E4M3, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (_E5M2, 8): np.dtype(ml_dtypes.float8_e5m2),
}
#: Codes of ml_dtypes' element types that TVM 0.16 lacks. They are DLPack's codes, unless TVM's files use a code otherwise.
#: Then the code is one of TVM's range for custom types. Each element takes a byte.
_NEWER = {
    (_INT, 2): "int2",
    (_INT, 4): "int4",
    (_UINT, 2): "uint2",
    (_UINT, 4): "uint4",
    (135, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (11, 8): "float8_e4m3fnuz",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
    (15, 6): "float6_e2m3fn",
    (16, 6): "float6_e3m2fn",
    (17, 4): "float4_e2m1fn",
}
_BY_CODE.update({code: np.dtype(getattr(ml_dtypes, name)) for code, name in _NEWER.items() if hasattr(ml_dtypes, name)})
_CODES: dict[str, tuple[int, int]] = {dtype.name: code for code, dtype in _BY_CODE.items()}
_BY_CODE.update({(10, 8): _BY_CODE[_E4M3, 8], (12, 8): _BY_CODE[_E5M2, 8]})  # as DLPack numbers them
_KINDS = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex", 6: "float8_e4m3", 7: "float8_e5m2"}


class BlobError(ValueError):
    """The bytes are no tensor; the message says why."""


def write_blob(array: np.ndarray) -> bytes:
    """A tensor in this layout. Raises `BlobError` where the layout has no code for its element type."""
    code = _CODES.get(array.dtype.name)
    if code is None:
        raise BlobError(f"tensors of {array.dtype.name} have no binary form in TVM's files")
    data = np.ascontiguousarray(array)
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    raw = data.tobytes()
    head = _HEAD.pack(MAGIC, 0, 1, 0, array.ndim, *code, 1)
    return head + struct.pack(f"<{array.ndim}q", *array.shape) + _SIZE.pack(len(raw)) + raw


def read_blob(data: bytes | memoryview, at: int = 0) -> tuple[np.ndarray, int]:
    """The tensor that begins at a byte offset, as a read-only view of the bytes, and the offset behind it.

    Nothing is allocated for what a header only claims. Raises `BlobError`.
    """
    size = len(data)
    if size - at < _HEAD.size:
        raise BlobError(f"it ends within a tensor's header ({max(size - at, 0)} of {_HEAD.size} bytes)")
    magic, _, _, _, rank, code, bits, lanes = _HEAD.unpack_from(data, at)
    if magic != MAGIC:
        raise BlobError(f"a tensor begins with 0x{magic:016x}, not 0x{MAGIC:016x}")
    if not 0 <= rank <= _MAX_RANK:
        raise BlobError(f"a tensor claims the rank {rank}")
    dtype = _BY_CODE.get((code, bits))
    if dtype is None or lanes != 1:
        kind = f"{_KINDS.get(code, f'type code {code} of ')}{bits}{f'x{lanes}' if lanes != 1 else ''}"
        raise BlobError(f"a tensor has elements of {kind}, which cannot be read")
    at += _HEAD.size
    if size - at < 8 * rank + 8:
        raise BlobError("it ends within a tensor's shape")
    shape = struct.unpack_from(f"<{rank}q", data, at)
    at += 8 * rank
    (claimed,) = _SIZE.unpack_from(data, at)
    at += 8
    if any(extent < 0 for extent in shape):
        raise BlobError(f"a tensor has the shape {shape}")
    wanted = prod(shape) * dtype.itemsize
    if claimed != wanted:
        raise BlobError(f"a tensor of shape {shape} and {dtype.name} claims {claimed} bytes, where it takes {wanted}")
    if wanted > size - at:
        raise BlobError(f"a tensor of {wanted} bytes is cut off after {size - at}")
    try:
        array = elements(data, dtype, wanted, at).reshape(shape)
    except ValueError:
        raise BlobError(f"a tensor has the shape {shape}") from None
    array.flags.writeable = False
    return array, at + wanted


def elements(data: bytes | memoryview, dtype: np.dtype, size: int, at: int = 0) -> np.ndarray:
    """`size` bytes of a buffer as elements of a type, viewed in place. For bool, every byte but 0 is true."""
    raw = np.frombuffer(data, np.uint8, size, at)
    if dtype == np.bool_ and raw.size and raw.max() > 1:
        return raw != 0
    return raw.view(dtype)
