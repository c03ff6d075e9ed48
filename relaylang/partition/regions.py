"""Regions: the nodes that go to an accelerator together.

A region never waits for itself. Scopes are separate: a function's body, a branch, a match arm, the body of a let that
stays. A node that opens a scope waits for all values used inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
)
from relaylang.ir.scopes import Scope
from relaylang.ops.record import Op
from relaylang.partition.lets import Effects, find_scopes

LEAVES = (Var, Constant, Op, GlobalVar, Constructor)
#: The target of calls that no accelerator takes: the machine that runs the rest.
HOST = "default"


@dataclass
class Region:
    """Nodes of one target, producers first; values from outside, and values for others."""

    nodes: list[Expr]
    inputs: list[Expr] = field(default_factory=list)
    outputs: list[Expr] = field(default_factory=list)
    target: str = HOST


@dataclass
class Regions:
    """A function, each owned node's target, and the region that it is in.

    `pinned` holds nodes that an effect is part of: they are regions of their own, where they stand.
    """

    func: Function
    order: list[Expr]
    scopes: dict[int, Scope]
    openers: dict[Scope, Expr]
    pinned: set[int]
    target: dict[int, str] = field(default_factory=dict)
    leader: dict[int, int] = field(default_factory=dict)
    marks: int = 0  # how many annotations there were
    kept: dict[int, Expr] = field(default_factory=dict)  # nodes are known by their ids: they must stay alive

    def find(self, key: int) -> int:
        while self.leader[key] != key:
            self.leader[key] = self.leader[self.leader[key]]
            key = self.leader[key]
        return key

    def own(self, node: Expr, target: str) -> None:
        """Give a node to a target, as a region of its own."""
        self.target[id(node)] = target
        self.leader[id(node)] = id(node)

    def join(self, a: Expr, b: Expr) -> None:
        """One region of two, where both are in one scope and hold no effect."""
        if self.scopes[id(a)] is self.scopes[id(b)] and not {id(a), id(b)} & self.pinned:
            self.leader[self.find(id(b))] = self.find(id(a))

    def give_back(self, nodes: Sequence[Expr]) -> None:
        """Take nodes out of their regions."""
        for node in nodes:
            self.target.pop(id(node), None)


def regions_in(func: Function, effects: Effects) -> Regions:
    """A function whose nodes nobody owns yet."""
    order = list(post_order(func))
    scopes, openers, _ = find_scopes(func, order, open_lets=True)
    return Regions(func, order, scopes, openers, effects(func, order))


# ---- marking


def mark(
    regions: Regions,
    takes: Callable[[Call], str | None],
    tuples: Literal["operands", "users", "never"] = "operands",
) -> set[str]:
    """Give the calls that nobody owns to the target that takes them, or to the host; returns these targets.

    With "operands" tuples, fields and references belong to the target of all their operands, or to the host. With
    "users" a tuple belongs to the target of the calls that use it, where all have the same. A field then belongs to the
    target of the call that makes its tuple.
    """
    chosen: set[str] = set()
    before = set(regions.target)
    for node in regions.order:
        if id(node) in before or id(node) not in regions.scopes or isinstance(node, LEAVES):
            continue
        owner = None
        if isinstance(node, Call):
            free = bool(node.args) and (tuples != "never" or not isinstance(node.op, Var))
            owner = takes(node) or (HOST if free else None)
        elif tuples == "operands" and isinstance(node, (Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)):
            owners = {HOST if id(c) in before else regions.target.get(id(c), HOST) for c in children(node)}
            owner = (owners.pop() if len(owners) == 1 else HOST) if owners else None
        if owner is not None:
            regions.own(node, owner)
            chosen.add(owner)
    if tuples == "users":
        _mark_tuples(regions)
    return chosen


def _mark_tuples(regions: Regions) -> None:
    users: dict[int, list[Expr]] = {}
    for node in regions.order:
        for child in children(node):
            users.setdefault(id(child), []).append(node)
    for node in regions.order:
        if isinstance(node, Tuple) and node.fields and id(node) in regions.scopes:
            owners = {regions.target.get(id(user), HOST) for user in users.get(id(node), ())}
            if len(owners) == 1 and HOST not in owners:
                regions.own(node, owners.pop())
        elif isinstance(node, TupleGetItem) and isinstance(node.tuple_value, Call) and id(node) in regions.scopes:
            owner = regions.target.get(id(node.tuple_value), HOST)
            if owner != HOST:
                regions.own(node, owner)


# ---- what a region takes and gives


def list_regions(regions: Regions, outputs: Literal["used", "computed"] = "used") -> list[Region]:
    """The accelerators' regions, in the order of their first nodes."""
    members: dict[int, Region] = {}
    for node in regions.order:
        target = regions.target.get(id(node))
        if target not in (None, HOST):
            members.setdefault(regions.find(id(node)), Region([], target=str(target))).nodes.append(node)
    used: dict[int, list[Expr]] = {}
    for node in _used_outside(regions):
        used.setdefault(regions.find(id(node)), []).append(node)
    for key, region in members.items():
        region.inputs = inputs_of(region.nodes)
        region.outputs = _outputs(region, used.get(key, []), outputs)
    return list(members.values())


