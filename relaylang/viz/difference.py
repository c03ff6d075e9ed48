"""The difference of two graphs as one graph: the later one, with the nodes that only the earlier one has.

Nodes are paired by what they compute, then by their neighbours, then by their names. The pairs of a function stand in
one order in both graphs. So the nodes of both have a common order in which inputs come first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import replace

from relaylang.viz.align import align
from relaylang.viz.graph import Graph, Node

_LEAVES = frozenset({"var", "const"})

#: The keys of a node, the most exact one first. The last three are its computation, the same without types, its name.
Keys = tuple[Hashable, ...]
_OWN, _PLAIN = -3, -2


def difference(before: Graph, after: Graph, same_text: bool = False) -> Graph:
    """The graph that shows what the later program adds, removes and changes. The graphs have no folded repeats.

    `same_text` says that both programs come from one text, as before and after a pass. Equal places count then.
    """
    numbers = _Numbers(same_text)
    left, right = numbers.keys(before), numbers.keys(after)
    pairs, moved = _pairs(before, after, left, right)
    same = _groups(before, after, pairs)
    _pair_leaves(before, after, pairs, same)
    changed = {a for a, b in pairs.items() if left[a][_OWN] != right[b][_OWN]}
    return _Merged(before, after, pairs, same, moved, changed).graph


def changes(graph: Graph) -> dict[str, int]:
    """How many nodes are added, removed and changed. Parameters inside an added function count as the function."""
    shown = [n for n in graph.nodes if n.kind not in ("callee", "item", "repeat")]
    counts = Counter(n.change for n in shown if n.kind != "var" or n.change != graph.groups[n.group].change)
    return {change: counts[change] for change in ("added", "removed", "changed") if counts[change]}


def changes_text(graph: Graph) -> str:
    """The numbers of changes in words."""
    return ", ".join(f"{count} {change}" for change, count in changes(graph).items()) or "nothing changed"


def _label(node: Node) -> str:
    """A node's label; "" for values and local functions, whose names do not count."""
    return "" if node.kind == "const" or node.label == "fn" or node.label.startswith("%") else node.label


class _Numbers:
    """Numbers for what nodes are; equal nodes of both graphs have the same number."""

    def __init__(self, same_text: bool) -> None:
        self.same_text = same_text
        self.numbers: dict[Hashable, int] = {}

    def number(self, *parts: Hashable) -> int:
        return self.numbers.setdefault(parts, len(self.numbers))

    def own(self, node: Node) -> int:
        """What a node computes from its inputs. Names of variables do not count."""
        value = () if node.value is None else (node.value.dtype.name, node.value.shape, hash(node.value.tobytes()))
        return self.number(node.kind, _label(node), tuple(node.attrs), node.type, value)

    def keys(self, graph: Graph) -> list[Keys]:
        nodes = graph.nodes
        own = [self.own(n) for n in nodes]
        plain = [self.number(n.kind, _label(n), tuple(n.attrs)) for n in nodes]
        numbers: list[int] = []
        users: list[list[int]] = [[] for _ in nodes]
        for node in nodes:
            inside = [r for g in node.inner if 0 <= (r := graph.groups[g].result) < node.id]
            name = node.label if node.kind == "var" else ""
            numbers.append(self.number(own[node.id], name, *(numbers[i] for i in (*node.inputs, *inside))))
            for i in node.inputs:
                users[i].append(node.id)
        near = self.around(nodes, users, plain)
        far = self.around(nodes, users, near)
        places = [(self.number(n.place, p),) if self.same_text else () for n, p in zip(nodes, plain)]
        rows = zip(numbers, places, far, near, own, plain, nodes)
        return [(w, *place, f, n, o, p, (node.kind, _label(node))) for w, place, f, n, o, p, node in rows]

    def around(self, nodes: Sequence[Node], users: Sequence[Sequence[int]], of: Sequence[int]) -> list[int]:
        """The numbers of nodes together with those of the nodes beside them."""
        return [self.number(of[n.id], tuple(of[i] for i in n.inputs), tuple(sorted(of[u] for u in users[n.id]))) for n in nodes]


