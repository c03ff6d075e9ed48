"""Compares the diagnostics of a text with its `// expected-error@+1 {{...}}` comments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.testing.directives import Expected, Found, Part, TestFile, read_test

EXAMPLE = "`// expected-error@+1 {{text}}` above the line says what is expected"


def compare(test: TestFile, part: Part, found: Sequence[Found], whole: Span) -> list[Diagnostic]:
    """Report missing diagnostics and unexpected ones; `whole` is the place of those without one.

    Unexpected notes are no error.
    """
    wrong: list[Diagnostic] = []
    missing, left = unfit(part, found)
    for expected in missing:
        near = [f.title for f in left if f.line == expected.line and f.severity == expected.severity]
        notes = [f"there is: {near[0]}"] if near else []
        where = f"line {expected.line}" if expected.line is not None else "no place"
        wrong.append(error("R0760", f"expected {expected.severity} did not come, at {where}", expected.span, notes=notes))
    for f in left:
        if f.severity == "note":
            continue
        line = f.line if f.line is not None and f.line <= len(test.lines) else None
        span = test.span(line) if line is not None else whole
        wrong.append(error("R0760", f"unexpected {f.severity}: {f.code}: {f.title}", span))
    return wrong


def unfit(part: Part, found: Sequence[Found]) -> tuple[list[Expected], list[Found]]:
    """The expectations of a part that no diagnostic fits, and the diagnostics that nothing expects."""
    missing: list[Expected] = []
    left = list(found)
    for expected in part.expected:
        fitting = next((f for f in left if expected.fits(f)), None)
        if fitting is None:
            missing.append(expected)
        else:
            left.remove(fitting)
    return missing, left


def found_of(d: Diagnostic, name: str) -> Found:
    """A diagnostic as expectations see it; `name` is the text's."""
    here = d.span if d.span is not None and d.span.source.name == name else None
    notes = (*(label.text for label in d.labels if label.text), *d.notes)
    return Found(d.severity, d.code, d.title, here.line if here is not None else None, notes)


def verify(
    path: str, run: Callable[[SourceFile], object], collecting: Callable[[], AbstractContextManager[list[Diagnostic]]]
) -> list[Diagnostic]:
    """Run every part of a file (between `// -----`), and compare its diagnostics with the expectations.

    `run` takes a part's text and may raise `RelayError`; `collecting` gathers the diagnostics. Raises `RelayError` for an
    unreadable file and for wrong expectations.
    """
    test = read_test(path)
    span = test.span(1)
    if not any(p.expected for p in test.parts):
        return [error("R0761", "the file expects nothing", span, notes=[EXAMPLE])]
    wrong: list[Diagnostic] = []
    for part in test.parts:
        with collecting() as said:
            try:
                run(SourceFile(test.source.name, test.part_text(part)))
            except RelayError as e:
                said += e.diagnostics
        wrong += compare(test, part, [found_of(d, test.source.name) for d in said], span)
    return wrong
