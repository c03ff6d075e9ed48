"""The lints of `relay check`, and their repairs."""

from __future__ import annotations

import argparse
from pathlib import PurePath

from relaylang.cli.common import report, write_text
from relaylang.cli.program import Program, load_checked
from relaylang.diagnostics import Diagnostic, error
from relaylang.passes.lints import lint, repaired
from relaylang.passes.lints.settings import chosen, codes_for


def linted(program: Program, path: str, args: argparse.Namespace) -> list[Diagnostic]:
    """The findings of the lints that are chosen, after the repairs where these are asked for.

    A network has no text, which a note says.
    """
    if program.source is None:
        note = f"relay import {path} -o {PurePath(path).stem}.relay writes the text of the network"
        report([error("R0710", f"lints need Relay text, and {path} has none", notes=[note], severity="note")])
        return []
    codes = _codes(path, args)
    if not args.fix:
        return lint(program.module, program.source, codes)
    text, findings = repaired(
        program.source, lambda module, source: lint(module, source, codes), lambda source: load_checked(source).module
    )
    if text != program.source.text:
        write_text(path, text)
    return findings


def _codes(path: str, args: argparse.Namespace) -> frozenset[str]:
    """The lints for a file: those of the call, else those of its pyproject.toml."""
    if args.select or args.ignore:
        select, ignore = (text.split(",") if text else None for text in (args.select, args.ignore))
        return chosen(select, ignore)
    return codes_for(path)