def _pairs(before: Graph, after: Graph, left: Sequence[Keys], right: Sequence[Keys]) -> tuple[dict[int, int], Set[int]]:
    """Nodes of the earlier graph with those of the later one, and which of them changed their order or function."""
    pairs: dict[int, int] = {}

    def pair(a: Sequence[int], b: Sequence[int], keys: slice) -> None:
        aligned = align([left[i][keys] for i in a], [right[i][keys] for i in b])
        pairs.update({a[i]: b[j] for i, j in aligned})

    old, new = _by_root(before), _by_root(after)
    for name in old.keys() & new.keys():
        pair(old[name], new[name], slice(None))
    in_order, taken = set(pairs), set(pairs.values())
    rest = [i for ids in old.values() for i in ids if i not in in_order]
    pair(rest, [i for ids in new.values() for i in ids if i not in taken], slice(_PLAIN))
    return pairs, pairs.keys() - in_order


def _roots(graph: Graph) -> list[str]:
    """The name of the global function around each group."""
    names: list[str] = []
    for group in graph.groups:
        names.append(group.label if group.parent < 0 else names[group.parent])
    return names


def _by_root(graph: Graph) -> dict[str, list[int]]:
    """The nodes of each global function, without variables and constants."""
    names = _roots(graph)
    roots: dict[str, list[int]] = {}
    for node in graph.nodes:
        if node.kind not in _LEAVES:
            roots.setdefault(names[node.group], []).append(node.id)
    return roots


def _groups(before: Graph, after: Graph, pairs: dict[int, int]) -> list[int]:
    """The later group of each earlier one, by name or inside a pair of nodes; -1 for none."""
    roots = {g.label: g.id for g in after.roots()}
    inner = {}
    for a, b in pairs.items():
        for old, new in zip(before.nodes[a].inner, after.nodes[b].inner):
            if before.groups[old].parent >= 0 and before.groups[old].kind == after.groups[new].kind:
                inner[old] = new
    matches: list[int] = []
    taken: set[int] = set()
    for group in before.groups:
        same = inner.get(group.id, -1) if group.parent >= 0 else roots.get(group.label, -1)
        matches.append(same if same not in taken else -1)
        taken.add(same)
    return matches


def _pair_leaves(before: Graph, after: Graph, pairs: dict[int, int], same: Sequence[int]) -> None:
    """Pair parameters by name, then variables and constants by the places at which pairs and groups have them."""
    taken: set[int] = set()

    def pair(i: int, j: int) -> None:
        if min(i, j) >= 0 and i not in pairs and j not in taken:
            kind = before.nodes[i].kind
            if kind in _LEAVES and kind == after.nodes[j].kind:
                pairs[i] = j
                taken.add(j)

    groups = [(g, after.groups[s]) for g, s in zip(before.groups, same) if s >= 0]
    for old, new in groups:
        names = {after.nodes[j].label: j for j in new.params}
        for i in old.params:
            pair(i, names.get(before.nodes[i].label, -1))
    for a, b in list(pairs.items()):
        for i, j in zip(before.nodes[a].inputs, after.nodes[b].inputs):
            pair(i, j)
    for old, new in groups:
        pair(old.result, new.result)
        for i, j in zip(old.params, new.params):
            pair(i, j)


