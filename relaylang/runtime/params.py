"""Parameter files: named tensors as `.npz` (numpy), `.params` (TVM) or `.safetensors`.

A failure is a diagnostic with the name of the file. R0001 stands for an unreadable file, and R0012 for
a damaged one. R0013 stands for a failed write, and R0014 for an unknown suffix.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from tokenize import TokenError

import ml_dtypes
import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.budget import Budget
from relaylang.runtime.files import atomic_write
from relaylang.runtime.text import read_bytes, reason
from relaylang.syntax.tensorblob import BlobError, elements, read_blob, write_blob

MAGIC = 0xF7E58D4F05049CB7
_U64 = struct.Struct("<Q")
#: numpy's arrays have at most 64 axes, those of versions before 2 have 32.
_MAX_RANK = 32
#: Errors of zipfile for damaged archives. RuntimeError means an encrypted member, NotImplementedError another method of
#: compression, IndexError a member without a name.
UNZIPPING = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OSError, IndexError)

#: Element types by their names in .safetensors files.
_SAFE: dict[str, np.dtype] = {
    "BOOL": np.dtype(bool),
    "I8": np.dtype("int8"),
    "I16": np.dtype("int16"),
    "I32": np.dtype("int32"),
    "I64": np.dtype("int64"),
    "U8": np.dtype("uint8"),
    "U16": np.dtype("uint16"),
    "U32": np.dtype("uint32"),
    "U64": np.dtype("uint64"),
    "F16": np.dtype("float16"),
    "F32": np.dtype("float32"),
    "F64": np.dtype("float64"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
}
_SAFE_NAMES = {dtype.name: kind for kind, dtype in _SAFE.items()}


def read_view(path: str) -> memoryview:
    """A regular file's contents, in memory of large pages, which takes a third of the time where they are large."""
    try:
        data = np.fromfile(path, np.uint8)
    except (OSError, ValueError) as e:
        raise RelayError(error("R0001", f"cannot read {path}: {reason(e)}")) from None
    data.setflags(write=False)
    return data.data


class Damaged(ValueError):
    """The reason why a file is damaged."""


# -- .params


def params_bytes(params: Mapping[str, np.ndarray]) -> bytes:
    """The tensors as TVM's `save_param_dict` writes them. Raises `BlobError` for a type that has no code there."""
    out = [_U64.pack(MAGIC), _U64.pack(0), _U64.pack(len(params))]
    for name in params:
        raw = name.encode("utf-8")
        out += [_U64.pack(len(raw)), raw]
    out.append(_U64.pack(len(params)))
    out += [write_blob(np.asarray(value)) for value in params.values()]
    return b"".join(out)


def parse_params(data: bytes) -> dict[str, np.ndarray]:
    """The tensors of TVM's binary form. Raises `BlobError`; allocates nothing that a header only claims."""

    def number(at: int, what: str) -> int:
        if at + 8 > len(data):
            raise BlobError(f"it ends before {what}")
        return int(_U64.unpack_from(data, at)[0])

    magic = number(0, "its header")
    if magic != MAGIC:
        raise BlobError(f"it begins with 0x{magic:016x}, which is not TVM's mark 0x{MAGIC:016x}")
    count = number(16, "the number of its names")
    if count > len(data) // 8:
        raise BlobError(f"it claims {count} names, more than it has room for")
    at = 24
    names = []
    for i in range(count):
        size = number(at, f"name {i}")
        at += 8
        if size > len(data) - at:
            raise BlobError(f"it ends within name {i}")
        try:
            names.append(data[at : at + size].decode("utf-8"))
        except UnicodeDecodeError:
            raise BlobError(f"name {i} is not UTF-8") from None
        at += size
    tensors = number(at, "the number of its tensors")
    at += 8
    if tensors != count:
        raise BlobError(f"it has {count} names for {tensors} tensors")
    params: dict[str, np.ndarray] = {}
    for name in names:
        if name in params:
            raise BlobError(f"it has two tensors called {name[:60]!r}")
        try:
            array, at = read_blob(data, at)
        except BlobError as e:
            raise BlobError(f"{name[:60]!r}: {e}") from None
        params[name] = array.copy()
    if at != len(data):
        raise BlobError(f"{len(data) - at} bytes stand behind its last tensor")
    return params


