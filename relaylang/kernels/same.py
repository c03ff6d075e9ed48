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
            if type(a) is not type(b):
                return False
            if isinstance(a, ir.Var) and isinstance(b, ir.Var):
                if a.name != b.name:
                    return False
            elif isinstance(a, ir.Const) and isinstance(b, ir.Const):
                if a.type != b.type or not _equal(a.value, b.value, a.type):
                    return False
            elif isinstance(a, ir.Linear) and isinstance(b, ir.Linear):
                todo.append((a.const, b.const))
                todo.append(([part for term in _sorted(a) for part in term], [part for term in _sorted(b) for part in term]))
            else:
                todo += [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]  # type: ignore[arg-type]
        elif a != b:
            return False
    return True


def _sorted(value: ir.Linear) -> list[tuple[ir.Expr, int]]:
    return sorted(value.terms, key=lambda term: repr(ir.key(term[0])))


def _equal(one: Any, two: Any, ty: str) -> bool:
    if ty not in CTYPES:
        return bool(one == two)
    a, b = (np.asarray(n).astype(np.dtype(ty)) for n in (one, two))
    return a.tobytes() == b.tobytes() or bool(a != a and b != b)
