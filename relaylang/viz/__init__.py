"""Programs as pictures: `graph_of` makes a graph, and one file for each form draws it."""

from relaylang.viz.dot import as_dot, as_svg
from relaylang.viz.graph import Graph, graph_of
from relaylang.viz.html import as_html
from relaylang.viz.text import as_text

__all__ = ["Graph", "as_dot", "as_html", "as_svg", "as_text", "graph_of"]
