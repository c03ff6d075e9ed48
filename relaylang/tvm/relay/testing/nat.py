"""Natural numbers as data: `z` and `s` of the standard library's `nat`."""

from __future__ import annotations

from typing import Any

from relaylang.interpreter.values import ConstructorValue
from relaylang.ir import Expr


def count(prelude: Any, n: ConstructorValue) -> int:
    """The number that a value of `nat` stands for."""
    number = 0
    while n.fields:
        number, n = number + 1, n.fields[0]
    return number


def make_nat_value(prelude: Any, n: int) -> ConstructorValue:
    """The value of `nat` that stands for a number."""
    _, z, s = prelude.mod.get_type("nat")
    nat = ConstructorValue(z, ())
    for _ in range(n):
        nat = ConstructorValue(s, (nat,))
    return nat


def make_nat_expr(prelude: Any, n: int) -> Expr:
    """An expression whose value stands for a number."""
    _, z, s = prelude.mod.get_type("nat")
    nat: Expr = z()
    for _ in range(n):
        nat = s(nat)
    return nat


__all__ = ["count", "make_nat_expr", "make_nat_value"]
