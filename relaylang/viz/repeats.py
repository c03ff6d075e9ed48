"""Folds equal parts of a graph, such as residual blocks in a row, into one box with a count.

A group's nodes are cut wherever one value alone goes on. Runs of equal sequences of the pieces are the repetitions.
Attributes, shapes and weights may differ. The work grows linearly with the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.viz.boxes import inner_first, operators_text
from relaylang.viz.graph import Graph, Group, Node

#: The most pieces of a part, and the fewest calls. A part has two boxes or more.
_LONGEST = 32
_FEWEST = 3
_LEAVES = frozenset({"var", "const", "callee"})


def fold_repeats(graph: Graph) -> Graph:
    """Put the repetitions of each group into groups of their own, in place. Returns the graph."""
    keys = [float(n.id) for n in graph.nodes]
    last = _last_users(graph)
    # parameters that are no weights: where several nodes take one, it is a value that goes on between them
    data = {n.inputs[0] for n in graph.nodes if n.inputs and graph.nodes[n.inputs[0]].kind == "var"}
    texts = _Texts(graph)
    for group, members in list(zip(graph.groups, texts.members)):
        pieces = _pieces([n for n in members if n.kind not in _LEAVES], last, data)
        for begin, period, count in _runs([texts.number(p) for p in pieces]):
            starts = range(begin, begin + count * period, period)
            parts = [[n for piece in pieces[s : s + period] for n in piece] for s in starts]
            boxes = [n for n in parts[0] if n.kind not in ("item", "tuple")]
            if len(boxes) > 1 and sum(texts.calls(n) for n in boxes) >= _FEWEST:
                _fold(graph, group, parts, keys)
    _sort(graph, keys)
    return graph


def _last_users(graph: Graph) -> list[float]:
    """For each node the last of its group that uses it, or holds a user; infinite where users are unknown."""
    owner: dict[int, int] = {}
    for node in graph.nodes:
        for i in node.inner:
            owner[i] = -1 if i in owner else node.id
    last = [0.0] * len(graph.nodes)
    for node in graph.nodes:
        for i in node.inputs:
            user = node.id
            while user >= 0 and (inside := graph.nodes[user].group) != graph.nodes[i].group:
                user = owner.get(inside, -1)
                # a function that calls itself stands inside itself
                if user >= 0 and graph.groups[graph.nodes[user].group].depth >= graph.groups[inside].depth:
                    user = -1
            last[i] = max(last[i], user if user >= 0 else float("inf"))
    return last


def _pieces(nodes: list[Node], last: list[float], data: set[int]) -> list[list[Node]]:
    """A group's nodes, cut behind each node whose value alone is used further on."""
    pieces: list[list[Node]] = [[]]
    furthest = 0.0
    for node in nodes:
        pieces[-1].append(node)
        furthest = max([furthest, *(last[i] for i in node.inputs if i in data)])
        if furthest <= node.id:
            pieces.append([])
        furthest = max(furthest, last[node.id])
    return [p for p in pieces if p]


class _Texts:
    """Numbers for sequences of nodes. Those with the same operators and edges, also inside, have the same number."""

    def __init__(self, graph: Graph) -> None:
        self.numbers: dict[tuple[object, ...], int] = {}
        self.inner: dict[int, object] = {g.id: g.label for g in graph.groups}
        self.members = graph.members()
        for group in inner_first(graph, self.members):
            owner = graph.groups[group]
            inside = [n for n in self.members[group] if n.kind not in _LEAVES]
            self.inner[group] = (owner.kind, owner.target, self.number(inside))

    def calls(self, node: Node) -> int:
        """The number of calls for which a node stands: those inside a called function, else itself."""
        inside = [n for n in self.members[node.inner[0]] if n.kind in ("op", "call")] if node.kind == "call" and node.inner else []
        return len(inside) or 1

    def number(self, nodes: Sequence[Node]) -> int:
        place = {n.id: i for i, n in enumerate(nodes)}
        rows = [
            (n.kind, n.label, n.change, n.target, *(self.inner[i] for i in n.inner), *(place.get(i, -1) for i in n.inputs))
            for n in nodes
        ]
        return self.numbers.setdefault(tuple(rows), len(self.numbers))


def _runs(texts: list[int]) -> list[tuple[int, int, int]]:
    """Where sequences repeat, one behind the other: first piece, pieces in a sequence, number of sequences."""
    runs = []
    at = 0
    while at < len(texts):
        best = (0, 0)
        for period in range(1, min(_LONGEST, (len(texts) - at) // 2) + 1):
            end = at + period
            while end < len(texts) and texts[end] == texts[end - period]:
                end += 1
            count = (end - at) // period
            if count > 1 and count * period > best[0] * best[1]:
                best = (period, count)
        if best[0]:
            runs.append((at, *best))
        at += max(1, best[0] * best[1])
    return runs


def _fold(graph: Graph, group: Group, parts: list[list[Node]], keys: list[float]) -> None:
    title = f"{len(parts)} × ({operators_text(parts[0])})"
    folded = _enclose(graph, group.id, [], title, parts[-1][-1], keys)
    for number, part in enumerate(parts, 1):
        _enclose(graph, folded.id, part, _name(graph, part) or f"{operators_text(part)} ({number})", part[-1], keys)


def _enclose(graph: Graph, around: int, nodes: list[Node], label: str, result: Node, keys: list[float]) -> Group:
    """A group for nodes, inside another, and the node that stands for it, which has the last one's type."""
    outer = graph.groups[around]
    inner = Group(len(graph.groups), label, around, "repeat", result=result.id, depth=outer.depth + 1, target=outer.target)
    graph.groups.append(inner)
    node = Node(len(graph.nodes), "repeat", label, result.type, result.shape, result.rank, group=around, inner=[inner.id])
    graph.nodes.append(node)
    keys.append(keys[result.id] + 0.5)
    for moved in nodes:
        moved.group = inner.id
    return inner


def _name(graph: Graph, part: list[Node]) -> str:
    """The beginning that the names of a part's parameters, or of its layers, share: "stage1_unit1". "" for none."""
    params = [graph.nodes[i].label for n in part for i in n.inputs[1:] if graph.nodes[i].kind == "var"]
    layers = [layer for n in part if n.kind == "op" and (layer := n.place.partition(" ")[2])]
    return _prefix(params) or _prefix(layers)


def _prefix(labels: list[str]) -> str:
    """The beginning that two labels or more share, without a separator at its end."""
    if len(labels) < 2:
        return ""
    least, most = min(labels), max(labels)
    same = next((i for i, (a, b) in enumerate(zip(least, most)) if a != b), len(least))
    return least[:same].lstrip("%").rstrip("_./")


def _sort(graph: Graph, keys: list[float]) -> None:
    """Number the nodes anew: a node that stands for a part comes behind the part."""
    order = sorted(graph.nodes, key=lambda n: (keys[n.id], -graph.groups[n.group].depth))
    number = {n.id: i for i, n in enumerate(order)}
    for i, node in enumerate(order):
        node.id = i
        node.inputs = [number[j] for j in node.inputs]
    for group in graph.groups:
        group.params = [number[j] for j in group.params]
        group.result = number.get(group.result, -1)
    graph.nodes = order
