"""Whether two bodies are equal in structure."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from relaylang.kernels import ir
from relaylang.kernels.dtypes import CTYPES


def same(one: Any, two: Any) -> bool:
    """Whether two expressions, statements, functions, or sequences of them are equal, without recursion on their size.

    Sums are compared without their order. A name has the type of its definition.
    Numbers are equal where they are the same number of their type; nans are.
    """
    todo: list[tuple[Any, Any]] = [(one, two)]
    while todo:
        a, b = todo.pop()
        if isinstance(a, (list, tuple)):
            if not isinstance(b, (list, tuple)) or len(a) != len(b):
                return False
            todo += zip(a, b)
        elif isinstance(a, (ir.Expr, ir.Stmt, ir.Function, ir.Param)):
            pairs = _pairs(a, b) if type(a) is type(b) else None
            if pairs is None:
                return False
            todo += pairs
        elif a != b:
            return False
    return True


def _pairs(a: Any, b: Any) -> list[tuple[Any, Any]] | None:
    """The parts in which two nodes of one class must be equal; None where the nodes themselves differ."""
    if isinstance(a, ir.Var):
        return [] if a.name == b.name else None
    if isinstance(a, ir.Const):
        return [] if a.type == b.type and _equal(a.value, b.value, a.type) else None
    if isinstance(a, ir.Linear):
        terms = [[part for term in _sorted(sum_) for part in term] for sum_ in (a, b)]
        return [(a.const, b.const), (terms[0], terms[1])]
    return [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]


def _sorted(value: ir.Linear) -> list[tuple[ir.Expr, int]]:
    return sorted(value.terms, key=lambda term: repr(ir.key(term[0])))


def _equal(one: Any, two: Any, ty: str) -> bool:
    if ty not in CTYPES:
        return bool(one == two)
    a, b = (np.asarray(n).astype(np.dtype(ty)) for n in (one, two))
    return a.tobytes() == b.tobytes() or bool(a != a and b != b)
