"""The cycle simulator, and where a program's cycles go: a table of layers, a picture of the units, a trace for Chrome's viewer.

Each unit executes its instructions in order, and waits for tokens. GEMM computes one product of tiles a cycle. The ALU takes
one cycle for an operation with a number, two for one with a second tile, which it reads through the same port. Both belong to
the compute unit, which executes one instruction at a time. A transfer waits for the DRAM's latency, and then for its bytes;
all units share the bandwidth. Instructions are fetched ahead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.hazards import Queues
from relaylang.backends.vta.isa import MEMORIES, Instruction
from relaylang.backends.vta.program import Program
from relaylang.backends.vta.tiling import OVERHEAD
from relaylang.runtime.profile import columns
from relaylang.runtime.timeline import Span, chrome_trace, picture

#: The rows of the picture: units of the hardware. `compute` are loads of the compute unit.
UNITS = {"load": "#4e79a7", "compute": "#76b7b2", "gemm": "#e15759", "alu": "#f28e2b", "store": "#59a14f"}


class Event(NamedTuple):
    """An instruction's cycles: from `begin` to before `end`. `moved` are bytes of DRAM, `turns` cycles of tiles."""

    unit: str
    instruction: Instruction
    begin: int
    end: int
    moved: int
    turns: int


def event_of(i: Instruction, unit: int, config: Config) -> Event:
    """An instruction as the first one of a program."""
    if i.name in ("GEMM", "ALU"):
        turns = (i["uop_end"] - i["uop_bgn"]) * i["iter_out"] * i["iter_in"]
        turns *= 2 if i.name == "ALU" and not i["use_imm"] else 1
        return Event(i.name.lower(), i, 0, OVERHEAD + turns, 0, turns)
    moved = i["y_size"] * i["x_size"] * config.element_bytes[MEMORIES[i["memory"]]] if i.name != "FINISH" else 0
    end = -(-moved // config.bandwidth) + config.latency if moved else 1
    return Event(("load", "compute", "store")[unit], i, 0, end, moved, 0)


def count_cycles(program: Program) -> list[Event]:
    """The events of a program in the order in which units are free for them. Raises `RelayError` (R0615, R0616 at a deadlock)."""
    queues, config = Queues(program, program.instructions()), program.config
    free, dram, events = [0, 0, 0], 0, list[Event]()
    while ready := [(max(free[unit], *tokens, 0), unit) for unit in range(3) if (tokens := queues.needed(unit)) is not None]:
        begin, unit = min(ready)
        instruction = queues.take(unit)
        event = event_of(instruction, unit, config)
        begin = max(begin, dram) if event.moved else begin
        free[unit] = end = begin + event.end
        dram = end - config.latency if event.moved else dram
        queues.give(unit, instruction, end)
        events.append(event._replace(begin=begin, end=end))
    queues.check_empty()
    return events


def _least_bytes(events: Sequence[Event], config: Config) -> int:
    """The bytes of DRAM that transfers use, each counted once."""
    rows = []
    for _, i, _, _, moved, _ in events:
        if moved:
            size = config.element_bytes[MEMORIES[i["memory"]]]
            first = (i["dram"] + np.arange(i["y_size"], dtype=np.int64) * i["x_stride"]) * size
            rows.append(np.stack([first, first + i["x_size"] * size]))
    if not rows:
        return 0
    intervals = np.concatenate(rows, axis=1)
    first, end = intervals[:, np.argsort(intervals[0], kind="stable")]
    before = np.maximum.accumulate(np.concatenate([[0], end[:-1]]))
    return int(np.maximum(end - np.maximum(first, before), 0).sum())


@dataclass(frozen=True)
class LayerCost:
    """A layer's cycles: all, those of products and of the ALU, those that units are busy, and the bytes that it moves.

    `bound` is what no program can beat: the greater of the cycles of products and of the bytes, each moved once at full
    bandwidth. `limit` counts what the ALU does, too, which shares the compute unit with products.
    """

    region: str
    call: str
    cycles: int
    gemm: int
    alu: int
    moved: int
    bound: int
    limit: int
    busy: Mapping[str, int]

    @property
    def reached(self) -> float:
        """The bound divided by the cycles: 1 is as fast as can be."""
        return self.bound / self.cycles if self.cycles else 0.0

    def row(self) -> tuple[str, ...]:
        """The cells of the table."""
        per = max(self.cycles, 1)
        bounds = [text for least in (self.bound, self.limit) for text in (f"{least:,}", f"{least / per:.2f}")]
        counts = [f"{count:,}" for count in (self.cycles, self.gemm, self.alu, self.moved)]
        return (self.call, *counts, *bounds, *[f"{100 * self.busy[unit] / per:.0f}%" for unit in UNITS])


def _cost(region: str, call: str, begin: int, events: Sequence[Event], config: Config) -> LayerCost:
    products = [event for event in events if event.unit == "gemm" and not event.instruction["reset"]]
    gemm = sum(event.turns for event in products)
    alu = sum(event.turns for event in events) - gemm
    transfers = -(-_least_bytes(events, config) // config.bandwidth)
    busy = {unit: sum(event.end - event.begin for event in events if event.unit == unit) for unit in UNITS}
    cycles, moved = max(event.end for event in events) - begin, sum(event.moved for event in events)
    return LayerCost(region, call, max(cycles, 0), gemm, alu, moved, max(gemm, transfers), max(gemm + alu, transfers), busy)


class CycleProfile:
    """The cycles of regions that run one after the other. `str` is the table, `layers` its rows."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self.spans: list[Span] = []
        self.layers: list[LayerCost] = []
        self.cycles = 0
        for region, program in programs.items():
            layers: dict[int, list[Event]] = {}
            events, before = count_cycles(program), 0
            for event in events:
                layers.setdefault(program.layer(event.instruction.at), []).append(event)
                begin, end, at = event.begin + self.cycles, event.end + self.cycles, event.instruction.at
                facts = {"at": f"{at:#x}", "call": program.place(at), "bytes": event.moved}
                self.spans.append(Span(event.instruction.name, event.unit, begin, end, region, facts))
            for _, mine in sorted(layers.items()):
                self.layers.append(_cost(region, program.place(mine[0].instruction.at), before, mine, program.config))
                before = max(before, *[event.end for event in mine])
            self.cycles += before

    def table(self) -> str:
        """The table as text: a row for each layer in order, and their sum."""
        head = ("layer", "cycles", "gemm", "alu", "bytes", "bound", "of it", "limit", "of it", *[f"{unit} busy" for unit in UNITS])
        sums = {
            name: sum(getattr(cost, name) for cost in self.layers) for name in ("cycles", "gemm", "alu", "moved", "bound", "limit")
        }
        busy = {unit: sum(cost.busy[unit] for cost in self.layers) for unit in UNITS}
        rows = [*self.layers, LayerCost("", "all", **sums, busy=busy)]
        return "\n".join(columns([head, *[cost.row() for cost in rows]], {0}))

    __str__ = table

    def json(self) -> str:
        """The rows as JSON."""
        return json.dumps({"cycles": self.cycles, "layers": [{**asdict(c), "reached": c.reached} for c in self.layers]}, indent=1)

    def chrome_trace(self) -> str:
        """The instructions for `chrome://tracing` or Perfetto: a row for each unit, one cycle as one microsecond."""
        return chrome_trace(self.spans, list(UNITS))

    def svg(self) -> str:
        """A picture: for each unit the share of its time that it is busy, over the cycles, with the layers below."""
        parts = [(f"{cost.call}: {cost.cycles:,} cycles", cost.cycles) for cost in self.layers]
        return picture(f"{self.cycles:,} cycles", self.spans, UNITS, parts, self.cycles)


__all__ = ["UNITS", "CycleProfile", "Event", "LayerCost", "count_cycles"]
