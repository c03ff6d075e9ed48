"""Where a program's cycles go: a table of layers, a picture of the units over time, and a trace for Chrome's viewer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from relaylang.backends.vta.cycles import Event, count_cycles
from relaylang.backends.vta.program import Program
from relaylang.backends.vta.tiling import OVERHEAD
from relaylang.runtime.profile import columns

#: The rows of the picture: units of the hardware. `compute` are loads of the compute unit.
UNITS = ("load", "compute", "gemm", "alu", "store")
_COLOURS = {"load": "#4e79a7", "compute": "#76b7b2", "gemm": "#e15759", "alu": "#f28e2b", "store": "#59a14f"}
_WIDTH, _ROW, _LEFT, _BARS = 960, 36, 80, 240


@dataclass(frozen=True)
class LayerCost:
    """A layer's cycles: all, those of products, those that units are busy, and the bytes that it moves.

    `bound` is what no schedule can beat: the greater of the cycles of products and of the bytes at full bandwidth. `limit`
    counts the ALU, too, which shares the compute unit with products.
    """

    region: str
    call: str
    cycles: int
    gemm: int
    moved: int
    bound: int
    limit: int
    busy: Mapping[str, int]

    @property
    def reached(self) -> float:
        """The bound divided by the cycles: 1 is as fast as can be."""
        return self.bound / self.cycles if self.cycles else 0.0


class CycleProfile:
    """The cycles of regions that run one after the other. `str` is the table, `layers` its rows."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self.events: list[tuple[str, str, Event]] = []
        self.layers: list[LayerCost] = []
        self.cycles = 0
        for region, program in programs.items():
            events = count_cycles(program)
            self._add(region, program, events)
            self.cycles += max([event.end for event in events], default=0)

    def _add(self, region: str, program: Program, events: list[Event]) -> None:
        layers: dict[int, list[Event]] = {}
        for event in events:
            layers.setdefault(program.layer(event.instruction.at), []).append(event)
            shifted = event._replace(begin=event.begin + self.cycles, end=event.end + self.cycles)
            self.events.append((region, program.place(event.instruction.at), shifted))
        before = 0
        for _, mine in sorted(layers.items()):
            call = program.place(mine[0].instruction.at)
            end = max(event.end for event in mine)
            gemm, moved = sum(event.gemm for event in mine), sum(event.moved for event in mine)
            busy = {unit: sum(e.end - e.begin for e in mine if e.unit == unit) for unit in UNITS}
            least = max(gemm, -(-moved // program.config.bandwidth))
            computing = sum(event.end - event.begin - OVERHEAD for event in mine if event.unit in ("gemm", "alu"))
            self.layers.append(LayerCost(region, call, max(end - before, 0), gemm, moved, least, max(least, computing), busy))
            before = max(before, end)

    def table(self) -> str:
        """The table as text: a row for each layer in order, and their sum."""
        rows = [("layer", "cycles", "gemm", "bytes", "bound", "of it", "limit", "of it", *[f"{unit} busy" for unit in UNITS])]
        for cost in self.layers:
            rows.append(self._row(cost.call, cost.cycles, cost.gemm, cost.moved, cost.bound, cost.limit, cost.busy))
        total = {unit: sum(cost.busy[unit] for cost in self.layers) for unit in UNITS}
        gemm, moved, bound, limit = (sum(getattr(cost, name) for cost in self.layers) for name in ("gemm", "moved", "bound", "limit"))
        rows.append(self._row("all", self.cycles, gemm, moved, bound, limit, total))
        return "\n".join(columns(rows, {0}))

    __str__ = table

    def _row(self, name: str, cycles: int, gemm: int, moved: int, bound: int, limit: int, busy: Mapping[str, int]) -> tuple[str, ...]:
        of = max(cycles, 1)
        shares = [f"{100 * busy[unit] / of:.0f}%" for unit in UNITS]
        bounds = [text for least in (bound, limit) for text in (f"{least:,}", f"{least / of:.2f}")]
        return (name, f"{cycles:,}", f"{gemm:,}", f"{moved:,}", *bounds, *shares)

    def json(self) -> str:
        """The rows as JSON."""
        return json.dumps({"cycles": self.cycles, "layers": [{**asdict(c), "reached": c.reached} for c in self.layers]}, indent=1)

    def chrome_trace(self) -> str:
        """The instructions for `chrome://tracing` or Perfetto: a row for each unit, one cycle as one microsecond."""
        names: list[dict[str, Any]] = [
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": unit}} for number, unit in enumerate(UNITS)
        ]
        events = [
            {
                "name": e.instruction.name,
                "cat": region,
                "ph": "X",
                "ts": e.begin,
                "dur": e.end - e.begin,
                "pid": 1,
                "tid": UNITS.index(e.unit),
                "args": {"at": f"{e.instruction.at:#x}", "call": call, "bytes": e.moved},
            }
            for region, call, e in self.events
        ]
        return json.dumps({"traceEvents": [*names, *events], "displayTimeUnit": "ms"})

    def svg(self) -> str:
        """A picture: for each unit the share of its time that it is busy, over the cycles, with the layers below."""
        per = max(self.cycles / _BARS, 1)
        busy = {unit: [0.0] * _BARS for unit in UNITS}
        for _, _, event in self.events:
            first, last = int(event.begin / per), min(int(event.end / per), _BARS - 1)
            for bar in range(first, last + 1):
                busy[event.unit][bar] += max(min(event.end, (bar + 1) * per) - max(event.begin, bar * per), 0) / per
        height = (len(UNITS) + 1) * _ROW + 8
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH}" height="{height}" font-family="sans-serif">',
            f"<title>{self.cycles:,} cycles</title>",
        ]
        for number, unit in enumerate(UNITS):
            bottom = (number + 1) * _ROW
            parts.append(f'<text x="4" y="{bottom - 8}" font-size="12">{unit}</text>')
            for bar, share in enumerate(busy[unit]):
                if share > 0.005:
                    tall, x, wide = min(share, 1) * (_ROW - 6), _LEFT + bar * _WIDTH / _BARS, _WIDTH / _BARS
                    box = f'x="{x:.1f}" y="{bottom - tall:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
                    parts.append(f'<rect {box} fill="{_COLOURS[unit]}"/>')
        parts += self._layer_boxes((len(UNITS) + 1) * _ROW)
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _layer_boxes(self, bottom: int) -> list[str]:
        """The row of the layers, each with its text as a tooltip."""
        parts, at = [], 0
        for number, cost in enumerate(self.layers):
            x, wide = _LEFT + at * _WIDTH / max(self.cycles, 1), cost.cycles * _WIDTH / max(self.cycles, 1)
            box = f'x="{x:.1f}" y="{bottom - _ROW + 10}" width="{wide:.1f}" height="{_ROW - 12}"'
            shade = "#dddddd" if number % 2 else "#bbbbbb"
            parts.append(f'<rect {box} fill="{shade}"><title>{escape(cost.call)}: {cost.cycles:,} cycles</title></rect>')
            at += cost.cycles
        return parts


__all__ = ["UNITS", "CycleProfile", "LayerCost"]
