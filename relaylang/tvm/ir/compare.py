"""Comparing programs as scripts for TVM do, whose passes fill types in that others leave out."""

from __future__ import annotations

import re
from typing import Any

from relaylang.ir import Expr, IRModule
from relaylang.ir import structural as plain
from relaylang.tvm.runtime.object_path import ObjectPath
from relaylang.typing import infer


def _difference(lhs: Any, rhs: Any, map_free_vars: bool) -> str | None:
    """The first difference. Where it may be a missing annotation, the types of both sides are found first."""
    difference = plain.structural_diff(lhs, rhs, map_free_vars, close=True)
    if difference is None or "type unknown" not in difference:
        return difference
    for side in (lhs, rhs):
        if isinstance(side, (IRModule, Expr)):
            infer(side, fragment=isinstance(side, Expr))
    return plain.structural_diff(lhs, rhs, map_free_vars, close=True)


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two modules, expressions, types or attributes are equal up to the names of bound variables.

    A missing annotation equals the type that the checker finds. Floats of attributes are compared in 32 bits.
    """
    return _difference(lhs, rhs, map_free_vars) is None


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise `ValueError` that says where two programs first differ."""
    difference = _difference(lhs, rhs, map_free_vars)
    if difference is not None:
        raise ValueError(f"not structurally equal: {difference}")


_STEP = re.compile(r"\.(\w+)(?:\[(\d+)\])?")


def get_first_structural_mismatch(lhs: Any, rhs: Any) -> tuple[ObjectPath, ObjectPath] | None:
    """The paths to the first difference, on either side; None where there is none. Lists and maps are walked through."""
    return _mismatch(lhs, rhs, ObjectPath.root(), ObjectPath.root())


def _mismatch(lhs: Any, rhs: Any, left: ObjectPath, right: ObjectPath) -> tuple[ObjectPath, ObjectPath] | None:
    """The same below two paths. Lists and maps nest as values do, not with a program's size."""
    if isinstance(lhs, (list, tuple)) and isinstance(rhs, (list, tuple)):
        for i, (a, b) in enumerate(zip(lhs, rhs)):
            mismatch = _mismatch(a, b, left.array_index(i), right.array_index(i))
            if mismatch is not None:
                return mismatch
        at = min(len(lhs), len(rhs))
        if len(lhs) < len(rhs):
            return left.missing_array_element(at), right.array_index(at)
        return (left.array_index(at), right.missing_array_element(at)) if len(rhs) < len(lhs) else None
    if isinstance(lhs, dict) and isinstance(rhs, dict):
        for key, a in lhs.items():
            if key not in rhs:
                return left.map_value(key), right.missing_map_entry()
            mismatch = _mismatch(a, rhs[key], left.map_value(key), right.map_value(key))
            if mismatch is not None:
                return mismatch
        more = [key for key in rhs if key not in lhs]
        return (left.missing_map_entry(), right.map_value(more[0])) if more else None
    parts = plain.structural_path(lhs, rhs)
    if parts is None:
        return None
    if isinstance(lhs, (int, float)) and isinstance(rhs, (int, float)):
        parts = [".value"]
    for part in parts:
        left, right = _step(left, part), _step(right, part)
    return left, right


def _step(path: ObjectPath, part: str) -> ObjectPath:
    """A path and a step of `structural_path`."""
    for prefix, attribute in (("@", "functions"), ("type ", "type_definitions")):
        if part.startswith(prefix):
            return path.attr(attribute).map_value(part.removeprefix(prefix))
    for name, index in _STEP.findall(part):
        path = path.attr(name)
        if index:
            path = path.array_index(int(index))
    return path


__all__ = ["assert_structural_equal", "get_first_structural_mismatch", "structural_equal"]
