"""A layered drawing of boxes and edges: ranks, an order within each rank, places, and lanes for edges.

The ranks are the longest ways from the inputs. An edge that spans ranks passes each of them in a lane between the boxes.
An edge over many ranks runs at the drawing's side. Between two ranks lies a channel without boxes; all horizontal parts
of edges lie in channels. Therefore no edge crosses a box. The method is Sugiyama's, with least squares for the places.

Work grows linearly with boxes and edges: a value has one lane, however many users it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from statistics import median

#: The space between two boxes of a rank, and around a lane.
GAP = 26.0
LANE_GAP = 12.0
#: A longer edge runs at the drawing's side.
_LONGEST = 16
_SWEEPS = 5
#: A box this near to the line of the one above it goes there.
_SNAP = 48.0


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
    made = _Placement(widths, users, ranks)
    made.order()
    made.place()
    return made.result()


def _ranks(inputs: Sequence[Sequence[int]], users: Sequence[Sequence[int]], top: Sequence[bool]) -> list[int]:
    ranks = [0] * len(inputs)
    for box, sources in enumerate(inputs):
        ranks[box] = max((ranks[s] + 1 for s in sources), default=0)
    # a box goes down to its users where that makes no more edges longer than shorter
    for box in reversed(range(len(inputs))):
        if users[box] and not top[box] and len(set(inputs[box])) <= len(users[box]):
            ranks[box] = min(ranks[u] for u in users[box]) - 1
    if any(top) and any(not t and not r for t, r in zip(top, ranks)):
        ranks = [0 if t else r + 1 for t, r in zip(top, ranks)]
    return ranks


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
        for sweep in range(2 * _SWEEPS):
            if not fewest:
                break
            near = self.up if sweep % 2 == 0 else self.down
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                row.sort(key=lambda i: (median([at[n] for n in near[i]]) if near[i] else at[i]))
                number(row)
            found = self.crossings()
            if found < fewest:
                best, fewest = [list(row) for row in self.rows], found
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
        above, below = self._shares()
        for row in self.rows:
            self._settle(row, lambda item: (0.0, 1.0))
        for sweep in range(2 * _SWEEPS):
            if sweep % 2 == 0:
                for row in self.rows:
                    self._settle(row, self._wish([(self.up, above)], below))
            else:
                for row in reversed(self.rows):
                    self._settle(row, self._wish([(self.down, below)], above))
        either = [min(a, b) for a, b in zip(above, below)]
        for row in self.rows:
            self._settle(row, self._wish([(self.up, above), (self.down, below)], either))
        self._straighten()

    def _shares(self) -> tuple[list[float], list[float]]:
        """How much of the ranks above an item, and of those below, its longest ways pass: 1 for the main way."""
        above, below = [0.0] * len(self.widths), [0.0] * len(self.widths)
        for rows, near, share in ((self.rows, self.up, above), (self.rows[::-1], self.down, below)):
            steps = [0] * len(self.widths)
            for rank, row in enumerate(rows):
                for item in row:
                    steps[item] = max((steps[n] + 1 for n in near[item]), default=0)
                    share[item] = (1 + steps[item]) / (1 + rank)
        return above, below

    def _wish(
        self, sides: Sequence[tuple[Sequence[Sequence[int]], Sequence[float]]], weights: Sequence[float]
    ) -> Callable[[int], tuple[float, float]]:
        """Where an item would stand for its neighbours' sake, and how much that counts. Lanes want to be straight.

        The neighbours of the main way count, not those at the end of short ways. Items with many others behind them count
        more than those that can move freely: `weights` are the shares of the ranks behind them.
        """

        def wish(item: int) -> tuple[float, float]:
            found = []
            for near, share in sides:
                most = max((share[n] for n in near[item]), default=0.0)
                found += [self.xs[n] for n in near[item] if share[n] > most / 2]
            if not found:
                return self.xs[item], 0.1
            return float(median(found)), 4.0 if item >= self.count else len(found) * weights[item] ** 3

        return wish

    def _apart(self, left: int, right: int) -> float:
        gap = LANE_GAP if left >= self.count or right >= self.count else GAP
        return (self.widths[left] + self.widths[right]) / 2 + gap

    def _settle(self, row: list[int], wish: Callable[[int], tuple[float, float]]) -> None:
        """Place a rank's items in order and apart, as near to their wishes as may be, by least squares."""
        offset = 0.0
        blocks: list[list[float]] = []  # sum of wishes, weight, first item's offset, number of items
        offsets: list[float] = []
        for number, item in enumerate(row):
            if number:
                offset += self._apart(row[number - 1], item)
            offsets.append(offset)
            want, weight = wish(item)
            block = [(want - offset) * weight, weight, 1.0]
            while blocks and blocks[-1][0] * block[1] > block[0] * blocks[-1][1]:
                last = blocks.pop()
                block = [last[0] + block[0], last[1] + block[1], last[2] + block[2]]
            blocks.append(block)
        number = 0
        for total, weight, many in blocks:
            for _ in range(int(many)):
                self.xs[row[number]] = total / weight + offsets[number]
                number += 1

    def _room(self, item: int) -> tuple[float, float]:
        """Between which places an item may stand, as its neighbours in the rank stand now."""
        row, i = self.at[item]
        before = i and not (i == 1 and self._at_end(row[0]))
        behind = i + 1 < len(row) and not (i + 2 == len(row) and self._at_end(row[-1]))
        low = self.xs[row[i - 1]] + self._apart(row[i - 1], item) if before else float("-inf")
        high = self.xs[row[i + 1]] - self._apart(item, row[i + 1]) if behind else float("inf")
        return low, high

    def _at_end(self, item: int) -> bool:
        """Whether a box has edges at one side only. At the edge of its rank it makes room for the others."""
        return not self.up[item] or not self.down[item]

    def _push(self, row: list[int]) -> None:
        """Move the ends of a rank outwards, where others came too near."""
        for end, other in ((row[0], row[1]), (row[-1], row[-2])) if len(row) > 1 else ():
            if self._at_end(end):
                space = self._apart(end, other)
                self.xs[end] = min(self.xs[end], self.xs[other] - space) if end == row[0] else max(self.xs[end], self.xs[other] + space)

    def _straighten(self) -> None:
        """Make straight lines of lanes, and of short ways from box to box, where there is room."""
        self.at = {item: (row, i) for row in self.rows for i, item in enumerate(row)}
        for box, parts in self.parts.items():
            ends = [self.xs[box], *(self.xs[d] for d in self.down[parts[-1]])]
            first = 0
            low, high = float("-inf"), float("inf")
            for number, part in enumerate([*parts, -1]):
                least, most = self._room(part) if part >= 0 else (float("inf"), float("-inf"))
                if max(low, least) <= min(high, most):
                    low, high = max(low, least), min(high, most)
                    continue
                wish = next((x for x in ends if low <= x <= high), median(self.xs[p] for p in parts[first:number] or parts))
                for moved in parts[first:number]:
                    self.xs[moved] = min(max(wish, low), high)
                first, low, high = number, least, most
        for rows, near in ((reversed(self.rows), self.down), (self.rows, self.up)):
            for row in rows:
                for item in row:
                    self._snap(item, near[item])
        for row in self.rows:
            self._push(row)

    def _snap(self, item: int, near: list[int]) -> None:
        if item < self.count and len(near) == 1:
            x = self.xs[near[0]]
            low, high = self._room(item)
            if abs(x - self.xs[item]) < _SNAP and low <= x <= high:
                self.xs[item] = x

    def result(self) -> Layout:
        left = min((x - w / 2 for x, w in zip(self.xs, self.widths)), default=0.0)
        xs = [round(x - left, 1) for x in self.xs]
        width = max((x + w / 2 for x, w in zip(xs, self.widths)), default=0.0)
        made = Layout(self.box_ranks, xs[: self.count], users=self.users, width=width)
        made.lanes = {box: [xs[p] for p in parts] for box, parts in self.parts.items()}
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
            made.sides[box] = width + LANE_GAP + 8.0 * lane
        made.width += (LANE_GAP + 8.0 * lanes) if lanes else 0.0
        return made


