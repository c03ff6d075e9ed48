"""Checks of a text in which the reader found errors.

What an error leaves unknown has a type that agrees with every type (`POISON`). Everything else is checked.
"""

from __future__ import annotations

from collections.abc import Iterable

from relaylang.diagnostics import Diagnostic, Diagnostics, RelayError, by_place
from relaylang.typing import infer


def all_errors(wrong: RelayError, beside_errors: bool = False) -> list[Diagnostic]:
    """The reader's errors and those of types, in the order of the text. Notes stand after them.

    With `beside_errors`, the nodes of `wrong.partial` get their types, for tools that show them.
    """
    module, expr = getattr(wrong.partial, "module", None), getattr(wrong.partial, "expr", None)
    diagnostics: list[Diagnostic] = []
    if module is not None:
        diagnostics += infer(module, partial=True, beside_errors=beside_errors)
    if expr is not None:
        diagnostics += infer(expr, fragment=True, module=module, partial=True, beside_errors=beside_errors)
    said = Diagnostics(limit=len(diagnostics))
    for diagnostic in without_follow_ups(diagnostics, wrong.diagnostics):
        said.add(diagnostic)
    return by_place([*wrong.diagnostics, *said.items])


def without_follow_ups(found: Iterable[Diagnostic], read: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The errors in types that stand apart from what the reader could not read or did not know."""
    unread = [_place(d) for d in read if d.code[:3] == "R01" and d.severity == "error"]
    unknown = {_place(d) for d in read if d.code[:3] == "R02" and d.severity == "error"}

    def follows(diagnostic: Diagnostic) -> bool:
        start, end = place = _place(diagnostic)
        return place in unknown or any(start <= other_end and other_start <= end for other_start, other_end in unread)

    return [d for d in found if d.severity != "note" and not follows(d)]


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    """Where a diagnostic begins and ends in its file."""
    span = diagnostic.span
    return (span.source.base + span.start, span.source.base + span.end) if span is not None else (-1, -1)


__all__ = ["all_errors", "without_follow_ups"]
