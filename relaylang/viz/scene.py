"""A graph placed for drawing: boxes and lines with their coordinates, folded or unfolded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relaylang.viz.boxes import EMPTY, HEAD, Box, Edge, Sheet, cut, inner_first, letters, sheets
from relaylang.viz.channels import channels, clear_of, ports
from relaylang.viz.graph import Graph
from relaylang.viz.layout import Layout, layout

#: The space around the parts of an unfolded box, and the height of a part's label.
PAD = 14.0
LABEL = 18.0
#: The height of a label at a line.
LETTERS = 11.0
#: The height of a channel: above its first track, between tracks, below the last one.
ABOVE = 19.0
TRACK = 8.0
BELOW = 13.0

#: The most letters of a label, and the width of an "n" in each kind of label.
MOST_LETTERS = 48
_LETTER = {"function": 10.5, "part": 7.0, "shape": 6.0, "path": 6.0}

#: More ways inside a tuple are not all named.
_MOST_WAYS = 4

#: A box with more boxes than these inside stays folded.
_MOST = 2_000


@dataclass
class Placed:
    """A box with the place of its left upper corner. `key` is the way to it: "group.node", joined by "/"."""

    key: str
    box: Box
    x: float
    y: float
    w: float
    h: float
    open: bool = False
    result: bool = False


@dataclass
class Line:
    """A part of an edge, from one box towards another: the lane's end where `end` is "". `change` is the edge's.

    `under` is the upper edge of an unfolded box, 0 for none. The line goes on under the box's head to a pill.
    """

    start: str
    end: str
    points: list[tuple[float, float]]
    change: str = ""
    under: float = 0.0


@dataclass
class Label:
    """A text of a kind: "function" or "part" for names, "shape" at a line's begin, "path" at its end."""

    text: str
    x: float
    y: float
    kind: str


@dataclass
class Scene:
    """The boxes, lines and names of a drawing; outer boxes stand before those inside them."""

    boxes: list[Placed] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


@dataclass
class Plan:
    """A group's layout with the sizes of its boxes and the places that follow from them."""

    sheet: Sheet
    layout: Layout
    sizes: list[tuple[float, float]]
    tops: list[float]
    heights: list[float]
    ports: list[dict[int, float]]
    height: float = 0.0


