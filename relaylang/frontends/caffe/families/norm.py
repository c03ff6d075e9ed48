"""Normalisations, and factors for channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.caffe.node import Node
from relaylang.frontends.common import Malformed, Rule, nn
from relaylang.ir import Expr


def batch_norm(n: Node, x: Expr) -> Any:
    """The moving statistics, which the file has times a factor of its own; those of the batch without `use_global_stats`.

    A `Scale` that follows becomes a part of it.
    """
    b, p = n.b, n.params("batch_norm_param")
    epsilon, rank = n.float(p, "eps"), b.rank(x)
    if p.HasField("use_global_stats") and not p.use_global_stats:
        return nn.normalise(b, x, [0, *range(2, rank)], epsilon)
    channels = b.extent(x, 1) if rank > 1 else 1
    mean, variance = (n.array(i, (channels,), name) for i, name in enumerate(("mean", "variance")))
    if len(n.blobs) > 2:
        factor = n.array(2, (1,), "factor")[0]
        share = np.float32(0 if factor == 0 else 1 / factor)
        mean, variance = mean * share, variance * share
    if rank < 2:
        return b.op("divide", b.op("subtract", x, n.weight(mean, "mean")), float(np.sqrt(variance[0] + epsilon)))
    moments = [n.weight(mean, "mean"), n.weight(variance, "variance")]
    ones, zeros = b.const(b.arrays.ones(channels), "float32"), b.const(b.arrays.zeros(channels), "float32")
    normalised = b.fields(b.op("nn.batch_norm", x, ones, zeros, *moments, axis=1, epsilon=epsilon))[0]
    b.notes[normalised] = x, moments, epsilon
    return normalised


def _factor(n: Node, x: Expr, p: Any, index: int, what: str) -> np.ndarray:
    """A weight for some axes of an operand, with axes of extent 1 for those behind them."""
    b, rank = n.b, n.b.rank(x)
    first = 0 if p.num_axes == 0 else n.axis(p, x)
    count = rank - first if p.num_axes == -1 else p.num_axes
    if count < 0 or first + count > rank:
        raise Malformed(f"its weights are for {p.num_axes} axes from {p.axis} on, and its operand has {rank}")
    own = [b.extent(x, axis) for axis in range(first, first + count)]
    return n.array(index, [*own, *[1] * (rank - first - count if count else 0)], what)


def _spread(n: Node, x: Expr, factor: Expr, p: Any) -> Expr:
    """An operand for some axes of another one, with axes of extent 1 for those behind them."""
    b = n.b
    first = n.axis(p, x) if b.rank(factor) else 0
    behind = b.rank(x) - first - b.rank(factor)
    if behind < 0 or tuple(b.shape(factor)) != tuple(b.shape(x)[first : first + b.rank(factor)]):
        raise Malformed("its second operand does not fit the axes of the first")
    return b.unsqueeze(factor, list(range(b.rank(factor), b.rank(factor) + behind))) if b.rank(factor) else factor


def scale(n: Node, x: Expr, factor: Expr | None = None) -> Any:
    """Times a weight or a second operand, plus a weight with `bias_term`."""
    b, p = n.b, n.params("scale_param")
    if factor is not None:
        own = _spread(n, x, factor, p)
        scaled = b.op("multiply", x, own)
        if not p.bias_term:
            return scaled
        return b.op("add", scaled, n.weight(n.array(0, [b.extent(own, i) for i in range(b.rank(own))], "bias"), "bias"))
    gamma = _factor(n, x, p, 0, "scale")
    beta = _factor(n, x, p, 1, "bias") if p.bias_term else None
    if x in b.notes and p.num_axes == 1 and n.axis(p, x) == 1:
        data, moments, epsilon = b.notes[x]
        shift = n.weight(beta.reshape(-1), "bias") if beta is not None else b.const(b.arrays.zeros(gamma.size), "float32")
        how = {"axis": 1, "epsilon": epsilon}
        return b.fields(b.op("nn.batch_norm", data, n.weight(gamma.reshape(-1), "scale"), shift, *moments, **how))[0]
    scaled = b.op("multiply", x, n.weight(gamma, "scale"))
    return b.op("add", scaled, n.weight(beta, "bias")) if beta is not None else scaled


def bias(n: Node, x: Expr, shift: Expr | None = None) -> Any:
    p = n.params("bias_param")
    return n.b.op("add", x, _spread(n, x, shift, p) if shift is not None else n.weight(_factor(n, x, p, 0, "bias"), "bias"))


def mvn(n: Node, x: Expr) -> Any:
    """Mean 0 over each picture or channel, and deviation 1. Caffe adds its epsilon to the deviation."""
    b, p = n.b, n.params("mvn_param")
    axes = list(range(1 if p.across_channels else 2, b.rank(b.of_rank(x, 4))))
    apart, variance = nn.moments(b, x, axes)
    return b.op("divide", apart, b.op("add", b.op("sqrt", variance), n.float(p, "eps"))) if p.normalize_variance else apart


def normalize(n: Node, x: Expr) -> Any:
    """Length 1 over a picture's channels at each place, or over all of it; times a weight."""
    b, p = n.b, n.params("norm_param")
    axes, channels = ([1, 2, 3] if p.across_spatial else [1]), b.extent(b.of_rank(x, 4), 1)
    total = b.op("sum", b.op("multiply", x, x), axis=axes, keepdims=True)
    normalised = b.op("divide", x, b.op("sqrt", b.op("add", total, n.float(p, "eps"))))
    shape = (1, 1, 1, 1) if p.channel_shared else (1, channels, 1, 1)
    return b.op("multiply", normalised, n.weight(n.array(0, shape, "scale"), "scale"))


RULES = (
    Rule("BatchNorm", batch_norm),
    Rule("Bias", bias),
    Rule("MVN", mvn),
    Rule("Normalize", normalize),
    Rule("NormalizeBBox", normalize),
    Rule("Scale", scale),
)
