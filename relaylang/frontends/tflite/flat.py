"""Tables of a flatbuffer, read in place (https://flatbuffers.dev/internals).

A table begins with the signed distance back to its vtable. This begins with its own length and the table's, both of 16 bits, and
has the place of each field inside the table, or 0. Offsets beyond the bytes raise `struct.error`, `IndexError` or `ValueError`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

_I32 = struct.Struct("<i").unpack_from
_U32 = struct.Struct("<I").unpack_from
_U16 = struct.Struct("<H").unpack_from


@cache
def _words(count: int) -> Callable[[bytes, int], tuple[int, ...]]:
    """A reader of so many numbers of 16 bits."""
    return struct.Struct(f"<{count}H").unpack_from


class Flat:
    """One table. Fields are named by their numbers in the schema."""

    __slots__ = ("data", "offsets", "place", "vtable")

    def __init__(self, data: bytes, place: int) -> None:
        self.data = data
        self.place = place
        self.vtable = place - _I32(data, place)[0]
        if self.vtable < 0:
            raise IndexError(self.vtable)
        self.offsets = _words(_U16(data, self.vtable)[0] // 2)(data, self.vtable)

    def field(self, number: int) -> int:
        """The place of a field; 0 where the table leaves it out."""
        offsets = self.offsets
        offset = offsets[number + 2] if number + 2 < len(offsets) else 0
        return self.place + offset if offset else 0

    def number(self, number: int, kind: struct.Struct, default: int = 0) -> int:
        """A number of the table."""
        place = self.field(number)
        return int(kind.unpack_from(self.data, place)[0]) if place else default

    def target(self, number: int) -> int:
        """The place that a field points to; 0 where it is left out."""
        place = self.field(number)
        return place + _U32(self.data, place)[0] if place else 0

    def table(self, number: int) -> Flat | None:
        place = self.target(number)
        return Flat(self.data, place) if place else None

    def vector(self, number: int, dtype: Any) -> np.ndarray:
        """A vector of numbers, in the file's memory; an empty one where it is left out."""
        place = self.target(number)
        if not place:
            return np.zeros(0, dtype)
        return np.frombuffer(self.data, dtype, _U32(self.data, place)[0], place + 4)

    def text(self, number: int) -> str:
        place = self.target(number)
        return bytes(self.vector(number, np.uint8)).decode("utf-8", "replace") if place else ""

    def tables(self, number: int) -> list[int]:
        """The places of the tables in a vector."""
        place = self.target(number)
        if not place:
            return []
        begin = place + 4
        offsets = np.frombuffer(self.data, np.uint32, _U32(self.data, place)[0], begin)
        return [begin + 4 * i + o for i, o in enumerate(offsets.tolist())]

    def inline(self) -> bytes:
        """The vtable and the table's own bytes: two tables without pointers are equal where these are."""
        length, size = self.offsets[:2]
        return self.data[self.vtable : self.vtable + length] + self.data[self.place + 4 : self.place + size]


__all__ = ["Flat"]
