"""A graph in Graphviz's language, and pictures that the program `dot` makes of such text."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.processes import program, run
from relaylang.viz.boxes import SIGNS, Box, cut
from relaylang.viz.graph import Graph
from relaylang.viz.scene import Plans
from relaylang.viz.svg import COLOURS, family_of

#: Longer labels are cut.
_MOST = 60
#: The colours of boxes, by family; others are grey.
_FILLS = {
    "product": "#cfe0f7",
    "pool": "#d3ecdc",
    "norm": "#e4dbf3",
    "element": "#f5d9da",
    "move": "#f1e6cf",
    "quantised": "#f7dfcc",
    "call": "#dfe4ea",
    "pill": "#e3efe6",
}


def as_dot(graph: Graph, expand: bool = False, nodes: bool = False) -> str:
    """The graph as a `digraph`; functions are clusters. `expand` draws the insides of boxes, too, in clusters.

    `nodes` draws parameters, constants and projections as nodes of their own.
    """
    plans = Plans(graph, expand, nodes)
    lines = [
        "digraph relay {",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=8, color="#5f6368"];',
    ]
    count = 0
    stack: list[tuple[int, str, str] | str] = [(g.id, "", g.label) for g in reversed(graph.roots())]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            lines.append(item)
            continue
        group, prefix, label = item
        count += 1
        lines += [f"  subgraph cluster_{count} {{", f"    label={quoted(label)};", '    color="#9aa0a6";']
        boxes = plans.sheets[group].boxes
        inside: list[tuple[int, str, str]] = []
        edges: list[str] = []
        for box in boxes:
            key = f"{prefix}{group}.{box.node}"
            if box.open:
                inside += [(i, f"{key}/", f"{box.title} {graph.groups[i].label}") for i in box.inner]
            else:
                fill = _FILLS.get(family_of(graph.nodes[box.node], box.pill), "#eceff1")
                node = graph.nodes[box.node]
                tip = quoted("\n".join([node.label, node.type, *(f"{k}={v}" for k, v in node.attrs)]))
                color = f', color="{COLOURS[box.change][0]}", penwidth=3' if box.change in SIGNS else ""
                lines.append(f'    {quoted(key)} [label={_label(graph, box)}, fillcolor="{fill}", tooltip={tip}{color}];')
            for edge in box.edges:
                start = _end(plans, boxes[edge.source], f"{prefix}{group}.")
                marks = [f"label={quoted(edge.label)}"] if edge.label else []
                marks += [f'color="{COLOURS[edge.change][0]}"'] if edge.change else []
                text = f" [{', '.join(marks)}]" if marks else ""
                goals = [f"{key}/{i}.{edge.inside}" for i in box.inner if edge.inside in plans.sheets[i].at]
                goals = (goals or [_end(plans, box, f"{prefix}{group}.")]) if box.open else [key]
                edges += [f"  {quoted(start)} -> {quoted(goal)}{text};" for goal in goals]
        stack += [*reversed(edges), "  }", *reversed(inside)]
    return "\n".join([*lines, "}", ""])


def _end(plans: Plans, box: Box, prefix: str) -> str:
    """The node from which a box's value comes: inside an unfolded one, that of its last part."""
    key = f"{prefix}{box.node}"
    while box.open:
        sheet = plans.sheets[box.inner[-1]]
        box = sheet.boxes[sheet.result]
        key = f"{key}/{sheet.group}.{box.node}"
    return key


def _label(graph: Graph, box: Box) -> str:
    rows = [box.title, *(f"{row.name}  {row.shape}".rstrip() for row in box.rows), graph.nodes[box.node].shape]
    return quoted("\n".join(cut(row, _MOST) for row in rows if row))


def quoted(text: str) -> str:
    """A text as a string of DOT."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def drawn(text: str, form: str, options: Sequence[str] = (), timeout: float = 120.0) -> bytes:
    """A picture of DOT text, of a format that Graphviz has. Raises `RelayError` where `dot` is missing or fails."""
    dot = program("dot")
    if dot is None:
        notes = [
            "apt install graphviz (Debian, Ubuntu), dnf install graphviz, brew install graphviz",
            "relay viz -o FILE.svg and -o FILE.html need nothing",
        ]
        raise RelayError(error("R0770", f"{form.upper()} is made by the program dot of Graphviz, which is not there", notes=notes))
    try:
        ended = run([dot, f"-T{form}", *options], text.encode(), timeout)
    except TimeoutError:
        notes = ["-o FILE.html shows large programs too"]
        raise RelayError(error("R0770", f"dot takes longer than {timeout:g} s", notes=notes)) from None
    if ended.status:
        says = ended.words().strip().splitlines()
        raise RelayError(error("R0770", f"dot failed: {says[0] if says else ended.status}"))
    return ended.out
