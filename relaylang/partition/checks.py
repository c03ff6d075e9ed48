"""Questions about calls, shared by the checks of pattern tables. A check returns True, or a sentence that says
why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ops.record import Op
from relaylang.partition.recipe import OpCheck

Verdict = bool | str


def supports(operators: dict[str, OpCheck], *names: str) -> Callable[[Callable[[Call], Verdict]], Callable[[Call], Verdict]]:
    """Enter the function as the check of these operators, which the target takes outside composites."""

    def add(test: Callable[[Call], Verdict]) -> Callable[[Call], Verdict]:
        operators.update(dict.fromkeys(names, test))
        return test

    return add


def op_name(expr: Expr) -> str:
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def call_of(expr: Expr, *names: str) -> Call:
    """The nearest call of one of these operators, from a matched root along first operands."""
    node = expr
    while isinstance(node, Call):
        if op_name(node) in names:
            return node
        node = node.args[0]
    raise AssertionError(f"a pattern without {names}")


def has_call(expr: Expr, name: str, until: str) -> bool:
    """Whether a call of an operator stands between a matched root and, along first operands, the call of another."""
    node = expr
    while isinstance(node, Call) and op_name(node) != until:
        if op_name(node) == name:
            return True
        node = node.args[0]
    return False


def first_number(expr: Expr) -> float:
    """The first element of a constant; NaN of another expression."""
    return float(expr.data.reshape(-1)[0]) if isinstance(expr, Constant) and expr.data.size else float("nan")


def dtype(expr: Expr) -> str:
    ty = expr.checked_type
    return ty.dtype if isinstance(ty, TensorType) else "no tensor"


def shape(expr: Expr) -> tuple:
    ty = expr.checked_type
    return tuple(ty.shape) if isinstance(ty, TensorType) else ()


def wants_dtype(expr: Expr, allowed: Sequence[str], what: str) -> Verdict:
    have = dtype(expr)
    return have in allowed or f"{what} is {have}; it takes {', '.join(allowed)}"


def wants_rank(expr: Expr, ranks: Sequence[int], what: str) -> Verdict:
    have = len(shape(expr))
    return have in ranks or f"{what} has {have} dimensions; it takes {' or '.join(map(str, ranks))}"


def one_scale(call: Call, *pairs: tuple[int, int]) -> Verdict:
    """Quantization by one scale and one zero point: the operands of these numbers are scalars, or have one element."""
    for number in [n for pair in pairs for n in pair]:
        have = shape(call.args[number])
        if have and have[0] != 1:
            return "a scale or zero point is given for each channel"
    return True


def spatial_pad(call: Call) -> Verdict:
    """A pad that widens rows and columns of NHWC only."""
    widths = [tuple(w) for w in call.attrs.pad_width]
    return (len(widths) == 4 and widths[0] == widths[3] == (0, 0)) or "the pad widens the batch or the channels"


def wants_attr(call: Call, name: str, allowed: Sequence[object]) -> Verdict:
    have = getattr(call.attrs, name)
    have = tuple(have) if isinstance(have, (list, tuple)) else have
    return have in allowed or f"{name} is {have!r}; it takes {', '.join(map(repr, allowed))}"


def wants_batch_1(expr: Expr) -> Verdict:
    have = shape(expr)
    return not have or have[0] == 1 or f"the batch is {have[0]}; it takes 1"


def zero(expr: Expr, what: str) -> Verdict:
    """A constant of zeros."""
    fits = isinstance(expr, Constant) and not np.any(expr.data)
    return bool(fits) or f"{what} is not 0"


def every(*verdicts: Verdict) -> Verdict:
    """True, or the first reason."""
    for verdict in verdicts:
        if verdict is not True:
            return verdict or "it is not taken"
    return True
