"""The parts of a module's text: each definition with what follows it up to the next one.

A word that begins a definition stands nowhere else, so a text can be cut in front of each. A part counts places from its
own beginning: a change in front of it moves it and nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Expr, Function, GlobalTypeVar, Let, TypeData
from relaylang.lsp.nodes import by_start
from relaylang.lsp.stretches import Known, NotByStretches, Stretches
from relaylang.syntax.reader import notes_of, read_source, tables
from relaylang.syntax.symbols import Definition, Symbol
from relaylang.syntax.tokens import TokenSource


class Part(Definition):
    """A definition that is read and checked. `word` is what it begins with; the first part of a text begins with nothing."""

    def __init__(self, *piece: Any) -> None:
        super().__init__(*piece)
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
        #: the stretches of a long function
        self.stretches: Stretches | None = None
        #: the only statements of a changed function without types
        self.statements: Sequence[Let] = ()
        self._name_at: tuple[TokenSource, int] | None = None
        self._sources: list[TokenSource] = []

    def fresh(self) -> Part:
        """The same text, not read yet."""
        return Part(self.text, self.word, self.name, self.mentions)

    def _source(self, name: str, text: str) -> TokenSource:
        source = TokenSource(name, text, tables())
        source.base = source.plain.base = self.base
        self._sources.append(source)
        return source

    def sources(self) -> Iterator[SourceFile]:
        """The sources that its diagnostics may point into."""
        for source in self._sources:
            yield source
            yield source.plain
        if self.stretches is not None:
            yield from self.stretches.sources()

    def move(self, base: int) -> None:
        """The part begins there from now on."""
        if base != self.base:
            self.base = base
            for source in self._sources:
                source.base = source.plain.base = base
            if self.stretches is not None:
                self.stretches.move(base)

    @property
    def sound(self) -> bool:
        return not any(d.severity == "error" for d in self.said)

    @cached_property
    def _nodes(self) -> dict[int, list[Expr]]:
        return by_start([self.function] if self.function is not None else ())

    def nodes_at(self, start: int) -> list[Expr]:
        """The nodes that begin at a place in it."""
        if self.stretches is None:
            return self._nodes.get(start, [])
        base, stretch = self.stretches.between(start, start)[0]
        return stretch.nodes.get(start - base, [])

    def pieces(self, first: int, last: int) -> Sequence[tuple[int, Definition]]:
        return self.stretches.between(first, last) if self.stretches is not None else super().pieces(first, last)

    def binder(self, name: str, offset: int) -> tuple[int, Definition, Symbol] | None:
        return self.stretches.binder(name, offset) if self.stretches is not None else None

    @property
    def names_end(self) -> int:
        span = self.function.span if self.function is not None else None
        return span.end - 1 if span is not None else len(self.text)

    @property
    def name_place(self) -> Span | None:
        """Where its name stands."""
        if self.stretches is not None:
            return self.stretches.all[0].source.offsets(1)
        return self._name_at[0].offsets(self._name_at[1]) if self._name_at is not None else None

    def read(self, known: Known, following: str) -> None:
        """Read it. `following` is the next part's text: errors of syntax may show there only."""
        try:
            if self.word == "def":
                self.take(Stretches(self.text, known))
                return
        except NotByStretches:
            pass
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

    def take(self, stretches: Stretches) -> None:
        """Be a function that is read by stretches."""
        self.stretches, self.function, self.statements = stretches, stretches.function, stretches.statements
        self.said = [diagnostic for stretch in stretches.all for diagnostic in stretch.said]
        stretches.move(self.base)

    def changed(self, text: str, begin: int, end: int, again: Collection[SourceFile]) -> Part:
        """The part with another text, which differs from offset `begin` to `end` of this one. Raises `NotByStretches`."""
        if self.stretches is None:
            raise NotByStretches
        part = Part(text, self.word, self.name, self.mentions)
        part.base = self.base
        part.take(self.stretches.changed(text, begin, end, again))
        return part

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
        self.function = next((function for var, function in build.functions.made.items() if var.name_hint == self.name), None)
        self.definitions = dict(build.types.made)
        self.constructors = list(build.types.defined_constructors)
        self.has_expression = value[1] is not None
        self.broken = build.reports.broken
        at = next(iter(build.functions.defined.values()), None)
        self._name_at = (source, at) if at is not None else None
        if wrong is not None:
            raise wrong


__all__ = ["Part"]
