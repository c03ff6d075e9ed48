"""Dense layers, embeddings and normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, nn
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.keras.families.activation import activated
from relaylang.frontends.keras.node import Node, Tensor
from relaylang.ir import Expr


def dense(n: Node, x: Expr) -> Any:
    """Kernels are (inputs, units), and Relay's weights (units, inputs)."""
    b, x = n.b, n.real(x)
    kernel = n.weight(0, "kernel", lambda w: w.T, rank=2)
    product = b.op("nn.dense", x, kernel, units=b.extent(kernel, 0))
    product = b.op("nn.bias_add", product, n.weight(1, "bias", rank=1), axis=-1) if n.bool("use_bias", True) else product
    return activated(n, product)


def einsum_dense(n: Node, x: Expr) -> Any:
    """The bias has the axes of the result that `bias_axes` names."""
    b = n.b
    equation = n.value("equation")
    if not isinstance(equation, str) or "->" not in equation:
        raise Malformed(f"its equation is {repr(equation)[:60]}")
    product = einsum(b, equation, [n.real(x), n.weight(0, "kernel")])
    axes = n.value("bias_axes", None)
    if axes:
        output = equation.partition("->")[2].replace(" ", "")
        letters = output.replace("...", "")
        first = min((letters.index(c) for c in str(axes) if c in letters), default=0)
        rank = len(letters) - first
        bias = n.array(1)
        shape = [bias.shape[str(axes).index(c)] if c in str(axes) and bias.ndim == len(str(axes)) else 1 for c in letters[first:]]
        if bias.ndim == len(str(axes)) and int(np.prod(shape)) == bias.size:
            product = b.op("add", product, n.weight(1, "bias", lambda w: w.reshape(shape)))
        else:
            product = b.op("add", product, b.unsqueeze(n.weight(1, "bias"), list(range(rank - bias.ndim))))
    return activated(n, product)


def embedding(n: Node, x: Expr) -> Any:
    """Rows of a table by whole numbers. With `mask_zero`, steps with the number 0 do not count."""
    b = n.b
    ids = x if b.dtype(x) in ("int32", "int64") else b.cast(x, "int32")
    rows = b.op("take", n.weight(0, "embeddings", rank=2), ids, axis=0)
    mask = b.op("not_equal", ids, b.const(0, b.dtype(ids))) if n.bool("mask_zero", False) else None
    return Tensor(rows, mask)


def reversible_embedding(n: Node, x: Expr) -> Any:
    """An embedding, or with `reverse` the products with its rows."""
    b = n.b
    if not n.flag("reverse"):
        return embedding(n, x)
    if n.bool("tie_weights", True):
        product = b.op("nn.dense", n.real(x), n.weight(0, "embeddings", rank=2))
    else:
        product = b.op("nn.dense", n.real(x), n.weight(1, "reverse_embeddings", lambda w: w.T, rank=2))
    cap = n.value("logit_soft_cap", None)
    if cap is None:
        return product
    limit = n.float("logit_soft_cap")
    return b.op("multiply", b.op("tanh", b.op("divide", product, limit)), limit)


def batch_norm(n: Node, x: Expr) -> Any:
    """The moments of training; float16 is normalised as float32."""
    b = n.b
    x = n.real(x)
    wide = "float32" if b.dtype(x) in ("float16", "bfloat16") else b.dtype(x)
    axis = n.axis("axis", b.rank(x), -1)
    scale, center = n.bool("scale", True), n.bool("center", True)
    count = b.extent(x, axis, "the channels")
    gamma = n.weight(0, "gamma", rank=1, dtype=wide) if scale else b.const(b.arrays.ones(count), wide)
    beta = n.weight(int(scale), "beta", rank=1, dtype=wide) if center else b.const(b.arrays.zeros(count), wide)
    mean, variance = (
        n.weight(scale + center + i, name, rank=1, dtype=wide) for i, name in enumerate(("moving_mean", "moving_variance"))
    )
    normalised = b.op(
        "nn.batch_norm",
        b.cast(x, wide),
        gamma,
        beta,
        mean,
        variance,
        axis=axis,
        epsilon=n.float("epsilon", 1e-3),
        center=center,
        scale=scale,
    )
    return b.cast(b.fields(normalised)[0], b.dtype(x))


