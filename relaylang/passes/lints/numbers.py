"""Lints on numbers: constants of a stray element type, and whole numbers that do not fit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, Fix
from relaylang.ir import Call, Constant, Function, TensorType, Var, children
from relaylang.ir.types import type_children
from relaylang.passes.lints.calls import name_of
from relaylang.passes.lints.view import View, finding

#: Arithmetic of Python's integers, which do not overflow.
_EXACT: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "cast": lambda x: x,
}
_MOST_NUMBERS = 4096


def wide_constants(view: View) -> Iterator[Diagnostic]:
    """R1010: float64 constants in a program whose tensors are float32. Those that only casts to float32 take have a repair."""
    floats = _element_types(view)
    if "float32" not in floats or "float64" in floats:
        return
    narrowed: dict[int, bool] = {}
    for node in view.nodes:
        ty = node.checked_type
        narrows = name_of(node) == "cast" and isinstance(ty, TensorType) and ty.dtype == "float32"
        for child in children(node):
            narrowed[id(child)] = narrows and narrowed.get(id(child), True)
    for node in view.nodes:
        if isinstance(node, Constant) and node.dtype == "float64" and node.span is not None:
            short = node.span.text.removesuffix("f64")
            fits = short != node.span.text and narrowed.get(id(node), False)
            fix = Fix(node.span, f"{short}f", "write a float32 number") if fits else None
            yield finding("R1010", "a float64 constant in a float32 program", node.span, "the tensors are float32", fix=fix)


def _element_types(view: View) -> set[str]:
    """The element types of variables and functions, and of what these hold."""
    found: set[str] = set()
    seen: set[int] = set()
    stack = [node.checked_type for node in view.nodes if isinstance(node, (Var, Function))]
    while stack:
        ty = stack.pop()
        if ty is None or id(ty) in seen:
            continue
        seen.add(id(ty))
        if isinstance(ty, TensorType):
            found.add(ty.dtype)
        stack.extend(type_children(ty))
    return found


def overflows(view: View) -> Iterator[Diagnostic]:
    """R1011: arithmetic on constants whose result does not fit its element type, and wraps around."""
    for node in view.nodes:
        if not isinstance(node, Call) or not isinstance(node.checked_type, TensorType):
            continue
        exact = _EXACT.get(name_of(node))
        given = [a.data for a in node.args if isinstance(a, Constant) and a.data.size <= _MOST_NUMBERS]
        dtype = node.checked_type.dtype
        if exact is None or len(given) != len(node.args) or any(a.dtype.kind not in "iu" for a in given):
            continue
        if np.dtype(dtype).kind not in "iu":
            continue
        found = np.asarray(exact(*[a.astype(object) for a in given]))
        info = np.iinfo(dtype)
        outside = [n for n in found.reshape(-1).tolist() if not info.min <= n <= info.max]
        if outside:
            label = f"{outside[0]} does not fit {dtype}, whose numbers are {info.min} to {info.max}"
            yield finding("R1011", f"the result of {name_of(node)} wraps around", node.span, label)
