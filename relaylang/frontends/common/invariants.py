"""Loop invariants: what the turns of a loop do not change is bound before the loop, as its function is evaluated in each turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relaylang.frontends.common.builder import Builder
from relaylang.ir import Constant, Expr, Function, If, Let, Match, TensorType, Tuple, TypeCall, Var, children, rebuild
from relaylang.ir.typed import retype
from relaylang.ops.record import Op

#: Nodes with inner scopes, whose nodes may depend on their variables, or are not evaluated in each turn.
_SCOPED = (Let, Function, If, Match)


def invariants(
    b: Builder, variables: Sequence[Var], results: Sequence[Expr], before: int
) -> tuple[list[tuple[Var, Expr]], list[Expr]]:
    """Variables for the values that a turn's `results` use and no turn changes, with their values; and the results with them.

    `variables` are those of the loop, and were made when `b.reached` had `before` nodes. Vectors of whole numbers and
    scalars stay in the loop: a reader of the program knows extents where it sees how they are computed. So do weights.
    """
    search = _Search(b, variables, before)
    order = search.order(results)
    taken = {id(x) for x in results}
    bound: dict[int, Var] = {}
    for node in reversed(order):
        if id(node) not in taken:
            continue
        if search.is_invariant(node):
            bound[id(node)] = b.variable("invariant", node.checked_type)  # type: ignore[arg-type]
        else:
            taken.update(map(id, search.parts[id(node)]))
    done: dict[int, Expr] = dict(bound)
    for node in order:
        if id(node) in taken and id(node) not in bound and search.parts[id(node)]:
            new = tuple([done.get(id(child), child) for child in children(node)])
            done[id(node)] = retype(rebuild(node, new), node)
    return [(bound[id(node)], node) for node in order if id(node) in bound], [done.get(id(x), x) for x in results]


class _Search:
    """Which nodes of a loop's turn depend on the loop's variables.

    `b.reached` numbers the nodes that searches came to. A node that an earlier search reached before the variables were made
    cannot depend on them, and is not looked into.
    """

    def __init__(self, b: Builder, variables: Sequence[Var], before: int) -> None:
        self._builder = b
        self._before = before
        self._own = set(variables)
        self._clean: set[int] = set()
        self._depends: dict[int, bool] = {}
        #: The children of each node that every turn evaluates, in the scope of the turn.
        self.parts: dict[int, Sequence[Expr]] = {}

    def is_invariant(self, node: Expr) -> bool:
        return not self._depends[id(node)] and _is_large(node) and not self._is_fixed(node)

    def order(self, results: Sequence[Expr]) -> list[Expr]:
        """The nodes of a turn, each behind its parts."""
        order: list[Expr] = []
        stack: list[tuple[Expr, bool]] = [(x, False) for x in reversed(results)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
                if id(node) not in self._depends:
                    self._depends[id(node)] = any([self._depends[id(part)] for part in self.parts[id(node)]])
            elif id(node) not in self.parts:
                self.parts[id(node)] = parts = list(self._parts(node))
                stack.append((node, True))
                stack += [(part, False) for part in reversed(parts)]
        return order

    def _is_old(self, node: Expr) -> bool:
        reached = self._builder.reached
        return reached.setdefault(node, len(reached)) < self._before

    def _parts(self, node: Expr) -> Iterator[Expr]:
        if isinstance(node, (Var, Constant)):
            self._depends[id(node)] = node in self._own
        elif isinstance(node, Op):
            self._depends[id(node)] = node.stateful
        elif self._is_old(node) and _is_large(node):
            self._depends[id(node)] = False
        elif isinstance(node, Let) and id(node) in self._depends:
            yield from self._of_let(node)
        elif isinstance(node, _SCOPED):
            depends = self._depends[id(node)] = self._mentions(node)
            if depends and isinstance(node, Let):
                # The lets behind it count as dependent, too: a search of each would make long chains slow.
                inner: Expr = node
                while isinstance(inner, Let):
                    self._own.add(inner.variable)
                    self._depends[id(inner)] = True
                    inner = inner.body
                yield from self._of_let(node)
            elif depends and isinstance(node, If):
                yield node.cond
            elif depends and isinstance(node, Match):
                yield node.data
        else:
            yield from children(node)

    def _of_let(self, node: Let) -> Iterator[Expr]:
        if not isinstance(node.value, Function):
            yield node.value
        yield node.body

    def _mentions(self, node: Expr) -> bool:
        """Whether anything inside an expression depends on the variables."""
        seen: set[int] = set()
        stack = [node]
        while stack:
            inner = stack.pop()
            if inner in self._own or (isinstance(inner, Op) and inner.stateful):
                return True
            if id(inner) not in seen and id(inner) not in self._clean and not self._is_old(inner):
                seen.add(id(inner))
                stack += children(inner)
        self._clean |= seen
        return False

    def _is_fixed(self, node: Expr) -> bool:
        """Whether a value depends on weights alone."""
        fixed, stack = self._builder.fixed, [node]
        while stack:
            inner = stack[-1]
            if inner in fixed:
                stack.pop()
            elif isinstance(inner, (Var, Constant, Op, *_SCOPED)):
                fixed[inner] = isinstance(inner, Op) or self._builder.value(inner) is not None
            elif waiting := [child for child in children(inner) if child not in fixed]:
                stack += waiting
            else:
                fixed[inner] = all([fixed[child] for child in children(inner)])
        return fixed[node]


def _is_large(node: Expr) -> bool:
    """Whether a value is worth a variable."""
    if isinstance(node, (Var, Constant, Tuple)):
        return False
    ty = node.checked_type
    return isinstance(ty, TypeCall) or (
        isinstance(ty, TensorType) and (len(ty.shape) > 1 or ("int" not in ty.dtype and ty.dtype != "bool"))
    )


__all__ = ["invariants"]
