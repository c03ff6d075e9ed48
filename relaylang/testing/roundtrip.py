"""Checks for every text: its print reads back as the same program, and formatting is idempotent."""

from __future__ import annotations

from relaylang.diagnostics import RelayError
from relaylang.ir import Expr, IRModule, structural_diff
from relaylang.syntax import astext, parse
from relaylang.syntax.format import format_text


def reads_back(node: IRModule | Expr) -> tuple[str, IRModule | Expr]:
    """Print a program and read the print. Returns the print, and the program that was read.

    Raises `AssertionError` where that is another program, and `RelayError` where the program has no form as text.
    """
    printed = astext(node)
    again = parse(printed, "print").value
    difference = structural_diff(node, again, map_free_vars=True)
    assert difference is None, difference
    return printed, again


def formats_once(text: str) -> None:
    """Format a text twice: the second time changes nothing.

    A text with a call in an earlier spelling may have no canonical form (R0152). Raises `AssertionError` and `RelayError`.
    """
    try:
        canonical = format_text(text)
    except RelayError as wrong:
        if any(d.code != "R0152" for d in wrong.diagnostics):
            raise
        return
    assert format_text(canonical) == canonical, "the formatter changes its own text"


__all__ = ["formats_once", "reads_back"]
