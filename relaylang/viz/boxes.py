"""The drawing of a graph: boxes with rows, and the edges between the boxes of one group.

A call's box has a row for each parameter and constant that it takes as a weight is taken. Projections of tuples are
labels of edges. A group inside a box takes its values through pills: its parameters, and the values from around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import log2
from typing import NamedTuple
from unicodedata import combining, east_asian_width

from relaylang.viz.graph import REASON, Graph, Node

#: More rows than these are counted.
_MOST_ROWS = 8
_MOST_TITLE = 40
_MOST_NAME = 28
_MOST_NOTE = 44

#: The label of a drawing without boxes.
EMPTY = "The program has no functions."

#: So many operators' names stand in a title, with so many letters.
_NAMED = 3
_MOST_NAMED = 30

#: Names of arguments that say nothing about them.
_PLAIN = frozenset({"", "data", "lhs", "rhs"})

#: Signs before the titles of boxes that a difference marks.
SIGNS = {"added": "+ ", "removed": "− ", "changed": "~ "}

#: The number of colours for times. Each begins at half of the time of the next; the longest time has the last one.
HEATS = 5

#: Widths of an "n", in pixels, at the sizes in which titles and rows are drawn. Fonts with wide letters have these.
TITLE = 7.6
ROW = 6.65
LINE = 15
HEAD = 24


@dataclass
class Edge:
    """An operand: its box's index, its path inside a tuple with a shape, the node for it inside the box."""

    source: int
    label: str = ""
    inside: int = -1
    change: str = ""


@dataclass
class Row:
    """A line of a box: a weight with its shape and node, or a note. `style` is a change, "time" or "reason"."""

    name: str
    shape: str = ""
    node: int = -1
    style: str = ""


@dataclass
class Box:
    """A node's box in a group. `pill`: a value that comes into the group, to which no edges lead. `open`: unfolded.

    `change` is the node's, or "inside" where only its inside changes. `heat` is 0 for boxes without a time, to `HEATS`.
    """

    node: int
    title: str
    rows: list[Row] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    pill: bool = False
    inner: list[int] = field(default_factory=list)
    target: str = ""
    change: str = ""
    seconds: float = 0.0
    heat: int = 0
    open: bool = False
    w: float = 0
    h: float = 0


@dataclass
class Sheet:
    """The boxes of one group. `at` has the index of each node's box; `result` is the index of the group's value, or -1."""

    group: int
    boxes: list[Box] = field(default_factory=list)
    at: dict[int, int] = field(default_factory=dict)
    result: int = -1