class _Merged:
    """Builds the graph of both programs. Its first groups are those of the later program."""

    def __init__(
        self, before: Graph, after: Graph, pairs: dict[int, int], same: Sequence[int], moved: Set[int], changed: Set[int]
    ) -> None:
        self.before, self.after, self.pairs, self.changed = before, after, pairs, changed
        self.groups = [replace(g, params=list(g.params)) for g in after.groups]
        self.group_of = self._groups(same)
        order = self._order(moved)
        #: the new numbers of the later and of the earlier program's nodes
        self.now = {node.id: number for number, (later, node) in enumerate(order) if later}
        self.then = {node.id: number for number, (later, node) in enumerate(order) if not later}
        self.then |= {a: self.now[b] for a, b in pairs.items()}
        self.nodes = [self._later(n) if later else self._removed(n) for later, n in order]
        #: the node in whose box each group is drawn
        self.owner: dict[int, int] = {}
        for node in self.nodes:
            for inner in node.inner if node.kind != "callee" else ():
                self.owner.setdefault(inner, node.id)
        self._results()
        self._edges()
        self.graph = Graph(self.nodes, self.groups, compared=True)

    def _groups(self, same: Sequence[int]) -> list[int]:
        """The group of the merged graph for each group of the earlier one; those that are gone are copied."""
        merged: list[int] = []
        kept = set(same)
        for group, number in zip(self.before.groups, same):
            if number < 0:
                number = len(self.groups)
                parent = merged[group.parent] if group.parent >= 0 else -1
                self.groups.append(replace(group, id=number, parent=parent, params=[], change="removed"))
            elif self.groups[number].attrs != group.attrs:
                self.groups[number].change = "changed"
            merged.append(number)
        for new in self.groups[: len(self.after.groups)]:
            if new.id not in kept:
                new.change = "added"
        return merged

    def _order(self, moved: Set[int]) -> list[tuple[bool, Node]]:
        """All nodes, each with whether the later program has it. A removed node stands behind the pair before it."""
        behind = -1
        rows: list[tuple[int, bool, int]] = [(node.id, False, node.id) for node in self.after.nodes]
        for node in self.before.nodes:
            same = self.pairs.get(node.id)
            if same is None:
                rows.append((behind, True, node.id))
            elif node.kind != "const" and node.id not in moved:  # parameters stand before all else
                behind = max(behind, same)
        rows.sort()
        return [(not gone, (self.before if gone else self.after).nodes[number]) for _, gone, number in rows]

    def _later(self, node: Node) -> Node:
        return replace(node, id=self.now[node.id], inputs=[self.now[i] for i in node.inputs], notes=list(node.notes))

    def _removed(self, node: Node) -> Node:
        inputs = [self.then[i] for i in node.inputs]
        inner = [self.group_of[g] for g in node.inner]
        group = self.group_of[node.group]
        return replace(node, id=self.then[node.id], inputs=inputs, group=group, inner=inner, change="removed")

    def _results(self) -> None:
        for group in self.groups[: len(self.after.groups)]:
            group.params = [self.now[i] for i in group.params]
            group.result = self.now.get(group.result, -1)
        for old, new in zip(self.before.groups, self.group_of):
            merged = self.groups[new]
            merged.params = list(dict.fromkeys([*merged.params, *(self.then[p] for p in old.params)]))
            if merged.change == "removed":
                merged.result = self.then.get(old.result, -1)

    def _edges(self) -> None:
        """Mark added and changed nodes, and the edges of pairs that are new or gone."""
        for node in self.nodes:
            if node.change == "removed":
                node.inputs = self._in_sight(node.inputs, node)
        pairs = {b: a for a, b in self.pairs.items()}
        for later in self.after.nodes:
            node = self.nodes[self.now[later.id]]
            if later.id not in pairs:
                node.change = "added"
                continue
            earlier = self.before.nodes[pairs[later.id]]
            self._compare(earlier, later, node)
            taken = {self.then[i] for i in earlier.inputs}
            fresh = {place for place, i in enumerate(node.inputs) if i not in taken}
            gone = sorted(taken - set(node.inputs))
            if later.kind not in _LEAVES and self.group_of[earlier.group] != later.group:
                # in another function the same values come as parameters
                fresh -= {place for place in fresh if self.nodes[node.inputs[place]].kind == "var"}
                gone = []
            node.fresh = frozenset(fresh)
            lost = self._in_sight(gone, node)
            node.inputs += lost
            node.lost = len(lost)

    def _in_sight(self, inputs: Iterable[int], node: Node) -> list[int]:
        """Inputs from the groups around a node; a value inside another box is that box. Later boxes are left out."""
        around = set()
        group = node.group
        while group >= 0:
            around.add(group)
            group = self.groups[group].parent
        visible = []
        for i in inputs:
            seen: set[int] = set()  # a recursive function stands inside itself
            while i >= 0 and (group := self.nodes[i].group) not in around:
                i = self.owner.get(group, -1) if group not in seen else -1
                seen.add(group)
            if 0 <= i < node.id:
                visible.append(i)
        return visible

    def _compare(self, earlier: Node, later: Node, node: Node) -> None:
        old, new = dict(earlier.attrs), dict(later.attrs)
        rows = [(name, old.get(name, "-"), new.get(name, "-")) for name in dict.fromkeys([*old, *new])]
        rows.append(("type", earlier.type, later.type))
        notes = [(name, f"{was} → {now}") for name, was, now in rows if was != now]
        if notes or earlier.id in self.changed:
            node.change = "changed"
        if earlier.label != later.label:
            notes.append(("name", f"{earlier.label} → {later.label}"))
        if node.kind not in _LEAVES and self.group_of[earlier.group] != later.group:
            notes.append(("moved", f"from {self.groups[self.group_of[earlier.group]].label}"))
        node.notes += notes


__all__ = ["changes", "changes_text", "difference"]