def layer_norm(n: Node, x: Expr) -> Any:
    """Normalised along some axes, which gamma and beta have."""
    b = n.b
    x = n.real(x)
    wide = "float32" if b.dtype(x) in ("float16", "bfloat16") else b.dtype(x)
    operand, x = x, b.cast(x, wide)
    axes = sorted(n.axes("axis", b.rank(x), -1))
    scale, center, epsilon = n.bool("scale", True), n.bool("center", True), n.float("epsilon", 1e-3)
    if n.config.get("rms_scaling"):
        variance = nn.moments(b, x, axes)[1]
        normalised = b.op("multiply", x, b.op("rsqrt", b.op("add", variance, epsilon)))
        return b.cast(b.op("multiply", normalised, _broadcast(n, 0, "gamma", axes, x, wide)), b.dtype(operand))
    if axes == [b.rank(x) - 1]:
        gamma = n.weight(0, "gamma", rank=1, dtype=wide) if scale else None
        beta = n.weight(int(scale), "beta", rank=1, dtype=wide) if center else None
        return b.cast(nn.layer_norm(b, x, -1, epsilon, gamma, beta), b.dtype(operand))
    gamma = _broadcast(n, 0, "gamma", axes, x, wide) if scale else None
    beta = _broadcast(n, int(scale), "beta", axes, x, wide) if center else None
    return b.cast(nn.scale_and_shift(b, nn.normalise(b, x, axes, epsilon), gamma, beta), b.dtype(operand))


def _broadcast(n: Node, index: int, name: str, axes: list[int], x: Expr, dtype: str) -> Expr:
    """A weight of some axes of a tensor in the form that broadcasts to it."""
    shape = n.array(index, len(axes)).shape
    sizes = [shape[axes.index(i)] if i in axes else 1 for i in range(n.b.rank(x))]
    return n.weight(index, name, lambda w: w.reshape(sizes), dtype=dtype, key=str(axes))


def group_norm(n: Node, x: Expr) -> Any:
    """Each group of channels normalised over all axes but the batch."""
    b = n.b
    x = n.real(x)
    wide = "float32" if b.dtype(x) in ("float16", "bfloat16") else b.dtype(x)
    operand, x = x, b.cast(x, wide)
    rank, axis = b.rank(x), n.axis("axis", b.rank(x), -1)
    channels = b.extent(x, axis, "the channels")
    groups = n.int("groups", 32)
    groups = channels if groups == -1 else groups
    if groups < 1 or channels % groups:
        raise Malformed(f"its operand has {channels} channels, which do not form {groups} groups")
    if axis == 0:
        raise Malformed("its axis is the batch")
    split = b.op("reshape", x, newshape=[*[0] * axis, -4, groups, channels // groups, *([-2] if axis + 1 < rank else [])])
    normalised = nn.normalise(b, split, [i for i in range(1, rank + 1) if i != axis], n.float("epsilon", 1e-3))
    normalised = b.op("reshape", normalised, newshape=[*[0] * axis, -3, *([-2] if axis + 1 < rank else [])])
    scale, center = n.bool("scale", True), n.bool("center", True)
    gamma = _broadcast(n, 0, "gamma", [axis], x, wide) if scale else None
    beta = _broadcast(n, int(scale), "beta", [axis], x, wide) if center else None
    return b.cast(nn.scale_and_shift(b, normalised, gamma, beta), b.dtype(operand))


def unit(n: Node, x: Expr, axes: list[int], least: float) -> Any:
    """Length 1 along the axes; lengths below `least` count as that."""
    b = n.b
    square = b.op("sum", b.op("multiply", x, x), axis=axes, keepdims=True)
    return b.op("multiply", x, b.op("rsqrt", b.op("maximum", square, least * least)))


def rms_norm(n: Node, x: Expr) -> Any:
    b = n.b
    x = n.real(x)
    wide = "float32" if b.dtype(x) in ("float16", "bfloat16") else b.dtype(x)
    axes = sorted(n.axes("axis", b.rank(x), -1))
    scale = _broadcast(n, 0, "scale", axes, x, wide)
    return b.cast(nn.rms_norm(b, b.cast(x, wide), axes, n.float("epsilon", 1e-6), scale), b.dtype(x))


def scaled_sum(n: Node, xs: list[Expr]) -> Any:
    """The scaled residual of Inception-ResNet: the first operand, and the second times a factor."""
    if not isinstance(xs, list) or len(xs) != 2:
        raise Malformed("it takes two operands")
    return n.b.op("add", xs[0], n.b.op("multiply", xs[1], n.float("scale")))


def spectral_norm(n: Node, x: Expr) -> Any:
    """At inference the layer itself, whose weights are normalised."""
    ((key, layer),) = n.spec.children()
    return n.inner(key, layer, Tensor(x, n.mask))


RULES = (
    Rule("BatchNormalization", batch_norm),
    Rule("CustomScaleLayer", scaled_sum),
    Rule("Dense", dense),
    Rule("EinsumDense", einsum_dense),
    Rule("Embedding", embedding),
    Rule("GroupNormalization", group_norm),
    Rule("LayerNormalization", layer_norm),
    Rule("LayerScale", lambda n, x: n.b.op("multiply", n.real(x), n.weight(0, "gamma"))),
    Rule("RMSNormalization", rms_norm),
    Rule("ReversibleEmbedding", reversible_embedding),
    Rule("SpectralNormalization", spectral_norm),
    Rule("UnitNormalization", lambda n, x: unit(n, n.real(x), n.axes("axis", n.b.rank(x), -1), 1e-12 if n.spec.major >= 3 else 1e-6)),
)
