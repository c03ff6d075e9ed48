"""Annotated programs: the regions that `compiler_begin` and `compiler_end` draw, and merging those that touch.

A region never waits for itself. Nodes get stages, by how often the way to them changes between targets, and only nodes
of one stage that are connected are merged. Each scope (a function's body, a branch, a match arm, what stands behind a
let that has to stay) is looked at by itself; a node that opens one waits for all that is used inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    Var,
    children,
    post_order,
    rebuild,
    rebuilt,
)
from relaylang.ir.scopes import Scope, ancestor
from relaylang.ir.typed import retype
from relaylang.ops import get, make_attrs
from relaylang.ops.record import Op
from relaylang.partition.lets import Effects, find_scopes, is_closed, place_lets
from relaylang.patterns.explain import describe

_LEAVES = (Var, Constant, Op, GlobalVar, Constructor)
#: The target around what no accelerator takes: the machine that runs the rest.
HOST = "default"
_MARKS = {f"annotation.{kind}": kind for kind in ("compiler_begin", "compiler_end")}


def marked(expr: Expr, which: str, target: str) -> Expr:
    """The expression behind a `compiler_begin` or in front of a `compiler_end`."""
    op = get(f"annotation.{which}")
    made = Call(op, [expr], make_attrs(op.attrs, {"compiler": target}) if op.attrs is not None else None)
    return retype(made, expr)


def mark_of(node: Expr) -> tuple[str, str] | None:
    """("compiler_begin" or "compiler_end", target) of an annotation."""
    if type(node) is Call and type(node.op) is Op:
        kind = _MARKS.get(node.op.name)
        if kind is not None:
            return kind, node.attrs.compiler
    return None


@dataclass
class Regions:
    """A function without annotations: each owned node's target, and the region that it is in.

    `pinned` holds nodes that an effect is part of: they are regions of their own, where they stand.
    """

    func: Function
    order: list[Expr]
    scopes: dict[int, Scope]
    openers: dict[Scope, Expr]
    target: dict[int, str]
    leader: dict[int, int]
    pinned: set[int] = field(default_factory=set)
    marks: int = 0  # how many annotations there were
    kept: dict[int, Expr] = field(default_factory=dict)  # nodes are told by their ids: they must stay alive

    def find(self, key: int) -> int:
        while self.leader[key] != key:
            self.leader[key] = self.leader[self.leader[key]]
            key = self.leader[key]
        return key

    def join(self, a: Expr, b: Expr) -> None:
        """One region of two, where both are in one scope and hold no effect."""
        if self.scopes[id(a)] is self.scopes[id(b)] and not {id(a), id(b)} & self.pinned:
            self.leader[self.find(id(b))] = self.find(id(a))


def read_regions(func: Function, effects: Effects, host: bool = False) -> Regions:
    """The regions that annotations draw: owned nodes connected without an annotation between them. Annotations of the
    host draw some with `host` only.

    Lets without effects are put in place, where an accelerator has a region.
    """
    order = list(post_order(func))
    drawn = any([(mark := mark_of(node)) is not None and mark[1] != HOST for node in order])
    placed = place_lets(func, effects, order) if drawn else func
    if placed is not func:
        order = list(post_order(placed))
    marks = {id(node): mark for node in order if (mark := mark_of(node)) is not None}
    inside: dict[int, str] = {}
    for node in reversed(order):
        mark = marks.get(id(node))
        if mark is not None and mark[0] == "compiler_end" and (host or mark[1] != HOST):
            assert isinstance(node, Call)
            inside[id(node.args[0])] = mark[1]
        elif mark is None and id(node) in inside and not isinstance(node, _LEAVES):
            for child in children(node):
                if id(child) not in marks and not isinstance(child, (*_LEAVES, Function)):
                    inside.setdefault(id(child), inside[id(node)])
    new: dict[int, Expr] = {}
    target: dict[int, str] = {}
    joined: list[tuple[Expr, Expr]] = []
    for node in order:
        if id(node) in marks:
            assert isinstance(node, Call)
            new[id(node)] = new[id(node.args[0])]
            continue
        made = retype(rebuilt(node, new), node)
        new[id(node)] = made
        owner = inside.get(id(node))
        if owner is not None and not isinstance(made, _LEAVES):
            target[id(made)] = owner
            joined += [
                (made, new[id(c)])
                for c in children(node)
                if id(c) not in marks and inside.get(id(c)) == owner and not isinstance(c, (*_LEAVES, Function))
            ]
    plain = new[id(placed)]
    assert isinstance(plain, Function)
    plain_order = list(post_order(plain))
    scopes, openers, _ = find_scopes(plain, plain_order, open_lets=True)
    regions = Regions(plain, plain_order, scopes, openers, target, {key: key for key in target},
                      marks=len(marks), kept=new)  # fmt: skip
    if target:
        regions.pinned = effects(plain, plain_order)
    for a, b in joined:
        regions.join(a, b)
    return regions


def merge_regions(func: Function, effects: Effects) -> Function:
    """A typed, annotated function with neighbouring regions of one target merged, where that makes no circle; those of the
    host, too."""
    regions = read_regions(func, effects, host=True)
    if not regions.target:
        return func
    flow = _Flow(regions)
    stage = flow.stages()
    for node in regions.order:
        mine = regions.target.get(id(node))
        if mine is None:
            continue
        for child in children(node):
            if regions.target.get(id(child)) == mine and stage[flow.item[id(child)]] == stage[flow.item[id(node)]]:
                regions.join(node, child)
    return _annotated(regions)


class _Flow:
    """What waits for what: an item is a region as it is drawn, or a node outside of regions. `waits` has for each item
    those of its own scope that must come before it; an item that opens a scope waits for what is used inside."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.nodes: list[Expr] = []
        self.item: dict[int, int] = {}
        numbers: dict[int, int] = {}
        for node in regions.order:
            if isinstance(node, Constant) or is_closed(node) or id(node) not in regions.scopes:
                continue
            key = regions.find(id(node)) if id(node) in regions.target else id(node)
            if key not in numbers:
                numbers[key] = len(self.nodes)
                self.nodes.append(node)
            self.item[id(node)] = numbers[key]
        self.waits: list[list[int]] = [[] for _ in self.nodes]
        for node in regions.order:
            mine = self.item.get(id(node))
            if mine is None:
                continue
            here = regions.scopes[id(node)]
            for child in children(node):
                other = self.item.get(id(child))
                if other is None or other == mine:
                    continue
                there = regions.scopes[id(child)]
                if there is here:
                    self.waits[mine].append(other)
                elif there.depth < here.depth:
                    self.waits[self.item[id(self.opener(here, there))]].append(other)
        self.order = self.sorted()

    def opener(self, inner: Scope, outer: Scope) -> Expr:
        """The node of an outer scope in which an inner scope is."""
        return self.regions.openers[ancestor(inner, outer.depth + 1)]

    def sorted(self) -> list[int]:
        """The items, each behind those that it waits for. Raises `RelayError` where that cannot be."""
        order: list[int] = []
        state = bytearray(len(self.nodes))
        path: list[int] = []
        for root in range(len(self.nodes)):
            stack = [(root, False)]
            while stack:
                item, ready = stack.pop()
                if ready:
                    state[item] = 2
                    order.append(item)
                    path.pop()
                    continue
                if state[item]:
                    continue
                state[item] = 1
                path.append(item)
                stack.append((item, True))
                for other in self.waits[item]:
                    if state[other] == 0:
                        stack.append((other, False))
                    elif state[other] == 1:
                        circle = path[path.index(other) :]
                        raise RelayError(waits_for_itself(self.regions, [self.nodes[i] for i in circle]))
        return order

    def stages(self) -> list[tuple[int, int]]:
        """A stage for each item: never below that of what it waits for, and above it where the target changes. Items of
        one stage and target that wait for each other are a cluster. One that could wait for a later stage, where its own
        target needs it, does so as a whole: that is how more items meet.

        The host's regions and what has no annotation are one here; between them stages have steps of their own.
        """
        drawn = [self.regions.target.get(id(node)) for node in self.nodes]
        target = [HOST if t is None else t for t in drawn]
        stage = [0] * len(self.nodes)
        users: list[list[int]] = [[] for _ in self.nodes]
        for item in self.order:
            least = 0
            for other in self.waits[item]:
                users[other].append(item)
                least = max(least, stage[other] + (target[other] != target[item]))
            stage[item] = least
        for cluster in sorted(self.clusters(stage, target), key=lambda items: -stage[items[0]]):
            here, mine = stage[cluster[0]], target[cluster[0]]
            later = [u for item in cluster for u in users[item] if stage[u] > here]
            latest = min([stage[u] - (target[u] != mine) for u in later], default=here)
            if latest > here and any([stage[u] == latest and target[u] == mine for u in later]):
                for item in cluster:
                    stage[item] = latest
        step = [0] * len(self.nodes)
        for item in self.order:
            same = [o for o in self.waits[item] if stage[o] == stage[item]]
            step[item] = max([step[o] + (drawn[o] != drawn[item]) for o in same], default=0)
        return list(zip(stage, step, strict=True))

    def clusters(self, stage: list[int], target: list[str]) -> list[list[int]]:
        """The accelerators' items, those together that wait for each other, of one stage and target."""
        leader = list(range(len(self.nodes)))

        def find(item: int) -> int:
            while leader[item] != item:
                leader[item] = leader[leader[item]]
                item = leader[item]
            return item

        for item in self.order:
            for other in self.waits[item]:
                if target[other] == target[item] != HOST and stage[other] == stage[item]:
                    leader[find(other)] = find(item)
        found: dict[int, list[int]] = {}
        for item in self.order:
            if target[item] != HOST:
                found.setdefault(find(item), []).append(item)
        return list(found.values())