@dataclass
class Net:
    """Edges of one box's value in one channel, from a place above to places below.

    `ends` are (place, box); the box is -1 where the value goes on in a lane. `from_box` and `from_side` say that the edge
    begins at the box or in the lane at the side. `to_side`: the last end is that lane.
    """

    source: int
    x: float
    ends: list[tuple[float, int]]
    from_box: bool = False
    from_side: bool = False
    to_side: bool = False
    track: int = 0


def channels(made: Layout, port: Callable[[int, int], Sequence[float]]) -> list[list[Net]]:
    """The edges of each channel with their tracks: channel `r` lies below rank `r`.

    `port(user, source)` are the places at which a source's edge meets a box.
    """
    found: list[list[Net]] = [[] for _ in range(max(made.ranks, default=-1) + 1)]
    for box, users in enumerate(made.users):
        rank = made.ranks[box]
        lane = made.lanes.get(box, [])
        by_rank: dict[int, list[int]] = {}
        for user in users:
            by_rank.setdefault(made.ranks[user], []).append(user)
        for below in sorted({rank, *range(rank, rank + len(lane) + 1), *(r - 1 for r in by_rank)}) if users else ():
            beside = below - rank > len(lane)
            begin = made.sides[box] if beside else made.xs[box] if below == rank else lane[below - rank - 1]
            ends = [(x, u) for u in by_rank.get(below + 1, ()) for x in port(u, box)]
            if below - rank < len(lane):
                ends.append((lane[below - rank], -1))
            net = Net(box, begin, ends, below == rank, beside)
            if below == rank and box in made.sides:
                ends.append((made.sides[box], -1))
                net.to_side = True
            if ends:
                found[below].append(net)
    for nets in found:
        _tracks(nets)
    return found


def _tracks(nets: list[Net]) -> None:
    """Give each edge a height of its own among those beside it; a straight one needs none."""
    right: list[float] = []
    spans = sorted((min([n.x, *(x for x, _ in n.ends)]), max([n.x, *(x for x, _ in n.ends)]), i) for i, n in enumerate(nets))
    for low, high, i in spans:
        if high - low < 0.5:
            continue
        track = next((t for t, end in enumerate(right) if end + 4 < low), len(right))
        if track == len(right):
            right.append(high)
        right[track] = high
        nets[i].track = track


__all__ = ["Layout", "Net", "channels", "layout"]
