"""Normalisations."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr


def batch_norm(n: Node, x: Expr, gamma: Expr, beta: Expr, mean: Expr, var: Expr) -> Any:
    """By the moving statistics, as in every network that is run. `fix_gamma` makes gamma 1."""
    b = n.b
    axis = n.axis("axis", b.rank(x), 1)
    if n.bool("output_mean_var"):
        raise Unsupported("its mean and variance are results")
    gamma = b.op("ones_like", gamma) if n.bool("fix_gamma", True) else gamma
    dtype = b.dtype(x)
    vectors = [b.cast(v, dtype) for v in (gamma, beta, mean, var)]
    return b.fields(b.op("nn.batch_norm", x, *vectors, axis=axis, epsilon=n.float("eps", 1e-3)))[:1]


def layer_norm(n: Node, x: Expr, gamma: Expr, beta: Expr) -> Any:
    b = n.b
    if n.bool("output_mean_var"):
        raise Unsupported("its mean and variance are results")
    axis, epsilon = n.axis("axis", b.rank(x), -1), n.float("eps", 1e-5)
    if axis == b.rank(x) - 1:
        return nn.layer_norm(b, x, axis, epsilon, gamma, beta)
    return nn.scale_and_shift(b, nn.normalise(b, x, [axis], epsilon), *(_along(b, v, axis, b.rank(x)) for v in (gamma, beta)))


def _along(b: Builder, vector: Expr, axis: int, rank: int) -> Expr:
    return b.unsqueeze(vector, [i for i in range(rank) if i != axis])


def instance_norm(n: Node, x: Expr, gamma: Expr, beta: Expr) -> Any:
    return n.b.op("nn.instance_norm", x, gamma, beta, axis=1, epsilon=n.float("eps", 1e-3))


def group_norm(n: Node, x: Expr, gamma: Expr, beta: Expr) -> Any:
    """Versions before 2 have a factor for each group, of which each channel of the group has the same."""
    b, groups = n.b, n.int("num_groups", 1)
    if n.bool("output_mean_var"):
        raise Unsupported("its mean and variance are results")
    channels = b.extent(x, 1, "the channels")
    if groups < 1 or channels % groups:
        raise Unsupported(f"its {channels} channels are not {groups} groups")
    if b.shape(gamma, 1) == (groups,) and groups != channels:
        gamma, beta = (b.op("repeat", v, repeats=channels // groups, axis=0) for v in (gamma, beta))
    return b.op("nn.group_norm", x, gamma, beta, num_groups=groups, axis=1, epsilon=n.float("eps", 1e-5))


def lrn(n: Node, x: Expr) -> Any:
    factors = {"alpha": n.float("alpha", 1e-4), "beta": n.float("beta", 0.75), "bias": n.float("knorm", 2.0)}
    return n.b.op("nn.lrn", x, size=n.int("nsize"), axis=1, **factors)


def l2_normalization(n: Node, x: Expr) -> Any:
    """Divided by the root of the sum of squares: of each element of the batch, along the channels, or of each channel."""
    b, rank = n.b, n.b.rank(x)
    axes = {"instance": list(range(1, rank)), "channel": [1], "spatial": list(range(2, rank))}
    chosen = axes[n.choice("mode", "instance", axes)]
    total = b.op("sum", b.op("multiply", x, x), axis=chosen, keepdims=True)
    return b.op("divide", x, b.op("sqrt", b.op("add", total, n.float("eps", 1e-10))))


RULES = (
    Rule("BatchNorm", batch_norm),
    Rule(
        "_contrib_BatchNormWithReLU",
        lambda n, x, gamma, beta, mean, var: n.b.op("nn.relu", batch_norm(n, x, gamma, beta, mean, var)[0]),
    ),
    Rule("LayerNorm", layer_norm),
    Rule("InstanceNorm", instance_norm),
    Rule("GroupNorm", group_norm),
    Rule("LRN", lrn),
    Rule("L2Normalization", l2_normalization),
)