class Plans:
    """The layouts of a graph's groups. `expand` unfolds every box, but where it would be in itself or too large."""

    def __init__(self, graph: Graph, expand: bool = False, nodes: bool = False) -> None:
        self.graph = graph
        self.sheets = sheets(graph, nodes)
        self.expand = expand
        self.inner = {i for n in graph.nodes for i in n.inner}
        self.plans: dict[int, Plan] = {}
        self.counts: dict[int, int] = {}
        for group in inner_first(graph, graph.members()):
            self.plans[group] = self._plan(self.sheets[group])

    def _plan(self, sheet: Sheet) -> Plan:
        count = len(sheet.boxes)
        for box in sheet.boxes if self.expand else ():
            inside = sum(self.counts.get(i, _MOST) for i in box.inner)  # a group around this box has no count yet
            box.open = bool(box.inner) and count + inside < _MOST
            count += inside * box.open
        self.counts[sheet.group] = count
        sizes = [self._open_size(b) if b.open else (b.w, b.h) for b in sheet.boxes]
        top = [b.pill and sheet.group in self.inner for b in sheet.boxes]
        placed = layout([w for w, _ in sizes], [[e.source for e in b.edges] for b in sheet.boxes], top)
        heights = [0.0] * (max(placed.ranks, default=-1) + 1)
        for rank, (_, h) in zip(placed.ranks, sizes):
            heights[rank] = max(heights[rank], h)
        plan = Plan(sheet, placed, sizes, [], heights, ports(placed, [w for w, _ in sizes]))
        y = 0.0
        for height, nets in zip(heights, channels(placed, lambda user, source: self.ports(plan, user, source))):
            plan.tops.append(y)
            plan.height = y + height
            tracks = max((n.track + 1 for n in nets), default=0)
            y += height + ABOVE + TRACK * tracks + BELOW
        return plan

    def parts(self, box: Box) -> list[tuple[int, float, float, bool]]:
        """The groups inside an unfolded box: number, left and upper edge inside the box, and whether it has a label."""
        parts = []
        x = PAD
        for inner in box.inner:
            labelled = self.graph.groups[inner].kind in ("branch", "clause")
            parts.append((inner, x, HEAD + LABEL * labelled + PAD / 2, labelled))
            x += self._part_width(inner) + PAD
        return parts

    def _part_width(self, inner: int) -> float:
        return max(self.plans[inner].layout.width, 7.0 * min(len(self.graph.groups[inner].label), 40))

    def _open_size(self, box: Box) -> tuple[float, float]:
        parts = self.parts(box)
        inner, x, _, _ = parts[-1]
        height = max(y + self.plans[i].height for i, _, y, _ in parts)
        return max(x + self._part_width(inner) + PAD, box.w), height + PAD

    def ports(self, plan: Plan, user: int, source: int) -> list[float]:
        """Where edges from one box meet another: at its upper side, or at the pills inside it."""
        box = plan.sheet.boxes[user]
        if not box.open:
            return [plan.ports[user][source]]
        left = plan.layout.xs[user] - plan.sizes[user][0] / 2
        upper_ports = []
        for edge in box.edges:
            for inner, x, _, _ in self.parts(box) if edge.source == source else ():
                pill = self.sheets[inner].at.get(edge.inside)
                if pill is not None:
                    upper_ports.append(left + x + self.plans[inner].layout.xs[pill])
        return upper_ports or [plan.ports[user][source]]


def scene_of(plans: Plans) -> Scene:
    """The drawing of a graph's global functions, one below the other."""
    scene = Scene()
    y = PAD
    if not plans.graph.roots():
        scene.labels.append(Label(EMPTY, PAD, y + LABEL, "function"))
        y += 2 * LABEL
    for root in plans.graph.roots():
        plan = plans.plans[root.id]
        scene.labels.append(Label(root.label, PAD, y + LABEL, "function"))
        y += 2 * LABEL
        _draw(scene, plans, root.id, PAD, y)
        y += plan.height + 2 * PAD
        scene.width = max(scene.width, plan.layout.width + 2 * PAD)
    ends = [label.x + _LETTER[label.kind] * letters(cut(label.text, MOST_LETTERS)) for label in scene.labels]
    scene.width = max(scene.width, max(ends) + PAD)
    scene.height = y
    return scene


def _draw(scene: Scene, plans: Plans, root: int, x: float, y: float) -> None:
    stack = [(root, x, y, "")]
    while stack:
        group, left, top, prefix = stack.pop()
        plan = plans.plans[group]
        corners = []
        for number, box in enumerate(plan.sheet.boxes):
            w, h = plan.sizes[number]
            rank = plan.layout.ranks[number]
            at = left + plan.layout.xs[number] - w / 2, top + plan.tops[rank] + plan.heights[rank] - h
            corners.append(at)
            key = f"{prefix}{group}.{box.node}"
            placed = Placed(key, box, *at, w, h, box.open, number == plan.sheet.result)
            scene.boxes.append(placed)
            for inner, dx, dy, labelled in plans.parts(box) if placed.open else ():
                if labelled:
                    scene.labels.append(Label(plans.graph.groups[inner].label, at[0] + dx, at[1] + HEAD + LABEL - 5, "part"))
                stack.append((inner, at[0] + dx, at[1] + dy, f"{key}/"))
        _lines(scene, plans, plan, left, top, corners, f"{prefix}{group}.")


