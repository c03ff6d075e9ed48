"""Offers against the letters typed: the better a name begins, the earlier it comes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

#: Words longer than this match from their beginning alone.
_LONGEST_FUZZY = 24
#: The qualities of names that begin with the word, or whose last part is the word.
_BEGINS = 3
#: The qualities from which on the letters do not begin the name.
_INSIDE = 4
#: Where a part of a name begins: behind a dot or dash, at a number, at a capital letter.
_PART = r"(?:(?<![A-Za-z0-9])|(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Za-z]))"


class Offer(NamedTuple):
    """Something to write. `kind`: variable, function, operator, constructor, type, attribute, value, keyword, file, command."""

    text: str
    kind: str
    says: str = ""


class Suggestion(NamedTuple):
    """`text` replaces the `length` characters in front of the cursor; `says` is shown beside it."""

    text: str
    length: int
    says: str = ""
    kind: str = ""


@lru_cache(maxsize=256)
def _pattern(word: str) -> re.Pattern[str]:
    """Finds the letters in their order, each behind the one before or at the beginning of a part."""
    first, *rest = map(re.escape, word)
    return re.compile(_PART + first + "".join(f"(?:|.*?{_PART}){letter}" for letter in rest))


def quality(word: str, name: str) -> int | None:
    """How well a word begins a name: 0 is best, None is not at all. Signs and quotes of names do not count."""
    word, name = word.lstrip("%@").lstrip('"'), name.lstrip("%@").strip('"')
    if not word or word == name:
        return 0
    if name.startswith(word):
        return 1
    small, lower = word.lower(), name.lower()
    tail = lower.rpartition(".")[2]
    if lower.startswith(small) or tail == small:
        return 2
    if tail.startswith(small):
        return 3
    if len(word) > _LONGEST_FUZZY:
        return None
    at = lower.find(small)
    if at >= 0 and (len(small) > 1 or not lower[at - 1].isalnum()):
        return 4 if not lower[at - 1].isalnum() else 5
    return 6 if len(word) > 1 and _pattern(small).search(lower) else None


def ranked(offers: Iterable[Offer], word: str) -> list[Suggestion]:
    """The offers that a word begins, the best first; equally good ones keep their order. Each text comes once.

    Names with the letters inside them come only where no name begins with the word. Short operators come first then.
    """
    rated: dict[str, tuple[int, int, Offer]] = {}
    for offer in offers:
        good = quality(word, offer.text)
        if good is not None:
            rated.setdefault(offer.text, (good, len(offer.text) if good >= _INSIDE and offer.kind == "operator" else 0, offer))
    best = sorted(rated.values(), key=lambda row: row[:2])
    if best and best[0][0] < _BEGINS:
        best = [row for row in best if row[0] < _INSIDE]
    return [Suggestion(offer.text, len(word), offer.says, offer.kind) for _, _, offer in best]


__all__ = ["Offer", "Suggestion", "quality", "ranked"]
