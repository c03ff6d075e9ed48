"""Errors of syntax: their diagnostics, their repair, and the point at which reading goes on."""

from relaylang.syntax.recovery.automaton import Automaton
from relaylang.syntax.recovery.recover import Recovery, syntax_errors

__all__ = ["Automaton", "Recovery", "syntax_errors"]
