"""The meaning of a drawing's colours: changes, targets, times."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.viz.boxes import HEATS, Sheet, time_text
from relaylang.viz.graph import Graph

_CHANGES = {"added": "added", "removed": "removed", "changed": "changed", "inside": "changes inside"}


def targets_of(sheets: Sequence[Sheet]) -> list[str]:
    """The targets of boxes, by name; their order gives the colours."""
    return sorted({b.target for s in sheets for b in s.boxes} - {""})


def legend(graph: Graph, sheets: Sequence[Sheet]) -> list[tuple[str, str]]:
    """The classes of marked boxes with their meanings, for those that the drawing has."""
    entries = [(f"target{i % 4}", name) for i, name in enumerate(targets_of(sheets))]
    if graph.partitioned:
        entries.append(("same", "host"))
    if graph.compared:
        there = {b.change for s in sheets for b in s.boxes}
        entries += [(change, text) for change, text in _CHANGES.items() if change in there]
    longest = max((n.seconds for n in graph.nodes), default=0.0)
    if longest:
        limits = [longest / 2 ** (HEATS - heat + 1) for heat in range(1, HEATS + 1)]
        entries += [(f"heat{heat}", f"≥ {time_text(limits[heat - 1])}") for heat in range(HEATS, 1, -1)]
        entries.append(("heat1", f"< {time_text(limits[1])}"))
    return entries


__all__ = ["legend", "targets_of"]
