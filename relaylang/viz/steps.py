"""A program's graph before and after each pass."""

from __future__ import annotations

from relaylang.ir import IRModule
from relaylang.passes.context import PassInfo, PassInstrument
from relaylang.typing import infer
from relaylang.viz.difference import difference
from relaylang.viz.graph import Graph, graph_of
from relaylang.viz.html import as_pages
from relaylang.viz.repeats import fold_repeats


class DrawSteps(PassInstrument):
    """Keeps the graph that each pass makes of a module; `page` shows what each pass changed."""

    name = "DrawSteps"

    def __init__(self, mod: IRModule) -> None:
        self.steps: list[tuple[str, Graph]] = [("before", graph_of(mod))]

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        # shapes stand at edges; where a pass breaks types, the graph has none
        infer(mod)
        self.steps.append((info.name, graph_of(mod)))

    def page(self, title: str) -> str:
        """The page, which steps through the passes."""
        pairs = zip(self.steps, self.steps[1:])
        shown = [(name, difference(before, after, same_text=True)) for (_, before), (name, after) in pairs]
        return as_pages([(name, fold_repeats(graph)) for name, graph in (*self.steps[:1], *shown)], title)


__all__ = ["DrawSteps"]
