"""The lints of `relay check`, and their repairs."""

from __future__ import annotations

import argparse

from relaylang.cli.common import write_text
from relaylang.cli.program import Program, load_checked
from relaylang.diagnostics import Diagnostic
from relaylang.diagnostics.source import SourceFile
from relaylang.passes.lints import lint, repaired
from relaylang.passes.lints.settings import chosen, codes_for


def linted(program: Program, path: str, args: argparse.Namespace) -> list[Diagnostic]:
    """The findings of the lints that are chosen, after the repairs where these are asked for. A network has no text."""
    if program.source is None:
        return []
    codes = _codes(path, args)
    found = lint(program.module, program.source, codes)
    if not args.fix:
        return found
    name = program.source.name

    def again(text: str) -> list[Diagnostic]:
        source = SourceFile(name, text)
        return lint(load_checked(source).module, source, codes)

    text, found = repaired(program.source.text, found, again)
    if text != program.source.text:
        write_text(path, text)
    return found


def _codes(path: str, args: argparse.Namespace) -> frozenset[str]:
    """The lints for a file: those of the call, else those of its pyproject.toml."""
    if args.select or args.ignore:
        select, ignore = (text.split(",") if text else None for text in (args.select, args.ignore))
        return chosen(select, ignore, "the call")
    return codes_for(path)
