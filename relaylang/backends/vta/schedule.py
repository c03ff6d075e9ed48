"""A schedule: instructions with what they read and write, and the tokens and loads of micro-operations that follow from it.

An instruction of one unit must wait for one of another where both use the same thing and one of them changes it. The tokens
of two units are taken in the order in which they are given. So it suffices to mark both instructions, wherever the first is
later than all that the second one's unit has waited for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.hazards import unit_of
from relaylang.backends.vta.isa import MEMORIES, Codec, Instruction

#: A thing that units share, such as half of a memory or a tensor in DRAM.
Thing = Hashable
#: What an instruction reads, and what it writes.
Uses = tuple[Sequence[Thing], Sequence[Thing]]
#: The most elements of a row or rows of a transfer, or elements between rows.
_MOST = (1 << 16) - 1
#: A micro-operation: the indices of the result, the source and the weights.
Uop = tuple[int, int, int]


@dataclass
class Item:
    """An instruction of the schedule: its name, fields, what it reads and writes, and the number of the Relay call."""

    name: str
    fields: dict[str, int]
    uses: Uses
    call: int


@dataclass
class Bank:
    """Two halves of a memory: what each holds. The half that was used last is kept."""

    half: int
    keys: list[object] = field(default_factory=lambda: [None, None])
    last: int = 1

    def hold(self, key: object) -> tuple[int, bool]:
        """The half for what a key names, and whether it must be loaded."""
        fresh = key not in self.keys
        self.last = 1 - self.last if fresh else self.keys.index(key)
        self.keys[self.last] = key
        return self.last, fresh

    def emptied(self) -> Bank:
        """The bank, which holds nothing that can be used again."""
        self.keys = [None, None]
        return self


class Schedule:
    """The instructions of a program, and its constants, which lie in DRAM from the byte `base` on."""

    def __init__(self, config: Config, base: int) -> None:
        self.config, self.base, self.codec = config, base, Codec(config)
        self.items: list[Item] = []
        self.banks = {name: Bank(depth // 2) for name, depth in config.depth.items()}
        self.constants = bytearray()
        #: The number of the Relay call whose instructions are appended.
        self.call = 0
        # The micro-operations on the chip: sequences that were loaded stay until the memory is full.
        self._known: dict[tuple[Uop, ...], int] = {}
        self._words: list[int] = []
        self._begin = 0

    def constant(self, content: bytes, size: int) -> int:
        """Append a constant of elements of `size` bytes. Returns the number of its first element in DRAM."""
        self.constants += bytes(-(self.base + len(self.constants)) % size) + content
        return (self.base + len(self.constants) - len(content)) // size

    def emit(self, name: str, fields: dict[str, int], uses: Uses) -> None:
        self.items.append(Item(name, {k: v for k, v in fields.items() if v}, uses, self.call))

    def transfer(self, name: str, memory: str, places: tuple[int, int], axes: list[tuple[int, int]], uses: Uses) -> None:
        """Copy a block between the first elements `places`, on the chip and in DRAM. On the chip it is dense.

        `axes` are (count, elements in DRAM from one to the next), outermost first.
        """
        merged: list[tuple[int, int]] = [(1, 1)]
        for count, step in reversed(axes):
            if count > 1 and merged[-1][1] * merged[-1][0] == step:
                merged[-1] = (merged[-1][0] * count, merged[-1][1])
            elif count > 1:
                merged.append((count, step))
        *outer, (columns, _) = reversed(merged)
        if len(outer) > 1 or (outer and outer[0][1] > _MOST):
            (count, step), *inner = reversed(merged)
            size = columns * (outer[1][0] if len(outer) > 1 else 1)
            for number in range(count):
                self.transfer(name, memory, (places[0] + number * size, places[1] + number * step), inner, uses)
            return
        rows, stride = outer[0] if outer else (1, columns)
        fields = {"sram": places[0], "dram": places[1], "y_size": rows, "x_size": columns, "x_stride": stride}
        self.emit(name, {"memory": MEMORIES.index(memory), **fields}, uses)

    def loops(self, name: str, uops: Sequence[Uop], turns: tuple[int, int], fields: dict[str, int], uses: Uses) -> None:
        """Append a GEMM or ALU instruction. What a loop of one turn adds to an index is left out."""
        sequence = tuple(uops)
        if sequence not in self._known:
            if len(self._words) + len(sequence) > self.config.depth["uop"]:
                self._load_uops()
            self._known[sequence] = len(self._words)
            self._words += [self.codec.uop(*uop) for uop in sequence]
        first = self._known[sequence]
        idle = [end for end, count in zip(("_out", "_in"), turns) if count == 1]
        used = {key: value for key, value in fields.items() if not key.endswith(tuple(idle))}
        bounds = {"uop_bgn": first, "uop_end": first + len(sequence), "iter_out": turns[0], "iter_in": turns[1]}
        self.emit(name, {**bounds, **used}, uses)

    def _load_uops(self) -> None:
        """Insert the load of the micro-operations before their first use, and begin anew."""
        if self._words:
            place = self.constant(b"".join([word.to_bytes(4, "little") for word in self._words]), 4)
            fields = {
                "memory": MEMORIES.index("uop"),
                "dram": place,
                "y_size": 1,
                "x_size": len(self._words),
                "x_stride": len(self._words),
            }
            self.items.insert(self._begin, Item("LOAD", fields, ((), ()), self.items[self._begin].call))
        self._known, self._words, self._begin = {}, [], len(self.items)

    def finish(self) -> bytes:
        """The stream, with all tokens."""
        self._load_uops()
        self._add_tokens()
        return b"".join([self.codec.encode(item.name, item.fields) for item in self.items])

    def _add_tokens(self) -> None:
        # For each thing and unit the instruction that wrote it last, and those that have read it since then.
        written, read = (defaultdict[Thing, dict[int, int]](dict) for _ in range(2))
        waited: dict[tuple[int, int], int] = {}
        units = [unit_of(Instruction(0, item.name, item.fields)) for item in self.items]
        for number, (item, unit) in enumerate(zip(self.items, units)):
            (reads, writes), needed = item.uses, dict[int, int]()
            for users in [*[written[buffer] for buffer in (*reads, *writes)], *[read[buffer] for buffer in writes]]:
                for other in users.keys() - {unit}:
                    needed[other] = max(needed.get(other, -1), users[other])
            for other, last in needed.items():
                if last > waited.get((unit, other), -1):
                    assert abs(unit - other) == 1, "load and store units share no tokens"
                    self.items[last].fields["push_next" if unit > other else "push_prev"] = 1
                    item.fields["pop_next" if other > unit else "pop_prev"] = 1
                    waited[unit, other] = last
            for buffer in reads:
                read[buffer][unit] = number
            for buffer in writes:
                written[buffer], read[buffer] = {unit: number}, {}


__all__ = ["Schedule", "Thing", "Uop", "Uses"]
