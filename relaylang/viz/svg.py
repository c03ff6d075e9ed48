"""A graph as an SVG picture. No other program is needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from relaylang.viz.boxes import HEAD, LINE, Box, cut
from relaylang.viz.graph import Graph, Node
from relaylang.viz.legend import legend, targets_of
from relaylang.viz.scene import MOST_LETTERS, Label, Line, Placed, Plans, Scene, scene_of

#: How round an edge's corners are, in pixels.
_ROUND = 5.0
_CONTROL = frozenset({"if", "match", "fn", "repeat"})


#: The colours by name: in light, in dark.
COLOURS = {
    "back": ("#ffffff", "#1b1c1f"),
    "fore": ("#202124", "#e8eaed"),
    "soft": ("#5f6368", "#a8adb4"),
    "line": ("#8a9099", "#7d838c"),
    "rim": ("#b8bec6", "#4a4e55"),
    "panel": ("#f8f9fa", "#26282c"),
    "mark": ("#1a73e8", "#8ab4f8"),
    "out": ("#b3470b", "#f5a25d"),
    "inside": ("#f4f6f8", "#212327"),
    "body": ("#ffffff", "#2b2d31"),
    "product": ("#3b6fb6", "#33588c"),
    "pool": ("#397d54", "#2f6a48"),
    "norm": ("#7a5aa6", "#5e4785"),
    "element": ("#a5474f", "#84383f"),
    "move": ("#8a6d3b", "#6d5730"),
    "quantised": ("#b0602a", "#8a4b22"),
    "data": ("#4f7a85", "#3d616a"),
    "control": ("#5b6470", "#474e58"),
    "call": ("#56657a", "#434f61"),
    "other": ("#6b6b6b", "#525252"),
    "var": ("#e3efe6", "#27402f"),
    "added": ("#1a7f37", "#34a853"),
    "removed": ("#d93025", "#f28b82"),
    "changed": ("#9a6700", "#fdd663"),
    "target0": ("#0b7c7c", "#0b7c7c"),
    "target1": ("#b13a82", "#a83a7c"),
    "target2": ("#557f26", "#557f26"),
    "target3": ("#5351cf", "#5f5dd0"),
    "same": ("#70767e", "#4d5158"),
    "heat1": ("#fff6d6", "#3a3320"),
    "heat2": ("#ffe6a1", "#57441c"),
    "heat3": ("#ffcb73", "#7a5215"),
    "heat4": ("#ff9f56", "#8f4a0c"),
    "heat5": ("#f9633f", "#b03312"),
}


def rules() -> str:
    """The style of boxes and lines, which names colours."""
    return files(str(__package__)).joinpath("style.css").read_text(encoding="utf-8")


def colours(dark: bool) -> str:
    """The definitions of the colours that `rules` names."""
    return " ".join(f"--{name}: {both[dark]};" for name, both in COLOURS.items())


def _resolved(dark: bool) -> str:
    """The rules with colours in place of names, which not every viewer knows."""
    return re.sub(r"var\(--(\w+)\)", lambda m: COLOURS[m[1]][dark], rules())


def as_svg(graph: Graph, expand: bool = False, nodes: bool = False) -> str:
    """The graph's functions, one below the other. `expand` unfolds functions and branches."""
    plans = Plans(graph, expand, nodes)
    return drawn(graph, plans, scene_of(plans))


def drawn(graph: Graph, plans: Plans, scene: Scene) -> str:
    """A scene as a picture of its own, with a legend where colours need one."""
    keys = _legend(legend(graph, plans.sheets), scene.height)
    width, height = max(scene.width, 200.0 if keys else 0.0), scene.height + LINE * 1.4 * len(keys)
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<style>{_resolved(False)}@media (prefers-color-scheme: dark) {{ {_resolved(True)} }}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
    ]
    targets = targets_of(plans.sheets)
    out += [_box(graph, p, targets) for p in scene.boxes if p.open]
    out += [_line(line) for line in scene.lines]
    out += [_box(graph, p, targets) for p in scene.boxes if not p.open]
    out += [_label(label) for label in scene.labels if label.text]
    return "\n".join([*out, *keys, "</svg>", ""])


def _legend(entries: Sequence[tuple[str, str]], top: float) -> list[str]:
    lines = []
    for number, (style, text) in enumerate(entries):
        y = top + LINE * 1.4 * number
        lines.append(
            f'<g class="box key {style}" transform="translate(14,{y:.1f})"><rect class="body" width="24" height="14" rx="3"/>'
            f'<text class="row" x="32" y="11">{escape(text)}</text></g>'
        )
    return lines


