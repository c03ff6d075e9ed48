"""Diagnostics as text: `FILE:LINE:COL: error[R0123]: title`, the source lines with carets, notes, the suggested fix."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relaylang.diagnostics.source import SourceFile

if TYPE_CHECKING:
    from relaylang.diagnostics.value import Diagnostic, Fix

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": "\x1b[1;36m"}
_BLUE, _BOLD, _GREEN, _RESET = "\x1b[1;34m", "\x1b[1m", "\x1b[1;32m", "\x1b[0m"
#: The columns of a diagnostic's lines. Longer lines of the source are cut around the place that is shown.
COLUMNS = 120
#: The columns beside a source line: its number, and the signs of a cut.
_BESIDE = 10
#: How much of a cut line stands in front of the place, at most.
_AHEAD = 40
_TAB = 4


def prose_width(most: int = 100) -> int:
    """How many columns a paragraph on the standard output has: those of the terminal, at least 20, or `most`."""
    return min(most, max(20, shutil.get_terminal_size().columns)) if sys.stdout.isatty() else most


def printable(text: str) -> str:
    """The text with control characters made visible, so that no input can steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c == "\t" else _escape(c) for c in text)


def _escape(c: str) -> str:
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def laid_out(text: str) -> tuple[str, list[int]]:
    """A line as a terminal shows it, and the column at which each of its characters (and its end) stands.

    Tabs become spaces, control characters are escaped, wide characters take two columns and combining ones none.
    """
    if text.isascii() and text.isprintable():
        return text, list(range(len(text) + 1))
    out: list[str] = []
    columns = [0]
    at = 0
    for c in text:
        if c == "\t":
            shown = " " * (_TAB - at % _TAB)
            at += len(shown)
        elif not c.isprintable():
            shown = _escape(c)
            at += len(shown)
        else:
            shown = c
            if not unicodedata.combining(c) and unicodedata.category(c) not in ("Mn", "Me"):
                at += 2 if unicodedata.east_asian_width(c) in "WF" else 1
        out.append(shown)
        columns.append(at)
    return "".join(out), columns


@dataclass
class _Mark:
    """A stretch of one line with the text of its label. `begin` and `end` count characters from 0."""

    line: int
    begin: int
    end: int
    text: str
    primary: bool


def _marks(diagnostic: Diagnostic, source: SourceFile) -> list[_Mark]:
    """The marks of all labels in a source. A label over several lines marks its first and its last line."""
    marks: list[_Mark] = []
    for label in diagnostic.labels:
        span = label.span
        if not _same(span.source, source):
            continue
        start, end = span.start, span.end
        line, column = source.locate(start)
        last, last_column = source.locate(end)
        if last > line and last_column == 1:
            last -= 1
            last_column = len(source.line(last)) + 1
        if last == line:
            marks.append(_Mark(line, column - 1, max(column, last_column - 1), label.text, label.primary))
            continue
        marks.append(_Mark(line, column - 1, max(column, len(source.line(line))), "", label.primary))
        text = source.line(last)
        begin = min(len(text) - len(text.lstrip()), max(0, last_column - 2))
        marks.append(_Mark(last, begin, max(begin + 1, last_column - 1), label.text, label.primary))
    return marks


def _same(a: SourceFile, b: SourceFile) -> bool:
    return a is b or (a.name == b.name and (a.text is b.text or a.text == b.text))


