"""Steps that skip the kernel where the operands' types say that it is one numpy expression.

A kernel of one line costs a scalar program more in the call than in the arithmetic. Here is that line, for the element
types for which it is the whole kernel. `tests/interpreter/test_fast.py` compares both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.interpreter.code import Slots, Step
from relaylang.interpreter.kernels.common import np_dtype
from relaylang.ir import Call, TensorType
from relaylang.ops.record import Op


def _add(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] + r[b]

    return step


def _subtract(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] - r[b]

    return step


def _multiply(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] * r[b]

    return step


def _equal(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] == r[b]

    return step


def _not_equal(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] != r[b]

    return step


def _less(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] < r[b]

    return step


def _less_equal(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] <= r[b]

    return step


def _greater(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] > r[b]

    return step


def _greater_equal(into: int, a: int, b: int) -> Step:
    def step(r: Slots) -> None:
        r[into] = r[a] >= r[b]

    return step


_ARITHMETIC: dict[str, Callable[[int, int, int], Step]] = {"add": _add, "subtract": _subtract, "multiply": _multiply}
_COMPARISONS: dict[str, Callable[[int, int, int], Step]] = {
    "equal": _equal,
    "not_equal": _not_equal,
    "less": _less,
    "less_equal": _less_equal,
    "greater": _greater,
    "greater_equal": _greater_equal,
}

#: Operators with such steps.
NAMES = (*_ARITHMETIC, *_COMPARISONS, "cast")

_NUMBERS = frozenset(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"])


def _scalar_dtype(node: Any) -> str | None:
    """The element type of an expression that is known to be a scalar."""
    ty = node.checked_type
    return ty.dtype if isinstance(ty, TensorType) and ty.shape == () else None


def fast_step(node: Call) -> Callable[[int, tuple[int, ...]], Step] | None:
    """What makes the step for an operator's call from its slots, if there is something faster than its kernel."""
    if not isinstance(node.op, Op):
        return None
    name = node.op.name
    ufunc = _ARITHMETIC.get(name) or _COMPARISONS.get(name)
    if ufunc is not None:
        make = ufunc
        left, right = _scalar_dtype(node.args[0]), _scalar_dtype(node.args[1])
        if left is None or left != right or left not in _NUMBERS:
            return None
        return lambda into, args: make(into, args[0], args[1])
    if name == "cast":
        source, target = _scalar_dtype(node.args[0]), getattr(node.attrs, "dtype", "")
        if source in _NUMBERS and target in _NUMBERS and np.can_cast(source, target, "safe"):
            to = np_dtype(target).type
            return lambda into, args: _cast(into, args[0], to)
    return None


def _cast(into: int, source: int, to: Any) -> Step:
    """To a type that holds every value of the source's."""

    def step(r: Slots) -> None:
        r[into] = to(r[source])

    return step
