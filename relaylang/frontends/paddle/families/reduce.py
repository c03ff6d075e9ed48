"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Rule, nn
from relaylang.frontends.paddle.node import Node
from relaylang.ir import Expr


def axes_of(n: Node, x: Expr, axis: Any = None) -> list[int]:
    """The axes of a reduction: those of an operand or attribute, all where there are none."""
    rank = n.b.rank(x)
    stated = n.numbers(axis, "its axes") if axis is not None else n.ints("axis", [])
    if n.bool("reduce_all", False) or not stated:
        return list(range(rank))
    if rank == 0:
        return []
    return sorted({int(a % rank) for a in stated})


def _reduction(op: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, axis: Any = None) -> Any:
        """Sums of truth values are int64, as are those of int32."""
        b = n.b
        if op in ("sum", "prod") and b.dtype(x) in ("bool", "int32"):
            x = b.cast(x, "int64")
        if op in ("all", "any"):
            x = b.cast(x, "bool")
        dtype = n.dtype("dtype", n.dtype("out_dtype", b.dtype(x)))
        axes = axes_of(n, x, axis)
        return b.cast(b.op(op, x, axis=axes, keepdims=n.bool("keepdim", False)) if axes else x, dtype)

    return convert


def logsumexp(n: Node, x: Expr) -> Any:
    return nn.log_sum_exp(n.b, x, axes_of(n, x), n.bool("keepdim", False))


def mean_all(n: Node, x: Expr) -> Any:
    """The mean of all elements, which programs of PaddlePaddle 2 have as a vector of one element."""
    b = n.b
    mean = b.op("mean", x, axis=list(range(b.rank(x))))
    return mean if n.operation.name == "mean_all" else b.reshape_exactly(mean, [1])


def variance(n: Node, x: Expr) -> Any:
    """With a divisor less than the number of elements by the correction."""
    b = n.b
    axes, keep = axes_of(n, x), n.bool("keepdim", False)
    _, spread = nn.moments(b, x, axes)
    count = 1
    for axis in axes:
        count *= b.extent(x, axis)
    lost = n.float("correction", 1.0 if n.bool("unbiased", True) else 0.0) if n.bool("unbiased", True) else 0.0
    spread = b.op("multiply", spread, count / (count - lost)) if lost and count > lost else spread
    return spread if keep else b.squeeze(spread, axes)


_REDUCTIONS = {
    "all": "all",
    "amax": "max",
    "amin": "min",
    "any": "any",
    "max": "max",
    "mean": "mean",
    "min": "min",
    "prod": "prod",
    "sum": "sum",
}

RULES = (
    *[Rule(name, _reduction(op)) for name, op in _REDUCTIONS.items()],
    Rule("logsumexp", logsumexp),
    Rule("mean_all", mean_all),
    Rule("std", lambda n, x: n.b.op("sqrt", variance(n, x))),
    Rule("var", variance),
)
