"""Weights in the U85's fast form: a header, then bytes, or indices of 2 or 4 bits into a palette."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.simulator.codec import Damaged

_HEADER = 32
#: The header's bits: flags for bytes and for indices of 2 bits. Then a number that bytes have too much, and the palette.
_RAW, _SMALL, _ZERO, _PALETTE = 0, 1, 104, 112
_ENTRIES, _ENTRY_BITS = 16, 9


def decode_fast(content: bytes, count: int) -> np.ndarray:
    """The first weights of a stream, at most `count`, of up to 9 bits. Raises `Damaged`."""
    if len(content) < _HEADER:
        raise Damaged(f"its header has {len(content)} bytes of {_HEADER}")
    header = int.from_bytes(content[:_HEADER], "little")
    body = np.frombuffer(content, np.uint8, offset=_HEADER)
    if header >> _RAW & 1:
        zero = header >> _ZERO & 0xFF
        return body[:count].view(np.int8).astype(np.int16) - (zero - 256 if zero & 0x80 else zero)
    entries = np.asarray([header >> _PALETTE + _ENTRY_BITS * i & 0x1FF for i in range(_ENTRIES)], np.int16)
    # The lowest bit of an entry is its sign.
    palette = np.where(entries & 1, -(entries >> 1), entries >> 1)
    bits = 2 if header >> _SMALL & 1 else 4
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    indices = (body[: -(-count * bits // 8), None] >> shifts & ((1 << bits) - 1)).ravel()
    return palette[indices[:count]]