# -- .npz


def _npz_bytes(params: Mapping[str, np.ndarray]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, value in params.items():
            array = np.asarray(value)
            if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
                raise Damaged(f"{name[:60]!r} is of type {array.dtype.name}, for which .npz has no code")
            entry = io.BytesIO()
            np.lib.format.write_array(entry, array, allow_pickle=False)
            # a date of its own for each writing would make equal parameters unequal files
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), entry.getbuffer())
    return out.getvalue()


def parse_npy(name: str, data: bytes) -> np.ndarray:
    """An array from the bytes of a .npy file, whose header is held against what there is. Raises `Damaged`."""
    entry = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(entry)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(entry)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(entry)
    except (ValueError, SyntaxError, TokenError, KeyError, TypeError, RecursionError, MemoryError):
        raise Damaged(f"{name[:60]!r} is not a numpy array") from None
    if dtype.hasobject:
        raise Damaged(f"{name[:60]!r} holds Python objects, which are not read")
    if dtype == np.dtype("V2"):
        dtype = np.dtype(ml_dtypes.bfloat16)
    elif dtype.kind not in "biuf":
        raise Damaged(f"{name[:60]!r} is of type {dtype}, which is no element type")
    at = entry.tell()
    wanted = dtype.itemsize * prod(shape)
    if len(shape) > _MAX_RANK or any(extent < 0 for extent in shape):
        raise Damaged(f"{name[:60]!r} has the impossible shape {str(shape)[:60]}")
    if wanted != len(data) - at:
        raise Damaged(f"{name[:60]!r} of shape {shape} and {dtype} takes {wanted} bytes and has {len(data) - at}")
    try:
        array = elements(data, dtype, wanted, at).reshape(shape, order="F" if fortran else "C")
    except ValueError:  # of no elements, and extents beyond what numpy counts
        raise Damaged(f"{name[:60]!r} has the impossible shape {str(shape)[:60]}") from None
    return np.array(array, dtype.newbyteorder("="), order="C")


def parse_npz(data: bytes, budget: Budget) -> dict[str, np.ndarray]:
    """The arrays of a .npz file, unpacked under a budget. Raises `Damaged`, and `RelayError` (R0016)."""
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                name = info.filename.removesuffix(".npy")
                if name in arrays:
                    raise Damaged(f"it has two arrays called {name[:60]!r}")
                arrays[name] = parse_npy(name, budget.unpack(archive, info))
    except Damaged:
        raise
    except (*UNZIPPING, ValueError) as e:
        said = str(e) or type(e).__name__
        raise Damaged(f"it is not an .npz archive: {said[:1].lower()}{said[1:200]}") from None
    return arrays


# -- .safetensors: u64 size of a JSON map from names to type, shape and place, that map, then the elements


