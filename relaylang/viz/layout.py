"""A layered drawing of boxes and edges: ranks, an order within each rank, places, and lanes for edges.

The ranks are the longest ways from the inputs. An edge that spans ranks passes each of them in a lane between the boxes.
An edge over many ranks runs at the drawing's side. Between two ranks lies a channel without boxes; all horizontal parts
of edges lie in channels. Therefore no edge crosses a box. The method is Sugiyama's. Boxes of a main way and lanes stand
in straight columns.

Work grows linearly with boxes and edges: a value has one lane, however many users it has.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from statistics import median

#: The space between two boxes of a rank, and around a lane.
GAP = 26.0
LANE_GAP = 12.0
#: A longer edge runs at the drawing's side.
_LONGEST = 16
_SWEEPS = 10
#: How often parts sink: a part may have to wait for those below it.
_ROUNDS = 12
#: A drawing so many times wider than its widest rank has its columns cut, where places differ by so much.
_STEEP = 1.5
_APART = 400.0


@dataclass
class Layout:
    """Places of one group's boxes, in pixels from its left edge.

    `ranks[b]` and `xs[b]` are box `b`'s rank and middle. `lanes[b]` are the middles of the lane of box `b`'s value in the
    ranks below it. `sides[b]` is the place of its lane at the side. `users[b]` are the boxes that take the value.
    """

    ranks: list[int]
    xs: list[float]
    lanes: dict[int, list[float]] = field(default_factory=dict)
    sides: dict[int, float] = field(default_factory=dict)
    users: list[list[int]] = field(default_factory=list)
    width: float = 0.0


def layout(widths: Sequence[float], inputs: Sequence[Sequence[int]], top: Sequence[bool]) -> Layout:
    """Place boxes. `inputs[b]` are the boxes, with lower numbers, from which edges come; `top` marks those of rank 0."""
    users: list[list[int]] = [[] for _ in widths]
    for box, sources in enumerate(inputs):
        for source in dict.fromkeys(sources):
            users[source].append(box)
    ranks = _ranks(inputs, users, top)
    placement = _Placement(widths, users, ranks)
    placement.order()
    placement.place()
    return placement.result()


def _ranks(inputs: Sequence[Sequence[int]], users: Sequence[Sequence[int]], top: Sequence[bool]) -> list[int]:
    ranks = [0] * len(inputs)
    for box, sources in enumerate(inputs):
        ranks[box] = max((ranks[s] + 1 for s in sources), default=0)
    for _ in range(_ROUNDS):
        if not _sink(ranks, users, top):
            break
    # a box goes down to its users where that makes no more edges longer than shorter
    for box in reversed(range(len(inputs))):
        if users[box] and not top[box] and len(set(inputs[box])) <= len(users[box]):
            ranks[box] = min(ranks[u] for u in users[box]) - 1
    if any(top) and any(not t and not r for t, r in zip(top, ranks)):
        ranks = [0 if t else r + 1 for t, r in zip(top, ranks)]
    return ranks


def _parts(ranks: Sequence[int], latest: Sequence[int], users: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[int]]:
    """The parts that have room below, and the number of each box's part; -1 where it has none."""
    joined: list[list[int]] = [[] for _ in ranks]
    for box, below in enumerate(users):
        for user in below if latest[box] > ranks[box] else ():
            if latest[user] > ranks[user] and ranks[user] == ranks[box] + 1:
                joined[box].append(user)
                joined[user].append(box)
    part = [-1] * len(ranks)
    parts: list[list[int]] = []
    for first in range(len(ranks)):
        if latest[first] > ranks[first] and part[first] < 0:
            part[first] = len(parts)
            parts.append([first])
            for box in parts[-1]:
                for near in joined[box]:
                    if part[near] < 0:
                        part[near] = part[first]
                        parts[-1].append(near)
    return parts, part


def _sink(ranks: list[int], users: Sequence[Sequence[int]], top: Sequence[bool]) -> bool:
    """Move parts down to their users where more edges lead out of them than in; say whether any moved.

    A part is a set of boxes that have room below, joined by edges from one rank to the next. A computation of weights
    is one: it goes down to the call that takes them.
    """
    latest = list(ranks)
    for box in reversed(range(len(ranks))):
        if users[box] and not top[box]:
            latest[box] = min(latest[u] for u in users[box]) - 1
    parts, part = _parts(ranks, latest, users)
    leaving, room = [0] * len(parts), [len(ranks)] * len(parts)
    for box, below in enumerate(users):
        for user in below:
            if part[user] != part[box]:
                if part[user] >= 0:
                    leaving[part[user]] -= 1
                if part[box] >= 0:
                    leaving[part[box]] += 1
                    room[part[box]] = min(room[part[box]], ranks[user] - ranks[box] - 1)
    sinking = [number for number in range(len(parts)) if leaving[number] > 0]
    for number in sinking:
        for box in parts[number]:
            ranks[box] += room[number]
    return bool(sinking)


