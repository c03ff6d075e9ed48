"""Merging: neighbouring regions of one target become one, where that makes no circle."""

from __future__ import annotations

from typing import Literal

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import Constant, Expr, children
from relaylang.ir.scopes import Scope, ancestor
from relaylang.partition.lets import is_closed
from relaylang.partition.regions import HOST, Regions
from relaylang.patterns.mismatch import describe


def merge_neighbours(regions: Regions, when: Literal["late", "early"] = "late") -> None:
    """Join neighbouring regions of one target, those of the host, too, where that makes no circle.

    A node's stage counts the changes between targets before it. Connected nodes of one stage are joined.
    Raises `RelayError` for a region that waits for itself.
    """
    flow = _Flow(regions)
    stage = flow.stages(when)
    for node in regions.order:
        mine = regions.target.get(id(node))
        if mine is None:
            continue
        for child in children(node):
            if regions.target.get(id(child)) == mine and stage[flow.item[id(child)]] == stage[flow.item[id(node)]]:
                regions.join(node, child)


class _Flow:
    """The order of items: an item is a region as drawn, or a node outside of regions.

    `waits` has, for each item, the items of its own scope that must come before it. An item that opens a scope waits
    for the values used inside.
    """

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

    def move_clusters(self, stage: list[int], target: list[str], users: list[list[int]]) -> None:
        """Move each cluster to the latest stage that its users allow, if one of them has its target there."""
        for cluster in sorted(self.clusters(stage, target), key=lambda items: -stage[items[0]]):
            here, mine = stage[cluster[0]], target[cluster[0]]
            later = [u for item in cluster for u in users[item] if stage[u] > here]
            latest = min([stage[u] - (target[u] != mine) for u in later], default=here)
            if latest > here and any([stage[u] == latest and target[u] == mine for u in later]):
                for item in cluster:
                    stage[item] = latest

    def stages(self, when: Literal["late", "early"]) -> list[tuple[int, int]]:
        """A stage for each item: never below that of what it waits for, and above it where the target changes.

        "early": an accelerator's first stage is 1, the host's is 0, and that is all. "late": items of one stage and
        target that wait for each other are a cluster. An item moves to a later stage as a whole, if its own target
        needs that stage. So more items meet.

        The host's regions and nodes that nobody owns are one here; between them stages have steps of their own.
        """
        drawn = [self.regions.target.get(id(node)) for node in self.nodes]
        target = [HOST if t is None else t for t in drawn]
        stage = [0] * len(self.nodes)
        users: list[list[int]] = [[] for _ in self.nodes]
        for item in self.order:
            least = 1 if when == "early" and target[item] != HOST else 0
            for other in self.waits[item]:
                users[other].append(item)
                least = max(least, stage[other] + (target[other] != target[item]))
            stage[item] = least
        if when == "late":
            self.move_clusters(stage, target, users)
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
        groups: dict[int, list[int]] = {}
        for item in self.order:
            if target[item] != HOST:
                groups.setdefault(find(item), []).append(item)
        return list(groups.values())


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


__all__ = ["merge_neighbours", "waits_for_itself"]
