"""A graph as one HTML page that needs nothing else: pan, zoom, search, folding, and what a click shows."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from relaylang.viz.boxes import EMPTY
from relaylang.viz.difference import changes_text
from relaylang.viz.graph import Graph, Node
from relaylang.viz.legend import legend, targets_of
from relaylang.viz.scene import Plan, Plans, lane_changes
from relaylang.viz.svg import classes_of, colours, rules

#: The page's programs, in their order.
_SCRIPTS = ("layout.js", "channels.js", "page.js", "panel.js", "about.js", "keys.js")

#: The bars of a histogram, and how many numbers of a constant are counted at most.
_BARS = 24
_MOST_COUNTED = 1 << 20


def as_html(graph: Graph, title: str = "relay", nodes: bool = False) -> str:
    """The page. It loads nothing: its own policy forbids it."""
    return as_pages([("", graph)], title, nodes)


def as_pages(steps: Sequence[tuple[str, Graph]], title: str = "relay", nodes: bool = False) -> str:
    """A page that steps through graphs, each with its name."""
    data = json.dumps([_step(name, graph, nodes) for name, graph in steps], ensure_ascii=False, separators=(",", ":"))
    # a text in the program must not end the script
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {"TITLE": html.escape(title), "LIGHT": colours(False), "DARK": colours(True), "RULES": rules()}
    parts |= {"SCRIPT": "\n".join(map(_file, _SCRIPTS)), "DATA": data, "EMPTY": EMPTY}
    return re.sub("__([A-Z]+)__", lambda m: parts[m[1]], _file("page.html"))


def _file(name: str) -> str:
    return files(str(__package__)).joinpath(name).read_text(encoding="utf-8")


def _step(name: str, graph: Graph, nodes: bool) -> dict[str, Any]:
    plans = Plans(graph, nodes=nodes)
    shown = {b.node for s in plans.sheets for b in s.boxes} | {r.node for s in plans.sheets for b in s.boxes for r in b.rows}
    return {
        "name": name,
        "says": changes_text(graph) if graph.compared else "",
        "nodes": [_node(n) if n.id in shown else 0 for n in graph.nodes],
        "groups": [[g.label, g.kind, g.parent, g.attrs, g.change] for g in graph.groups],
        "sheets": [_sheet(graph, plans.plans[g.id]) for g in graph.groups],
        "targets": targets_of(plans.sheets),
        "legend": legend(graph, plans.sheets),
    }


def _node(node: Node) -> list[Any]:
    return [
        node.kind,
        node.label,
        node.type,
        node.shape,
        node.attrs,
        node.hidden,
        node.name,
        node.place,
        node.line,
        _statistics(node.value) if node.value is not None else 0,
        node.notes,
        node.seconds,
    ]


def _sheet(graph: Graph, plan: Plan) -> dict[str, Any]:
    drawn = plan.layout
    boxes = [
        [
            b.node,
            b.title,
            [[r.name, r.shape, r.node, r.style] for r in b.rows],
            b.pill,
            b.inner,
            b.target,
            " ".join(classes_of(graph, b)),
            b.change,
            b.w,
            b.h,
            [[e.source, e.label, e.inside, e.change] for e in b.edges],
        ]
        for b in plan.sheet.boxes
    ]
    return {
        "boxes": boxes,
        "ranks": drawn.ranks,
        "xs": drawn.xs,
        "users": drawn.users,
        "lanes": drawn.lanes,
        "sides": drawn.sides,
        "width": drawn.width,
        "result": plan.sheet.result,
        "changes": lane_changes(plan.sheet) if graph.compared else [],
    }


def _statistics(value: np.ndarray) -> dict[str, Any] | int:
    """Facts about a constant's numbers, with a histogram; 0 where there are none."""
    if value.size < 2 or (value.dtype.kind not in "iufb" and value.dtype.name != "bfloat16"):
        return 0
    flat = value.reshape(-1)
    step = -(-flat.size // _MOST_COUNTED)
    counted = flat[::step].astype(np.float64)
    finite = counted[np.isfinite(counted)]
    if not finite.size:
        return 0
    low, high = float(finite.min()), float(finite.max())
    # sums and differences of the largest numbers would overflow
    unit = max(abs(low), abs(high)) or 1.0
    scaled = finite / unit
    part = (scaled - low / unit) / ((high / unit - low / unit) or 1.0)
    bars = np.bincount(np.minimum(part * _BARS, _BARS - 1).astype(int), minlength=_BARS).tolist()
    numbers = {"least": low, "greatest": high, "average": float(scaled.mean()) * unit, "deviation": float(scaled.std()) * unit}
    numbers |= {"zeros": float((finite == 0).mean()), "not finite": counted.size - finite.size}
    return {"numbers": {k: f"{v:.6g}" for k, v in numbers.items()}, "bars": bars, "counted": counted.size, "of": flat.size}
