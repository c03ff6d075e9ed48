"""Programs as pictures: `graph_of` makes a graph, and one file for each form draws it.

`relay.viz(mod)` is the graph in a notebook: the package is a function, too.
"""

from __future__ import annotations

import sys
from types import ModuleType

from relaylang.ir import Expr, IRModule
from relaylang.viz.difference import difference
from relaylang.viz.dot import as_dot
from relaylang.viz.graph import Graph, graph_of
from relaylang.viz.html import as_html, as_pages
from relaylang.viz.picture import Picture
from relaylang.viz.printed import as_pdf, as_png
from relaylang.viz.repeats import fold_repeats
from relaylang.viz.steps import DrawSteps
from relaylang.viz.svg import as_svg
from relaylang.viz.text import as_text


class _Viz(ModuleType):
    def __call__(self, program: IRModule | Expr, height: int = 600, before: IRModule | Expr | None = None) -> Picture:
        """The program's graph as a picture that notebooks show, `height` pixels high.

        `before` is an earlier program: the picture then shows what the later one adds, removes and changes.
        """
        graph = graph_of(program)
        if before is not None:
            graph = difference(graph_of(before), graph)
        return Picture(fold_repeats(graph), height)


sys.modules[__name__].__class__ = _Viz

__all__ = [
    "DrawSteps",
    "Graph",
    "Picture",
    "as_dot",
    "as_html",
    "as_pages",
    "as_pdf",
    "as_png",
    "as_svg",
    "as_text",
    "difference",
    "fold_repeats",
    "graph_of",
]
