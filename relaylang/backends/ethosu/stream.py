"""Command streams: the driver's file (COP1) as commands with their places. Nothing of it runs here."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from relaylang.backends.ethosu.registers import COMMANDS, PRODUCTS
from relaylang.backends.ethosu.vela import ACCELERATORS
from relaylang.diagnostics import RelayError, error

#: The first bytes of a driver's file.
MAGIC = b"COP1"
#: Actions of the driver, in the low byte of a word: the configuration, the stream itself, and a filler.
_CONFIG, _STREAM, _FILLER = 1, 2, 5
#: Accelerators with several cores.
_CORES = {"ethos-u65-512": 2, "ethos-u85-512": 2, "ethos-u85-1024": 4, "ethos-u85-2048": 4}


class Command(NamedTuple):
    """A command: its byte in the file, its name, its 16 bits, and its second word, if any."""

    at: int
    name: str
    param: int
    payload: int | None

    @property
    def address(self) -> int:
        """The 40 or 48 bits of a command that sets an address, a stride or a length."""
        return (self.param << 32) | (self.payload or 0)


class Stream(NamedTuple):
    """A command stream, and the accelerator that it is for: product, MACs per cycle, KiB of its shared memory."""

    product: str
    macs: int
    shared_kib: int
    commands: tuple[Command, ...]

    @property
    def accelerator(self) -> str:
        return f"{self.product}-{self.macs}"

    @property
    def cores(self) -> int:
        return _CORES.get(self.accelerator, 1)


def read_stream(content: bytes, source: str) -> Stream:
    """Read a driver's file. `source` is what messages call it.

    Raises `RelayError` (R0615) where it is truncated, of another format, or has commands that the product lacks.
    """

    def refuse(at: int, why: str) -> RelayError:
        return RelayError(error("R0615", f"{source} is no command stream that can be read: at byte {at:#x}, {why}"))

    if content[:4] != MAGIC or len(content) % 4:
        raise refuse(0, "the driver's header COP1 is missing" if content[:4] != MAGIC else "a word is cut off at the end")
    words = struct.unpack(f"<{len(content) // 4}I", content)
    config, at = _header(words, refuse)
    product, macs = PRODUCTS[config >> 28], 1 << (config & 15)
    if f"{product}-{macs}" not in ACCELERATORS:
        raise refuse(4 * at, f"there is no {product} of {macs} MACs")
    short, long = COMMANDS[product]
    commands = []
    while at < len(words):
        word = words[at]
        wide = (word >> 14) & 3 == 1
        name = (long if wide else short).get(word & 0x3FF)
        if name is None or word >> 14 & 3 > 1:
            raise refuse(4 * at, f"{word:#010x} is no command of {product}")
        if wide and at + 1 >= len(words):
            raise refuse(4 * at, f"{name} lacks its second word")
        commands.append(Command(4 * at, name, word >> 16, words[at + 1] if wide else None))
        at += 2 if wide else 1
    return Stream(product, macs, (config >> 8) & 0xFF, tuple(commands))


def _header(words: Sequence[int], refuse: Callable[[int, str], RelayError]) -> tuple[int, int]:
    """The configuration that the driver's header names, and the number of the first word after it."""
    config = None
    at, end = 1, len(words)
    while True:
        if at >= end:
            raise refuse(4 * at, "the header ends before the stream")
        action = words[at] & 0xFF
        if action == _CONFIG and at + 2 < end:
            config = words[at + 1]
            at += 3
        elif action == _FILLER:
            at += 1
        elif action == _STREAM:
            length = ((words[at] >> 8) & 0xFF) << 16 | words[at] >> 16
            at += 1
            break
        else:
            raise refuse(4 * at, f"{words[at]:#010x} is no action of the driver")
    if config is None:
        raise refuse(4 * at, "the header does not name an accelerator")
    if config >> 28 not in PRODUCTS:
        raise refuse(4 * at, f"there is no product {config >> 28}")
    if length != end - at:
        raise refuse(4 * at, f"the header counts {length} words, {end - at} follow")
    return config, at


def with_params(content: bytes, params: Mapping[int, int]) -> bytes:
    """A driver's file with other 16 bits in the commands at some bytes."""
    changed = bytearray(content)
    for at, param in params.items():
        changed[at + 2 : at + 4] = struct.pack("<H", param)
    return bytes(changed)
