"""A graph that notebooks show, and that can be saved."""

from __future__ import annotations

import os
from html import escape

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.files import atomic_write
from relaylang.runtime.text import reason
from relaylang.viz.graph import Graph
from relaylang.viz.html import as_html
from relaylang.viz.svg import as_svg
from relaylang.viz.text import as_text

#: A notebook keeps drawings of graphs up to this many nodes.
_MOST_DRAWN = 500


class Picture:
    """A program's graph. A notebook shows it as a page to pan, zoom and search; `str` draws it as text."""

    def __init__(self, graph: Graph, height: int = 600) -> None:
        self.graph = graph
        self.height = height

    def _repr_html_(self) -> str:
        # the page sees nothing of the notebook
        style = f"width: 100%; height: {int(self.height)}px; border: 1px solid #ccc"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(as_html(self.graph), quote=True)}"></iframe>'

    def _repr_svg_(self) -> str | None:
        """The picture where a page's scripts may not run, as on code hosts. None for a large graph."""
        return as_svg(self.graph) if len(self.graph.nodes) <= _MOST_DRAWN else None

    def __str__(self) -> str:
        return as_text(self.graph)

    __repr__ = __str__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file. Raises `RelayError` (R0001)."""
        try:
            atomic_write(path, as_html(self.graph))
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None


__all__ = ["Picture"]