def cut(text: str, most: int) -> str:
    """A text of at most `most` letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def sheets(graph: Graph, nodes: bool = False) -> list[Sheet]:
    """The drawing of each group. `nodes` draws parameters, constants and projections as boxes of their own."""
    return _Sheets(graph, nodes).sheets


def inner_first(graph: Graph, members: list[list[Node]]) -> list[int]:
    """The groups, each behind those that its nodes hold. Groups that hold themselves stand where they end."""
    order: list[int] = []
    seen: set[int] = set()
    for root in graph.groups:
        stack = [(root.id, False)]
        while stack:
            group, ready = stack.pop()
            if ready:
                order.append(group)
            elif group not in seen:
                seen.add(group)
                stack.append((group, True))
                stack += [(i, False) for n in reversed(members[group]) for i in reversed(n.inner) if i not in seen]
    return order


class _Operand(NamedTuple):
    """A value that a node takes. `inside` is the node for it inside the box, `name` that of the argument."""

    source: int
    path: str
    inside: int = -1
    change: str = ""
    name: str = ""


class _Sheets:
    def __init__(self, graph: Graph, nodes: bool) -> None:
        self.graph = graph
        self.nodes = nodes
        self.members = graph.members()
        self.sheets = [Sheet(g.id) for g in graph.groups]
        #: values from around that each group takes
        self.captured: list[dict[int, None]] = [{} for _ in graph.groups]
        #: for groups that stand for parts of another group: the node in whose box their value is
        self.owner = {i: n.id for n in graph.nodes if n.kind == "repeat" for i in n.inner}
        #: tuples whose fields are drawn as the operands of the one call that takes them
        self.spread = set() if nodes else self._spread()
        #: parameters that are drawn as rows of the boxes that take them
        self.weights: set[int] = set()
        order = inner_first(graph, self.members)
        if not nodes:
            self._find_weights(order)
        #: the groups in which something changes, and the seconds of each
        self.changed: set[int] = set()
        self.seconds = [0.0] * len(graph.groups)
        #: the one target of all calls of each group, "" for none
        self.targets = [g.target for g in graph.groups]
        self.whole = sum(n.seconds for n in graph.nodes)
        self.longest = max((n.seconds for n in graph.nodes), default=0.0)
        for group in order:
            self._group(group)

    def _spread(self) -> set[int]:
        nodes = self.graph.nodes
        uses = Counter(i for n in nodes for i in n.inputs)
        uses.update(g.result for g in self.graph.groups)
        taken = {i for n in nodes if n.kind == "op" for i in n.inputs}
        return {n.id for n in nodes if n.kind == "tuple" and n.id in taken and uses[n.id] == 1}

    def _group(self, group: int) -> None:
        members = self.members[group]
        shown = self.graph.groups[group]
        sheet = self.sheets[group]
        own = {n.id for n in members}
        operands = {n.id: self._operands(n) for n in members}
        drawn = [n for n in members if n.id == shown.result or not self._hidden(n)]
        captured = self.captured[group]
        if shown.result >= 0 and self._box_of(result := self._trace(shown.result)[0], own) < 0:
            captured.setdefault(result)  # a branch can give a value from around it as it is
        for node in drawn:
            for operand in operands[node.id]:
                if self._box_of(operand.source, own) < 0 and not self._is_row(operand.source):
                    captured.setdefault(operand.source)
        for source in [*(n.id for n in drawn if n.kind == "var"), *captured]:
            pill = self.graph.nodes[source]
            change = pill.change if pill.group == group else ""
            self._add(sheet, Box(source, self._pill_title(source), pill=True, change=change))
        for node in drawn:
            if node.id not in sheet.at:
                self._add(sheet, self._box(node, shown.target, operands[node.id], sheet, own))
        if shown.result >= 0:
            source, _ = self._trace(shown.result)
            sheet.result = sheet.at.get(shown.result, sheet.at.get(self._box_of(source, own), sheet.at.get(source, -1)))
        if not shown.target:
            targets = {b.target for b in sheet.boxes if not b.pill}
            self.targets[group] = targets.pop() if len(targets) == 1 else ""
        self.seconds[group] = sum(b.seconds for b in sheet.boxes)
        if any(b.change or any(e.change for e in b.edges) for b in sheet.boxes):
            self.changed.add(group)

    def _box(self, node: Node, around: str, operands: list[_Operand], sheet: Sheet, own: set[int]) -> Box:
        target = next((t for i in node.inner if (t := self.targets[i]) != around), node.target)
        box = Box(node.id, self._title(node), inner=list(node.inner), target=target, change=node.change)
        box.seconds = node.seconds + sum(self.seconds[i] for i in node.inner)
        for operand in operands:
            source = operand.source
            at = sheet.at.get(self._box_of(source, own), sheet.at.get(source))
            if at is not None:
                box.edges.append(Edge(at, operand.path, operand.inside, operand.change))
            else:
                row = self.graph.nodes[source]
                style = operand.change or (row.change if row.kind == "const" else "")
                label, says = row.label, row.shape
                if row.rank > 0 and row.type.endswith(", float32]"):
                    says += " f32"  # edges leave float32 out
                if row.kind == "const" and operand.name not in _PLAIN:
                    label, says = operand.name, says if row.rank else f"{row.label} {says}"
                name = SIGNS.get(style, "") + label + operand.path
                if len(name) > _MOST_NAME:  # Names differ at their ends.
                    name = f"{name[:6]}…{name[7 - _MOST_NAME :]}"
                box.rows.append(Row(name, says, source, style))
        inside = any(i in self.changed for i in node.inner)
        box.change = box.change or ("changed" if any(r.style for r in box.rows) else "inside" if inside else "")
        return box

    def _add(self, sheet: Sheet, box: Box) -> None:
        node = self.graph.nodes[box.node]
        sheet.at[box.node] = len(sheet.boxes)
        box.title = SIGNS.get(box.change, "") + box.title
        if len(box.rows) > _MOST_ROWS:
            box.rows[_MOST_ROWS - 1 :] = [Row(f"… {len(box.rows) - _MOST_ROWS + 1} more")]
        if (time := box.seconds or node.shared) > 0:
            box.heat = max(1, HEATS - int(log2(max(1.0, self.longest / time))))
        if node.leader and not box.seconds:
            box.rows.append(Row(f"in {node.leader}", style="time"))
        if box.seconds:
            box.rows.append(Row(time_text(box.seconds), f"{100 * box.seconds / self.whole:.1f} %", style="time"))
        box.rows += [Row(cut(text, _MOST_NOTE), style="reason") for name, text in node.notes if name == REASON]
        rows = max((ROW * (letters(r.name) + letters(r.shape) + 2) for r in box.rows), default=0)
        box.w = round(max(56.0, TITLE * letters(box.title) + 20 + 16 * bool(box.inner), rows + 16))
        box.h = HEAD + (LINE * len(box.rows) + 4 if box.rows else 0)
        sheet.boxes.append(box)

    def _is_row(self, node: int) -> bool:
        return not self.nodes and (self.graph.nodes[node].kind == "const" or node in self.weights)

    def _hidden(self, node: Node) -> bool:
        """Whether a node has no box: its name stands in the boxes and at the edges of its users."""
        return not self.nodes and (node.kind == "item" or node.id in self.spread or self._is_row(node.id))

    def _pill_title(self, node: int) -> str:
        value = self.graph.nodes[node]
        return f"%{value.name}" if value.name else self._title(value)

    def _title(self, node: Node) -> str:
        """A box's title. A function without a name is known by its operators."""
        if node.kind in ("fn", "call") and node.label == "fn" and node.inner:
            return cut(f"fn ({operators_text(self.members[node.inner[0]])})", _MOST_TITLE)
        return cut(node.label if node.kind != "tuple" else "( , )", _MOST_TITLE)

    def _trace(self, node: int) -> tuple[int, str]:
        """The tuple from which a projection takes, and the way inside it with the shape that is there."""
        nodes = self.graph.nodes
        path = f" {nodes[node].shape}".rstrip()
        while not self.nodes and nodes[node].kind == "item" and nodes[node].inputs:
            path = nodes[node].label + path
            node = nodes[node].inputs[0]
        return node, path if path.startswith(".") else ""

    def _operands(self, node: Node) -> list[_Operand]:
        """The values that a node takes: inputs, fields of tuples made for it alone, and those of its inside."""
        operands: list[_Operand] = []
        params = self.graph.groups[node.inner[0]].params if node.kind == "call" and node.inner else []
        for number, i in enumerate(node.inputs):
            source, path = self._trace(i)
            change = edge_change(node, number)
            value = self.graph.nodes[source]
            if source in self.spread:
                fields = enumerate(value.inputs)
                operands += [_Operand(*self._trace(f), change=change or edge_change(value, place)) for place, f in fields]
            elif value.kind != "callee":
                inside = params[number] if number < min(len(params), len(node.taken)) else -1
                name = node.operands[number] if number < len(node.operands) else ""
                operands.append(_Operand(source, path, inside, change, name))
        captured = dict.fromkeys(source for inner in node.inner for source in self.captured[inner])
        return operands + [_Operand(source, "", source) for source in captured]

    def _box_of(self, node: int, own: set[int]) -> int:
        """The node of this group in whose box a value is made; -1 where it comes from around the group."""
        while node not in own:
            owner = self.owner.get(self.graph.nodes[node].group)
            if owner is None:
                return -1
            node = owner
        return node

    def _find_weights(self, order: list[int]) -> None:
        """Find the weights of each function, whose equal parts may stand in groups of their own."""
        home: dict[int, int] = {}
        weights: list[list[Node]] = [[] for _ in self.members]
        for member in self.graph.groups:  # a part's group has a higher number than those around it
            home[member.id] = home[member.parent] if member.kind == "repeat" else member.id
            weights[home[member.id]] += self.members[member.id]
        for group in order:
            if home[group] == group:
                operands = {n.id: self._operands(n) for n in weights[group]}
                self.weights |= self._weights(self.graph.groups[group].params, operands)

    def _weights(self, params: list[int], operands: dict[int, list[_Operand]]) -> set[int]:
        """The parameters that calls take behind their data, and vectors: weights, scales and their like."""
        weights: set[int] = set()
        other: set[int] = set()
        own = set(params)
        first = next((p for p in params if self.graph.nodes[p].rank >= 0), -1)
        for id_, operand_list in operands.items():
            for number, operand in enumerate(operand_list):
                source = operand.source
                if source in own:
                    fits = not operand.path and self._as_weight(self.graph.nodes[id_], number, operand_list[0].source, operand.inside)
                    of_call = self.graph.nodes[id_].kind in ("op", "call")
                    vector = self.graph.nodes[source].rank == 1 and source != first and of_call
                    (weights if fits or vector else other).add(source)
        weights -= other
        # a function has an input
        return weights if own - weights else weights - {first}

    def _as_weight(self, node: Node, number: int, first: int, inside: int) -> bool:
        """Whether a call takes a parameter as a weight: `first` is its first operand."""
        if node.kind == "call" and node.inner and inside >= 0:
            return inside in self.weights
        if node.kind not in ("op", "call") or not number or self._is_row(first):
            return False
        name = node.operands[number] if number < len(node.operands) else "rhs"
        return name != "rhs" or self.graph.nodes[first].kind != "var"


