"""Which functions' parameters an expression uses: what a turn of a loop does not change is computed once."""

from __future__ import annotations

from relaylang.ir import Expr, Function, Let, children
from relaylang.ops.record import Op


class Needs:
    """Which functions' parameters an expression uses. An unknown expression uses all."""

    def __init__(self) -> None:
        self._of: dict[int, frozenset[int] | None] = {}
        self._kept: list[Expr] = []

    def __call__(self, expr: Expr, function: Function) -> bool:
        """Whether an expression in a function uses its parameters, or must be evaluated in each of its calls."""
        if id(expr) not in self._of:
            self._walk(function)
        needs = self._of.get(id(expr))
        return needs is None or id(function) in needs

    def _walk(self, function: Function) -> None:
        of = self._of
        self._kept.append(function)
        stack: list[tuple[Expr, int]] = [(function, 0)]
        while stack:
            node, state = stack.pop()
            if state == 0:
                if id(node) in of:
                    continue
                if isinstance(node, Let):
                    stack += [(node, 2), (node.body, 0), (node, 1), (node.value, 0)]
                    of[id(node.variable)] = frozenset()
                elif isinstance(node, Function):
                    own = frozenset([id(node)])
                    of.update((id(param), own) for param in node.params)
                    stack.append((node, 2))
                    stack += [(child, 0) for child in children(node)]
                else:
                    stack.append((node, 2))
                    stack += [(child, 0) for child in reversed(children(node))]
            elif state == 1:
                of[id(node.variable)] = of[id(node.value)]  # type: ignore[attr-defined]
            else:
                of[id(node)] = self._joined(node)

    def _joined(self, node: Expr) -> frozenset[int] | None:
        if isinstance(node, Op):
            return None if node.stateful else frozenset()
        needs: frozenset[int] = frozenset()
        for child in children(node):
            part = self._of[id(child)]
            if part is None:
                return None
            needs = part if needs <= part else needs if part <= needs else needs | part
        return needs - {id(node)} if isinstance(node, Function) else needs


__all__ = ["Needs"]
