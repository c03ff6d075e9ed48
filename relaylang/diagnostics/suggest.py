"""Which known name was meant by a misspelt one.

The measure is the number of single edits (a letter put in, left out, changed, or two neighbours swapped). How many are
allowed grows with the name, so that short names are never "corrected" to something unrelated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Names longer than this are not compared: nobody typed them.
_LONGEST = 200
_DIGITS = re.compile(r"[0-9]+")


def edits(a: str, b: str, limit: int) -> int:
    """The number of edits from `a` to `b`, or `limit + 1` where there are more than `limit`."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, above, row = row, before, [i]
        for j, y in enumerate(b, 1):
            cost = before[j - 1] if x == y else 1 + min(before[j - 1], before[j], row[j - 1])
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def allowed(name: str) -> int:
    """How many edits may lie between a name and its suggestion."""
    return 0 if len(name) < 3 else 1 if len(name) < 6 else 2 if len(name) < 12 else 3


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to a misspelt one, or None where none is near.

    `relu` finds `nn.relu`, `NN.Relu` too, and the beginning of a name that name. Names that differ in their digits
    only (`%x1`, `%x2`) are different names, not misspelt ones. Quick for tens of thousands of names: most are
    dropped by their length and their letters.
    """
    if not 0 < len(name) <= _LONGEST:
        return None
    small = name.lower()
    letters = set(small)
    limit = allowed(name)
    bare = _DIGITS.sub("0", small) if limit else ""
    best: tuple[int, int, str] | None = None
    for candidate in known:
        size = len(candidate)
        if not 0 < size <= _LONGEST or candidate == name:
            continue
        lower = candidate.lower()
        if lower == small:
            return candidate
        near = _alike(small, lower)
        if near is None and limit and abs(size - len(name)) <= limit and len(letters.symmetric_difference(lower)) <= 2 * limit:
            if bare != small and _DIGITS.sub("0", lower) == bare:
                continue
            count = edits(small, lower, limit)
            near = (count, abs(size - len(name))) if count <= min(limit, max(1, allowed(candidate))) else None
        elif near is None and _same_words(small, lower):
            near = (2, size)
        if near is not None and (best is None or (*near, candidate) < best):
            best = (*near, candidate)
    return best[2] if best is not None else None


def _alike(name: str, other: str) -> tuple[int, int] | None:
    """How far another name is away that has the same end behind its last point, or the same beginning; both in small letters."""
    tail = name.rpartition(".")[2]
    if len(tail) > 2 and ("." in other or "." in name) and other.rpartition(".")[2] == tail:
        return 1, len(other)
    return (1, len(other) - len(name)) if len(name.lstrip("-@%")) > 3 and other.startswith(name) else None


def _same_words(a: str, b: str) -> bool:
    """Whether two names are the same words in another order or written otherwise: `pool_max2d`, `maxpool2d`."""
    if len(a) < 6 or abs(len(a) - len(b)) > 3:
        return False
    return a.replace("_", "") == b.replace("_", "") or sorted(a.split("_")) == sorted(b.split("_"))
