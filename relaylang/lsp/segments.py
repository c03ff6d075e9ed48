"""The parts of a module's text: each definition with what follows it up to the next one.

A word that begins a definition stands nowhere else, so a text can be cut in front of each. A part counts places from its
own beginning: a change in front of it moves it and nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.grammar import compiled
from relaylang.ir import Expr, Function, GlobalTypeVar, GlobalVar, IRModule, TypeData
from relaylang.lsp.nodes import by_start
from relaylang.syntax.actions import Build
from relaylang.syntax.literals import string
from relaylang.syntax.reader import comment_type, notes_of, read_source, tables
from relaylang.syntax.tokens import TokenSource

TYPES = frozenset({"type", "data", "extern"})
_BEGINS = TYPES | {"def"}


class Part:
    """One part. `word` is what it begins with; the first part of a text begins with nothing."""

    def __init__(self, text: str, word: str = "", name: str = "", mentions: frozenset[str] = frozenset()) -> None:
        self.text = text
        self.word = word
        self.name = name
        #: the names of functions in it
        self.mentions = mentions
        self.base = 0
        #: the reader's diagnostics
        self.said: list[Diagnostic] = []
        #: it has a syntax error, whose message depends on the text behind it
        self.broken = False
        self.function: Function | None = None
        self.definitions: dict[GlobalTypeVar, TypeData] = {}
        self.constructors: list[str] = []
        #: an expression follows the definition
        self.has_expression = False
        self._name_at: tuple[TokenSource, int] | None = None
        self._sources: list[TokenSource] = []

    def fresh(self) -> Part:
        """The same text, not read yet."""
        return Part(self.text, self.word, self.name, self.mentions)

    def _source(self, name: str, text: str) -> TokenSource:
        made = TokenSource(name, text, tables())
        made.base = made.plain.base = self.base
        self._sources.append(made)
        return made

    def sources(self) -> Iterator[SourceFile]:
        """The sources that its diagnostics may point into."""
        for source in self._sources:
            yield source
            yield source.plain

    def move(self, base: int) -> None:
        """The part begins there from now on."""
        if base != self.base:
            self.base = base
            for source in self.sources():
                source.base = base

    @property
    def sound(self) -> bool:
        return not any(d.severity == "error" for d in self.said)

    @cached_property
    def nodes(self) -> dict[int, list[Expr]]:
        """Its nodes by where they begin in it."""
        return by_start([self.function] if self.function is not None else ())

    @property
    def name_place(self) -> Span | None:
        """Where its name stands."""
        return self._name_at[0].offsets(self._name_at[1]) if self._name_at is not None else None

    def read(self, known: Known, following: str) -> None:
        """Read it. `following` is the next part's text: errors of syntax may show there only."""
        try:
            self._read(known, self.text)
        except RelayError as wrong:
            self.said = wrong.diagnostics
        if following and (self.broken or self.has_expression):
            self.broken = True
            try:
                self._read(known, self.text + following)
            except RelayError as wrong:
                here = [d for d in wrong.diagnostics if d.span is None or d.span.start <= len(self.text)]
                self.said = here or self.said

    def _read(self, known: Known, text: str) -> None:
        source = self._source(known.name, text)
        wrong = None
        try:
            build, value, _ = read_source(source, known.build_of(source))
            self.said = notes_of(build, True)
        except RelayError as error:
            wrong = error
            if error.partial is None:
                self.function, self.broken = None, True
                raise
            build, value = error.partial  # type: ignore[misc]
        self.function = next((made for var, made in build.functions.made.items() if var.name_hint == self.name), None)
        self.definitions = dict(build.types.made)
        self.constructors = list(build.types.defined_constructors)
        self.has_expression = value[1] is not None
        self.broken = build.reports.broken
        at = next(iter(build.functions.defined.values()), None)
        self._name_at = (source, at) if at is not None else None
        if wrong is not None:
            raise wrong