def family_of(node: Node, pill: bool) -> str:
    """The class by which a box is coloured: its operators' family."""
    if pill:
        return "pill"
    return node.family or ("control" if node.kind in _CONTROL else "call" if node.kind == "call" else "data")


def classes_of(graph: Graph, box: Box) -> list[str]:
    """The classes of a box, but for its target. Boxes that stay as they are, or on the host, are grey among others."""
    same = not box.pill and ((graph.compared and not box.change) or (graph.partitioned and not box.target))
    classes = ["box", "same" if same else family_of(graph.nodes[box.node], box.pill)]
    return classes + [box.change] * bool(box.change) + [f"heat{box.heat}"] * bool(box.heat)


def _box(graph: Graph, placed: Placed, targets: list[str]) -> str:
    box, w, h = placed.box, placed.w, placed.h
    classes = [*classes_of(graph, box), *["open"] * placed.open, *["result"] * placed.result]
    if box.target:
        classes.append(f"target{targets.index(box.target) % 4}")
    parts = [f'<g class="{" ".join(classes)}" transform="translate({placed.x:.1f},{placed.y:.1f})">']
    node = graph.nodes[box.node]
    tip = "\n".join(
        [
            node.label,
            node.type,
            *([f"target: {box.target}"] if box.target else []),
            *(f"{k}={v}" for k, v in node.attrs),
            *(f"{k}: {v}" for k, v in node.notes),
        ]
    )
    parts.append(f"<title>{escape(tip)}</title>")
    parts.append(f'<rect class="body" width="{w:.1f}" height="{h:.1f}" rx="{HEAD / 2 if box.pill else 5:g}"/>')
    if not box.pill:
        rest = f"V{HEAD:g}H0V5" if box.rows or placed.open else f"V{h - 5:.1f}a5,5 0 0 1 -5,5H5a5,5 0 0 1 -5,-5V5"
        parts.append(f'<path class="head" d="M0,5a5,5 0 0 1 5,-5H{w - 5:.1f}a5,5 0 0 1 5,5{rest}Z"/>')
    mark = "⊟ " if placed.open else "⊞ " if box.inner else ""
    where = 'x="8"' if placed.open else f'x="{w / 2:.1f}" text-anchor="middle"'
    parts.append(f'<text class="title" {where} y="16">{mark}{escape(box.title)}</text>')
    for i, row in enumerate(box.rows if not placed.open else ()):
        y = HEAD + LINE * (i + 1) - 3
        parts.append(f'<text class="{f"row {row.style}".rstrip()}" x="8" y="{y:g}">{escape(row.name)}</text>')
        parts.append(f'<text class="size" x="{w - 8:.1f}" y="{y:g}">{escape(row.shape)}</text>' if row.shape else "")
    return "".join([*parts, "</g>"])


def _label(label: Label) -> str:
    return f'<text class="{label.kind}" x="{label.x:.1f}" y="{label.y:.1f}">{escape(cut(label.text, MOST_LETTERS))}</text>'


def _line(line: Line) -> str:
    x, y = line.points[-1]
    change = f" {line.change}".rstrip()
    parts = [f'<path class="line{change}" d="{rounded(line.points, line.under)}"/>']
    if line.end:
        parts.append(f'<path class="tip{change}" d="M{x:.1f},{y:.1f}l-3.5,-7h7z"/>')
    return "".join(parts)


def rounded(points: Sequence[tuple[float, float]], under: float = 0.0) -> str:
    """The path through four points of which the middle two have one height, with round corners.

    `under` is the upper edge of a box's head that hides a part of the end; 0 for none.
    """
    (x0, y0), (_, track), (x1, _), (_, y1) = points
    last = f"V{under:.1f}M{x1:.1f},{under + HEAD:.1f}V{y1:.1f}" if under else f"V{y1:.1f}"
    y1 = under or y1
    bend = min(_ROUND, abs(x1 - x0) / 2, abs(track - y0), abs(y1 - track))
    if bend < 0.5:
        return f"M{x0:.1f},{y0:.1f}V{track:.1f}H{x1:.1f}{last}"
    to = bend if x1 > x0 else -bend
    down = bend if y1 >= track else -bend
    drop = bend if track >= y0 else -bend
    return f"M{x0:.1f},{y0:.1f}V{track - drop:.1f}q0,{drop:.1f} {to:.1f},{drop:.1f}H{x1 - to:.1f}q{to:.1f},0 {to:.1f},{down:.1f}{last}"
