"""Errors of syntax: their diagnostics, their repair, and the point at which reading goes on."""

from relaylang.syntax.recovery.recover import syntax_errors

__all__ = ["syntax_errors"]
