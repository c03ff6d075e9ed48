"""A graph as one HTML page that needs nothing else: pan, zoom, search, folding, and what a click shows."""

from __future__ import annotations

import html
import json
from importlib.resources import files

from relaylang.viz.graph import Graph


def as_html(graph: Graph, title: str = "relay") -> str:
    """The page. It loads nothing: its own policy forbids it."""
    nodes = [
        [n.kind, n.label, n.type, n.inputs, n.attrs, n.hidden, n.name, n.place, n.group, n.inner] for n in graph.nodes
    ]
    groups = [[g.label, g.parent, g.attrs, g.params, g.result] for g in graph.groups]
    data = json.dumps({"nodes": nodes, "groups": groups}, ensure_ascii=False, separators=(",", ":"))
    # a text in the program must not end the script
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    page = files(str(__package__)).joinpath("page.html").read_text(encoding="utf-8")
    return page.replace("__TITLE__", html.escape(title)).replace("__DATA__", data)