def inputs_of(nodes: Sequence[Expr]) -> list[Expr]:
    """The operands of nodes from elsewhere, constants included, called functions excluded."""
    inside = {id(node) for node in nodes}
    operands: dict[int, Expr] = {}
    for node in nodes:
        for child in children(node):
            if id(child) not in inside and not (isinstance(node, Call) and child is node.op):
                operands[id(child)] = child
    return list(operands.values())


def _used_outside(regions: Regions) -> list[Expr]:
    """The nodes with uses outside of their region, in the order in which an evaluation meets the uses."""
    escaping: dict[int, Expr] = {}
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(regions.func.body, True), (regions.func.body, False)]
    while stack:
        node, used = stack.pop()
        if used:
            if id(node) in regions.target:
                escaping.setdefault(id(node), node)
        elif id(node) not in seen:
            seen.add(id(node))
            own = regions.find(id(node)) if id(node) in regions.target else None
            for child in reversed(children(node)):
                if id(child) in regions.target and regions.find(id(child)) != own:
                    stack.append((child, True))
                stack.append((child, False))
    return list(escaping.values())


def _outputs(region: Region, used: list[Expr], order: Literal["used", "computed"]) -> list[Expr]:
    """A region's results: its nodes with uses outside. For a tuple these are the fields, as in TVM."""
    inside = {id(n) for n in region.nodes}
    results: dict[int, Expr] = {}
    wanted = used[::-1]
    while wanted:
        node = wanted.pop()
        if isinstance(node, Tuple):
            wanted += [f for f in reversed(node.fields) if id(f) in inside]
        else:
            results.setdefault(id(node), node)
    return list(results.values()) if order == "used" else [n for n in region.nodes if id(n) in results]


def tuples_outside(regions: Regions) -> None:
    """Move tuples without a use in their region to the host, as TVM does. No region returns a tuple for them."""
    used: set[int] = set()
    for node in reversed(regions.order):
        mine = regions.target.get(id(node))
        if mine is None:
            continue
        if isinstance(node, Tuple) and id(node) not in used:
            del regions.target[id(node)]
            continue
        region = regions.find(id(node))
        used.update([id(c) for c in children(node) if id(c) in regions.target and regions.find(id(c)) == region])


def part_of(region: Region, calls: Sequence[Call]) -> Region:
    """Some calls of a region as one of their own, with the tuples and fields next to them."""
    wanted = {id(call) for call in calls}
    wanted |= {id(node) for node in region.nodes if isinstance(node, TupleGetItem) and id(node.tuple_value) in wanted}
    wanted |= {id(a) for call in calls for a in call.args if isinstance(a, Tuple)} & {id(node) for node in region.nodes}
    nodes = [node for node in region.nodes if id(node) in wanted]
    rest = [node for node in region.nodes if id(node) not in wanted]
    outside = {id(node) for node in [*inputs_of(rest), *region.outputs]}
    return Region(nodes, inputs_of(nodes), [node for node in nodes if id(node) in outside], region.target)


__all__ = [
    "HOST",
    "LEAVES",
    "Region",
    "Regions",
    "inputs_of",
    "list_regions",
    "mark",
    "part_of",
    "regions_in",
    "tuples_outside",
]
