"""Texts as tokens, and where a token stands.

A text is cut by one regular expression (see `Tables.tokens`), which gives token texts and no places. Places are found by
cutting it once more when a span is first looked at.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import overload

from relaylang.diagnostics.source import SourceFile, Span
from relaylang.syntax.tables import Tables
from relaylang.syntax.tokeniser import bound_beginning, bound_locals, comment_end, metadata_start, strings_and_comments

#: The characters of a long text that are cut at a time.
_STRETCH = 1 << 18
_DASHED = re.compile(r"(-)([0-9][\w.]*)")


class OpenComment(Exception):
    """A comment that nothing closes begins at offset `at`."""

    def __init__(self, at: int) -> None:
        self.at = at
        super().__init__(at)


class TokenSource(SourceFile):
    """A text whose positions are token numbers. A span's `last` is its last token, not the one behind it."""

    def __init__(self, name: str, text: str, tables: Tables, lead: Sequence[str] = ()) -> None:
        super().__init__(name, text)
        #: Tokens that stand in front of the text's own and are not in it.
        self.lead = list(lead)
        self.tables = tables
        self.begin = 1 if text.startswith("\ufeff") else 0
        self.end = metadata_start(text)
        self.scanned = text
        self.splits: dict[int, tuple[int, ...]] = {}
        #: The two changes that a text gets at most once: its nested comments blanked, its subtractions split.
        self.blanked = self.names_split = False
        self._places: tuple[Sequence[int], Sequence[int]] | None = None
        #: Names of variables that are bound elsewhere, with their `%`.
        self.known: set[str] = set()
        #: The same text with plain offsets, for places inside tokens.
        self.plain = SourceFile(name, text)

    def tokens(self) -> Sequence[str]:
        """The texts of the tokens; the last one is empty, the text's end."""
        walk = TokenWalk(self)
        return walk if self.end > _STRETCH else walk[:]

    def stretches(self) -> Iterator[list[str]]:
        """The tokens in lists of whole statements, as a long text is cut."""
        findall, text = self.tables.tokens.findall, self.scanned
        at, length = self.begin, _STRETCH
        while (stop := text.find(";\n", at + length, self.end) + 1) > 0:
            line = text[text.rfind("\n", at, stop) + 1 : stop]
            words = findall(text, at, stop) if "//" not in line and "#" not in line else ["/*"]
            while words and not words[-1]:
                words.pop()
            if not words or words[-1] != ";" or "/*" in words:  # a string or a comment goes on behind the line
                length *= 2
                continue
            yield words
            at, length = stop, _STRETCH
        words = findall(text, at, self.end)
        while len(words) > 1 and not words[-2]:
            words.pop()
        yield words

    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        """Where each token begins and ends."""
        if self._places is None:
            starts, ends = array("q"), array("q")
            for match in self.tables.tokens.finditer(self.scanned, self.begin, self.end):
                start, end = match.span(1)
                for length in self.splits.get(len(starts) + len(self.lead), ()):
                    starts.append(start)
                    start += length
                    ends.append(start)
                starts.append(start)
                ends.append(end)
            self._places = starts, ends
        return self._places

    def start_of(self, position: int) -> int:
        starts = self.places()[0]
        return starts[max(0, min(position - len(self.lead), len(starts) - 1))]

    def end_of(self, position: int) -> int:
        ends = self.places()[1]
        return ends[max(0, min(position - len(self.lead), len(ends) - 1))]

    def offsets(self, first: int, last: int | None = None) -> Span:
        """The span from token `first` to token `last`, by offsets."""
        start = self.start_of(first)
        return Span(self.plain, start, max(start, self.end_of(first if last is None else last)))

    def newline_before(self, position: int) -> bool:
        """Whether a token is the first one on its line, comments left out."""
        text, before = self.scanned, position - 1
        while before >= 0:
            start = self.start_of(before)
            if not text.startswith(("/*", "//", "#"), start) or text.startswith("#[", start):
                break
            before -= 1
        return before < 0 or text.find("\n", self.end_of(before), self.start_of(position)) >= 0

    def blank_comments(self) -> int | None:
        """Put blanks in place of comments, so that nested ones are gone. Returns where one begins that never ends."""
        text, out, at = self.text, [], self.begin
        hides = strings_and_comments()
        done = 0
        self.blanked = True
        while True:
            match = hides.search(text, at, self.end)
            if match is None:
                break
            at = match.end()
            if match.group() != "/*":
                continue
            start = match.start()
            closed = comment_end(text, start, self.end)
            if closed is None:
                return start
            at = closed
            if text.find("/*", start + 2, at) < 0 and text.startswith(("/* ty=", "/* span="), start):
                continue
            lines = text.count("\n", start, at)
            out += [text[done:start], "\n" * lines, " " * (at - start - lines)]
            done = at
        self.scanned = "".join([*out, text[done:]])
        self._places = None
        return None

    def cut_anew(self, tokens: Sequence[str]) -> Sequence[str]:
        """The tokens once more: at first without nested comments, the next time with names split into subtractions.

        Raises `OpenComment`. Each change happens once, so a text is read three times at most.
        """
        if not self.blanked:
            open_at = self.blank_comments()
            if open_at is not None:
                raise OpenComment(open_at)
            return self.tokens()
        assert not self.names_split
        return self.split_dashes(tokens)

    def split_dashes(self, tokens: Sequence[str]) -> list[str]:
        """Tell subtractions (`%n-1`) from names with dashes (`%layer-1`): a name is what the text binds somewhere.

        Returns the tokens with the subtractions cut into three and remembers where.
        """
        self.names_split = True
        kind_of, numbers = self.tables.kind_of, self.tables.numbers
        dashed = numbers["DASHED"]
        bound = bound_locals(tokens) | self.known
        out: list[str] = []
        for token in tokens:
            if token[:1] == "%" and token not in bound and kind_of(token) == dashed:
                head = bound_beginning(token, bound) or token.partition("-")[0]
                pieces = [head]
                for part in token[len(head) :].split("-")[1:]:
                    if not _DASHED.fullmatch("-" + part):
                        pieces = []
                        break
                    pieces += ["-", part]
                if len(pieces) > 1:
                    self.splits[len(out)] = tuple(len(p) for p in pieces[:-1])
                    out += pieces
                    continue
            out.append(token)
        self._places = None
        return out


class TokenWalk(Sequence[str]):
    """The tokens of a source as it is now. Each walk cuts the text anew and keeps nothing; an index keeps all tokens."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        #: The stretch that a walk is in, the number of its first token, and what the walk has left of it.
        self.words: list[str] = []
        self.begin = 0
        self._left: Iterator[str] = iter(())

    @cached_property
    def _all(self) -> list[str]:
        return [*self._source.lead, *chain.from_iterable(self._source.stretches())]

    def __iter__(self) -> Iterator[str]:
        yield from self._source.lead
        begin = len(self._source.lead)
        for words in self._source.stretches():
            self.words, self.begin, self._left = words, begin, iter(words)
            begin += len(words)
            yield from self._left

    def skip(self, count: int) -> None:
        """Leave tokens of the stretch out of the walk that is under way."""
        next(islice(self._left, count, count), None)

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> list[str]: ...

    def __getitem__(self, at: int | slice) -> str | list[str]:
        return self._all[at]
