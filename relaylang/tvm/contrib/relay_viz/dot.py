"""Pictures of programs through Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relaylang.runtime.files import atomic_write, together
from relaylang.tvm.contrib.relay_viz.interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode
from relaylang.viz.dot import drawn, quoted

DotVizParser = DefaultVizParser
Attributes = Mapping[str, str]
Look = Callable[[VizNode], Attributes]


def _listed(attributes: Attributes | None) -> str:
    return ", ".join(f"{key}={quoted(str(value))}" for key, value in (attributes or {}).items())


def _shape(node: VizNode) -> Attributes:
    return {"shape": "ellipse" if "Var" in node.type_name else "box"}


class DotGraph(VizGraph):
    """A function as a cluster of DOT text. The attributes are Graphviz's; `get_node_attr` gives those of one node."""

    def __init__(self, name: str, graph_attr: Attributes | None = None, node_attr: Attributes | None = None,
                 edge_attr: Attributes | None = None, get_node_attr: Look | None = None) -> None:  # fmt: skip
        self._attributes = get_node_attr or _shape
        self.lines = [f"subgraph {quoted('cluster_' + name)} {{", f"label={quoted(name)};"]
        for kind, given in (("graph", graph_attr), ("node", node_attr), ("edge", edge_attr)):
            if given:
                self.lines.append(f"{kind} [{_listed(given)}];")

    def node(self, viz_node: VizNode) -> None:
        label = {"label": f"{viz_node.type_name}\n{viz_node.detail}"}
        self.lines.append(f"{quoted(viz_node.identity)} [{_listed({**label, **self._attributes(viz_node)})}];")

    def edge(self, viz_edge: VizEdge) -> None:
        self.lines.append(f"{quoted(viz_edge.start)} -> {quoted(viz_edge.end)};")


class DotPlotter(Plotter):
    """Draws graphs with Graphviz's program `dot`, to NAME.pdf or another `format` of `render_kwargs`.

    `cleanup=False` in `render_kwargs` keeps the DOT text in NAME. Raises `RelayError` where `dot` is missing or fails.
    """

    def __init__(self, graph_attr: Attributes | None = None, node_attr: Attributes | None = None,
                 edge_attr: Attributes | None = None, get_node_attr: Look | None = None,
                 render_kwargs: Mapping[str, Any] | None = None) -> None:  # fmt: skip
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
            atomic_write(f"{name}.{form}", drawn(text, form))
