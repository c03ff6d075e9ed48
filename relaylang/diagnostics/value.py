"""Diagnostics as values: a code, a title, labelled places, notes, a fix; and the collector of them.

Nothing in the library prints. Readers, checkers and compilers make `Diagnostic` values, collect them and go on. They
raise one `RelayError` with all of them where no result is left to return.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from relaylang.diagnostics.html import as_html
from relaylang.diagnostics.rendering import render as render
from relaylang.diagnostics.source import Span
from relaylang.diagnostics.suggest import did_you_mean as did_you_mean


@dataclass(frozen=True)
class Label:
    """A span with a text. The primary label is the diagnostic's place."""

    span: Span
    text: str = ""
    primary: bool = True


@dataclass(frozen=True)
class Fix:
    """A suggested repair that a tool can make: `replacement` takes the place of the span's text."""

    span: Span
    replacement: str
    title: str = ""

    def apply(self, text: str) -> str:
        """The source's text with this repair made."""
        return text[: self.span.start] + self.replacement + text[self.span.end :]


@dataclass(frozen=True)
class Diagnostic:
    """One finding about a program.

    `code` has a page in `relaylang.diagnostics.pages`. `title` is one sentence without a full stop. `labels` are the
    places; the first primary one is the diagnostic's own. `notes` are further sentences. `severity` is "error", "warning"
    or "note".
    """

    code: str
    title: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    fix: Fix | None = None
    severity: str = "error"

    @property
    def span(self) -> Span | None:
        for label in self.labels:
            if label.primary:
                return label.span
        return self.labels[0].span if self.labels else None

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return as_html(render(self, True))


def error(
    code: str,
    title: str,
    span: Span | None = None,
    label: str = "",
    *,
    also: Iterable[tuple[Span | None, str]] = (),
    notes: Iterable[str] = (),
    fix: Fix | None = None,
    severity: str = "error",
) -> Diagnostic:
    """A diagnostic from its parts: one primary place and any number of secondary ones (`also`)."""
    labels = [Label(span, label)] if span is not None else []
    labels += [Label(place, text, primary=False) for place, text in also if place is not None]
    return Diagnostic(code, title, tuple(labels), tuple(notes), fix, severity)


class RelayError(Exception):
    """The program is wrong. Carries every diagnostic: the errors, and the notes beside them.

    `partial` is the readable part of a wrong text (`ParseResult`), with unknown values for its wrong pieces.
    """

    def __init__(self, diagnostics: Diagnostic | Sequence[Diagnostic], partial: object = None) -> None:
        self.partial = partial
        self.diagnostics = [diagnostics] if isinstance(diagnostics, Diagnostic) else list(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(render(d) for d in self.diagnostics)


@dataclass
class Diagnostics:
    """A collector. It keeps `limit` errors, and counts the later ones.

    It leaves out repetitions at the same place. An error of syntax or names causes errors in types: it leaves those at the
    same place out, too.
    """

    limit: int = 20
    items: list[Diagnostic] = field(default_factory=list)
    errors: int = 0
    _told: set[tuple[str, str, str, int, int]] = field(default_factory=set, repr=False)
    _unread: set[tuple[str, int, int]] = field(default_factory=set, repr=False)

    def add(self, diagnostic: Diagnostic) -> None:
        span = diagnostic.span
        if span is not None:
            place = span.source.name, span.start, span.end
            key = (diagnostic.code, diagnostic.title, *place)
            if key in self._told or (diagnostic.code[:3] == "R03" and place in self._unread):
                return
            self._told.add(key)
            if diagnostic.code[:3] in ("R01", "R02") and diagnostic.severity == "error":
                self._unread.add(place)
        if diagnostic.severity == "error":
            self.errors += 1
            if self.errors > self.limit:
                return
        self.items.append(diagnostic)

    def raise_errors(self) -> None:
        if self.errors:
            raise RelayError([*self.items, *and_more(self.errors - self.limit)])


def by_place(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics in the order of their places, source by source, and notes after all others."""
    every = list(diagnostics)
    sources = {d.span.source.name: None for d in every if d.span is not None}
    order = {name: number for number, name in enumerate(sources)}

    def key(diagnostic: Diagnostic) -> tuple[bool, int, int]:
        span = diagnostic.span
        place = (order[span.source.name], span.start) if span is not None else (len(order), 0)
        return diagnostic.severity == "note", *place

    return sorted(every, key=key)


def and_more(hidden: int, exact: bool = True) -> list[Diagnostic]:
    """A note that counts the hidden errors; an empty list where there are none."""
    if hidden <= 0:
        return []
    count = f"{hidden} more error{'s' * (hidden != 1)}" if exact else f"more than {hidden} others"
    return [error("R0090", f"and {count}", severity="note", notes=["repair the first ones and look again"])]


def first_ones(diagnostics: Iterable[Diagnostic], limit: int = 20) -> list[Diagnostic]:
    """The diagnostics with no more than `limit` errors, and a note that counts the others."""
    said = Diagnostics(limit)
    for diagnostic in diagnostics:
        said.add(diagnostic)
    return [*said.items, *and_more(said.errors - limit)]
