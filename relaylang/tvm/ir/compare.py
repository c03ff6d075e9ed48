"""Comparing programs as scripts for TVM do, whose passes fill types in that others leave out."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, IRModule
from relaylang.ir import structural as plain
from relaylang.typing import infer


def _difference(lhs: Any, rhs: Any, map_free_vars: bool) -> str | None:
    """The first difference. Where it may be a missing annotation, the types of both sides are found first."""
    found = plain.structural_diff(lhs, rhs, map_free_vars)
    if found is None or "type unknown" not in found:
        return found
    for side in (lhs, rhs):
        if isinstance(side, (IRModule, Expr)):
            infer(side, fragment=isinstance(side, Expr))
    return plain.structural_diff(lhs, rhs, map_free_vars)


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two modules, expressions, types or attributes are equal up to the names of bound variables.

    A missing annotation equals the type that the checker finds.
    """
    return _difference(lhs, rhs, map_free_vars) is None


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise `ValueError` that says where two programs first differ."""
    difference = _difference(lhs, rhs, map_free_vars)
    if difference is not None:
        raise ValueError(f"not structurally equal: {difference}")


__all__ = ["assert_structural_equal", "structural_equal"]
