"""The shape of a text as editors ask for it, in offsets: brackets that fold, growing selections, imports, calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from relaylang.lsp import standard
from relaylang.lsp.analysis import Analysis
from relaylang.ops import OPS
from relaylang.repl.opdoc import value_text
from relaylang.stdlib.library import FILES, IMPORT
from relaylang.syntax.symbols import Placed, Symbol
from relaylang.syntax.tokeniser import Brackets, Token

#: How many defaults a hint shows.
_MOST_DEFAULTS = 4
_SEPARATORS = (",", ";")


# ---- folding


def folds(analysis: Analysis) -> list[tuple[int, int, str]]:
    """The first and the last line of each stretch that folds, and its kind: comment, imports, region, or nothing."""
    line = analysis.lines.position
    table = analysis.table
    out: dict[int, tuple[int, str]] = {}
    for placed in map(table.placed, range(len(table.definitions))):
        for begin, end in placed.brackets.closing.items():
            first, last = line(placed.code[begin].start)[0], line(placed.code[end].start)[0] - 1
            if last > first and last >= out.get(first, (0, ""))[0]:
                out[first] = last, ""
    for token in table.tokens:
        if token.kind == "metadata" or (token.kind == "comment" and token.text.startswith("/*")):
            first, last = line(token.start)[0], line(token.start + len(token.text.rstrip()))[0]
            if last > first:
                out[first] = last, "region" if token.kind == "metadata" else "comment"
    alone = [line(t.start)[0] for t in table.tokens if t.kind == "comment" and _alone(analysis.text, t)]
    out |= {first: (last, "comment") for first, last in _runs(alone)}
    out |= {first: (last, "imports") for first, last in _runs(line(m.start(1))[0] for m in IMPORT.finditer(analysis.text))}
    return [(first, last, kind) for first, (last, kind) in sorted(out.items())]


def _alone(text: str, token: Token) -> bool:
    """Whether a line comment stands alone in its line."""
    return not token.text.startswith("/*") and not text[text.rfind("\n", 0, token.start) + 1 : token.start].strip()


def _runs(lines: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of two or more lines that follow each other."""
    for _, run in groupby(enumerate(lines), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        if len(numbers) > 1:
            yield numbers[0], numbers[-1]


# ---- selections


def _around(code: Sequence[Token], pairs: Brackets, at: int, offset: int) -> Iterator[tuple[int, int]]:
    """The first and the last token of each stretch around token `at`, from the inside out."""
    yield at, at
    while at >= 0:
        holder = pairs.opening.get(at, pairs.around[at])
        if at not in pairs.opening and at not in pairs.closing:
            yield _part(code, pairs, at)
        elif at in pairs.closing and offset >= code[at].end:
            holder = at  # just behind the opening bracket
        if holder in pairs.closing:
            end = pairs.closing[holder]
            if end > holder + 1:
                yield holder + 1, end - 1
            yield holder, end
            if holder and code[holder - 1].is_word and code[holder - 1].end == code[holder].start:
                yield holder - 1, end
            yield _part(code, pairs, holder)
        at = pairs.around[holder] if holder >= 0 else -1


def selections(analysis: Analysis, offset: int) -> list[tuple[int, int]]:
    """Stretches around an offset, each inside the next: word, part, brackets, callee, and so on up to the whole text."""
    table = analysis.table
    number = table.number_at(offset)
    code, pairs = table.placed(number).code, table.placed(number).brackets
    ranges: list[tuple[int, int]] = []

    def grow(start: int, end: int) -> None:
        if start <= offset <= end and (not ranges or (start <= ranges[-1][0] and end >= ranges[-1][1] and (start, end) != ranges[-1])):
            ranges.append((start, end))

    at = bisect_right(code, offset, key=lambda t: t.start) - 1
    if at > 0 and not code[at].is_word and code[at - 1].is_word and code[at - 1].end == offset == code[at].start:
        at -= 1  # just behind a name
    if at >= 0:
        for first, last in _around(code, pairs, at, offset):
            grow(code[first].start, code[last].end)
    for symbol in table.defined(number):
        if symbol.end >= 0:
            grow(symbol.begin, symbol.end)
    grow(0, len(analysis.text))
    return ranges


def _part(code: Sequence[Token], pairs: Brackets, at: int) -> tuple[int, int]:
    """The first and the last token of the statement or argument that a token belongs to."""
    first = last = at
    while first and pairs.around[at] != first - 1 and code[first - 1].text not in _SEPARATORS:
        first = pairs.opening.get(first - 1, first - 1)
    last = pairs.closing.get(last, last)
    stop = pairs.closing.get(pairs.around[at], len(code))
    while last + 1 < stop and code[last + 1].text not in _SEPARATORS:
        last = pairs.closing.get(last + 1, last + 1)
    return first, last


# ---- imports


def links(analysis: Analysis) -> Iterator[tuple[int, int, str]]:
    """The place of each imported name, and the library's file."""
    for match in IMPORT.finditer(analysis.text):
        if match[1] in FILES and (path := standard.file_of(FILES[match[1]])) is not None:
            yield match.start(1), match.end(1), path


# ---- calls


def functions(analysis: Analysis) -> list[Symbol]:
    """The functions that a text defines, in order."""
    return sorted((s for s in analysis.table.globals.values() if s.definition is not None), key=lambda s: s.begin)


def callers(analysis: Analysis, name: str) -> dict[str, list[Token]]:
    """The functions that use a function, and where they do."""
    symbol = analysis.table.globals.get(name)
    known = functions(analysis)
    begins = [s.begin for s in known]
    out: dict[str, list[Token]] = {}
    for token in symbol.uses if symbol is not None else ():
        i = bisect_right(begins, token.start) - 1
        if i >= 0 and token.start < known[i].end:
            out.setdefault(known[i].name, []).append(token)
    return out


def callees(analysis: Analysis, name: str) -> dict[str, list[Token]]:
    """The functions that a function uses, and where it does."""
    symbol = analysis.table.globals.get(name)
    out: dict[str, list[Token]] = {}
    for other in functions(analysis) if symbol is not None else ():
        uses = [t for t in other.uses if symbol is not None and symbol.begin <= t.start < symbol.end]
        if uses:
            out[other.name] = uses
    return out


# ---- defaults


def defaults(analysis: Analysis, first: int, last: int) -> Iterator[tuple[int, str, str]]:
    """Attributes that calls between two offsets leave out: where they would stand, a short text, and all of them."""
    for placed in analysis.table.within(first, last):
        yield from _defaults(analysis, placed, first, last)


def _defaults(analysis: Analysis, placed: Placed, first: int, last: int) -> Iterator[tuple[int, str, str]]:
    code, pairs = placed.code, placed.brackets
    for begin, end in pairs.closing.items():
        if not begin or not first <= code[end].start <= last or code[begin - 1].text not in OPS:
            continue
        inside = [code[i] for i in range(begin + 1, end) if pairs.around[i] == begin]
        names = {token.text for token in inside if analysis.table.is_attribute(token)}
        fields = [f for f in OPS[code[begin - 1].text].schema.values() if f.name not in names and not f.required]
        texts = [f"{f.name}={value_text(f.default)}" for f in fields if f.default not in (None, "")]
        if texts:
            shown = [*texts[:_MOST_DEFAULTS], *["…"] * (len(texts) > _MOST_DEFAULTS)]
            yield code[end].start, (", " if end > begin + 1 else "") + ", ".join(shown), ", ".join(texts)


__all__ = ["callees", "callers", "defaults", "folds", "functions", "links", "selections"]
