"""Lints: doubtful parts of right programs.

Each lint is a row: a code with a page, and a function from a program to findings. `lint` runs those that are selected.
Findings are warnings at a place; some have a repair. A comment `// relay: ignore[R1001]` silences the codes in brackets, or
all. It counts for its own line, or for the next line where it stands alone. One that silences nothing is a finding (R1012).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from relaylang.diagnostics import Diagnostic, did_you_mean
from relaylang.diagnostics.source import SourceFile
from relaylang.ir import IRModule
from relaylang.passes.lints import calls, flow, names, numbers
from relaylang.passes.lints.repairs import Repair, apply_fixes, repaired
from relaylang.passes.lints.view import View, finding

__all__ = ["CODES", "LINTS", "UNUSED", "Repair", "apply_fixes", "lint", "repaired"]

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
    "R1013": names.misspelt_attributes,
    "R1014": numbers.mixed_elements,
}

#: Those whose places may go, which editors draw in grey.
UNUSED = frozenset({"R1001", "R1002", "R1003", "R1005"})

#: Every code: those of the lints, and that of comments which silence nothing.
CODES = (*LINTS, "R1012")

_WORD = re.compile(r"[^\s,]+")
_IGNORE = re.compile(r"relay:\s*ignore(?:\[([^\]]*)\])?")


def lint(module: IRModule, source: SourceFile, codes: Collection[str] = CODES) -> list[Diagnostic]:
    """The findings in a checked module that was read from `source`, in the text's order."""
    view = View(module, source)
    findings = [diagnostic for code in LINTS if code in codes for diagnostic in LINTS[code](view)]
    words: dict[int, list[_Word]] = defaultdict(list)
    for word in _silencing(view):
        words[word.line].append(word)
    kept = []
    for d in findings:
        silent = [word for word in words.get(d.span.line, ()) if d.code.startswith(word.code)] if d.span is not None else []
        for word in silent:
            word.used = True
        if d.span is not None and not silent:
            kept.append(d)
    if "R1012" in codes:
        kept += [_idle(view, word) for line in words.values() for word in line if not word.used and word.runs(codes)]
    return sorted(kept, key=lambda d: (d.span.start if d.span is not None else 0, d.code))


@dataclass
class _Word:
    """A code in a comment that silences lints, or the beginning of codes; "" stands for all."""

    code: str
    line: int  # that it is about
    start: int
    end: int
    used: bool = False

    def runs(self, codes: Collection[str]) -> bool:
        """Whether all lints run that it is about. One that is about no lint counts, too."""
        return all(code in codes for code in LINTS if code.startswith(self.code))


def _silencing(view: View) -> Iterator[_Word]:
    """The codes in comments that silence lints."""
    if "relay:" not in view.source.text:
        return
    for token in view.symbols.tokens:
        said = _IGNORE.search(token.text) if token.kind == "comment" else None
        if said is None:
            continue
        line, column = view.source.locate(token.start)
        line += not view.source.line(line)[: column - 1].strip()
        if said[1] is None:
            yield _Word("", line, token.start + said.start(), token.start + said.end())
            continue
        begin = token.start + said.start(1)
        for word in _WORD.finditer(said[1]):
            yield _Word(word[0], line, begin + word.start(), begin + word.end())


def _idle(view: View, word: _Word) -> Diagnostic:
    """R1012: a comment, or a code in it, that silences nothing."""
    span = view.span(word.start, word.end)
    if any(code.startswith(word.code) for code in CODES):
        title = f"{word.code} has no finding here" if word.code else "no lint has a finding here"
        return finding("R1012", title, span, f"silences nothing in line {word.line}: remove it")
    near = did_you_mean(word.code, CODES)
    note = f"did you mean {near}?" if near else f"the codes of lints are {CODES[0]} to {CODES[-1]}"
    return finding("R1012", f"{word.code} is the code of no lint", span, "silences nothing", note=note)
