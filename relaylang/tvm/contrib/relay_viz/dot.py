"""Pictures of programs through Graphviz, or without it in relaylang's own layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relaylang.ops import OPS
from relaylang.runtime.files import atomic_write, together
from relaylang.runtime.processes import program
from relaylang.tvm.contrib.relay_viz.interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode
from relaylang.viz.dot import drawn, quoted
from relaylang.viz.families import family
from relaylang.viz.graph import REASON, Graph, Group, Node
from relaylang.viz.printed import printed
from relaylang.viz.svg import as_svg

DotVizParser = DefaultVizParser
Attributes = Mapping[str, str]
Look = Callable[[VizNode], Attributes]


def _listed(attributes: Attributes | None) -> str:
    return ", ".join(f"{key}={quoted(str(value))}" for key, value in (attributes or {}).items())


def _shape(node: VizNode) -> Attributes:
    return {"shape": "ellipse" if "Var" in node.type_name else "box"}


class DotGraph(VizGraph):
    """A function as a cluster of DOT text. The attributes are Graphviz's; `get_node_attr` gives those of one node."""

    def __init__(
        self,
        name: str,
        graph_attr: Attributes | None = None,
        node_attr: Attributes | None = None,
        edge_attr: Attributes | None = None,
        get_node_attr: Look | None = None,
    ) -> None:
        self._attributes = get_node_attr or _shape
        self.lines = [f"subgraph {quoted('cluster_' + name)} {{", f"label={quoted(name)};"]
        for kind, attributes in (("graph", graph_attr), ("node", node_attr), ("edge", edge_attr)):
            if attributes:
                self.lines.append(f"{kind} [{_listed(attributes)}];")
        self.nodes: dict[str, VizNode] = {}
        self.edges: list[VizEdge] = []

    def node(self, viz_node: VizNode) -> None:
        self.nodes[viz_node.identity] = viz_node
        label = {"label": f"{viz_node.type_name}\n{viz_node.detail}"}
        self.lines.append(f"{quoted(viz_node.identity)} [{_listed({**label, **self._attributes(viz_node)})}];")

    def edge(self, viz_edge: VizEdge) -> None:
        self.edges.append(viz_edge)
        self.lines.append(f"{quoted(viz_edge.start)} -> {quoted(viz_edge.end)};")


def _as_graph(graphs: Mapping[str, DotGraph]) -> Graph:
    """The graphs as those of a program's functions. The lines of a node stand in its box, as reasons do."""
    merged = Graph()
    for name, graph in graphs.items():
        group = Group(len(merged.groups), name, -1)
        merged.groups.append(group)
        numbers = {identity: len(merged.nodes) + i for i, identity in enumerate(graph.nodes)}
        for identity, viz_node in graph.nodes.items():
            title = viz_node.type_name
            op = OPS.get(title.removeprefix("Call "))
            node = Node(numbers[identity], "var" if "Var" in title else "op", title, group=group.id)
            node.family = family(op) if op is not None else ""
            node.notes = [(REASON, line) for line in viz_node.detail.splitlines()]
            merged.nodes.append(node)
        for start, end in graph.edges:
            if start in numbers and end in numbers:
                merged.nodes[numbers[end]].inputs.append(numbers[start])
        group.params = [n.id for n in merged.nodes if n.group == group.id and n.kind == "var"]
        group.result = merged.nodes[-1].id if graph.nodes else -1
    return merged


class DotPlotter(Plotter):
    """Draws graphs with Graphviz's program `dot`, to NAME.pdf or another `format` of `render_kwargs`.

    Where `dot` is missing, relaylang's own layout draws PDF, SVG and PNG, without the attributes of Graphviz.
    `cleanup=False` in `render_kwargs` keeps the DOT text in NAME. Raises `RelayError` where nothing here draws the format.
    """

    def __init__(
        self,
        graph_attr: Attributes | None = None,
        node_attr: Attributes | None = None,
        edge_attr: Attributes | None = None,
        get_node_attr: Look | None = None,
        render_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._given = (graph_attr, node_attr, edge_attr, get_node_attr)
        self._options = dict(render_kwargs or {})
        self._name_to_graph: dict[str, DotGraph] = {}

    def create_graph(self, name: str) -> DotGraph:
        graph = self._name_to_graph[name] = DotGraph(name, *self._given)
        return graph

    def render(self, filename: str | None = None) -> None:
        parts = [line for graph in self._name_to_graph.values() for line in (*graph.lines, "}")]
        text = "\n".join(["digraph {", *parts, "}", ""])
        name = filename or self._options.get("filename", "relay.gv")
        form = self._options.get("format", "pdf")
        with together():
            if not self._options.get("cleanup", True):
                atomic_write(name, text)
            atomic_write(f"{name}.{form}", self._drawn(text, form))

    def _drawn(self, text: str, form: str) -> bytes:
        if form not in ("pdf", "svg", "png") or program("dot") is not None:
            return drawn(text, form)
        svg = as_svg(_as_graph(self._name_to_graph), nodes=True)
        return svg.encode() if form == "svg" else printed(svg, form)
