"""A graph as one HTML page that needs nothing else: pan, zoom, search, folding, and what a click shows."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

import numpy as np

from relaylang.viz.graph import Graph, Node
from relaylang.viz.scene import Plan, Plans
from relaylang.viz.svg import colours, family_of, rules

#: The bars of a histogram, and how many numbers of a constant are counted at most.
_BARS = 24
_MOST_COUNTED = 1 << 20


def as_html(graph: Graph, title: str = "relay", nodes: bool = False) -> str:
    """The page. It loads nothing: its own policy forbids it."""
    plans = Plans(graph, nodes=nodes)
    data = json.dumps(_data(graph, plans), ensure_ascii=False, separators=(",", ":"))
    # a text in the program must not end the script
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {"TITLE": html.escape(title), "LIGHT": colours(False), "DARK": colours(True), "RULES": rules()}
    parts |= {"SCRIPT": _file("page.js"), "DATA": data}
    page = _file("page.html")
    for name, text in parts.items():
        page = page.replace(f"__{name}__", text)
    return page


def _file(name: str) -> str:
    return files(str(__package__)).joinpath(name).read_text(encoding="utf-8")


def _data(graph: Graph, plans: Plans) -> dict[str, Any]:
    shown = {b.node for s in plans.sheets for b in s.boxes} | {n for s in plans.sheets for b in s.boxes for _, _, n in b.rows}
    targets = sorted({b.target for s in plans.sheets for b in s.boxes} - {""})
    return {
        "nodes": [_node(n) if n.id in shown else 0 for n in graph.nodes],
        "groups": [[g.label, g.kind, g.parent, g.attrs] for g in graph.groups],
        "sheets": [_sheet(graph, plans.plans[g.id]) for g in graph.groups],
        "targets": targets,
    }


def _node(node: Node) -> list[Any]:
    return [
        node.kind, node.label, node.type, node.shape, node.attrs, node.hidden, node.name, node.place, node.line,
        _statistics(node.value) if node.value is not None else 0,
    ]  # fmt: skip


def _sheet(graph: Graph, plan: Plan) -> dict[str, Any]:
    made = plan.layout
    boxes = [
        [b.node, b.title, b.rows, b.pill, b.inner, b.target, family_of(graph.nodes[b.node], b.pill), b.w, b.h,
         [[e.source, e.label, e.inside] for e in b.edges]]
        for b in plan.sheet.boxes
    ]  # fmt: skip
    return {
        "boxes": boxes, "ranks": made.ranks, "xs": made.xs, "users": made.users, "lanes": made.lanes, "sides": made.sides,
        "width": made.width, "result": plan.sheet.result,
    }  # fmt: skip


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
    bars = [int(n) for n in np.histogram(finite, _BARS, (low, high if high > low else low + 1))[0]]
    numbers = {"least": low, "greatest": high, "average": float(finite.mean()), "deviation": float(finite.std())}
    numbers |= {"zeros": float((finite == 0).mean()), "not finite": counted.size - finite.size}
    return {"numbers": {k: f"{v:.6g}" for k, v in numbers.items()}, "bars": bars, "counted": counted.size, "of": flat.size}
