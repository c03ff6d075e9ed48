"""Relay text to IR and back."""

from relaylang.syntax.printer import astext
from relaylang.syntax.reader import ParseResult, fromtext, is_complete, leaves_comment, parse, parse_expr, parse_type

__all__ = ["ParseResult", "astext", "fromtext", "is_complete", "leaves_comment", "parse", "parse_expr", "parse_type"]
