"""Normalisations."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def along_channels(b: Builder, vector: Expr, rank: int) -> Expr:
    """A vector that broadcasts along axis 1."""
    return b.unsqueeze(vector, list(range(1, rank - 1))) if rank > 2 else vector


def batch_norm(n: Node, x: Expr, scale: Expr, shift: Expr, mean: Expr, var: Expr) -> Any:
    b = n.b
    epsilon = n.float("epsilon", 1e-5)
    if n.int("training_mode", 0):
        return _batch_norm_of_batch(n, x, scale, shift, mean, var, epsilon)
    vectors = [b.cast(v, b.dtype(x)) for v in (scale, shift, mean, var)]
    return b.fields(b.op("nn.batch_norm", x, *vectors, axis=1, epsilon=epsilon))[:1]


def batch_norm_spatial(n: Node, x: Expr, scale: Expr, shift: Expr, mean: Expr, var: Expr) -> Any:
    if n.int("spatial", 1) != 1:
        b = n.b
        root = b.op("sqrt", b.op("add", var, n.float("epsilon", 1e-5)))
        return nn.scale_and_shift(b, b.op("divide", b.op("subtract", x, mean), root), scale, shift)
    return batch_norm(n, x, scale, shift, mean, var)


def _batch_norm_of_batch(n: Node, x: Expr, scale: Expr, shift: Expr, mean: Expr, var: Expr, epsilon: float) -> list[Expr]:
    """Normalised by the batch's own statistics, with the moving ones beside."""
    b, rank, momentum = n.b, n.b.rank(x), n.float("momentum", 0.9)
    axes = [i for i in range(rank) if i != 1]
    apart, own_var = nn.moments(b, x, axes)
    normalised = b.op("multiply", apart, b.op("rsqrt", b.op("add", own_var, epsilon)))
    normalised = nn.scale_and_shift(b, normalised, along_channels(b, scale, rank), along_channels(b, shift, rank))
    own_mean = b.op("mean", x, axis=axes)
    moved = [
        b.op("add", b.op("multiply", old, momentum), b.op("multiply", new, 1 - momentum))
        for old, new in ((mean, own_mean), (var, b.squeeze(own_var, axes)))
    ]
    return [normalised, *moved]


def instance_norm(n: Node, x: Expr, scale: Expr, shift: Expr) -> Any:
    return n.b.op("nn.instance_norm", x, scale, shift, axis=1, epsilon=n.float("epsilon", 1e-5))


def layer_norm(n: Node, x: Expr, scale: Expr, shift: Expr | None = None) -> Any:
    b, epsilon = n.b, n.float("epsilon", 1e-5)
    axis = n.int("axis", -1) % b.rank(x)
    if not n.has_output(1) and not n.has_output(2):
        if b.rank(scale) == 1 and axis == b.rank(x) - 1 and b.dtype(scale) == b.dtype(x):
            return nn.layer_norm(b, x, axis, epsilon, scale, shift)
    dtype, axes = b.dtype(x), list(range(axis, b.rank(x)))
    wide = b.cast(x, "float32") if n.int("stash_type", 1) == 1 and dtype in ("float16", "bfloat16") else x
    mean = b.op("mean", wide, axis=axes, keepdims=True)
    apart, variance = nn.moments(b, wide, axes)
    inverse = b.op("rsqrt", b.op("add", variance, epsilon))
    normalised = nn.scale_and_shift(b, b.cast(b.op("multiply", apart, inverse), dtype), scale, shift)
    return [normalised, mean, inverse]


def rms_norm(n: Node, x: Expr, scale: Expr) -> Any:
    b, dtype = n.b, n.b.dtype(x)
    axes = list(range(n.int("axis", -1) % b.rank(x), b.rank(x)))
    wide = b.cast(x, "float32") if n.int("stash_type", 1) == 1 and dtype in ("float16", "bfloat16") else x
    normalised = b.cast(nn.rms_norm(b, wide, axes, n.float("epsilon", 1e-5)), dtype)
    return b.cast(b.op("multiply", b.cast(normalised, b.dtype(scale)), scale), b.dtype(scale))


def group_norm(n: Node, x: Expr, scale: Expr, shift: Expr) -> Any:
    return n.b.op("nn.group_norm", x, scale, shift, num_groups=n.int("num_groups"), axis=1, epsilon=n.float("epsilon", 1e-5))


def group_norm_by_group(n: Node, x: Expr, scale: Expr, shift: Expr) -> Any:
    """Opset 18 has a factor for each group, later ones for each channel."""
    b, each = n.b, n.b.extent(x, 1) // n.int("num_groups")
    spread = [b.op("repeat", v, repeats=each, axis=0) for v in (scale, shift)]
    return group_norm(n, x, *spread)


def lp_norm(n: Node, x: Expr) -> Any:
    b, p = n.b, n.int("p", 2)
    axis = n.int("axis", -1) % b.rank(x)
    if p == 2:
        return b.op("nn.l2_normalize", x, eps=_tiny(b, x), axis=[axis])
    if p != 1:
        raise Unsupported(f"norms have p=1 or p=2, not {p}")
    total = b.op("sum", b.op("abs", x), axis=[axis], keepdims=True)
    return b.op("divide", x, b.op("maximum", total, _tiny(b, x)))


def _tiny(b: Builder, x: Expr) -> float:
    """The smallest number of the element type, so that zeros stay zeros."""
    return 6e-8 if b.dtype(x) == "float16" else 1.2e-38


def lrn(n: Node, x: Expr) -> Any:
    b, size = n.b, n.int("size")
    alpha, beta, bias = n.float("alpha", 1e-4), n.float("beta", 0.75), n.float("bias", 1.0)
    if size % 2:
        return b.op("nn.lrn", x, size=size, axis=1, alpha=alpha, beta=beta, bias=bias)
    before = (size - 1) // 2
    widths = [(before, size - 1 - before) if axis == 1 else (0, 0) for axis in range(b.rank(x))]
    squares = b.op("nn.pad", b.op("multiply", x, x), b.const(0, b.dtype(x)), pad_width=widths)
    channels = b.extent(x, 1)
    total: Any = b.slice(squares, [0], [channels], [1])
    for i in range(1, size):
        total = b.op("add", total, b.slice(squares, [i], [i + channels], [1]))
    base = b.op("add", b.op("multiply", total, alpha / size), bias)
    return b.op("divide", x, b.op("power", base, beta))


def mean_variance_norm(n: Node, x: Expr) -> Any:
    b = n.b
    apart, variance = nn.moments(b, x, n.ints("axes", [0, 2, 3]))
    return b.op("divide", apart, b.op("add", b.op("sqrt", variance), 1e-9))


RULES = (
    Rule("BatchNormalization", batch_norm_spatial, until=8),
    Rule("BatchNormalization", batch_norm, since=9),
    Rule("InstanceNormalization", instance_norm),
    Rule("LayerNormalization", layer_norm),
    Rule("RMSNormalization", rms_norm),
    Rule("GroupNormalization", group_norm_by_group, until=20),
    Rule("GroupNormalization", group_norm, since=21),
    Rule("LpNormalization", lp_norm),
    Rule("LRN", lrn),
    Rule("MeanVarianceNormalization", mean_variance_norm),
)
