"""Pairs the items of two sequences in order, as comparisons of texts pair lines.

Keys that stand once on both sides are anchors (patience difference); between anchors the longest common subsequence
counts (Myers). The work grows linearly with the items where the keys of most items stand once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

#: Differences between two anchors that are searched at once; behind so many the search begins anew.
_MOST = 200

#: A part of both sequences: begin and end on the left, begin and end on the right.
Gap = tuple[int, int, int, int]


def align(left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]]) -> list[tuple[int, int]]:
    """The pairs of places, ascending on both sides. Each item is its keys, the most exact one first.

    Items with an equal key of one level may be a pair. Exact keys are paired before loose ones.
    """
    pairs: list[tuple[int, int]] = []
    gaps: list[Gap] = [(0, len(left), 0, len(right))]
    levels = len((*left[:1], *right[:1])[0]) if left or right else 0
    for level in range(levels):
        a, b = [keys[level] for keys in left], [keys[level] for keys in right]
        for search in (_anchors, _common) if level == levels - 1 else (_anchors,):
            open_gaps: list[Gap] = []
            for gap in gaps:
                matched, rest = _trimmed(a, b, gap)
                matched += search(a, b, rest)
                pairs += matched
                open_gaps += _between(gap, sorted(matched))
            gaps = open_gaps
    return sorted(pairs)


def _trimmed(a: Sequence[Hashable], b: Sequence[Hashable], gap: Gap) -> tuple[list[tuple[int, int]], Gap]:
    """The pairs at both ends of a gap, and what lies between them."""
    a0, a1, b0, b1 = gap
    pairs = []
    while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
        pairs.append((a0, b0))
        a0, b0 = a0 + 1, b0 + 1
    while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
        pairs.append((a1, b1))
    return pairs, (a0, a1, b0, b1)


def _between(gap: Gap, pairs: Sequence[tuple[int, int]]) -> list[Gap]:
    """The parts of a gap between pairs that have items on both sides."""
    a0, a1, b0, b1 = gap
    gaps = []
    for a, b in (*pairs, (a1, b1)):
        if a0 < a and b0 < b:
            gaps.append((a0, a, b0, b))
        a0, b0 = a + 1, b + 1
    return gaps


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], gap: Gap) -> list[tuple[int, int]]:
    """The longest ascending row of pairs whose keys stand once on each side of the gap."""
    a0, a1, b0, b1 = gap
    on_left, on_right = Counter(a[a0:a1]), Counter(b[b0:b1])
    places = {b[i]: i for i in range(b0, b1)}
    pairs = [(i, places[a[i]]) for i in range(a0, a1) if on_left[a[i]] == 1 == on_right[a[i]]]
    ends: list[int] = []  # the least right end of an ascending row of each length
    last: list[int] = []
    before: list[int] = []
    for number, (_, right) in enumerate(pairs):
        length = bisect_left(ends, right)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [right]
        last[length : length + 1] = [number]
    ascending = []
    at = last[-1] if last else -1
    while at >= 0:
        ascending.append(pairs[at])
        at = before[at]
    return ascending


def _common(a: Sequence[Hashable], b: Sequence[Hashable], gap: Gap) -> list[tuple[int, int]]:
    """A longest common subsequence; where sides differ much, one of each part with `_MOST` differences."""
    a0, a1, b0, b1 = gap
    common: list[tuple[int, int]] = []
    while a0 < a1 and b0 < b1:
        pairs, a0, b0 = _furthest(a, b, (a0, a1, b0, b1))
        common += pairs
    return common


def _furthest(a: Sequence[Hashable], b: Sequence[Hashable], gap: Gap) -> tuple[list[tuple[int, int]], int, int]:
    """The pairs on a shortest way to the end, or to the furthest place within `_MOST` differences, and that place."""
    a0, a1, b0, b1 = gap
    width, height = a1 - a0, b1 - b0
    reach = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(_MOST + 1):
        trace.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            while x < width and x - k < height and a[a0 + x] == b[b0 + x - k]:
                x += 1
            reach[k] = x
            if x >= width and x - k >= height:
                return _way(trace, k, x, a0, b0), a1, b1
    inside = [k for k in range(-_MOST, _MOST + 1, 2) if reach[k] <= width and reach[k] - k <= height]
    best = max(inside, key=lambda k: 2 * reach[k] - k)
    x = reach[best]
    return _way(trace, best, x, a0, b0), a0 + x, b0 + x - best


def _way(trace: Sequence[dict[int, int]], k: int, x: int, a0: int, b0: int) -> list[tuple[int, int]]:
    """Walk back from a place on diagonal `k`, and collect its pairs."""
    pairs = []
    for edits in reversed(range(len(trace))):
        reach = trace[edits]
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        begin = (reach[k + 1] if down else reach[k - 1] + 1) if edits else 0
        pairs += [(a0 + i, b0 + i - k) for i in range(begin, x)]
        x = begin if down else begin - 1
        k = k + 1 if down else k - 1
    return pairs


__all__ = ["align"]