class _Placement:
    """Items are boxes, by their number, and behind them the parts of lanes."""

    def __init__(self, widths: Sequence[float], users: list[list[int]], ranks: list[int]) -> None:
        self.count = len(widths)
        self.users = users
        self.box_ranks = ranks
        self.widths = list(widths)
        self.rows: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
        self.up: list[list[int]] = [[] for _ in widths]
        self.down: list[list[int]] = [[] for _ in widths]
        self.parts: dict[int, list[int]] = {}
        self.far: dict[int, int] = {}
        for box, rank in enumerate(ranks):
            self.rows[rank].append(box)
        for box in range(self.count):
            self._lane(box)
        self.xs = [0.0] * len(self.widths)

    def _lane(self, box: int) -> None:
        """Join a box with its users; the lane reaches the last user that is near enough."""
        rank = self.box_ranks[box]
        near = [u for u in self.users[box] if self.box_ranks[u] - rank <= _LONGEST]
        if len(near) < len(self.users[box]):
            self.far[box] = max(self.box_ranks[u] for u in self.users[box])
        last = max((self.box_ranks[u] for u in near), default=rank)
        at = box
        by_rank: dict[int, list[int]] = {}
        for user in near:
            by_rank.setdefault(self.box_ranks[user], []).append(user)
        for below in range(rank + 1, last + 1):
            for user in by_rank.get(below, ()):
                self._join(at, user)
            if below < last:
                part = len(self.widths)
                self.widths.append(0.0)
                self.up.append([])
                self.down.append([])
                self.rows[below].append(part)
                self.parts.setdefault(box, []).append(part)
                self._join(at, part)
                at = part

    def _join(self, above: int, below: int) -> None:
        self.down[above].append(below)
        self.up[below].append(above)

    def order(self) -> None:
        """Order each rank by the medians of neighbours' places, downwards and upwards in turn; keep the best."""
        at = [0.0] * len(self.widths)

        def number(row: list[int]) -> None:
            for i, item in enumerate(row):
                at[item] = float(i)

        for row in self.rows:
            number(row)
        best = [list(row) for row in self.rows]
        fewest = self.crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            near = self.up if sweep % 2 == 0 else self.down
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                row.sort(key=lambda i: median([at[n] for n in near[i]]) if near[i] else at[i])
                number(row)
            crossings = self.crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def crossings(self) -> int:
        """How many pairs of edges between neighbouring ranks cross."""
        total = 0
        for above, below in zip(self.rows, self.rows[1:]):
            if len(above) == 1 or len(below) == 1:
                continue
            place = {item: i for i, item in enumerate(below)}
            ends = [p for item in above for p in sorted(place[d] for d in self.down[item])]
            counts = [0] * (len(below) + 1)
            for seen, end in enumerate(ends):
                # how many of the earlier ends lie behind this one
                total += seen
                i = end + 1
                while i:
                    total -= counts[i]
                    i &= i - 1
                i = end + 1
                while i <= len(below):
                    counts[i] += 1
                    i += i & -i
        return total

    def place(self) -> None:
        """Give the items of a column one place: near their neighbours above and below, and apart from those beside them."""
        #: the neighbours in the rank, at the left and at the right, with the least distances
        self.left: list[tuple[int, float] | None] = [None] * len(self.widths)
        self.right: list[tuple[int, float] | None] = [None] * len(self.widths)
        for row in self.rows:
            for a, b in pairwise(row):
                apart = (self.widths[a] + self.widths[b]) / 2 + (LANE_GAP if max(a, b) >= self.count else GAP)
                self.left[b], self.right[a] = (a, apart), (b, apart)
        widest = max((sum(beside[1] for i in row if (beside := self.right[i]) is not None) for row in self.rows), default=0.0)
        self._stand(self._columns())
        order = self._from_left()
        if self._begin(order) > _STEEP * widest:
            self._stand(self._pieces(order))
            order = self._from_left()
            self._begin(order)
        for sweep in range(_SWEEPS):
            for number in order if sweep % 2 else reversed(order):
                self._move(self.columns[number])

    def _stand(self, columns: list[list[int]]) -> None:
        self.columns = columns
        self.column = [0] * len(self.widths)
        for number, items in enumerate(columns):
            for item in items:
                self.column[item] = number

    def _pieces(self, order: Sequence[int]) -> list[list[int]]:
        """The columns, cut where a part could stand much further left than the part above or below it.

        Columns that stand beside each other in a few ranks push each other aside in all of theirs. Of many such columns
        come stairs. A cut lets each begin anew at the left.
        """
        at = [0.0] * len(self.widths)
        pieces: list[list[int]] = []
        for number in order:
            items = self.columns[number]
            least = [0.0 if (beside := self.left[i]) is None else at[beside[0]] + beside[1] for i in items]
            begin = 0
            for end in range(1, len(items) + 1):
                if end == len(items) or abs(least[end] - least[end - 1]) > _APART:
                    pieces.append(items[begin:end])
                    for item in pieces[-1]:
                        at[item] = max(least[begin:end])
                    begin = end
        return pieces

    def _columns(self) -> list[list[int]]:
        """The items from top to bottom that stand in one line: lanes, and boxes on the longest ways.

        The lines of two columns do not cross. Therefore one of them is left of the other wherever both have an item.
        """
        above, below = self._steps()
        up = [min(near, key=lambda n: (n >= self.count, -above[n]), default=-1) for near in self.up]
        down = [min(near, key=lambda n: (n >= self.count, -below[n]), default=-1) for near in self.down]
        follows = [-1] * len(self.widths)
        led: set[int] = set()
        for upper, lower in pairwise(self.rows):
            places = {item: place for place, item in enumerate(lower)}
            wanted = []
            for place, item in enumerate(upper):
                inner = [n for n in self.down[item] if item >= self.count <= n]
                for n in inner or [down[item]] if down[item] >= 0 else []:
                    if inner or up[n] == item:
                        wanted.append((not inner, -above[item] - below[n], place, places[n], item, n))
            taken = [(-1, -1), (len(upper), len(lower))]
            for _, _, place, end, item, n in sorted(wanted):
                at = bisect_left(taken, (place, end))
                if taken[at - 1][1] < end < taken[at][1]:
                    taken.insert(at, (place, end))
                    follows[item] = n
                    led.add(n)
        columns = []
        for item in range(len(self.widths)):
            if item not in led:
                columns.append([item])
                while follows[columns[-1][-1]] >= 0:
                    columns[-1].append(follows[columns[-1][-1]])
        return columns

    def _steps(self) -> tuple[list[int], list[int]]:
        """The lengths of the longest ways from above to each item, and from it downwards."""
        above, below = [0] * len(self.widths), [0] * len(self.widths)
        for rows, near, steps in ((self.rows, self.up, above), (self.rows[::-1], self.down, below)):
            for row in rows:
                for item in row:
                    steps[item] = max((steps[n] + 1 for n in near[item]), default=0)
        return above, below

    def _from_left(self) -> list[int]:
        """The columns, each behind those at its left."""
        waits = [sum(self.left[i] is not None for i in items) for items in self.columns]
        order = [number for number, count in enumerate(waits) if not count]
        for number in order:
            for item in self.columns[number]:
                beside = self.right[item]
                if beside is not None:
                    other = self.column[beside[0]]
                    waits[other] -= 1
                    if not waits[other]:
                        order.append(other)
        return order

    def _begin(self, order: Sequence[int]) -> float:
        """Place each column in the middle between its leftmost and its rightmost place; give the width they take."""
        least, most = [0.0] * len(self.columns), [0.0] * len(self.columns)
        for number in order:
            beside = [neighbour for i in self.columns[number] if (neighbour := self.left[i]) is not None]
            least[number] = max((least[self.column[i]] + apart for i, apart in beside), default=0.0)
        width = max(least, default=0.0)
        for number in reversed(order):
            beside = [neighbour for i in self.columns[number] if (neighbour := self.right[i]) is not None]
            most[number] = min((most[self.column[i]] - apart for i, apart in beside), default=width)
        for number, items in enumerate(self.columns):
            for item in items:
                self.xs[item] = (least[number] + most[number]) / 2
        return width

    def _move(self, items: Sequence[int]) -> None:
        """Move a column towards its neighbours above and below, as far as there is room."""
        number = self.column[items[0]]
        near = [self.xs[n] for i in items for n in (*self.up[i], *self.down[i]) if self.column[n] != number]
        if near:
            low = max((self.xs[at[0]] + at[1] for i in items if (at := self.left[i]) is not None), default=float("-inf"))
            high = min((self.xs[at[0]] - at[1] for i in items if (at := self.right[i]) is not None), default=float("inf"))
            x = min(max(float(median(near)), low), high)
            for item in items:
                self.xs[item] = x

    def result(self) -> Layout:
        left = min((x - w / 2 for x, w in zip(self.xs, self.widths)), default=0.0)
        xs = [round(x - left, 1) for x in self.xs]
        width = max((x + w / 2 for x, w in zip(xs, self.widths)), default=0.0)
        placed = Layout(self.box_ranks, xs[: self.count], users=self.users, width=width)
        placed.lanes = {box: [xs[p] for p in parts] for box, parts in self.parts.items()}
        free: list[int] = []
        busy: list[tuple[int, int]] = []
        lanes = 0
        for box in sorted(self.far, key=lambda b: self.box_ranks[b]):
            while busy and busy[0][0] < self.box_ranks[box]:
                heappush(free, heappop(busy)[1])
            if free:
                lane = heappop(free)
            else:
                lane, lanes = lanes, lanes + 1
            heappush(busy, (self.far[box], lane))
            placed.sides[box] = width + LANE_GAP + 8.0 * lane
        placed.width += (LANE_GAP + 8.0 * lanes) if lanes else 0.0
        return placed


__all__ = ["Layout", "layout"]