class Known:
    """The shared knowledge of a text's parts: names of functions and types, and type definitions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.functions: dict[str, GlobalVar] = {}
        self.type_vars: dict[str, GlobalTypeVar] = {}
        self.types = IRModule()

    def build_of(self, source: TokenSource) -> Callable[[list[str]], Build]:
        """Makes the build of a part for its tokens. The part needs no version header."""

        def start(tokens: list[str]) -> Build:
            made = Build(source, tokens, self.types, None, None, comment_type, self.functions, self.type_vars)
            made.text.versioned = True
            return made

        return start


def cut(text: str, name: str) -> tuple[list[Part], bool]:
    """The parts of a text, and whether its comments and strings end for certain."""
    source = TokenSource(name, text, tables())
    if (open_at := source.blank_comments()) is not None:
        source = TokenSource(name, text[:open_at], tables())
        source.blank_comments()
    alone = _definition_alone(source) if open_at is None else None
    if alone is not None:
        return [Part(""), alone], _line_ends(text)
    starts: list[int] = []
    heads: list[list[str]] = []  # the first word of each part and its name
    mentions: list[set[str]] = [set()]
    before = ""
    for found in tables().tokens.finditer(source.scanned, source.begin):
        token = found[1]
        if not token or token[:2] in ("//", "/*"):
            continue
        if token in _BEGINS and before != "extern":
            starts.append(found.start(1))
            heads.append([token])
            mentions.append(set())
        elif heads and len(heads[-1]) == 1 and token != "type":
            heads[-1].append(_name(token) if token[:1] == "@" else token.rstrip("([{"))
        if token[:1] == "@":
            mentions[-1].add(_name(token))
        before = token
    numbers = tables().numbers
    if open_at is not None:  # the reader goes on behind a comment that does not end
        found_names = (found[1] for found in tables().tokens.finditer(text, open_at + 2))
        mentions[-1].update(_name(token) for token in found_names if token[:1] == "@")
    open_string = before[:1] == '"' and tables().kind_of(before) == numbers["BAD"]
    closed = open_at is None and not open_string and _line_ends(text)
    begins = [0, *starts, len(text)]
    parts = [Part(text[: begins[1]], mentions=frozenset(mentions[0]))]
    for i, head in enumerate(heads):
        called = head[1] if len(head) > 1 else ""
        parts.append(Part(text[begins[i + 1] : begins[i + 2]], head[0], called, frozenset(mentions[i + 1])))
    return parts, closed


#: A word that may begin a definition.
_WORD = re.compile(r"(?<![%@\w])(?:def|type|data|extern)(?!\w)")
_HEAD = re.compile(r"def\s+")


def begins_definitions(text: str) -> bool:
    """Whether there may be a definition in a text."""
    return _WORD.search(text) is not None


def _definition_alone(source: TokenSource) -> Part | None:
    """The part of a text with one function and nothing before it, None for a text that needs the tokeniser.

    Most keystrokes change such a text, which may be long. This function makes no tokens.
    """
    text = source.scanned
    head = _HEAD.match(text)
    name = compiled("GLOBAL").match(text, head.end()) if head is not None else None
    if name is None or len(_WORD.findall(text)) != 1:
        return None
    hidden = compiled("GLOBAL", "STRING", "LINE_COMMENT")
    if '"' in hidden.sub("", text):
        return None
    mentions = {_name(found[0]) for found in hidden.finditer(text) if found.lastgroup == "GLOBAL"}
    return Part(source.text, "def", _name(name[0]), frozenset(mentions))


def _line_ends(text: str) -> bool:
    """Whether no comment of the last line may swallow what follows."""
    line = text[text.rfind("\n") + 1 :]
    return "//" not in line and "#" not in line


def _name(token: str) -> str:
    token = token[1:].rstrip("(")
    return string(token) if token[:1] == '"' else token


__all__ = ["TYPES", "Known", "Part", "begins_definitions", "cut"]
