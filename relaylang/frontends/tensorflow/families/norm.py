"""Normalisations."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Rule, nn
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr


def fused_batch_norm(n: Node, x: Expr, scale: Expr, offset: Expr, mean: Expr, variance: Expr) -> Any:
    """With given mean and variance, or in training with those of the batch. The reserved results are for gradients."""
    b, epsilon = n.b, n.float("epsilon", 1e-4)
    layout = n.choice("data_format", "NHWC", ("NHWC", "NCHW", "NDHWC", "NCDHW"))
    axis = 1 if layout.startswith("NC") else b.rank(x) - 1
    if not n.bool("is_training", True):
        normalised = b.op("nn.batch_norm", x, scale, offset, mean, variance, axis=axis, epsilon=epsilon, center=True, scale=True)
        return [b.fields(normalised)[0], mean, variance]
    others = [a for a in range(b.rank(x)) if a != axis]
    wide = b.cast(x, "float32") if b.dtype(x) in ("float16", "bfloat16") else x
    apart, spread = nn.moments(b, wide, others)
    shape = [b.unsqueeze(v, others) for v in (scale, offset)]
    normalised = b.op("multiply", apart, b.op("rsqrt", b.op("add", spread, epsilon)))
    normalised = b.cast(b.op("add", b.op("multiply", normalised, shape[0]), shape[1]), b.dtype(x))
    count = 1
    for a in others:
        count *= b.extent(x, a, "an extent of a batch in training")
    batch_mean, batch_variance = b.op("mean", wide, axis=others), b.squeeze(spread, others)
    if count > 1:
        batch_variance = b.op("multiply", batch_variance, count / (count - 1))
    factor = n.float("exponential_avg_factor", 1.0)
    results = [batch_mean, batch_variance]
    if factor != 1.0:
        old = [mean, variance]
        results = [b.op("add", b.op("multiply", o, 1 - factor), b.op("multiply", r, factor)) for o, r in zip(old, results)]
    return [normalised, *results]


def global_normalization(n: Node, x: Expr, mean: Expr, variance: Expr, beta: Expr, gamma: Expr) -> Any:
    b = n.b
    attrs = {"axis": 3, "epsilon": n.float("variance_epsilon"), "center": True, "scale": n.bool("scale_after_normalization")}
    normalised = b.op("nn.batch_norm", x, gamma, beta, mean, variance, **attrs)
    return b.fields(normalised)[0]


def local_response(n: Node, x: Expr) -> Any:
    """TensorFlow's alpha is not divided by the window, Relay's is."""
    size = 2 * n.int("depth_radius", 5) + 1
    return n.b.op(
        "nn.lrn",
        n.b.of_rank(x, 4),
        size=size,
        axis=3,
        bias=n.float("bias", 1.0),
        alpha=n.float("alpha", 1.0) * size,
        beta=n.float("beta", 0.5),
    )


def softmax(n: Node, x: Expr) -> Any:
    return n.b.op("nn.softmax", x, axis=-1)


def log_softmax(n: Node, x: Expr) -> Any:
    return n.b.op("nn.log_softmax", x, axis=-1)


def cross_entropy(n: Node, x: Expr, labels: Expr) -> Any:
    """The loss of each row, and its gradient."""
    b = n.b
    logs = b.op("nn.log_softmax", x, axis=-1)
    loss = b.op("negative", b.op("sum", b.op("multiply", labels, logs), axis=[-1]))
    return [loss, b.op("subtract", b.op("nn.softmax", x, axis=-1), labels)]


def sparse_cross_entropy(n: Node, x: Expr, labels: Expr) -> Any:
    """As `cross_entropy`, with the numbers of classes."""
    b = n.b
    depth = b.extent(x, -1, "the number of classes")
    one, zero = b.const(1.0, b.dtype(x)), b.const(0.0, b.dtype(x))
    return cross_entropy(n, x, b.op("one_hot", labels, one, zero, depth=depth, axis=-1, dtype=b.dtype(x)))


RULES = (
    Rule("BatchNormWithGlobalNormalization", global_normalization),
    Rule("FusedBatchNorm", fused_batch_norm),
    Rule("FusedBatchNormV2", fused_batch_norm),
    Rule("FusedBatchNormV3", fused_batch_norm),
    Rule("LRN", local_response),
    Rule("LogSoftmax", log_softmax),
    Rule("Softmax", softmax),
    Rule("SoftmaxCrossEntropyWithLogits", cross_entropy),
    Rule("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy),
)
