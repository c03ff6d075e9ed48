"""Normalisation by stored means and variances, or by those of the batch, which change the stored ones."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Rule, nn
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def _stored(n: Node, x: Expr) -> Expr:
    """By the stored mean and variance."""
    b = n.b
    mean, variance = n.x("running_mean"), n.x("running_var")
    ones = b.const(b.arrays.ones(b.static_shape(mean)), b.dtype(mean))
    zeros = b.const(b.arrays.zeros(b.static_shape(mean)), b.dtype(mean))
    gamma, beta = (n.x(name) if n.has(name) else other for name, other in (("weight", ones), ("bias", zeros)))
    return b.field(b.op("nn.batch_norm", x, gamma, beta, mean, variance, axis=1, epsilon=float(n.get("eps", 1e-5))), 0)


def _shaped(n: Node, x: Expr) -> list[Expr | None]:
    """Scale and shift along the channels."""
    shape = [1, -1] + [1] * (n.b.rank(x) - 2)
    return [n.b.reshape(n.x(name), shape) if n.has(name) else None for name in ("weight", "bias")]


def _own(n: Node, x: Expr, axes: list[int]) -> list[Expr]:
    """By the tensor's own moments: the result, the mean and the factor of each channel, the new stored moments."""
    b, eps = n.b, float(n.get("eps", 1e-5))
    mean = b.op("mean", x, axis=axes, keepdims=True)
    apart, variance = nn.moments(b, x, axes)
    factor = b.op("rsqrt", b.op("add", variance, eps))
    normalised = nn.scale_and_shift(b, b.op("multiply", apart, factor), *_shaped(n, x))
    results = [normalised, *[b.op("reshape", v, newshape=[-1]) for v in (mean, factor)]]
    if not n.has("running_mean"):
        return results
    count = 1
    for axis in axes:
        count *= b.extent(x, axis, "an axis that statistics are taken over")
    momentum = float(n.get("momentum", 0.1))
    correction = count / (count - 1) if count > 1 else float("inf")
    for name, value, scale in (("running_mean", mean, 1.0), ("running_var", variance, correction)):
        rows = value if b.shape(value)[0] == 1 else b.op("mean", value, axis=[0], keepdims=True)
        fresh = b.op("multiply", b.op("reshape", rows, newshape=[-1]), momentum * scale)
        results.append(b.op("add", b.op("multiply", n.x(name), 1.0 - momentum), fresh))
    return results


def _written(n: Node, results: list[Expr]) -> None:
    for name, value in zip(("running_mean", "running_var"), results[3:]):
        n.write(name, value)


def batch_norm(n: Node) -> Any:
    x = n.x("input")
    if not n.get("training") and not n.get("train"):
        return [_stored(n, x)]
    results = _own(n, x, [0, *range(2, n.b.rank(x))])
    if not n.call.target.startswith("aten._native_batch_norm_legit_functional"):
        _written(n, results)
        return results[:3]
    return results


def batch_statistics(n: Node) -> Any:
    """The overload without stored moments always takes those of the batch."""
    x = n.x("input")
    return batch_norm(n) if n.has("running_mean") else _own(n, x, [0, *range(2, n.b.rank(x))])


def instance_norm(n: Node) -> Any:
    x = n.x("input")
    if not n.get("use_input_stats", True):
        return _stored(n, x)
    results = _own(n, x, list(range(2, n.b.rank(x))))
    _written(n, results)
    return results[0]


RULES = (
    Rule("aten._batch_norm_no_update", batch_norm),
    Rule("aten._native_batch_norm_legit", batch_statistics),
    Rule("aten._native_batch_norm_legit_functional", batch_norm),
    Rule("aten._native_batch_norm_legit_no_training", batch_norm),
    Rule("aten.batch_norm", lambda n: batch_norm(n)[0]),
    Rule("aten.instance_norm", instance_norm),
    Rule("aten.native_batch_norm", batch_norm),
)
