"""The places of a C function's tensors in its frame, which is a part of the program's workspace.

A tensor that is only copied on is made where the copy would lie. This may be a result's memory, a branch's value, or the
next turn of a loop. A loop's tensors have two places each: one is read while the other is written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from relaylang.backends.aot.instances import Cell, Instance, Step
from relaylang.backends.cpu.memory import place
from relaylang.backends.cpu.program import Slot
from relaylang.kernels.dtypes import SIZES


def nbytes(cell: Cell) -> int:
    total = SIZES[cell.leaf.dtype]
    for extent in cell.leaf.dims:
        total *= extent
    return total


@dataclass(eq=False)
class Home:
    """Memory of a tensor, from the first to the last step that touches it. Others are made in it, one after the other.

    `filled` is the last step of those. `copied` are the steps of branches that copy into it.
    """

    first: int = -1
    last: int = -1
    filled: int = -1
    copied: list[int] = field(default_factory=list)
    inside: Home | None = None
    slot: Slot | None = None

    def touch(self, position: int) -> None:
        self.first = position if self.first < 0 else self.first
        self.last = max(self.last, position)

    @property
    def root(self) -> Home:
        home = self
        while home.inside is not None:
            home = home.inside
        return home

    def take(self, other: Home, position: int) -> None:
        """Make another tensor here, which a step copies; unless something else would be written here in its life."""
        target, source = self.root, other.root
        if source is not other or source is target or source.first <= target.filled:
            return
        begin, end = bisect_left(self.copied, source.first), bisect_right(self.copied, source.last)
        if self.copied[begin:end] not in ([], [position]):
            return
        source.inside = target
        target.first = source.first if target.first < 0 else min(target.first, source.first)
        target.last = max(target.last, source.last)
        target.filled = max(target.filled, source.last)


class Layout:
    """The places of the tensors of a function, and the size of its frame.

    `members` are the instances that the function holds. `room(step)` is what a kernel or a call needs of the frame.
    """

    def __init__(self, members: Sequence[Instance], room: Callable[[Step], int]) -> None:
        self.inside = set(members)
        self.homes: dict[Cell, Home] = {}
        #: The homes of results, by position.
        self.results: dict[int, Home] = {}
        #: The home of a loop's next value of a parameter, and the two slots that take turns.
        self.next: dict[Cell, Home] = {}
        self.turns: dict[Cell, tuple[Slot, Slot]] = {}
        self.rooms: dict[int, Slot] = {}
        steps = [step for member in members for step in member.steps]
        for position, step in enumerate(steps):
            for cell in (*step.reads, *step.writes):
                if cell.is_made and not cell.leaf.is_scalar:
                    self.homes.setdefault(cell, Home()).touch(position)
            if step.kind == "copy" and step.writes[0] in self.homes:
                self.homes[step.writes[0]].copied.append(position)
        for position, step in enumerate(steps):
            for target, source in self._moves(step):
                if source in self.homes:
                    target.take(self.homes[source], position)
        elsewhere = {*self.results.values(), *self.next.values()}
        slots: list[Slot] = []

        def slot(size: int, first: int, last: int) -> Slot:
            slot = Slot("made", len(slots), (size,), "uint8")
            slot.first, slot.last = first, last
            slots.append(slot)
            return slot

        for cell, home in self.homes.items():
            root = home.root
            if root not in elsewhere and root.slot is None:
                root.slot = slot(nbytes(cell), root.first, root.last)
        for param in self.next:
            self.turns[param] = (slot(nbytes(param), 0, len(steps)), slot(nbytes(param), 0, len(steps)))
        for position, step in enumerate(steps):
            size = room(step)
            if size:
                self.rooms[id(step)] = slot(size, position, position)
        self.bytes = place(slots)

    def _moves(self, step: Step) -> Iterator[tuple[Home, Cell]]:
        """The copies of tensors that a step makes, each with the memory that it goes to."""
        if step.kind == "copy":
            if step.writes[0] in self.homes:
                yield self.homes[step.writes[0]], step.reads[0]
        elif step.kind == "return":
            for number, cell in enumerate(step.reads):
                if not cell.leaf.is_scalar:
                    yield self.results.setdefault(number, Home()), cell
        elif step.kind == "tail" and isinstance(step.what, Instance):
            inside = step.what in self.inside
            for param, cell in zip(step.what.params, step.reads):
                if inside and not cell.leaf.is_scalar and cell is not param:
                    yield self.next.setdefault(param, Home()), cell