def waits_for_itself(regions: Regions, circle: list[Expr]) -> Diagnostic:
    """A region that needs, through something outside, what it computes itself."""
    owned = next((n for n in circle if id(n) in regions.target), circle[0])
    between = [n for n in circle if regions.target.get(id(n)) is None]
    title = f"a region of {regions.target.get(id(owned), 'a target')} waits for its own result"
    if between:
        title += f", through {describe(between[0])}"
    also = [(n.span, "which takes a value of the region, and gives it one") for n in between[:1]]
    notes = ["end the region before that call, and begin another behind it: AnnotateTarget and MergeCompilerRegions do"]
    return error("R0518", title, owned.span, "the region", also=also, notes=notes)


def _annotated(regions: Regions) -> Function:
    """The function with annotations around each region, of their own for each use."""
    target = regions.target
    done: dict[int, Expr] = {}
    for node in regions.order:
        mine = target.get(id(node))
        inner = []
        for child in children(node):
            new = done[id(child)]
            if not (mine is not None and isinstance(node, Call) and child is node.op) and not (
                mine is not None and id(child) in target and regions.find(id(child)) == regions.find(id(node))
            ):
                if id(child) in target:
                    new = marked(new, "compiler_end", target[id(child)])
                if mine is not None:
                    new = marked(new, "compiler_begin", mine)
            inner.append(new)
        done[id(node)] = retype(rebuild(node, tuple(inner)), node)
    result = done[id(regions.func)]
    assert isinstance(result, Function)
    return result


__all__ = ["Regions", "mark_of", "marked", "merge_regions", "read_regions", "waits_for_itself"]