def operators_text(nodes: Iterable[Node]) -> str:
    """The first operators and calls among nodes, by name, as far as a title has room."""
    names = list(dict.fromkeys(n.label for n in nodes if n.kind in ("op", "call")))
    shown = names[:1]
    for name in names[1:_NAMED]:
        if sum(map(len, shown)) + 2 * len(shown) + len(name) > _MOST_NAMED:
            break
        shown.append(name)
    return ", ".join(shown) + ", …" * (len(names) > len(shown))


def edge_change(node: Node, number: int) -> str:
    """Whether a difference adds or removes an edge: that from a node's input of this number."""
    if node.change == "removed" or number >= len(node.taken):
        return "removed"
    return "added" if node.change == "added" or number in node.fresh else ""


#: Letters that are narrower or wider than an "n", whose width is 1.
_NARROW = dict.fromkeys("ijl.,:;'|! ", 0.52) | dict.fromkeys("ftr()[]{}-/", 0.68)
_WIDE = dict.fromkeys("mwMWNOQ%@+=~×−→≥…", 1.5)


def letters(text: str) -> float:
    """The width of a text in widths of an "n". Ideographs and their like are wide, accents on their own have none."""
    return sum(_NARROW.get(c) or _WIDE.get(c) or _width(c) for c in text)


def _width(letter: str) -> float:
    if letter.isascii():
        return 1.15 if letter.isupper() else 1.0
    return 0.0 if combining(letter) else 1.75 if east_asian_width(letter) in "WF" else 1.15


def time_text(seconds: float) -> str:
    """A time with a unit that suits it."""
    unit, scale = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if seconds >= s), ("µs", 1e-6))
    number = seconds / scale
    return f"{number:.3g} {unit}" if number < 999.5 else f"{number:.0f} {unit}"
