"""The nodes of an expression by their places."""

from __future__ import annotations

from collections.abc import Iterable

from relaylang.diagnostics.source import SourceFile
from relaylang.ir import Expr, Function, Let, Match, pattern_vars
from relaylang.ir.visit import children


def by_start(roots: Iterable[Expr], source: SourceFile | None = None) -> dict[int, list[Expr]]:
    """The nodes that stand in a source, by where they begin; binders too. Inner ones come first.

    Without `source`, it is that of each root. Nothing is looked for inside a node of another source.
    """
    out: dict[int, list[Expr]] = {}
    seen: set[int] = set()
    for root in roots:
        here = source if source is not None or root.span is None else root.span.source
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if ready or id(node) in seen:
                if ready and node.span is not None:
                    out.setdefault(node.span.start, []).append(node)
                continue
            if node.span is not None and node.span.source is not here:
                continue
            seen.add(id(node))
            stack.append((node, True))
            if isinstance(node, Function):
                stack += [(param, False) for param in node.params]
            elif isinstance(node, Let):
                stack.append((node.variable, False))
            elif isinstance(node, Match):
                stack += [(var, False) for clause in node.clauses for var in pattern_vars(clause.lhs)]
            stack += [(child, False) for child in reversed(children(node))]
    return out
