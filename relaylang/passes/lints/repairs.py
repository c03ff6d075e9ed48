"""Repairs of lints: what they keep of the text, and how all of them are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylang.diagnostics import Diagnostic, Fix, RelayError
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Function, IRModule, type_text


@dataclass(frozen=True)
class Repair(Fix):
    """A repair whose replacement repeats a part of the text, `kept`, where other repairs may be made.

    One that is right only with the others of its text is `together` with them; no editor offers it alone. A `loose`
    one relies on the brackets around it. It is not made inside of another one, which may take these away.
    """

    kept: Span | None = None
    together: bool = False
    loose: bool = False

    def edits(self) -> list[tuple[int, int, str]]:
        """The stretches to replace, with what takes their place."""
        if self.kept is None:
            return [(self.span.start, self.span.end, self.replacement)]
        before, _, after = self.replacement.partition(self.kept.text)
        return [(self.span.start, self.kept.start, before), (self.kept.end, self.span.end, after)]


def apply_fixes(text: str, fixes: Sequence[Fix]) -> str:
    """The text with repairs made. Of two that overlap, only the outer or the first one is made."""
    edits: list[tuple[int, int, str]] = []
    around: list[tuple[int, int, int]] = []  # repairs that are open: their end, and what they keep
    for fix in sorted(fixes, key=lambda f: (f.span.start, -f.span.end)):
        start, end = fix.span.start, fix.span.end
        while around and around[-1][0] <= start:
            around.pop()
        if around and not (around[-1][1] <= start and end <= around[-1][2]):
            continue
        if around and isinstance(fix, Repair) and fix.loose:
            continue
        kept = fix.kept if isinstance(fix, Repair) else None
        around.append((end, kept.start, kept.end) if kept is not None else (end, end, end))
        edits += fix.edits() if isinstance(fix, Repair) else [(start, end, fix.replacement)]
    parts: list[str] = []
    at = 0
    blank = True  # whether the line holds only white space so far
    for start, end, new in sorted(edits):
        if start < at:
            continue
        piece = text[at:start]
        parts += [piece, new]
        line = piece.rpartition("\n")
        blank = not (line[2] + new).strip() and (blank or bool(line[1]))
        at = end
        if blank and not new and start < end:
            at = _line_end(text, parts, end)
    return "".join([*parts, text[at:]])


def _line_end(text: str, parts: list[str], at: int) -> int:
    """Where the text goes on behind a removal that left nothing in its line; the line's beginning goes, too."""
    rest = past_blanks(text, at)
    if text[rest : rest + 1] != "\n":
        return at
    while parts and not parts[-1].strip(" \t"):
        parts.pop()
    if parts:
        parts[-1] = parts[-1].rstrip(" \t")
    return rest + 1


def past_blanks(text: str, at: int) -> int:
    """Where the spaces at a place end."""
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def repaired(
    source: SourceFile,
    find: Callable[[IRModule, SourceFile], list[Diagnostic]],
    read: Callable[[SourceFile], IRModule],
) -> tuple[str, list[Diagnostic]]:
    """The text with the repairs of its findings, and the findings that stay.

    `read` reads and checks a text; `find` gives its findings. A repair after which the text is wrong, or a function has
    another type, is not made. Raises `RelayError` where the text is wrong from the beginning.
    """
    module = read(source)
    findings = find(module, source)
    types = _types(module)
    refused: set[tuple[str, str]] = set()
    while True:
        fixes = [d.fix for d in findings if d.fix is not None and (d.code, d.fix.span.text) not in refused]
        repaired_step = _step(source, fixes, types, read)
        if repaired_step is None:
            return source.text, findings
        source, module, left = repaired_step
        bad = {id(fix) for fix in left}
        refused.update([(d.code, d.fix.span.text) for d in findings if d.fix is not None and id(d.fix) in bad])
        findings = find(module, source)


_Step = tuple[SourceFile, IRModule, list[Fix]]


def _step(source: SourceFile, fixes: list[Fix], types: dict[str, str], read: Callable[[SourceFile], IRModule]) -> _Step | None:
    """The text after repairs that keep it right, with the repairs that do not; None where no repair changes it."""
    good: list[Fix] = []
    bad: list[Fix] = []
    best: tuple[SourceFile, IRModule] | None = None
    waiting = [fixes]
    while waiting:
        some = waiting.pop()
        text = apply_fixes(source.text, [*good, *some]) if some else source.text
        if text == (best[0].text if best is not None else source.text):
            continue
        changed = SourceFile(source.name, text)
        try:
            module = read(changed)
            right = _types(module) == types
        except RelayError:
            right = False
        if right:
            good += some
            best = (changed, module)
        elif len(some) == 1:
            bad += some
        else:
            waiting += _parted(some)
    return (*best, bad) if best is not None else None


def _parted(fixes: list[Fix]) -> list[list[Fix]]:
    """Two parts of repairs, the one to try first behind. Removals may need each other: they stay in one part if they can."""
    removals = [fix for fix in fixes if not fix.replacement]
    others = [fix for fix in fixes if fix.replacement]
    half = len(fixes) // 2
    return [others, removals] if others and removals else [fixes[half:], fixes[:half]]


def _types(module: IRModule) -> dict[str, str]:
    """The types of a module's functions."""
    functions = [(gv.name_hint, f) for gv, f in module.functions.items() if isinstance(f, Function)]
    return {name: type_text(f.checked_type) for name, f in functions if f.checked_type is not None}


__all__ = ["Repair", "apply_fixes", "past_blanks", "repaired"]
