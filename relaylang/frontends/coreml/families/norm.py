"""Normalisations, and sums, means and extremes along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Malformed, Rule, nn
from relaylang.frontends.coreml.families.elementwise import shifted
from relaylang.frontends.coreml.node import Ints, Node, axes_of, like_axis
from relaylang.ir import Expr


def batch_norm(
    n: Node, x: Expr, mean: Expr, variance: Expr, gamma: Expr | None = None, beta: Expr | None = None, epsilon: float = 1e-5
) -> Any:
    b, channels = n.b, n.b.extent(x, 1)
    ones = gamma if gamma is not None else b.const(b.arrays.ones(channels), b.dtype(x))
    zeros = beta if beta is not None else b.const(b.arrays.zeros(channels), b.dtype(x))
    return b.fields(b.op("nn.batch_norm", x, ones, zeros, mean, variance, axis=1, epsilon=epsilon))[0]


def instance_norm(n: Node, x: Expr, gamma: Expr | None = None, beta: Expr | None = None, epsilon: float = 1e-5) -> Any:
    """Mean 0 and variance 1 of each channel of each example."""
    b = n.b
    normalised = nn.normalise(b, x, list(range(2, b.rank(x))), epsilon)
    scale, shift = (None if v is None else like_axis(b, x, v, 1) for v in (gamma, beta))
    return nn.scale_and_shift(b, normalised, scale, shift)


def l2_norm(n: Node, x: Expr, epsilon: float = 1e-6) -> Any:
    """Divided by the root of the sum of squares along the last three axes."""
    b, rank = n.b, n.b.rank(x)
    axes = list(range(max(rank - 3, 0), rank))
    total = b.op("sum", b.op("multiply", x, x), axis=axes, keepdims=True)
    return b.op("multiply", x, b.op("rsqrt", shifted(b, total, epsilon)))


def layer_norm(
    n: Node, x: Expr, axes: Ints | None = None, gamma: Expr | None = None, beta: Expr | None = None, epsilon: float = 1e-5
) -> Any:
    """Mean 0 and variance 1 along axes. gamma and beta have the extents of these axes."""
    b, rank, along = n.b, n.b.rank(x), sorted(axes_of(n.b, x, axes))
    if along == list(range(along[0], rank)):
        return nn.layer_norm(b, x, along[0], epsilon, gamma, beta)
    apart = [axis for axis in range(along[0], rank) if axis not in along]
    scale, shift = (None if v is None else b.unsqueeze(v, [axis - along[0] for axis in apart]) for v in (gamma, beta))
    return nn.scale_and_shift(b, nn.normalise(b, x, along, epsilon), scale, shift)


def local_response_norm(n: Node, x: Expr, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    if size < 1 or size % 2 == 0:
        raise Malformed(f"its size is {size}, and it must be odd")
    return n.b.op("nn.lrn", x, size=size, axis=1, alpha=alpha, beta=beta, bias=k)


def _reduced(name: str, before: str = "", behind: str = "") -> Callable[..., Any]:
    def convert(n: Node, x: Expr, axes: Ints | None = None, keep_dims: bool = False) -> Any:
        """An operator along axes, with a function of each element before it and behind it."""
        b = n.b
        data = b.op("multiply", x, x) if before == "square" else b.op(before, x) if before else x
        reduced = b.op(name, data, axis=axes_of(b, x, axes), keepdims=keep_dims)
        return b.op(behind, reduced) if behind else reduced

    return convert


def log_sum_exp(n: Node, x: Expr, axes: Ints | None = None, keep_dims: bool = False) -> Any:
    return nn.log_sum_exp(n.b, x, axes_of(n.b, x, axes), keep_dims)


def _extreme(name: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, axis: int = -1, keep_dims: bool = False, output_dtype: str = "int32") -> Any:
        """The place of the first extreme element along an axis."""
        b = n.b
        index = b.op(name, x, axis=[int(axis % b.rank(x))], keepdims=keep_dims)
        return b.cast(index, output_dtype if output_dtype in ("uint16", "int32") else "int32")

    return convert


RULES = (
    Rule("batch_norm", batch_norm),
    Rule("instance_norm", instance_norm),
    Rule("l2_norm", l2_norm),
    Rule("layer_norm", layer_norm),
    Rule("local_response_norm", local_response_norm),
    Rule("reduce_argmax", _extreme("argmax")),
    Rule("reduce_argmin", _extreme("argmin")),
    Rule("reduce_l1_norm", _reduced("sum", "abs")),
    Rule("reduce_l2_norm", _reduced("sum", "square", "sqrt")),
    Rule("reduce_log_sum", _reduced("sum", "", "log")),
    Rule("reduce_log_sum_exp", log_sum_exp),
    Rule("reduce_max", _reduced("max")),
    Rule("reduce_mean", _reduced("mean")),
    Rule("reduce_min", _reduced("min")),
    Rule("reduce_prod", _reduced("prod")),
    Rule("reduce_sum", _reduced("sum")),
    Rule("reduce_sum_square", _reduced("sum", "square")),
)