class _Painter:
    """Puts colours around texts, or leaves them out."""

    def __init__(self, color: bool, severity: str) -> None:
        self.color = color
        self.own = _COLOURS.get(severity, "")

    def __call__(self, text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if self.color and text else text


def _excerpt(source: SourceFile, marks: Sequence[_Mark], paint: _Painter, most: int) -> list[str]:
    """One line of the source, and a line of carets for each mark. A line of more than `most` is cut around the first."""
    number = marks[0].line
    text = source.line(number)
    long = len(text) > most
    left = max(0, marks[0].begin - min(_AHEAD, most // 3)) if long else 0
    piece = text[left : left + most] if long else text
    head = "…" if left else ""
    tail = "…" if left + len(piece) < len(text) else ""
    shown, columns = laid_out(piece)
    gutter = f"{number:5d} | "
    excerpt = (head + shown + tail).rstrip()
    out = [paint(gutter, _BLUE) + excerpt if excerpt else paint(gutter.rstrip(), _BLUE)]
    below = " " * (len(gutter) - 2) + paint("| ", _BLUE)
    for mark in marks:
        first = min(max(0, mark.begin - left), len(piece))
        last = min(max(first, mark.end - left), len(piece))
        pad = len(head) + columns[first]
        signs = ("^" if mark.primary else "-") * max(1, columns[last] - columns[first])
        says = f" {printable(mark.text)}" if mark.text else ""
        out.append(below + " " * pad + paint(signs + says, paint.own if mark.primary else _BLUE))
    return out


def _source_lines(diagnostic: Diagnostic, paint: _Painter, most: int) -> list[str]:
    """The marked lines of every source, in the order of the text; the diagnostic's own source first."""
    sources: list[SourceFile] = []
    own = diagnostic.span
    labels = sorted(diagnostic.labels, key=lambda label: own is None or not _same(label.span.source, own.source))
    for label in labels:
        if label.span.source.text and not any(_same(label.span.source, s) for s in sources):
            sources.append(label.span.source)
    out: list[str] = []
    for source in sources:
        marks = _marks(diagnostic, source)
        if own is not None and not _same(source, own.source):
            out.append(f"  in {printable(source.name)}:{marks[0].line}:{marks[0].begin + 1}:")
        before = 0
        for line in sorted({m.line for m in marks}):
            here = sorted((m for m in marks if m.line == line), key=lambda m: (not m.primary, m.begin))
            if before and line > before + 1:
                out.append(paint("  ...", _BLUE))
            before = line
            groups = [here] if len(source.line(line)) <= most else [[m] for m in here]
            for group in groups:
                out += _excerpt(source, group, paint, most)
    return out


def _fixed_line(fix: Fix, paint: _Painter, most: int) -> list[str]:
    """The line after the fix, with `+` below the new characters. Empty unless the fix is a short edit of one line."""
    source = fix.span.source
    start, end = fix.span.start, fix.span.end
    if not fix.replacement or "\n" in fix.replacement or "\n" in source.text[start:end]:
        return []
    number, column = source.locate(start)
    text = source.line(number)
    new = text[: column - 1] + fix.replacement + text[column - 1 + end - start :]
    if len(new) > most or column - 1 > len(text):
        return []
    shown, columns = laid_out(new)
    first, last = columns[column - 1], columns[column - 1 + len(fix.replacement)]
    gutter = f"{number:5d} | "
    sign = "+" if start == end else "~"
    return [
        paint(gutter, _BLUE) + shown.rstrip(),
        " " * (len(gutter) - 2) + paint("| ", _BLUE) + " " * first + paint(sign * max(1, last - first), _GREEN),
    ]


def render(diagnostic: Diagnostic, color: bool = False, columns: int = COLUMNS) -> str:
    """A diagnostic as it is shown to people; lines without a line end behind the last one.

    `color` adds ANSI colours. Lines of the source are cut to fit `columns`. The first line is the same for every tool
    that looks for places: `FILE:LINE:COL: error[R0123]: title`.
    """
    paint = _Painter(color, diagnostic.severity)
    most = columns - _BESIDE
    where = f"{printable(str(diagnostic.span))}: " if diagnostic.span is not None else ""
    kind = paint(f"{diagnostic.severity}[{diagnostic.code}]", paint.own)
    out = [f"{where}{kind}: {paint(printable(diagnostic.title), _BOLD)}"]
    out += _source_lines(diagnostic, paint, most)
    out += [f"  = {paint('note', _BOLD)}: {printable(note)}" for note in diagnostic.notes]
    fix = diagnostic.fix
    if fix is not None:
        out.append(f"  = {paint('help', _BOLD)}: {printable(fix.title or f'write `{fix.replacement}`')}")
        out += _fixed_line(fix, paint, most)
    return "\n".join(out)
