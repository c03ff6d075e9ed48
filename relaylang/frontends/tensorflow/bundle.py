"""The variables of a SavedModel: `variables.index`, a sorted table of keys, and the files of data beside it.

The index is in the format of LevelDB's tables: blocks of entries whose keys share prefixes, and a block of the other
blocks' places at its end. Snappy may compress them.

Source: LevelDB, doc/table_format.md; Snappy, format_description.txt; TensorFlow, core/protobuf/tensor_bundle.proto.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.protobuf import parsed
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.versions import Versions
from relaylang.frontends.tensorflow.schema import tensorflow
from relaylang.frontends.tensorflow.tensors import dtype_of, extents_of, numpy_dtype
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes

_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER = 48
#: The version that a reader of the variables must know.
_VERSIONS = Versions("the version that a reader of it must know", 0, 1)
#: A block has a byte for its compression and four for its checksum behind it.
_TRAILER = 5
_WHAT = "reading its variables"


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and the place behind it. Raises `IndexError` where the bytes end."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number has more than 64 bits")


def unsnapped(data: bytes, budget: Budget) -> bytes:
    """The bytes that Snappy compressed. Raises `IndexError` or `ValueError` where they are damaged."""
    size, at = _varint(data, 0)
    budget.take_bytes(size, _WHAT)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length, at = int.from_bytes(data[at : at + more], "little"), at + more
            out += data[at : at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, offset, at = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at], at + 1
        else:
            wide = 2 if tag & 3 == 2 else 4
            length, offset, at = (tag >> 2) + 1, int.from_bytes(data[at : at + wide], "little"), at + wide
        if not 0 < offset <= len(out) or len(out) + length > size:
            raise ValueError("a copy begins before the data")
        start = len(out) - offset
        for i in range(length):  # a copy may overlap itself
            out.append(out[start + i])
    if len(out) != size:
        raise ValueError("the data has another length than it states")
    return bytes(out)


def _block(data: bytes, offset: int, size: int, budget: Budget) -> bytes:
    if offset < 0 or offset + size + _TRAILER > len(data):
        raise ValueError("a block ends beyond the file")
    body, kind = data[offset : offset + size], data[offset + size]
    if kind > 1:
        raise ValueError("a block is compressed in an unknown way")
    return unsnapped(body, budget) if kind else body


def _entries(block: bytes) -> list[tuple[bytes, bytes]]:
    """The keys and values of a block."""
    end = len(block) - 4
    end -= 4 * int.from_bytes(block[end:], "little")
    if end < 0:
        raise ValueError("a block is too short for its restarts")
    entries, key, at = [], b"", 0
    while at < end:
        shared, at = _varint(block, at)
        rest, at = _varint(block, at)
        size, at = _varint(block, at)
        if shared > len(key) or at + rest + size > end:
            raise ValueError("an entry ends beyond its block")
        key = key[:shared] + block[at : at + rest]
        at += rest
        entries.append((key, block[at : at + size]))
        at += size
    return entries


def table_entries(data: bytes, budget: Budget) -> dict[bytes, bytes]:
    """All keys and values of a table. Raises `IndexError` or `ValueError` where it is damaged."""
    if len(data) < _FOOTER or data[-8:] != _MAGIC:
        raise ValueError("it has no footer")
    footer = data[-_FOOTER:]
    at = 0
    for _ in range(2):  # the block of metadata is not needed
        _, at = _varint(footer, at)
    offset, at = _varint(footer, at)
    size, at = _varint(footer, at)
    entries: dict[bytes, bytes] = {}
    for _, handle in _entries(_block(data, offset, size, budget)):
        offset, at = _varint(handle, 0)
        size, at = _varint(handle, at)
        budget.take_bytes(size, _WHAT)
        entries.update(_entries(_block(data, offset, size, budget)))
    return entries


class Bundle:
    """The variables in a folder. `prefix` is the path of its files without their endings, `file` the model's name."""

    def __init__(self, prefix: str, file: str, budget: Budget) -> None:
        self.prefix = prefix
        self.file = file
        self.budget = budget
        index = f"{prefix}.index"
        if not os.path.isfile(index):
            raise RelayError(error("R0802", f"{file}: the file of its variables, {index}, is missing"))
        data = read_bytes(index)
        budget.grant_file(index, len(data))
        try:
            self._entries = table_entries(data, budget)
        except (IndexError, ValueError):
            raise damaged(index, "the index of the variables is cut short or damaged") from None
        header = parsed(tensorflow()["BundleHeaderProto"], self._entries.pop(b"", b""), index, "its header")
        _VERSIONS.refuse(header.version.min_consumer, index)
        if header.endianness:
            raise damaged(index, "its numbers have their greatest byte first, which relaylang does not read")
        self.shards = int(header.num_shards)
        self._data: dict[int, tuple[str, int]] = {}

    def __contains__(self, key: str) -> bool:
        return key.encode() in self._entries

    def keys(self) -> list[str]:
        """The names of the variables."""
        return [key.decode("utf-8", "replace") for key in self._entries]

    def array(self, key: str) -> np.ndarray:
        """The value of a variable. Raises `RelayError` or `Malformed` where the files do not have it, `Unsupported`."""
        entry = self._entry(key)
        if entry.slices:
            raise Malformed(f"the variable {key} is saved in several slices")
        what = f"the variable {key}"
        kind, shape = numpy_dtype(dtype_of(int(entry.dtype), what)), extents_of(entry.shape, what)
        if math.prod(shape) * kind.itemsize != entry.size:
            raise damaged(f"{self.prefix}.index", f"{what} has {entry.size} bytes, and its shape {list(shape)} needs others")
        return np.frombuffer(self._bytes(entry, what), kind).reshape(shape)

    def text(self, key: str) -> bytes:
        """The value of a variable that is one text: its length, a checksum of four bytes, and the text."""
        data = self._bytes(self._entry(key), f"the variable {key}")
        try:
            size, at = _varint(data, 0)
        except (IndexError, ValueError):
            raise damaged(self.file, f"the variable {key} is damaged") from None
        return data[at + 4 : at + 4 + size]

    def _entry(self, key: str) -> Any:
        return parsed(tensorflow()["BundleEntryProto"], self._entries[key.encode()], f"{self.prefix}.index", f"the entry of {key}")

    def _bytes(self, entry: Any, what: str) -> bytes:
        path, length = self._shard(int(entry.shard_id))
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > length:
            raise damaged(path, f"{what} ends at the byte {entry.offset + entry.size}, and the file at {length}")
        self.budget.take_bytes(int(entry.size), _WHAT)
        with open(path, "rb") as stream:
            stream.seek(entry.offset)
            return stream.read(entry.size)

    def _shard(self, number: int) -> tuple[str, int]:
        if number not in self._data:
            path = f"{self.prefix}.data-{number:05}-of-{self.shards:05}"
            if not os.path.isfile(path):
                raise RelayError(error("R0802", f"{self.file}: a file of its variables, {path}, is missing"))
            self._data[number] = path, os.path.getsize(path)
            self.budget.grant_file(*self._data[number])
        return self._data[number]


__all__ = ["Bundle", "table_entries", "unsnapped"]
