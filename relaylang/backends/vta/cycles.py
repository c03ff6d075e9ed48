"""The cycle simulator: when each instruction of a stream begins and ends.

Each unit executes its instructions in order, and waits for tokens. GEMM computes one product of tiles a cycle. The ALU takes
one cycle for an operation with a number, two for one with a second tile, which it reads through the same port. A transfer
waits for the DRAM's latency, and then for its bytes; all units share the bandwidth. Instructions are fetched ahead.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.hazards import Order, neighbours
from relaylang.backends.vta.isa import KINDS, Instruction
from relaylang.backends.vta.program import Program
from relaylang.backends.vta.tiling import OVERHEAD

_MEMORIES = KINDS["LOAD"].fields[4].names


class Event(NamedTuple):
    """An instruction's cycles: from `begin` to before `end`. `moved` are bytes of DRAM, `gemm` cycles of products."""

    unit: str
    instruction: Instruction
    begin: int
    end: int
    moved: int
    gemm: int


def moved_bytes(i: Instruction, config: Config) -> int:
    """The bytes that a transfer moves."""
    return i["y_size"] * i["x_size"] * config.element_bytes[_MEMORIES[i["memory"]]]


def computing_cycles(i: Instruction) -> int:
    """The cycles of a GEMM or ALU instruction without what it takes to begin."""
    turns = (i["uop_end"] - i["uop_bgn"]) * i["iter_out"] * i["iter_in"]
    return turns * (2 if i.name == "ALU" and not i["use_imm"] and not i["reset"] else 1)


def count_cycles(program: Program) -> list[Event]:
    """The events of a program in the order of their beginnings. Raises `RelayError` (R0615, R0616 at a deadlock)."""
    instructions, config = program.instructions(), program.config
    for _ in Order(program, instructions):  # raises at a deadlock
        pass
    queues = Order(program, instructions).queues
    free, dram = [0, 0, 0], 0
    tokens: dict[tuple[int, int], deque[int]] = {(a, b): deque() for a in range(3) for b in range(3)}
    events: list[Event] = []
    while any(queues):
        ready = []
        for unit, queue in enumerate(queues):
            needed = [tokens[other, unit] for other in neighbours(unit, queue[0], "pop")] if queue else []
            if queue and all(needed):
                ready.append((max([free[unit], *[held[0] for held in needed]]), unit))
        begin, unit = min(ready)
        instruction = queues[unit].popleft()
        for other in neighbours(unit, instruction, "pop"):
            tokens[other, unit].popleft()
        end, moved, gemm = begin + 1, 0, 0
        if instruction.name in ("LOAD", "STORE"):
            moved = moved_bytes(instruction, config)
            if moved:
                first = max(begin, dram)
                dram = first + -(-moved // config.bandwidth)
                end = dram + config.latency
        elif instruction.name != "FINISH":
            cycles = computing_cycles(instruction)
            end = begin + OVERHEAD + cycles
            gemm = cycles if instruction.name == "GEMM" and not instruction["reset"] else 0
        free[unit] = end
        for other in neighbours(unit, instruction, "push"):
            tokens[unit, other].append(end)
        name = ("load", instruction.name.lower() if instruction.name in ("GEMM", "ALU") else "compute", "store")[unit]
        events.append(Event(name, instruction, begin, end, moved, gemm))
    return events


__all__ = ["Event", "computing_cycles", "count_cycles", "moved_bytes"]
