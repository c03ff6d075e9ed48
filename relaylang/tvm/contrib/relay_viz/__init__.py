"""`tvm.contrib.relay_viz`: a module's nodes and edges, for parsers and plotters of a script's own.

`relay viz` and `relay.viz(mod)` draw better pictures; these classes serve scripts that bring their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import Expr, IRModule, post_order_visit
from relaylang.tvm.contrib.relay_viz.dot import DotPlotter, DotVizParser
from relaylang.tvm.contrib.relay_viz.interface import Plotter, VizParser
from relaylang.tvm.contrib.relay_viz.terminal import TermPlotter, TermVizParser

__all__ = ["DotPlotter", "DotVizParser", "Plotter", "RelayVisualizer", "TermPlotter", "TermVizParser", "VizParser"]


class RelayVisualizer:
    """Hands the nodes and edges of a module to a plotter, a graph for each function, `main` first.

    `relay_param` are the parameters by name, `parser` says what a node is. Without a plotter it is text.
    """

    def __init__(
        self,
        relay_mod: IRModule,
        relay_param: Mapping[str, Any] | None = None,
        plotter: Plotter | None = None,
        parser: VizParser | None = None,
    ) -> None:
        self._plotter = plotter or TermPlotter()
        parser = parser or TermVizParser()
        count = 0
        for name in sorted((var.name_hint for var in relay_mod.functions), key=lambda name: name != "main"):
            numbers: dict[Expr, str] = {}

            def number(node: Expr, numbers: dict[Expr, str] = numbers, first: int = count) -> None:
                numbers.setdefault(node, str(first + len(numbers)))

            post_order_visit(relay_mod[name], number)
            count += len(numbers)
            graph = self._plotter.create_graph(name)
            for node in numbers:
                viz_node, edges = parser.get_node_edges(node, dict(relay_param or {}), numbers)
                if viz_node is not None:
                    graph.node(viz_node)
                for edge in edges:
                    graph.edge(edge)

    def render(self, filename: str | None = None) -> None:
        """Have the plotter draw, to a file or where it draws without a name."""
        self._plotter.render(filename=filename)