def _lines(scene: Scene, plans: Plans, plan: Plan, left: float, top: float, corners: list[tuple[float, float]], prefix: str) -> None:
    boxes = plan.sheet.boxes
    lanes = lane_changes(plan.sheet)
    labelled = [0] * len(boxes)
    drawn_nets = channels(plan.layout, lambda user, source: plans.ports(plan, user, source))
    for rank, nets in enumerate(drawn_nets):
        upper = top + plan.tops[rank] + plan.heights[rank]
        for net in nets:
            start = f"{prefix}{boxes[net.source].node}"
            track = upper + ABOVE + TRACK * net.track
            begin = track if net.from_side else upper
            if net.from_box:
                shape = plans.graph.nodes[boxes[net.source].node].shape
                shape = "" if shape.startswith("(") else shape  # a tuple's users say what they take
                scene.labels.append(Label(shape, left + net.x + 4, begin + 11, "shape"))
            for i, (x, user) in enumerate(net.ends):
                if user >= 0:
                    end = corners[user][1] + (0.0 if not boxes[user].open else _pill_top(plans, plan, user, x))
                    edges = [e for e in boxes[user].edges if e.source == net.source]
                    if text := _paths(edges):
                        labelled[user] += 1
                        y = top + plan.tops[rank + 1] + 8 - LETTERS * labelled[user]
                        beside = x if boxes[user].open else clear_of(plan.ports[user].values(), x)
                        scene.labels.append(Label(text, left + beside + 6, y, "path"))
                    change = edges[0].change
                    goal = f"{prefix}{boxes[user].node}"
                else:
                    end, goal = top + plan.tops[rank + 1] + plan.heights[rank + 1], ""
                    change = lanes[net.source]
                    if net.to_side and i == len(net.ends) - 1:
                        end = _side_end(plan, drawn_nets, net.source, top)
                under = corners[user][1] if user >= 0 and boxes[user].open and end > corners[user][1] else 0.0
                points = [(left + net.x, begin), (left + net.x, track), (left + x, track), (left + x, end)]
                scene.lines.append(Line(start, goal, points, change, under))


def _paths(edges: Sequence[Edge]) -> str:
    """The ways inside a tuple that edges take; a single one has its shape behind it."""
    texts = list(dict.fromkeys(e.label for e in edges if e.label))
    if len(texts) < 2:
        return "".join(texts)
    ways = [text.partition(" ")[0] for text in texts]
    return ", ".join(ways) if len(ways) <= _MOST_WAYS else f"{ways[0]}, {ways[1]}, …, {ways[-1]}"


def lane_changes(sheet: Sheet) -> list[str]:
    """The change of each box's lane: that of its edges where they have one in common."""
    changes_of: list[set[str]] = [set() for _ in sheet.boxes]
    for box in sheet.boxes:
        for edge in box.edges:
            changes_of[edge.source].add(edge.change)
    return [changes.pop() if len(changes) == 1 else "" for changes in changes_of]


def _pill_top(plans: Plans, plan: Plan, user: int, x: float) -> float:
    """How far below an unfolded box's upper edge the pill at `x` begins."""
    box = plan.sheet.boxes[user]
    corner = plan.layout.xs[user] - plan.sizes[user][0] / 2
    for inner, dx, dy, _ in plans.parts(box):
        inside = plans.plans[inner]
        for edge in box.edges:
            pill = plans.sheets[inner].at.get(edge.inside)
            if pill is not None and abs(corner + dx + inside.layout.xs[pill] - x) < 0.5:
                return dy + inside.tops[0] + inside.heights[0] - inside.sizes[pill][1]
    return 0.0


def _side_end(plan: Plan, nets: list[list], source: int, top: float) -> float:
    """The height of the last track at which a lane at the side is left."""
    rank = max(plan.layout.ranks[u] for u in plan.layout.users[source]) - 1
    net = next(n for n in nets[rank] if n.source == source and n.from_side)
    return top + plan.tops[rank] + plan.heights[rank] + ABOVE + TRACK * net.track