def _parse_safetensors(data: bytes) -> dict[str, np.ndarray]:
    size = _U64.unpack_from(data)[0] if len(data) >= 8 else 0
    if not 0 < size <= len(data) - 8:
        raise Damaged(f"its header takes {size} bytes of {max(len(data) - 8, 0)}")
    try:
        header = json.loads(data[8 : 8 + size].decode("utf-8"))
        entries = {str(k): v for k, v in header.items() if k != "__metadata__"}
        places = [_place(k, v["dtype"], v["shape"], v["data_offsets"]) for k, v in entries.items()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Damaged("its header is not a map from names to types, shapes and places") from None
    body = memoryview(data)[8 + size :]
    expected = 0
    for begin, end, name, kind, shape in sorted(places):
        dtype = _SAFE.get(kind)
        if dtype is None:
            raise Damaged(f"{name[:60]!r} has elements of {str(kind)[:40]}, which cannot be read")
        wanted = prod(shape) * dtype.itemsize
        if begin != expected or end - begin != wanted or end > len(body):
            where = f"bytes {begin} to {end} of {len(body)}"
            raise Damaged(f"{name[:60]!r} of shape {str(shape)[:60]} and {kind} takes {wanted} bytes and lies at {where}")
        expected = end
    if expected != len(body):
        raise Damaged(f"{len(body) - expected} bytes stand behind its last tensor")
    tensors = {}
    for begin, end, name, kind, shape in places:
        try:
            tensors[name] = elements(body, _SAFE[kind], end - begin, begin).reshape(shape).copy()
        except (ValueError, OverflowError):  # of no elements, and extents or axes beyond what numpy counts
            raise Damaged(f"{name[:60]!r} has the impossible shape {str(shape)[:60]}") from None
    return tensors


def _place(name: str, kind: object, shape: object, offsets: object) -> tuple[int, int, str, str, tuple[int, ...]]:
    """A tensor's first byte, the byte after its last, name, element type and shape. Raises `ValueError` for other values."""
    if not (isinstance(kind, str) and isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2):
        raise ValueError
    if not all(type(n) is int and n >= 0 for n in (*offsets, *shape)):
        raise ValueError
    return offsets[0], offsets[1], name, kind, tuple(shape)


def _safetensors_bytes(params: Mapping[str, np.ndarray]) -> bytes:
    header: dict[str, object] = {}
    out = []
    at = 0
    # larger elements first, as the format's own writer has it, so that each tensor is aligned
    for name, value in sorted(params.items(), key=lambda item: (-np.asarray(item[1]).itemsize, item[0])):
        array = np.asarray(value)
        kind = _SAFE_NAMES.get(array.dtype.name)
        if kind is None:
            raise Damaged(f"{name[:60]!r} is of type {array.dtype.name}, for which .safetensors has no code")
        raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        out.append(raw)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return b"".join([_U64.pack(len(text)), text, *out])


#: Readers of a file's contents. Only archives can swell: the others hold their elements as they are.
_READERS: dict[str, Callable[[bytes, Budget], dict[str, np.ndarray]]] = {
    ".npz": parse_npz,
    ".params": lambda data, budget: parse_params(data),
    ".safetensors": lambda data, budget: _parse_safetensors(data),
}
_WRITERS: dict[str, Callable[[Mapping[str, np.ndarray]], bytes]] = {
    ".npz": _npz_bytes,
    ".params": params_bytes,
    ".safetensors": _safetensors_bytes,
}


#: The endings of parameter files.
SUFFIXES = tuple(_READERS)


def check_suffix(path: str) -> str:
    """The ending that names a file's format. Raises `RelayError` for another."""
    suffix = Path(path).suffix.lower()
    if suffix not in _READERS:
        raise RelayError(error("R0014", f"{path} is not a .npz, .params or .safetensors file"))
    return suffix


def beside(text: str) -> str:
    """The file for the constants that the Relay text in a file leaves out: `net.relay.params` beside `net.relay`."""
    return text + ".params"


def load_params(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The tensors of a parameter file by name, in the file's order; the suffix says which kind it is.

    Raises `RelayError` (R0001, R0012, R0014, R0016).
    """
    name = os.fspath(path)
    suffix = check_suffix(name)
    data = read_bytes(name)
    if not data:
        raise RelayError(error("R0012", f"{name} is empty"))
    try:
        return _READERS[suffix](data, Budget(name, len(data)))
    except (BlobError, Damaged) as e:
        raise RelayError(error("R0012", f"{name} cannot be read: {e}")) from None


def save_params(path: str | os.PathLike[str], params: Mapping[str, np.ndarray]) -> None:
    """Write tensors to a parameter file whole or not at all; the suffix says which kind it is.

    Equal tensors give equal files. Raises `RelayError` (R0013, R0014).
    """
    name = os.fspath(path)
    suffix = check_suffix(name)
    try:
        atomic_write(name, _WRITERS[suffix](params))
    except (BlobError, Damaged) as e:
        raise RelayError(error("R0013", f"cannot write {name}: {e}")) from None
    except OSError as e:
        raise RelayError(error("R0013", f"cannot write {name}: {reason(e)}")) from None
