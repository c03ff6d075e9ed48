"""The edges between two ranks: where they meet boxes, and a height for each horizontal part.

Edges from different sides meet a box at ports of their own. Of two edges, that one runs above which makes fewer crossings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from relaylang.viz.layout import Layout

#: The space between two ports, at most and at least, and that from the last one to the box's corner.
_PORT, _LEAST, _CORNER = 12.0, 3.0, 8.0
#: The room that a label at a port needs, at least.
_CLOSE = 40.0
#: The most edges of a channel whose crossings are compared.
_COMPARED = 60


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


def ports(made: Layout, widths: Sequence[float]) -> list[dict[int, float]]:
    """For each box and each box from which an edge comes, the place at which they meet."""
    entries: list[dict[int, float]] = [{} for _ in made.users]
    for source, users in enumerate(made.users):
        lane = made.lanes.get(source, [])
        for user in users:
            passed = made.ranks[user] - made.ranks[source] - 1
            beside = passed > len(lane)
            entries[user][source] = made.sides[source] if beside else lane[passed - 1] if passed else made.xs[source]
    return [_spread(x, width, entry) for x, width, entry in zip(made.xs, widths, entries)]


def _spread(middle: float, width: float, entries: dict[int, float]) -> dict[int, float]:
    """Places for edges along a box's upper side, in the order in which they come from left to right.

    An edge from right above goes straight down. The others stand around those, or around the middle. Where a side has more
    edges than room, they share one place.
    """
    low, high = middle - max(0.0, width / 2 - _CORNER), middle + max(0.0, width / 2 - _CORNER)
    places = {source: x for source, x in entries.items() if low <= x <= high}
    left = [source for x, source in sorted(((x, s) for s, x in entries.items() if x < low), reverse=True)]
    right = [source for x, source in sorted((x, s) for s, x in entries.items() if x > high)]
    alone = not places and not (left and right)
    first, last = min(places.values(), default=middle), max(places.values(), default=middle)
    for side, sign, begin, limit in ((left, -1, first, low), (right, 1, last, high)):
        gap = min(_PORT, (sign * (limit - begin)) / max(1, len(side)))
        shift = -sign * gap * (len(side) + 1) / 2 if alone else 0.0
        for number, source in enumerate(side, 1):
            places[source] = begin + shift + sign * gap * number if gap >= _LEAST else (begin + limit) / 2
    return places


def clear_of(places: Iterable[float], x: float) -> float:
    """The last of ports that stand close together, from one to the right. No line crosses a label behind it."""
    for place in sorted(places):
        if x < place < x + _CLOSE:
            x = place
    return x


def channels(made: Layout, port: Callable[[int, int], Sequence[float]]) -> list[list[Net]]:
    """The edges of each channel with their tracks: channel `r` lies below rank `r`.

    `port(user, source)` are the places at which a source's edge meets a box.
    """
    by_channel: list[list[Net]] = [[] for _ in range(max(made.ranks, default=-1) + 1)]
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
                by_channel[below].append(net)
    for nets in by_channel:
        _tracks(nets)
    return by_channel


@dataclass
class _Wire:
    """Nets that share one height: a single one, or those that all lead to one place alone."""

    nets: list[Net]
    tops: list[float]
    bottoms: list[float]
    low: float = 0.0
    high: float = 0.0


def _wires(nets: Iterable[Net]) -> list[_Wire]:
    """The wires that have a horizontal part, from left to right."""
    by_end: dict[object, list[Net]] = {}
    for number, net in enumerate(nets):
        x, user = net.ends[0]
        by_end.setdefault((x, user) if len(net.ends) == 1 and user >= 0 else number, []).append(net)
    wires = []
    for together in by_end.values():
        wire = _Wire(together, sorted(n.x for n in together), sorted(x for n in together for x, _ in n.ends))
        wire.low, wire.high = min(wire.tops[0], wire.bottoms[0]), max(wire.tops[-1], wire.bottoms[-1])
        if wire.high - wire.low >= 0.5:
            wires.append(wire)
    return sorted(wires, key=lambda w: (w.low, w.high))


def _crossings(above: _Wire, below: _Wire) -> int:
    """The crossings of two wires: vertical parts of one that meet the horizontal part of the other."""

    def inside(xs: Sequence[float], wire: _Wire) -> int:
        return max(0, bisect_left(xs, wire.high) - bisect_right(xs, wire.low))

    return inside(above.bottoms, below) + inside(below.tops, above)


def _tracks(nets: Iterable[Net]) -> None:
    """Give each edge a height of its own among those beside it; a straight one needs none."""
    wires = _wires(nets)
    if len(wires) > _COMPARED:
        _from_left(wires)
        return
    # what it costs that a wire runs above another, beyond the other way round
    costs = [[_crossings(a, b) - _crossings(b, a) if a.low < b.high and b.low < a.high else 0 for b in wires] for a in wires]
    left = list(range(len(wires)))
    totals = [sum(row) for row in costs]
    placed: list[tuple[int, int]] = []
    while left:
        at = min(left, key=lambda i: totals[i])
        left.remove(at)
        for i in left:
            totals[i] -= costs[i][at]
        beside = [(i, t) for i, t in placed if wires[i].low < wires[at].high + 4 and wires[at].low < wires[i].high + 4]
        track = max((t + 1 for i, t in beside if costs[i][at] < 0), default=0)
        taken = {t for _, t in beside}
        while track in taken:
            track += 1
        placed.append((at, track))
        for net in wires[at].nets:
            net.track = track


def _from_left(wires: Iterable[_Wire]) -> None:
    """Give each wire, from left to right, the first height that is free."""
    right: list[float] = []
    for wire in wires:
        track = next((t for t, end in enumerate(right) if end + 4 < wire.low), len(right))
        right[track : track + 1] = [wire.high]
        for net in wire.nets:
            net.track = track


__all__ = ["Net", "channels", "clear_of", "ports"]
