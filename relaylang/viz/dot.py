"""A graph in Graphviz's language, and as SVG through the program `dot`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from relaylang.diagnostics import RelayError, error
from relaylang.viz.graph import Graph, Group, Node

_SHAPES = {
    "op": 'shape=box, style="rounded,filled", fillcolor="#e8f0fe"',
    "call": 'shape=box, style="rounded,filled", fillcolor="#fef7e0"',
    "fn": 'shape=box, style="rounded,filled", fillcolor="#fef7e0"',
    "var": 'shape=ellipse, style=filled, fillcolor="#e6f4ea"',
    "const": 'shape=ellipse, style=filled, fillcolor="#f1f3f4"',
}
_OTHER = 'shape=diamond, style=filled, fillcolor="#fce8e6"'
#: Longer labels are cut.
_MOST = 60

#: Nodes behind which dot is held to less work.
_MANY = 300


def as_dot(graph: Graph, expand: bool = False) -> str:
    """The graph as a `digraph`; functions are clusters. `expand` draws the bodies of called functions."""
    by_group: dict[int, list[Node]] = {}
    for node in graph.nodes:
        by_group.setdefault(node.group, []).append(node)
    inside: dict[int, list[Group]] = {}
    for group in graph.groups:
        inside.setdefault(group.parent, []).append(group)
    lines = ["digraph relay {", '  node [fontname="Helvetica", fontsize=10];', '  edge [fontsize=8, color="#5f6368"];']
    shown: set[int] = set()
    stack: list[Group | str] = list(reversed(graph.roots()))
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            lines.append(item)
            continue
        group = item
        lines += [f"  subgraph cluster_{group.id} {{", f"    label={quoted(group.label)};", '    color="#9aa0a6";']
        for node in by_group.get(group.id, []):
            if node.kind != "callee":
                shown.add(node.id)
                lines.append(f"    n{node.id} [label={_label(node)}, {_SHAPES.get(node.kind, _OTHER)}, tooltip={_tip(node)}];")
        stack.append("  }")
        needed = {n.inner for n in by_group.get(group.id, []) if n.inner >= 0 and (expand or n.kind == "fn")}
        stack += [g for g in reversed(inside.get(group.id, [])) if g.id in needed]
    for node in graph.nodes:
        if node.id not in shown:
            continue
        for number, i in enumerate(node.inputs):
            if i in shown:
                lines.append(f"  n{i} -> n{node.id}" + (f" [label={number}];" if len(node.inputs) > 1 else ";"))
        if node.inner >= 0 and graph.groups[node.inner].result in shown:
            lines.append(f"  n{graph.groups[node.inner].result} -> n{node.id} [style=dashed];")
    return "\n".join([*lines, "}", ""])


def _label(node: Node) -> str:
    return quoted("\n".join(s if len(s) <= _MOST else s[: _MOST - 1] + "…" for s in (node.label, node.type) if s))


def _tip(node: Node) -> str:
    return quoted("\n".join([node.label, node.type, *(f"{k}={v}" for k, v in node.attrs)]))


def quoted(text: str) -> str:
    """A text as a string of DOT."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def as_svg(graph: Graph, expand: bool = False, timeout: float = 120.0) -> str:
    """The graph as SVG. Raises `RelayError` where the program `dot` is missing or fails."""
    # dot looks for the best ranks for minutes where nodes are many; with these limits it stops early.
    limits = ["-Gnslimit=1", "-Gnslimit1=1", "-Gmclimit=0.3"] if len(graph.nodes) > _MANY else []
    return drawn(as_dot(graph, expand), "svg", limits, timeout).decode("utf-8")


def drawn(text: str, form: str, options: Sequence[str] = (), timeout: float = 120.0) -> bytes:
    """A picture of DOT text, of a format that Graphviz has. Raises `RelayError` where `dot` is missing or fails."""
    dot = shutil.which("dot")
    if dot is None:
        notes = ["apt install graphviz (Debian, Ubuntu), dnf install graphviz, brew install graphviz", "-o FILE.html needs nothing"]
        raise RelayError(error("R0770", f"{form.upper()} is made by the program dot of Graphviz, which is not there", notes=notes))
    try:
        done = subprocess.run([dot, f"-T{form}", *options], input=text.encode(), capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        notes = ["-o FILE.html shows large programs too"]
        raise RelayError(error("R0770", f"dot takes longer than {timeout:g} s", notes=notes)) from None
    if done.returncode:
        says = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RelayError(error("R0770", f"dot failed: {says[0] if says else done.returncode}"))
    return done.stdout
