"""Normalisations and norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.frontends.common import Malformed, Rule, nn
from relaylang.frontends.paddle.node import Node
from relaylang.ir import Expr


def batch_norm(n: Node, x: Expr, mean: Expr, variance: Expr, scale: Expr | None = None, bias: Expr | None = None) -> Any:
    """With the moving statistics, or those of the batch where the program is one of training."""
    b, rank, epsilon = n.b, n.b.rank(x), n.float("epsilon", 1e-5)
    axis = rank - 1 if n.text("data_format", n.text("data_layout", "NCHW")).endswith("C") and rank > 2 else 1
    count = b.extent(mean, 0)
    gamma = scale if scale is not None else b.const(b.arrays.ones(count), b.dtype(mean))
    beta = bias if bias is not None else b.const(b.arrays.zeros(count), b.dtype(mean))
    if n.bool("is_test", False) or n.bool("use_global_stats", False):
        return b.fields(b.op("nn.batch_norm", x, gamma, beta, mean, variance, axis=axis, epsilon=epsilon))[:1]
    others, ends = [i for i in range(rank) if i != axis], [-1 if i == axis else 1 for i in range(rank)]
    normalised = nn.normalise(b, x, others, epsilon)
    return [nn.scale_and_shift(b, normalised, b.op("reshape", gamma, newshape=ends), b.op("reshape", beta, newshape=ends))]


def _from_axis(n: Node, x: Expr, value: Expr | None, axis: int) -> Expr | None:
    """A factor for the axes from one on, which files have as a vector."""
    b = n.b
    if value is None or b.rank(x) - axis == 1:
        return value
    return b.reshape_exactly(value, list(b.static_shape(x)[axis:]))


def layer_norm(n: Node, x: Expr, scale: Expr | None = None, bias: Expr | None = None) -> Any:
    axis = n.int("begin_norm_axis", 1) % n.b.rank(x)
    gamma, beta = _from_axis(n, x, scale, axis), _from_axis(n, x, bias, axis)
    return [nn.layer_norm(n.b, x, axis, n.float("epsilon", 1e-5), gamma, beta)]


def rms_norm(n: Node, x: Expr, scale: Expr | None = None) -> Any:
    """Over as many of the last axes as `normalized_shape` has."""
    axis = n.b.rank(x) - max(len(n.ints("normalized_shape", [1])), 1)
    if axis < 0:
        raise Malformed(f"it normalises more axes than its operand has, {int(n.b.rank(x))}")
    axes = list(range(axis, n.b.rank(x)))
    return [nn.rms_norm(n.b, x, axes, n.float("epsilon", 1e-5), _from_axis(n, x, scale, axis))]


def group_norm(n: Node, x: Expr, scale: Expr | None = None, bias: Expr | None = None) -> Any:
    b, groups, epsilon = n.b, n.int("groups"), n.float("epsilon", 1e-5)

    def convert(x: Expr) -> Expr:
        channels = b.extent(x, 1, "the channels")
        if groups < 1 or channels % groups:
            raise Malformed(f"its {channels} channels do not form {groups} groups")
        parted = b.op("reshape", x, newshape=[0, -4, groups, -1, -2])
        normalised = nn.normalise(b, parted, list(range(2, b.rank(parted))), epsilon)
        normalised = b.op("reshape", normalised, newshape=[0, -3, -2])
        return nn.scale_and_shift(b, normalised, *[_along(n, v, b.rank(x)) for v in (scale, bias)])

    return [n.channels_first(x, convert)]


def _along(n: Node, value: Expr | None, rank: int) -> Expr | None:
    """A factor for each channel of (n, c, d...)."""
    return None if value is None else n.b.op("reshape", value, newshape=[-1, *[1] * (rank - 2)])


def instance_norm(n: Node, x: Expr, scale: Expr | None = None, bias: Expr | None = None) -> Any:
    rank = n.b.rank(x)
    normalised = nn.normalise(n.b, x, list(range(2, rank)), n.float("epsilon", 1e-5))
    return [nn.scale_and_shift(n.b, normalised, *[_along(n, v, rank) for v in (scale, bias)])]


def norm(n: Node, x: Expr) -> Any:
    """The operand by its length along an axis, and the lengths."""
    b, axis = n.b, n.axis(x, "axis", -1)
    square = b.op("sum", b.op("multiply", x, x), axis=[axis], keepdims=True)
    length = b.op("sqrt", b.op("add", square, n.float("epsilon", 1e-10)))
    return [b.op("divide", x, length), length]


def p_norm(n: Node, x: Expr) -> Any:
    b, order = n.b, n.operation.attributes.get("porder", 2.0)
    if not isinstance(order, (int, float)):
        raise Malformed(f"its order is {str(order)[:40]!r}")
    axes = list(range(b.rank(x))) if n.bool("asvector", False) else [n.axis(x, "axis", -1)]
    return p_norm_of(n, b.op("abs", x), float(order), axes, n.bool("keepdim", False))


def p_norm_of(n: Node, size: Expr, order: float, axes: Sequence[int], keep: bool) -> Expr:
    """The norm of sizes along axes."""
    b, how = n.b, {"axis": list(axes), "keepdims": keep}
    if math.isinf(order):
        return b.op("max" if order > 0 else "min", size, **how)
    if order == 0:
        return b.op("sum", b.cast(b.op("not_equal", size, 0.0), b.dtype(size)), **how)
    if order == 1:
        return b.op("sum", size, **how)
    if order == 2:
        return b.op("sqrt", b.op("sum", b.op("multiply", size, size), **how))
    return b.op("power", b.op("sum", b.op("power", size, order), **how), 1.0 / order)


def frobenius_norm(n: Node, x: Expr, axis: Any = None) -> Any:
    b = n.b
    stated = n.numbers(axis, "its axes") if axis is not None else []
    every = n.bool("reduce_all", False) or not stated
    axes = list(range(b.rank(x))) if every else [a % b.rank(x) for a in stated]
    return p_norm_of(n, x, 2.0, axes, n.bool("keep_dim", False))


def lrn(n: Node, x: Expr) -> Any:
    """`x / (k + alpha * sum)^beta`, with the sum of the squares of `n` neighbouring channels."""
    size = n.int("n", 5)

    def convert(x: Expr) -> Expr:
        how = {
            "size": size,
            "axis": 1,
            "bias": n.float("k", 2.0),
            "alpha": n.float("alpha", 1e-4) * size,
            "beta": n.float("beta", 0.75),
        }
        return n.b.op("nn.lrn", x, **how)

    if size < 1 or size % 2 == 0:
        raise Malformed(f"it has {size} neighbouring channels, which must be an odd number")
    return [n.channels_first(x, convert)]


RULES = (
    Rule("batch_norm", batch_norm),
    Rule("frobenius_norm", frobenius_norm),
    Rule("group_norm", group_norm),
    Rule("instance_norm", instance_norm),
    Rule("layer_norm", layer_norm),
    Rule("lrn", lrn),
    Rule("norm", norm),
    Rule("p_norm", p_norm),
    Rule("rms_norm", rms_norm),
    Rule("sync_batch_norm", batch_norm),
)
