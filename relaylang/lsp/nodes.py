"""The nodes of an expression by their places."""

from __future__ import annotations

from collections.abc import Iterable

from relaylang.ir import Expr, Function, Let, Match, Var, pattern_vars, post_order


def by_start(roots: Iterable[Expr]) -> dict[int, list[Expr]]:
    """The nodes that stand in the source of a root, by where they begin; binders too. Inner ones come first."""
    out: dict[int, list[Expr]] = {}
    seen: set[int] = set()
    for root in roots:
        source = root.span.source if root.span is not None else None
        for node in post_order(root):
            extra: list[Var] = []
            if isinstance(node, Function):
                extra = list(node.params)
            elif isinstance(node, Let):
                extra = [node.variable]
            elif isinstance(node, Match):
                extra = [v for c in node.clauses for v in pattern_vars(c.lhs)]
            for one in (node, *extra):
                if id(one) in seen or one.span is None or one.span.source is not source:
                    continue
                seen.add(id(one))
                out.setdefault(one.span.start, []).append(one)
    return out
