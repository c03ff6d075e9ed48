"""The lints of `relay check`, and their repairs."""

from __future__ import annotations

import argparse

from relaylang.cli.common import write_text
from relaylang.cli.program import Program, load_checked
from relaylang.diagnostics import Diagnostic
from relaylang.diagnostics.source import SourceFile
from relaylang.passes.lints import apply_fixes, lint
from relaylang.passes.lints.settings import chosen, codes_for

#: A repair may show the next one; this many rounds are enough for any text that people write.
_ROUNDS = 20


def linted(program: Program, path: str, args: argparse.Namespace) -> list[Diagnostic]:
    """The findings of the lints that are chosen, after the repairs where these are asked for. A network has no text."""
    if program.source is None:
        return []
    codes = _codes(path, args)
    found = lint(program.module, program.source, codes)
    if not args.fix:
        return found
    source = program.source
    for _ in range(_ROUNDS):
        fixes = [d.fix for d in found if d.fix is not None]
        if not fixes:
            break
        source = SourceFile(source.name, apply_fixes(source.text, fixes))
        repaired = load_checked(source)
        found = lint(repaired.module, source, codes)
    if source is not program.source:
        write_text(path, source.text)
    return found


def _codes(path: str, args: argparse.Namespace) -> frozenset[str]:
    """The lints for a file: those of the call, else those of its pyproject.toml."""
    if args.select or args.ignore:
        select, ignore = (text.split(",") if text else None for text in (args.select, args.ignore))
        return chosen(select, ignore, "the call")
    return codes_for(path)
