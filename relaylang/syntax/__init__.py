"""Relay text to IR and back."""

from relaylang.syntax.printer import astext

__all__ = ["astext"]
