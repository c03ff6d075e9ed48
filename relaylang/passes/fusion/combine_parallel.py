"""The search of the CombineParallel passes: products of one input with several weights become one wider product.

Products that agree in everything but their number of outputs are the starts of branches. Where there are enough of
them, one product with all their weights takes their place. Element-wise and broadcasting operators that follow in every
branch alike (a bias, an activation) are joined as well. What each branch computed is a slice of the whole.

A product's level is the greatest number of products on a path that leads to it. Only products of one level become one,
with operands of lower levels. So no branch waits for another, and no two wholes wait for each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Match,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
    rebuilt,
)
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.passes.rewriting import is_call, per_function
from relaylang.rules.joining.common import Family, Step, attr_values

_Scope = tuple[int, int]
_SPREAD: _Scope = (-1, -1)


class _Group:
    """Branches that become one."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.parts: list[Expr] | None = None

    def needs(self) -> list[Expr]:
        """What the whole is made of."""
        first, *rest = self.steps
        needs = [first.calls[0].args[0], *[c.args[1] for c in first.calls]]
        for step in rest:
            needs += [a for c in step.calls for i, a in enumerate(c.args) if i != step.position]
        return needs

    def build(self, family: Family, done: dict[int, Expr]) -> list[Expr]:
        """The branches' results, made of the needs' replacements."""
        if self.parts is None:
            first, *rest = self.steps
            combined = family.product(first, done[id(first.calls[0].args[0])], [done[id(c.args[1])] for c in first.calls])
            for step in rest:
                number = len(step.calls[0].args)
                others = [[done[id(c.args[i])] for c in step.calls] if i != step.position else [] for i in range(number)]
                combined = family.follow(step, combined, others)
            self.parts = family.parts(self.steps[-1], combined)
        return self.parts


def combine(mod: IRModule, family: Family, least: int) -> IRModule:
    return per_function(mod, lambda f: _combine_in(f, family, max(least, 2)))


def _combine_in(func: Function, family: Family, least: int) -> Expr:
    order = list(post_order(func))
    if sum(is_call(node, family.name) for node in order) < least:
        return func
    groups = _Finder(order, family).groups(least)
    if not groups:
        return func
    tails = {id(call): (group, i) for group in groups for i, call in enumerate(group.steps[-1].calls)}
    done: dict[int, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(func, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        tail = tails.get(id(node))
        if not ready:
            needs: Sequence[Expr] = tail[0].needs() if tail is not None and tail[0].parts is None else ()
            stack.append((node, True))
            stack.extend([(c, False) for c in reversed(needs if tail is not None else children(node))])
        elif tail is not None:
            done[id(node)] = retype(tail[0].build(family, done)[tail[1]], node)
        else:
            done[id(node)] = retype(rebuilt(node, done), node)
    return done[id(func)]


class _Finder:
    """The groups of branches in a function; `order` has its nodes, children first."""

    def __init__(self, order: list[Expr], family: Family) -> None:
        self.order = order
        self.family = family
        #: The only node that uses a node, None where there are several uses.
        self.user: dict[int, Expr | None] = {}
        self.scopes: dict[int, _Scope] = {id(order[-1]): (0, 0)}
        self.levels: dict[int, int] = {}
        #: Made of constants, parameters and operators alone: to be had everywhere in the scope that it is used in.
        self.simple: set[int] = set()
        self.find_levels()
        self.find_scopes()

    def find_levels(self) -> None:
        bound = {node.variable for node in self.order if isinstance(node, Let)}
        levels, simple = self.levels, self.simple
        for node in self.order:
            inner = children(node)
            levels[id(node)] = max([levels[id(c)] for c in inner], default=0) + is_call(node, self.family.name)
            if isinstance(node, (Constant, Op)) or (isinstance(node, Var) and node not in bound):
                simple.add(id(node))
            elif isinstance(node, (Call, Tuple, TupleGetItem)) and all([id(c) in simple for c in inner]):
                simple.add(id(node))

    def find_scopes(self) -> None:
        """The function, branch or arm that each node stands in: `_SPREAD` where it stands in several."""
        scopes, user = self.scopes, self.user
        for node in reversed(self.order):
            here = scopes[id(node)]
            for i, child in enumerate(children(node)):
                key = id(child)
                user[key] = node if key not in user else None
                opens = isinstance(node, Function) or (isinstance(node, (If, Match)) and i > 0)
                where = (id(node), i) if opens else here
                if scopes.setdefault(key, where) != where:
                    scopes[key] = _SPREAD

    def groups(self, least: int) -> list[_Group]:
        groups: dict[Hashable, list[Call]] = {}
        for node in self.order:
            if not is_call(node, self.family.name) or id(node.args[1]) not in self.simple:
                continue
            scope, key = self.scopes[id(node)], self.family.key(node)
            if key is not None and scope != _SPREAD:
                place = (id(node.args[0]), self.levels[id(node)], scope)
                groups.setdefault((place, key), []).append(node)
        return [self.group(calls) for calls in groups.values() if len(calls) >= least]

    def group(self, calls: list[Call]) -> _Group:
        steps = [Step(calls, 0, self.family.axis(calls[0]))]
        while True:
            step = self.next(steps[-1], self.levels[id(calls[0])])
            if step is None:
                return _Group(steps)
            steps.append(step)

    def next(self, last: Step, level: int) -> Step | None:
        """What all branches go on with, if that is the same and can be joined."""
        calls: list[Call] = []
        position = -1
        for before in last.calls:
            call = self.user.get(id(before))
            if not isinstance(call, Call) or not isinstance(call.op, Op):
                return None
            at = [a is before for a in call.args].index(True)
            first = calls[0] if calls else call
            if not calls:
                position = at
            same = call.op is first.op and len(call.args) == len(first.args) and attr_values(call) == attr_values(first)
            if at != position or not same or self.scopes[id(call)] != self.scopes[id(before)]:
                return None
            others = [id(a) for i, a in enumerate(call.args) if i != at]
            if not all([o in self.simple and self.levels[o] < level for o in others]):
                return None
            calls.append(call)
        axis = self.family.fits(calls, position, last.axis)
        return None if axis is None else Step(calls, position, axis)
