"""Hazards: what the tokens of a stream order, and what they leave to chance.

The three units take instructions in order, and tokens alone order one unit against another. The n-th pop of a queue waits
for the n-th push, whatever the units' speed. Therefore one walk with a clock for each unit tells for any two instructions
whether one always ends before the other begins. Two accesses to an element, one of them a write, must be ordered so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from relaylang.backends.vta.isa import Instruction
from relaylang.backends.vta.program import Program
from relaylang.diagnostics import RelayError, error

#: The units, in the order in which they are neighbours.
UNITS = ("load", "compute", "store")
LOAD, COMPUTE, STORE = range(3)


def unit_of(instruction: Instruction) -> int:
    """The unit that executes an instruction. Loads of micro-operations and sums are the compute unit's."""
    if instruction.name == "LOAD":
        return LOAD if instruction["memory"] in (1, 2) else COMPUTE
    return STORE if instruction.name == "STORE" else COMPUTE


def _neighbours(unit: int, instruction: Instruction, action: str) -> list[int]:
    """The units from which an instruction pops, or to which it pushes."""
    others = [unit - 1] * instruction[f"{action}_prev"] + [unit + 1] * instruction[f"{action}_next"]
    return [other for other in others if 0 <= other < len(UNITS)]


class Fault(Exception):
    """A fault of the instruction that is executed now."""


def fault(program: Program, instruction: Instruction, why: str) -> RelayError:
    """The error about an instruction, with its place in the stream and the Relay call that it computes."""
    title = f"the instruction at byte {instruction.at:#x}, {instruction.name}, {why}"
    return RelayError(error("R0616", title, notes=[f"it is part of {program.place(instruction.at)}"]))


class Queues:
    """The units' instructions in order, and the tokens between the units; what a token says is the caller's."""

    def __init__(self, program: Program, instructions: Sequence[Instruction]) -> None:
        self.program = program
        self.queues: list[deque[Instruction]] = [deque() for _ in UNITS]
        for instruction in instructions:
            self.queues[unit_of(instruction)].append(instruction)
        self._tokens: dict[tuple[int, int], deque[Any]] = {(a, b): deque() for a in range(3) for b in range(3)}

    def needed(self, unit: int) -> list[Any] | None:
        """The tokens that a unit's next instruction takes; None if it has to wait, or there is none."""
        queue = self.queues[unit]
        tokens = [self._tokens[other, unit] for other in _neighbours(unit, queue[0], "pop")] if queue else []
        return [held[0] for held in tokens] if queue and all(tokens) else None

    def take(self, unit: int) -> Instruction:
        """Take a unit's next instruction and its tokens."""
        instruction = self.queues[unit].popleft()
        for other in _neighbours(unit, instruction, "pop"):
            self._tokens[other, unit].popleft()
        return instruction

    def give(self, unit: int, instruction: Instruction, token: Any) -> None:
        """Give the tokens of an instruction that has ended."""
        for other in _neighbours(unit, instruction, "push"):
            self._tokens[unit, other].append(token)

    def check_empty(self) -> None:
        """Raises `RelayError` (R0616) at a deadlock, naming the instructions that wait."""
        waiting = [(unit, queue[0]) for unit, queue in enumerate(self.queues) if queue]
        if waiting:
            unit, first = waiting[0]
            names = [UNITS[other] for other in _neighbours(unit, first, "pop") if not self._tokens[other, unit]]
            rest = [f"{UNITS[u]} at byte {i.at:#x}" for u, i in waiting[1:]]
            more = f"; so do the units {', '.join(rest)}" if rest else ""
            why = f"waits for a token of the unit {' and '.join(names)} that never comes: a deadlock{more}"
            raise fault(self.program, first, why)


class Order(Queues):
    """The walk: gives instructions in an order that tokens allow, and keeps the clocks."""

    def __init__(self, program: Program, instructions: Sequence[Instruction]) -> None:
        super().__init__(program, instructions)
        #: For each unit: how many instructions of each unit have ended for sure when its next one begins.
        self.clocks = np.zeros((3, 3), np.int64)

    def __iter__(self) -> Iterator[tuple[int, Instruction]]:
        """Each instruction with its unit. Raises `RelayError` (R0616) at a deadlock."""
        while ready := [(unit, tokens) for unit in range(len(UNITS)) if (tokens := self.needed(unit)) is not None]:
            unit, tokens = ready[0]
            np.max([self.clocks[unit], *tokens], axis=0, out=self.clocks[unit])
            instruction = self.take(unit)
            yield unit, instruction
            self.clocks[unit, unit] += 1
            self.give(unit, instruction, self.clocks[unit].copy())
        self.check_empty()


class Memory:
    """The stamps of a memory: by element, the last write and the last reads of each unit.

    A stamp counts a unit's instructions from 1. An element that was filled before the start has the stamp 0 of its writer,
    one that never was, -1.
    """

    def __init__(self, name: str, size: int, writer: int, clocks: np.ndarray) -> None:
        self.name, self.size, self.writer, self._clocks = name, size, writer, clocks
        self.written = np.full(size, -1, np.int64)
        self._read = np.zeros((3, size), np.int64)

    def read(self, unit: int, index: np.ndarray | slice) -> None:
        """Raises `Fault` for elements that are outside, never written, or perhaps not yet written."""
        stamps = self.written[self._inside(index)]
        if stamps.size == 0:
            return
        if stamps.min() < 0:
            raise Fault(f"reads {self.name} {self._first(index, self.written < 0)}, to which nothing was written")
        if unit != self.writer and stamps.max() > self._clocks[unit, self.writer]:
            late = self._first(index, self.written > self._clocks[unit, self.writer])
            raise Fault(f"reads {self.name} {late} perhaps before {UNITS[self.writer]} has written it: no token orders them")
        self._read[unit, index] = self._clocks[unit, unit] + 1

    def write(self, index: np.ndarray | slice, once: bool = False) -> None:
        """Raises `Fault` for elements that are outside, or perhaps still read. With `once` none is written twice."""
        index = self._inside(index)
        for unit in range(3):
            if unit != self.writer and self._read[unit, index].max(initial=0) > self._clocks[self.writer, unit]:
                early = self._first(index, self._read[unit] > self._clocks[self.writer, unit])
                raise Fault(f"writes {self.name} {early} perhaps before {UNITS[unit]} has read it: no token orders them")
        if once and self.written[index].max(initial=-1) >= 0:
            raise Fault(f"writes {self.name} {self._first(index, self.written >= 0)}, which holds a constant, an input or a result")
        self.written[index] = self._clocks[self.writer, self.writer] + 1

    def _inside(self, index: np.ndarray | slice) -> np.ndarray | slice:
        first, last = (index.start, index.stop - 1) if isinstance(index, slice) else (int(index.min()), int(index.max()))
        if last >= self.size or first < 0:
            raise Fault(f"uses {self.name} {max(last, first)}, which has {self.size} elements")
        return index

    def _first(self, index: np.ndarray | slice, wrong: np.ndarray) -> int:
        """The first element of an index for which something holds."""
        places = np.arange(self.size)[index].reshape(-1)
        return int(places[wrong[places]][0])


__all__ = ["COMPUTE", "LOAD", "STORE", "UNITS", "Fault", "Memory", "Order", "Queues", "fault", "unit_of"]
