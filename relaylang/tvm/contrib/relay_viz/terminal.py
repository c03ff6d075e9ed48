"""Pictures of programs as indented text: below each node stand its operands."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Call, Expr, Function, GlobalVar, If, Let
from relaylang.ops.record import Op
from relaylang.runtime.files import atomic_write
from relaylang.tvm.contrib.relay_viz.interface import (
    DefaultVizParser,
    Parsed,
    Plotter,
    VizEdge,
    VizGraph,
    VizNode,
    VizParser,
    into,
)


class TermVizParser(VizParser):
    """Shows operators and functions as operands of their calls, and `let` and `if` with their parts."""

    def __init__(self) -> None:
        self._others = DefaultVizParser()

    def get_node_edges(self, node: Expr, relay_param: dict[str, Any], node_to_id: dict[Expr, str]) -> Parsed:
        number = node_to_id[node]
        if isinstance(node, Call):
            return VizNode(number, "Call", ""), into(node, [node.op, *node.args], node_to_id)
        if isinstance(node, Let):
            return VizNode(number, "Let", "(var, val, body)"), into(node, [node.var, node.value, node.body], node_to_id)
        if isinstance(node, If):
            parts = [node.cond, node.true_branch, node.false_branch]
            return VizNode(number, "If", "(cond, true, false)"), into(node, parts, node_to_id)
        if isinstance(node, GlobalVar):
            return VizNode(number, "GlobalVar", node.name_hint), []
        if isinstance(node, Op):
            return VizNode(number, node.name, ""), []
        if isinstance(node, Function):
            params = ", ".join(f"%{p.name_hint}" for p in node.params)
            return VizNode(number, "Func", f"[{params}]"), into(node, [node.body], node_to_id)
        return self._others.get_node_edges(node, relay_param, node_to_id)


class TermGraph(VizGraph):
    """A function as text. What several nodes use is written out below the first one that uses it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[str, VizNode] = {}
        self._operands: dict[str, list[str]] = {}
        self._root = ""

    def node(self, viz_node: VizNode) -> None:
        self._nodes[viz_node.identity] = viz_node
        self._root = viz_node.identity

    def edge(self, viz_edge: VizEdge) -> None:
        self._operands.setdefault(viz_edge.end, []).append(viz_edge.start)

    def render(self) -> str:
        """The text."""
        if not self._nodes:
            return f"@{self._name}()"
        lines = [f"@{self._name}({self._says(self._root)})"]
        shown: set[str] = set()
        stack: list[tuple[str, str, bool]] = []

        def below(node: str, indent: str) -> None:
            if node not in shown:
                shown.add(node)
                operands = self._operands.get(node, [])
                stack.extend((o, indent, at == 0) for at, o in enumerate(reversed(operands)))

        below(self._root, "")
        while stack:
            node, indent, last = stack.pop()
            lines.append(f"{indent}{'`' if last else '|'}--{self._nodes[node].type_name} {self._says(node)}".rstrip())
            below(node, indent + ("   " if last else "|  "))
        return "\n".join(lines)

    def _says(self, node: str) -> str:
        return self._nodes[node].detail.replace("\n", ", ")


class TermPlotter(Plotter):
    """Prints graphs as text, or writes them to a file."""

    def __init__(self) -> None:
        self._name_to_graph: dict[str, TermGraph] = {}

    def create_graph(self, name: str) -> TermGraph:
        graph = self._name_to_graph[name] = TermGraph(name)
        return graph

    def render(self, filename: str | None) -> None:
        text = "\n".join(graph.render() for graph in self._name_to_graph.values())
        if filename is None:
            print(text)
        else:
            atomic_write(filename, text + "\n")
