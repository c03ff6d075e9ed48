"""State for the parts of a build, made without a parser."""

from __future__ import annotations

from relaylang.syntax.actions.reports import Reports
from relaylang.syntax.reader import tables
from relaylang.syntax.tokens import TokenSource


def reports(text: str = "") -> Reports:
    """Reports on a text and its tokens."""
    source = TokenSource("<test>", text, tables())
    return Reports(source, source.tokens())


def said(of: Reports) -> list[tuple[str, str]]:
    """The code and the title of each diagnostic."""
    return [(d.code, d.title) for d in of.said.items]
