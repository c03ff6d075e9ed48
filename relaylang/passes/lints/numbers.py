"""Lints on numbers: constants of a stray element type, and whole numbers that do not fit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, Fix
from relaylang.ir import Call, Constant, Function, TensorType, Type, Var, children
from relaylang.ir.types import type_children
from relaylang.ops.record import Op
from relaylang.ops.takes import kind_of
from relaylang.ops.traits import Trait
from relaylang.passes.lints.calls import name_of
from relaylang.passes.lints.view import View, finding
from relaylang.typing.places import argument_span


def _shifted(x: Any, by: Any) -> Any:
    return x * 2**by if by.min(initial=0) >= 0 and by.max(initial=0) <= _MOST_BITS else x


def _power(x: Any, n: Any) -> Any:
    return x**n if n.min(initial=0) >= 0 and n.max(initial=0) <= _MOST_BITS else x


#: Arithmetic of Python's integers, which do not overflow.
_EXACT: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "abs": abs,
    "power": _power,
    "left_shift": _shifted,
    "cast": lambda x: x,
}
#: Traits of operators that multiply two tensors.
_PRODUCTS = frozenset({Trait.CONV, Trait.CONV_TRANSPOSE, Trait.MATMUL})
_MOST_NUMBERS = 4096
#: The greatest exponent and shift that is computed.
_MOST_BITS = 128


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
            fits = short != node.span.text and narrowed.get(id(node), False) and _fits_float32(node.data)
            fix = Fix(node.span, f"{short}f", "write a float32 number") if fits else None
            yield finding("R1010", "a float64 constant in a float32 program", node.span, "the tensors are float32", fix=fix)


def _fits_float32(data: Any) -> bool:
    """Whether a number is a float32 number after rounding, and none that is too great or too small for one."""
    with np.errstate(over="ignore", under="ignore"):
        short = data.astype(np.float32)
    return bool(np.isfinite(short).all() and ((short != 0) == (data != 0)).all())


def _element_types(view: View) -> set[str]:
    """The element types of variables, functions, and calls that are not made of constants alone, and what these hold."""
    dtypes: set[str] = set()
    seen: set[int] = set()
    fixed: set[int] = set()
    stack: list[Type | None] = []
    for node in view.nodes:
        computed = isinstance(node, Call) and isinstance(node.op, Op) and all(id(arg) in fixed for arg in node.args)
        if computed or isinstance(node, Constant):
            fixed.add(id(node))
        elif isinstance(node, (Var, Function, Call)):
            stack.append(node.checked_type)
    while stack:
        ty = stack.pop()
        if ty is None or id(ty) in seen:
            continue
        seen.add(id(ty))
        if isinstance(ty, TensorType):
            dtypes.add(ty.dtype)
        stack.extend(type_children(ty))
    return dtypes


def overflows(view: View) -> Iterator[Diagnostic]:
    """R1011: arithmetic on constants whose result does not fit its element type, and wraps around.

    A result that fits is a constant for the calls on it.
    """
    known: dict[int, Any] = {}  # arrays of Python's integers, by node
    for node in view.nodes:
        if isinstance(node, Constant) and node.data.dtype.kind in "iuf" and node.data.size <= _MOST_NUMBERS:
            known[id(node)] = node.data
            continue
        if not isinstance(node, Call) or not isinstance(node.checked_type, TensorType):
            continue
        if name_of(node) not in _EXACT:
            continue
        operands: list[Any] = [known.get(id(view.value(arg))) for arg in node.args]
        result = _exact_result(node, node.checked_type, operands)
        if result is None:
            continue
        dtype = node.checked_type.dtype
        info = np.iinfo(dtype)
        outside = [n for n in result.reshape(-1).tolist() if not info.min <= n <= info.max]
        if outside:
            happens = "wraps around" if operands[0].dtype.kind != "f" else "is cut off"
            label = f"{outside[0]} does not fit {dtype}, whose numbers are {info.min} to {info.max}"
            yield finding("R1011", f"the result of {name_of(node)} {happens}", node.span, label)
        else:
            known[id(node)] = result.astype(dtype)


def _exact_result(call: Call, ty: TensorType, operands: Sequence[Any]) -> Any:
    """The few whole numbers that a call makes of known arrays, without a bound; None for other calls."""
    exact = _EXACT[name_of(call)]
    if not operands or any(a is None for a in operands) or np.dtype(ty.dtype).kind not in "iu":
        return None
    extents = [n for n in ty.shape if isinstance(n, int)]
    if len(extents) < len(ty.shape) or prod(extents) > _MOST_NUMBERS:
        return None
    arrays = [_integers(a) for a in operands]
    if any(a is None for a in arrays) or (name_of(call) != "cast" and any(a.dtype.kind == "f" for a in operands)):
        return None
    return np.asarray(exact(*arrays), dtype=object)


def _integers(data: Any) -> Any:
    """Numbers as Python's integers, those of floats cut off; None where some are none."""
    if data.dtype.kind != "f":
        return data.astype(object)
    if not np.isfinite(data).all():
        return None
    return np.asarray([int(n) for n in data.reshape(-1).tolist()], dtype=object).reshape(data.shape)


def mixed_elements(view: View) -> Iterator[Diagnostic]:
    """R1014: products of two element types of which one is a float's, and conditions that are not bool."""
    for node in view.nodes:
        op = node.op if isinstance(node, Call) else None
        if not isinstance(node, Call) or not isinstance(op, Op):
            continue
        types = [arg.checked_type for arg in node.args]
        dtypes = [ty.dtype if isinstance(ty, TensorType) else "" for ty in types]
        for index, name in enumerate(op.args[: len(dtypes)]):
            if name == "condition" and dtypes[index] not in ("", "bool"):
                label = f"this is {dtypes[index]}"
                note = "a comparison with zero says the same: numbers other than 0 count as true"
                yield finding("R1014", f"the condition of {op.name} is not bool", argument_span(node, index), label, note=note)
        if not _PRODUCTS.intersection(op.traits) or len(dtypes) < 2 or "" in dtypes[:2] or dtypes[0] == dtypes[1]:
            continue
        if "f" in (kind_of(dtypes[0]), kind_of(dtypes[1])):
            title = f"{op.name} mixes the element types {dtypes[0]} and {dtypes[1]}"
            note = f'cast one of them, such as cast({op.args[1]}, dtype="{dtypes[0]}")'
            yield finding(
                "R1014",
                title,
                argument_span(node, 1),
                f"this is {dtypes[1]}",
                note=note,
                at=argument_span(node, 0),
                also=f"and this {dtypes[0]}",
            )
