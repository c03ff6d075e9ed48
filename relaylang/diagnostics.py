"""What is said about a wrong program: diagnostics as values, their codes, and how they are shown.

Nothing in the library prints. Readers, checkers and compilers make `Diagnostic` values, collect them and go on, and
raise one `RelayError` with all of them where there is nothing left to return.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from relaylang.source import SourceFile, Span

#: Each code's short title. The hundreds say where it comes from: 00 files, 01 syntax, 02 names, 03 types,
#: 04 evaluation, 05 passes, 06 backends, 07 the command line, 09 an error of ours.
CODES: dict[str, str] = {}


def define_codes(codes: dict[str, str]) -> None:
    """Add codes to the table. Two meanings for one code are an error of ours."""
    for code, title in codes.items():
        if CODES.setdefault(code, title) != title:
            raise AssertionError(f"{code} is defined twice")


@dataclass(frozen=True)
class Label:
    """A span and what is to be said at it. The primary label is where the diagnostic points."""

    span: Span
    text: str = ""
    primary: bool = True


@dataclass(frozen=True)
class Fix:
    """A suggested repair: the span's text is to be replaced by `replacement`."""

    span: Span
    replacement: str
    title: str = ""


@dataclass(frozen=True)
class Diagnostic:
    """One thing to say about a program.

    `code` is from `CODES`, `title` one sentence without a full stop, `labels` the places (the first primary one is the
    diagnostic's own), `notes` further sentences, `severity` "error", "warning" or "note".
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
    """The program is wrong. Carries every diagnostic that was found, errors and the notes beside them."""

    def __init__(self, diagnostics: Diagnostic | Sequence[Diagnostic]) -> None:
        self.diagnostics = [diagnostics] if isinstance(diagnostics, Diagnostic) else list(diagnostics)
        super().__init__("\n".join(render(d) for d in self.diagnostics))


@dataclass
class Diagnostics:
    """A collector. `limit` errors are kept; what comes behind them is counted only."""

    limit: int = 20
    items: list[Diagnostic] = field(default_factory=list)
    errors: int = 0

    def add(self, diagnostic: Diagnostic) -> None:
        if diagnostic.severity == "error":
            self.errors += 1
            if self.errors > self.limit:
                return
        self.items.append(diagnostic)

    def raise_errors(self) -> None:
        if self.errors:
            raise RelayError(self.items)


_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": "\x1b[1;36m"}
_BLUE, _BOLD, _RESET = "\x1b[1;34m", "\x1b[1m", "\x1b[0m"
_MAX_SHOWN = 110


def _printable(text: str) -> str:
    """The text with control characters made visible, so that no input can steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ("    " if c == "\t" else f"\\x{ord(c):02x}") for c in text)


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in _printable(text)
    )


def _excerpt(source: SourceFile, label: Label, mark: str) -> tuple[int, list[str]]:
    """The line that a label stands on, cut around it where it is long, and the line of carets below it."""
    line, column = source.locate(label.span.start)
    text = source.line(line)
    begin = column - 1
    end_line, end_column = source.locate(label.span.end)
    end = max(begin + 1, end_column - 1 if end_line == line else len(text))
    left = max(0, begin - 40) if len(text) > _MAX_SHOWN else 0
    shown = text[left : left + _MAX_SHOWN]
    head = "…" if left else ""
    tail = "…" if left + _MAX_SHOWN < len(text) else ""
    pad = _width(head + text[left:begin])
    carets = mark * max(1, _width(text[begin : min(end, left + _MAX_SHOWN)]))
    says = f" {_printable(label.text)}" if label.text else ""
    return line, [_printable(head + shown + tail), " " * pad + carets + says]


def render(diagnostic: Diagnostic, color: bool = False) -> str:
    """`FILE:LINE:COL: error[R0123]: title`, the source lines with carets, then the notes and the suggested fix."""

    def paint(text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if color else text

    where = f"{diagnostic.span}: " if diagnostic.span is not None else ""
    kind = paint(f"{diagnostic.severity}[{diagnostic.code}]", _COLOURS.get(diagnostic.severity, ""))
    out = [f"{where}{kind}: {paint(_printable(diagnostic.title), _BOLD)}"]
    primary = diagnostic.span
    for label in diagnostic.labels:
        source = label.span.source
        if not source.text:
            continue
        if primary is not None and source is not primary.source:
            out.append(f"  in {label.span}:")
        number, (text, carets) = _excerpt(source, label, "^" if label.primary else "-")
        gutter = f"{number:5d} | "
        out.append(paint(gutter, _BLUE) + text)
        colour = _COLOURS.get(diagnostic.severity, "") if label.primary else _BLUE
        out.append(" " * (len(gutter) - 2) + paint("| ", _BLUE) + paint(carets, colour))
    out += [f"  = {paint('note', _BOLD)}: {_printable(note)}" for note in diagnostic.notes]
    if diagnostic.fix is not None:
        title = diagnostic.fix.title or f"write `{diagnostic.fix.replacement}`"
        out.append(f"  = {paint('help', _BOLD)}: {_printable(title)}")
    return "\n".join(out)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to a misspelt one, or None where none is near."""
    near = difflib.get_close_matches(name[:200], [k for k in known if len(k) <= 200], n=1, cutoff=0.7)
    return near[0] if near else None
