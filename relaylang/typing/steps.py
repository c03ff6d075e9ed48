"""The steps of the walk that infers types."""

from __future__ import annotations

from relaylang.ir.expr import Expr, GlobalVar

# What is still to be done with a node: (what, node, number of a clause or a function's name).
VISIT, CALL, TUPLE, FIELD, BIND, LET, IF, FUNCTION, ARM, MATCH, NEW, READ, WRITE, GLOBAL = range(14)
Step = tuple[int, Expr, "int | GlobalVar"]


class Stale(Exception):
    """A type found earlier does not hold any more: everything is to be checked anew."""
