"""A schedule: instructions with what they read and write, and the tokens that follow from it.

An instruction of one unit must wait for one of another where both use the same thing and one of them changes it. The tokens
of two units are taken in the order in which they are given. So it suffices to mark both instructions, wherever the first is
later than all that the second one's unit has waited for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from relaylang.backends.vta.hazards import unit_of
from relaylang.backends.vta.isa import Codec, Instruction

#: A thing that units share, such as half of a memory or a tensor in DRAM.
Thing = Hashable


@dataclass
class Item:
    """An instruction of the schedule: its name, fields, what it reads and writes, and the number of the Relay call."""

    name: str
    fields: dict[str, int]
    reads: tuple[Thing, ...] = ()
    writes: tuple[Thing, ...] = ()
    call: int = 0


@dataclass
class _Uses:
    """The last write of a thing, and its last reads since then: unit -> number of the instruction."""

    write: tuple[int, int] | None = None
    reads: dict[int, int] = field(default_factory=dict)


def add_tokens(items: list[Item]) -> None:
    """Set the flags of a schedule's instructions."""
    units = [unit_of(Instruction(0, item.name, item.fields)) for item in items]
    uses: dict[Thing, _Uses] = {}
    waited: dict[tuple[int, int], int] = {}
    for number, (item, unit) in enumerate(zip(items, units)):
        needed: dict[int, int] = {}
        for thing, is_write in [*[(t, False) for t in item.reads], *[(t, True) for t in item.writes]]:
            known = uses.get(thing, _Uses())
            others = [known.write] if known.write is not None else []
            for other, last in [*others, *(known.reads.items() if is_write else ())]:
                if other != unit:
                    needed[other] = max(needed.get(other, -1), last)
        for other, last in needed.items():
            if last > waited.get((unit, other), -1):
                assert abs(unit - other) == 1, "load and store units share no tokens"
                items[last].fields["push_next" if unit > other else "push_prev"] = 1
                item.fields["pop_next" if other > unit else "pop_prev"] = 1
                waited[unit, other] = last
        for thing in item.reads:
            uses.setdefault(thing, _Uses()).reads[unit] = number
        for thing in item.writes:
            uses[thing] = _Uses((unit, number))


class UopCache:
    """The micro-operations on the chip: sequences that were loaded stay until the memory is full."""

    def __init__(self, codec: Codec) -> None:
        self._codec, self._capacity = codec, codec.config.depth["uop"]
        self._known: dict[tuple[tuple[int, int, int], ...], int] = {}
        self._words: list[int] = []
        self._begin = 0

    def place(self, items: list[Item], sequence: tuple[tuple[int, int, int], ...], store: UopStore) -> int:
        """The first index of a sequence (dst, src, wgt) in the memory."""
        if sequence not in self._known:
            if len(self._words) + len(sequence) > self._capacity:
                self.flush(items, store)
            self._known[sequence] = len(self._words)
            self._words += [self._codec.uop(*fields) for fields in sequence]
        return self._known[sequence]

    def flush(self, items: list[Item], store: UopStore) -> None:
        """Insert the load of all sequences since the last flush before their first use."""
        if self._words:
            fields = {"memory": 0, "dram": store(self._words), "y_size": 1, "x_size": len(self._words), "x_stride": len(self._words)}
            call = items[self._begin].call if self._begin < len(items) else 0
            items.insert(self._begin, Item("LOAD", fields, call=call))
        self._known, self._words, self._begin = {}, [], len(items)


class UopStore:
    """Puts micro-operations among the constants; a call gives their address in words."""

    def __init__(self, constants: bytearray, base: int) -> None:
        self._constants, self._base = constants, base

    def __call__(self, words: list[int]) -> int:
        address = place_constant(self._constants, self._base, b"".join(word.to_bytes(4, "little") for word in words), 4)
        return address // 4


def place_constant(constants: bytearray, base: int, content: bytes, align: int) -> int:
    """Append a constant, aligned, and return its address in DRAM."""
    constants += bytes(-(base + len(constants)) % align)
    constants += content
    return base + len(constants) - len(content)


def encoded(items: list[Item], codec: Codec) -> bytes:
    """The stream of a schedule."""
    return b"".join([codec.encode(item.name, item.fields) for item in items])


Fields = Mapping[str, int]

__all__ = ["Item", "UopCache", "UopStore", "add_tokens", "encoded", "place_constant"]
