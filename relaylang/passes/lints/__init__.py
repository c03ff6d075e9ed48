"""Lints: doubtful parts of right programs.

Each lint is a row: a code with a page, and a function from a program to findings. `lint` runs those that are selected.
Findings are warnings at a place; some have a repair. A comment `// relay: ignore[R1001]` silences the codes in brackets, or
all. It counts for its own line, or for the next line where it stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from relaylang.diagnostics import Diagnostic, Fix
from relaylang.diagnostics.source import SourceFile
from relaylang.ir import IRModule
from relaylang.passes.lints import calls, flow, names, numbers
from relaylang.passes.lints.view import View

__all__ = ["LINTS", "UNUSED", "apply_fixes", "lint", "repaired"]

LINTS: dict[str, Callable[[View], Iterator[Diagnostic]]] = {
    "R1001": names.unused_bindings,
    "R1002": names.unused_parameters,
    "R1003": names.unused_functions,
    "R1004": names.shadowing,
    "R1005": flow.unreachable_clauses,
    "R1006": flow.constant_conditions,
    "R1007": calls.idle_calls,
    "R1008": calls.cancelling_calls,
    "R1009": calls.repeated_calls,
    "R1010": numbers.wide_constants,
    "R1011": numbers.overflows,
}

#: Those whose places may go, which editors draw in grey.
UNUSED = frozenset({"R1001", "R1002", "R1003", "R1005"})

_IGNORE = re.compile(r"relay:\s*ignore(?:\[([^\]]*)\])?")


def lint(module: IRModule, source: SourceFile, codes: Collection[str] = tuple(LINTS)) -> list[Diagnostic]:
    """The findings in a checked module that was read from `source`, in the text's order."""
    view = View(module, source)
    found = [diagnostic for code in LINTS if code in codes for diagnostic in LINTS[code](view)]
    silent = _silent(view)
    kept = [d for d in found if d.span is not None and not silent.get(d.span.line, frozenset()) & {d.code, ""}]
    return sorted(kept, key=lambda d: (d.span.start if d.span is not None else 0, d.code))


def _silent(view: View) -> dict[int, frozenset[str]]:
    """The codes that are silent in each line; "" stands for all."""
    lines: dict[int, frozenset[str]] = {}
    if "relay:" not in view.source.text:
        return lines
    for token in view.symbols.tokens:
        said = _IGNORE.search(token.text) if token.kind == "comment" else None
        if said is None:
            continue
        codes = frozenset(re.findall(r"R\d{4}", said[1])) if said[1] is not None else frozenset({""})
        line, column = view.source.locate(token.start)
        alone = not view.source.line(line)[: column - 1].strip()
        line += alone
        lines[line] = lines.get(line, frozenset()) | codes
    return lines


def apply_fixes(text: str, fixes: Sequence[Fix]) -> str:
    """The text with repairs made. Of two that overlap, only the first one is made."""
    parts: list[str] = []
    at = 0
    for fix in sorted(fixes, key=lambda f: (f.span.start, -f.span.end)):
        if fix.span.start >= at:
            parts += [text[at : fix.span.start], fix.replacement]
            at = fix.span.end
    return "".join([*parts, text[at:]])


#: A repair may show the next one; this many rounds are enough for any text that people write.
_ROUNDS = 20


def repaired(text: str, found: list[Diagnostic], again: Callable[[str], list[Diagnostic]]) -> tuple[str, list[Diagnostic]]:
    """The text with the repairs of its findings, and the findings that stay. `again` gives the findings of a text."""
    for _ in range(_ROUNDS):
        fixes = [d.fix for d in found if d.fix is not None]
        if not fixes:
            break
        text = apply_fixes(text, fixes)
        found = again(text)
    return text, found
