"""CapturePostDfsIndexInSpans: places that are numbers of nodes, for looking into passes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

from relaylang.ir import Call, Expr, Function, IRModule, children
from relaylang.passes.manager import Pass
from relaylang.patterns.graph import Graph
from relaylang.tvm.ir.spans import SourceName, Span


def _order(root: Expr) -> Iterator[Expr]:
    """Every node once: callees before arguments, parameters before a body, a node behind its parts."""
    done: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in done:
            done.add(id(node))
            parts = children(node)
            if isinstance(node, Call):
                parts = (node.op, *node.args)
            elif isinstance(node, Function):
                parts = (*node.params, *parts)
            stack.append((node, True))
            stack.extend([(part, False) for part in reversed(parts)])


@dataclass(frozen=True)
class CapturePostDfsIndexInSpans(Pass):
    """Give each node the place `index:I:D`: its number in the function, and that of the node above it.

    Every way from a node to the result leads through the node above. D is -1 where there is none.
    """

    def run(self, mod: IRModule) -> IRModule:
        copied: IRModule = pickle.loads(pickle.dumps(mod))  # new nodes, each in one place
        for func in copied.functions.values():
            if func.body is None:
                continue
            graph = Graph(func, list(_order(func)))
            for number, node in enumerate(graph.order):
                if not node.is_record:
                    above = graph.above(node)
                    number_above = -1 if above is None else graph.place[id(above)]
                    node.span = Span(SourceName("index"), number, number, number_above, number_above)
        return copied


__all__ = ["CapturePostDfsIndexInSpans"]
