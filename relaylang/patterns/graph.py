"""The program around a node, for matching: the users of each node, and the dominators of every way from it."""

from __future__ import annotations

from relaylang.ir import Expr, children, post_order
from relaylang.ir.scopes import Scope, common


class Graph:
    """The data flow of an expression. `order` has every node once, operands first; users are found when asked for."""

    def __init__(self, root: Expr, order: list[Expr] | None = None) -> None:
        self.root = root
        self.order = list(post_order(root)) if order is None else order
        self._users: dict[int, list[Expr]] | None = None
        self._place: dict[int, int] | None = None
        self._tree: dict[int, tuple[int, int]] | None = None
        self._above: dict[int, Expr] | None = None

    @property
    def users(self) -> dict[int, list[Expr]]:
        """For each node, by identity, the nodes that refer to it."""
        if self._users is None:
            users: dict[int, list[Expr]] = {id(node): [] for node in self.order}
            for node in self.order:
                for child in children(node):
                    users[id(child)].append(node)
            self._users = users
        return self._users

    @property
    def place(self) -> dict[int, int]:
        """For each node, by identity, its index in `order`."""
        if self._place is None:
            self._place = {id(node): i for i, node in enumerate(self.order)}
        return self._place

    def dominates(self, upper: Expr, node: Expr) -> bool:
        """Whether every way from a node to the expression's result leads through `upper`."""
        if self._tree is None:
            self._tree = self._intervals()
        mine, theirs = self._tree.get(id(upper)), self._tree.get(id(node))
        return mine is not None and theirs is not None and mine[0] <= theirs[0] and theirs[1] <= mine[1]

    def above(self, node: Expr) -> Expr | None:
        """The nearest node through which every way from a node to the result leads; None where there is none."""
        if self._above is None:
            tree = self._scopes()
            nodes = {id(scope): self.order[self.place[key]] for key, scope in tree.items()}
            self._above = {key: nodes[id(scope.parent)] for key, scope in tree.items() if scope.parent is not scope}
        return self._above.get(id(node))

    def _scopes(self) -> dict[int, Scope]:
        """The tree of immediate post-dominators: each node's scope, whose parent is that of the node above."""
        tree: dict[int, Scope] = {}
        for node in reversed(self.order):
            mine = self.users[id(node)]
            if node is self.root or not mine:
                tree[id(node)] = Scope()
                continue
            dominator = tree[id(mine[0])]
            for user in mine[1:]:
                dominator = common(dominator, tree[id(user)])
            tree[id(node)] = Scope(dominator)
        return tree

    def _intervals(self) -> dict[int, tuple[int, int]]:
        """Each node's place in the tree of immediate post-dominators, as the interval of a walk over it."""
        tree = self._scopes()
        below: dict[Scope, list[int]] = {}
        for key, scope in tree.items():
            if scope.parent is not scope:
                below.setdefault(scope.parent, []).append(key)
        intervals: dict[int, tuple[int, int]] = {}
        clock = 0
        entered: dict[int, int] = {}
        stack: list[tuple[int, bool]] = [(id(self.root), False)]
        while stack:
            key, done = stack.pop()
            if done:
                intervals[key] = (entered[key], clock)
                continue
            clock += 1
            entered[key] = clock
            stack.append((key, True))
            stack.extend([(k, False) for k in below.get(tree[key], ())])
        return intervals
