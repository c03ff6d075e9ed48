"""Errors of syntax."""

from __future__ import annotations

from relaylang.diagnostics import Diagnostic, error
from relaylang.syntax.tables import Tables
from relaylang.syntax.tokens import TokenSource


def syntax_errors(tab: Tables, tokens: list[str], source: TokenSource, at: int) -> list[Diagnostic]:
    return [error("R0101", f"unexpected `{tokens[at][:40]}`", source.offsets(at))]
