"""Edits that bring a text, or lines of it, into its canonical form. They are small, so that cursors keep their places."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from relaylang.diagnostics import RelayError
from relaylang.lsp.analysis import Analysis
from relaylang.lsp.document import difference
from relaylang.syntax.format import format_text
from relaylang.syntax.tree import cut

#: The most lines of a definition whose lines are compared one by one.
_MOST_LINES = 1000


class Edit(NamedTuple):
    """The new text of a stretch, in offsets."""

    begin: int
    end: int
    text: str


def edits(analysis: Analysis) -> list[Edit] | None:
    """The edits of the whole text, one for each definition that changes. None where the text is wrong."""
    pairs = _pairs(analysis)
    return [_smallest(at, old, new) for at, old, new in pairs if old != new] if pairs is not None else None


def edits_of_lines(analysis: Analysis, first: int, last: int) -> list[Edit] | None:
    """The edits between two offsets, in whole lines. A long definition is one. None where the text is wrong."""
    pairs = _pairs(analysis)
    if pairs is None:
        return None
    line_edits: list[Edit] = []
    for at, old, new in pairs:
        if old != new and at <= last and first <= at + len(old):
            line_edits += _line_edits(at, old, new, first, last)
    return line_edits


def _pairs(analysis: Analysis) -> list[tuple[int, str, str]] | None:
    """Where each definition begins, its text and its canonical text."""
    text = analysis.text
    try:
        canonical = format_text(text, analysis.name)
    except RelayError:
        return None
    if canonical is None:
        return None
    if "\r\n" in text:
        canonical = canonical.replace("\r\n", "\n").replace("\n", "\r\n")
    old, new = ([piece.text for piece in cut(one)[0]] for one in (text, canonical))
    if len(old) != len(new) or "".join(old) != text or "".join(new) != canonical:
        old, new = [text], [canonical]
    pairs, at = [], 0
    for before, after in zip(old, new):
        pairs.append((at, before, after))
        at += len(before)
    return pairs


def _smallest(at: int, old: str, new: str) -> Edit:
    begin, end = difference(old, new)
    return Edit(at + begin, at + end, new[begin : end + len(new) - len(old)])


def _line_edits(at: int, old: str, new: str, first: int, last: int) -> Iterator[Edit]:
    """The lines that differ and touch a stretch."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if max(len(before), len(after)) > _MOST_LINES:
        yield _smallest(at, old, new)
        return
    starts = [at]
    for line in before:
        starts.append(starts[-1] + len(line))
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal" or starts[i] > last or starts[j] < first or (starts[j] == first and i < j):
            continue
        yield _smallest(starts[i], "".join(before[i:j]), "".join(after[k:m]))


__all__ = ["Edit", "edits", "edits_of_lines"]
