"""Layers on each element, products with weights, and normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.coreml.families import elementwise as ops
from relaylang.frontends.coreml.families import norm
from relaylang.frontends.coreml.families.windows import biased, linear
from relaylang.frontends.coreml.families.windows import matmul as product
from relaylang.frontends.coreml.layer import LayerNode, alike, each, whole
from relaylang.ir import Expr


def function(n: LayerNode, made: Any) -> Callable[[Expr], Expr]:
    """An activation by its message."""
    kind = made.WhichOneof("kind")
    p: Any = getattr(made, kind) if kind else None

    def parametric(x: Expr) -> Expr:
        alpha, beta = (_channels(n, x, part, what) for part, what in ((p.alpha, "alpha"), (p.beta, "beta")))
        scaled: Expr = n.b.op("multiply", nn.softplus(n.b, n.b.op("multiply", x, beta)), alpha)
        return scaled

    simple: dict[str, Callable[[Expr], Expr]] = {
        "ReLU": lambda x: n.b.op("nn.relu", x),
        "tanh": lambda x: n.b.op("tanh", x),
        "sigmoid": lambda x: n.b.op("sigmoid", x),
        "softplus": lambda x: nn.softplus(n.b, x),
        "softsign": lambda x: nn.softsign(n.b, x),
        "linear": lambda x: ops.linear_activation(n, x, p.alpha, p.beta),
        "leakyReLU": lambda x: n.b.op("nn.leaky_relu", x, alpha=p.alpha),
        "thresholdedReLU": lambda x: ops.thresholded_relu(n, x, p.alpha),
        "scaledTanh": lambda x: ops.scaled_tanh(n, x, p.alpha, p.beta),
        "sigmoidHard": lambda x: ops.sigmoid_hard(n, x, p.alpha, p.beta),
        "ELU": lambda x: nn.elu(n.b, x, p.alpha),
        "PReLU": lambda x: nn.prelu(n.b, x, _channels(n, x, p.alpha, "slope")),
        "parametricSoftplus": parametric,
    }
    if kind not in simple:
        raise Unsupported("its activation is none that the importer knows")
    return simple[kind]


def _channels(n: LayerNode, x: Expr, weights: Any, what: str) -> Expr:
    """A number for each channel, or one for all, so that it broadcasts."""
    b = n.b
    parts = weights.floatValue
    if sum(map(len, parts)) == 4:
        return b.const(float(n.array(weights, (1,), what)[0]), "float32")
    axis = n.channel(x)
    values = n.param(weights, (b.extent(x, axis),), what)
    return b.unsqueeze(values, list(range(1, b.rank(x) - axis)))


def activation(n: LayerNode, x: Expr) -> Any:
    return function(n, n.p)(n.real(x))


def unary(n: LayerNode, x: Expr) -> Any:
    """A function of `scale * x + shift`."""
    b, kind = n.b, n.p.type
    data = ops.linear_activation(n, n.real(x), n.float("scale", 1.0), n.float("shift"))
    alpha, epsilon = n.float("alpha"), n.float("epsilon", 1e-6)
    functions: list[Callable[[], Expr]] = [
        lambda: b.op("sqrt", data),
        lambda: b.op("rsqrt", ops.shifted(b, data, epsilon)),
        lambda: ops.inverse(n, data, epsilon),
        lambda: b.op("power", data, alpha),
        lambda: b.op("exp", data),
        lambda: ops.log(n, data, epsilon),
        lambda: b.op("abs", data),
        lambda: b.op("maximum", data, alpha),
    ]
    if not 0 <= kind < len(functions):
        raise Malformed(f"its function has the number {kind}")
    return functions[kind]()


def _folded(name: str, mean: bool = False) -> Callable[..., Any]:
    def convert(n: LayerNode, *operands: Expr) -> Any:
        """One result of all operands, which broadcast; of one operand and a number where there is one alone."""
        b, xs = n.b, alike(n, operands)
        if not xs:
            raise Malformed("it has no operand")
        if len(xs) == 1 and hasattr(n.p, "alpha"):
            return b.op(name, xs[0], n.float("alpha"))
        joined = xs[0]
        for x in xs[1:]:
            joined = b.op(name, joined, x)
        return b.op("multiply", joined, 1 / len(xs)) if mean else joined

    return convert


def _compared(name: str) -> Callable[..., Any]:
    def convert(n: LayerNode, x: Expr, y: Expr | None = None) -> Any:
        """A comparison of two operands, or with a number."""
        left, *right = alike(n, [x] if y is None else [x, y])
        return n.b.op(name, left, right[0] if right else n.float("alpha"))

    return convert


def _logical(name: str) -> Callable[..., Any]:
    def convert(n: LayerNode, *operands: Expr) -> Any:
        return n.b.op(name, *[n.b.cast(x, "bool") for x in operands])

    return convert


def clip(n: LayerNode, x: Expr) -> Any:
    return ops.clip(n, n.real(x), n.float("minVal"), n.float("maxVal"))


def gelu(n: LayerNode, x: Expr) -> Any:
    if not 0 <= n.p.mode < 3:
        raise Malformed(f"its mode is {n.p.mode}")
    return ops.gelu(n, n.real(x), ("EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION")[n.p.mode])


def where(n: LayerNode, cond: Expr, x: Expr, y: Expr) -> Any:
    return n.b.op("where", n.b.cast(cond, "bool"), *alike(n, [x, y]))


# ---- products with weights


def inner_product(n: LayerNode, x: Expr) -> Any:
    """The last axis of up to three, else the last three as one. Weights are (results, elements)."""
    b, p, rank = n.b, n.p, n.b.rank(x)
    weight = n.param(p.weights, (p.outputChannels, p.inputChannels), "weight")
    bias = n.param(p.bias, (p.outputChannels,), "bias") if p.hasBias else None
    data = n.real(x)
    if rank < 4 and not (n.old and rank == 3):
        return linear(n, data, weight, bias)
    data = b.op("nn.batch_flatten", data) if rank == 4 else data
    if rank != 4:
        shape = b.static_shape(x)
        data = b.reshape_exactly(data, [math.prod(shape[:-3]), math.prod(shape[-3:])])
    dense = linear(n, data, weight, bias)
    if n.old:
        return dense
    return b.unsqueeze(dense, [2, 3]) if rank == 4 else b.reshape_exactly(dense, [*b.static_shape(x)[:-3], p.outputChannels, 1, 1])


def embedding(n: LayerNode, x: Expr) -> Any:
    """The rows of a table with these numbers, as channels. The table is stored as (elements, rows)."""
    b, p = n.b, n.p
    table = n.array(p.weights, (p.outputChannels, p.inputDim), "weight").T
    shape = b.static_shape(x)
    if any(d != 1 for d in shape[-3 if len(shape) > 3 else 1 :]):
        raise Malformed("its operand has more than one number at a place")
    front = shape[:-3] if len(shape) > 3 else shape[:1]
    rows = b.op("take", n.weight(table, "weight"), whole(b, b.reshape_exactly(x, list(front))), axis=0)
    rows = b.op("add", rows, n.param(p.bias, (p.outputChannels,), "bias")) if p.hasBias else rows
    return rows if n.old else b.unsqueeze(rows, [-2, -1])


def embedding_nd(n: LayerNode, x: Expr) -> Any:
    """The rows of a table with these numbers, whose last axis is 1."""
    b, p = n.b, n.p
    table = n.array(p.weights, (p.embeddingSize, p.vocabSize), "weight").T
    if b.extent(x, -1) != 1:
        raise Malformed("its operand has more than one number at a place")
    rows = b.op("take", n.weight(table, "weight"), whole(b, b.squeeze(x, [-1])), axis=0)
    return b.op("add", rows, n.param(p.bias, (p.embeddingSize,), "bias")) if p.hasBias else rows


def batched_matmul(n: LayerNode, x: Expr, y: Expr | None = None) -> Any:
    p, data = n.p, n.real(x)
    if y is not None:
        return product(n, data, n.real(y), p.transposeA, p.transposeB)
    rows, columns = p.weightMatrixFirstDimension, p.weightMatrixSecondDimension
    weight = n.param(p.weights, (columns, rows), "weight")
    return linear(n, data, weight, n.param(p.bias, (columns,), "bias") if p.hasBias else None)


def dot(n: LayerNode, x: Expr, y: Expr) -> Any:
    """The sum of products along the channels, by the roots of both sums of squares where it is the cosine."""
    b, (left, right) = n.b, alike(n, [x, y])
    axis = n.channel(left)

    def total(one: Expr, other: Expr) -> Expr:
        sums: Expr = b.op("sum", b.op("multiply", one, other), axis=[axis], keepdims=True)
        return sums

    dot_product = total(left, right)
    if not n.p.cosineSimilarity:
        return dot_product
    return b.op("divide", dot_product, b.op("sqrt", b.op("multiply", total(left, left), total(right, right))))


# ---- normalisations


def batchnorm(n: LayerNode, x: Expr) -> Any:
    b, p, data = n.b, n.p, n.real(x)
    axis, rank = n.channel(data), b.rank(data)
    count, epsilon = p.channels, n.float("epsilon", 1e-5)
    gamma, beta = (n.param(weights, (count,), what) for weights, what in ((p.gamma, "gamma"), (p.beta, "beta")))
    if not p.computeMeanVar:
        mean, variance = (n.param(weights, (count,), what) for weights, what in ((p.mean, "mean"), (p.variance, "variance")))
        return b.fields(b.op("nn.batch_norm", data, gamma, beta, mean, variance, axis=axis, epsilon=epsilon))[0]
    axes = [i for i in range(rank) if i > axis or (i < axis and not p.instanceNormalization)]
    scale, shift = (b.unsqueeze(v, list(range(1, rank - axis))) for v in (gamma, beta))
    return nn.scale_and_shift(b, nn.normalise(b, data, axes, epsilon), scale, shift)


def mean_variance(n: LayerNode, x: Expr) -> Any:
    b, data = n.b, n.real(x)
    axis, rank = n.channel(data), b.rank(data)
    axes = list(range(axis + (not n.p.acrossChannels), rank))
    if n.p.normalizeVariance:
        return nn.normalise(b, data, axes, n.float("epsilon", 1e-6))
    return nn.moments(b, data, axes)[0]


def l2_normalize(n: LayerNode, x: Expr) -> Any:
    b, data = n.b, n.real(x)
    axes = list(range(n.channel(data), b.rank(data)))
    total = b.op("sum", b.op("multiply", data, data), axis=axes, keepdims=True)
    return b.op("multiply", data, b.op("rsqrt", ops.shifted(b, total, n.float("epsilon", 1e-6))))


def softmax(n: LayerNode, x: Expr) -> Any:
    return n.b.op("nn.softmax", n.real(x), axis=n.channel(x))


def local_response(n: LayerNode, x: Expr) -> Any:
    data, back = n.four(n.real(x))
    return back(norm.local_response_norm(n, data, n.p.localSize, n.float("alpha"), n.float("beta"), n.float("k", 1.0)))


def layer_normalization(n: LayerNode, x: Expr) -> Any:
    shape, rank = [int(d) for d in n.p.normalizedShape], n.b.rank(x)
    if not 0 < len(shape) <= rank or tuple(shape) != tuple(n.b.shape(x)[rank - len(shape) :]):
        raise Malformed(f"it normalises the extents {shape[:8]} of an operand of the shape {tuple(n.b.shape(x))}")
    gamma, beta = (n.param(weights, shape, what) for weights, what in ((n.p.gamma, "gamma"), (n.p.beta, "beta")))
    return nn.layer_norm(n.b, n.real(x), rank - len(shape), n.float("eps"), gamma, beta)


def _placed(n: LayerNode, x: Expr, shape: Any, weights: Any, what: str) -> Expr:
    """A weight of one number, of channels, or of channels, rows and columns, so that it broadcasts."""
    extents = [int(d) for d in shape]
    array = n.array(weights, extents, what)
    if len(extents) == 1 and (n.b.rank(x) > 2 or not n.old):
        array = array.reshape([*extents, 1, 1])
    if n.b.rank(x) == 2 and n.old and array.ndim > 1:
        array = array.reshape(-1)
    return n.weight(array, what)


def scale(n: LayerNode, x: Expr) -> Any:
    p, data = n.p, n.real(x)
    if n.old and any(len(s) > 1 and max(s) != math.prod(s) for s in (p.shapeScale, p.shapeBias)):
        data = n.four(data)[0]
    scaled = n.b.op("multiply", data, _placed(n, data, p.shapeScale, p.scale, "scale"))
    return n.b.op("add", scaled, _placed(n, data, p.shapeBias, p.bias, "bias")) if p.hasBias else scaled


def bias(n: LayerNode, x: Expr) -> Any:
    p, data = n.p, n.real(x)
    if n.b.rank(data) == 4 and len(p.shape) == 1 and p.shape[0] == n.b.shape(data)[1]:
        return biased(n, data, n.param(p.bias, (p.shape[0],), "bias"))
    return n.b.op("add", data, _placed(n, data, p.shape, p.bias, "bias"))


def constant(n: LayerNode) -> Any:
    """A weight of the shape that it states; of an axis more before it by the older rule."""
    array = n.array(n.p.data, n.p.shape, "value")
    return n.weight(array[np.newaxis] if n.old and array.ndim == 3 else array)


_SAME = "ceil floor sign sin cos tan asin acos atan sinh cosh tanh atanh erf"
_PAIRS = """
modBroadcastable floor_mod; minBroadcastable minimum; maxBroadcastable maximum; addBroadcastable add; powBroadcastable power;
divideBroadcastable divide; floorDivBroadcastable floor_divide; multiplyBroadcastable multiply; subtractBroadcastable subtract;
add add; multiply multiply; max maximum; min minimum
"""
_COMPARED = """
equal equal; notEqual not_equal; lessThan less; lessEqual less_equal; greaterThan greater; greaterEqual greater_equal
"""
_LOGICAL = "logicalOr logical_or; logicalXor logical_xor; logicalNot logical_not; logicalAnd logical_and"


def _rows(text: str, make: Callable[[str], Callable[..., Any]]) -> list[Rule]:
    return [Rule(name, make(op)) for name, op in (row.split() for row in text.replace("\n", " ").split(";"))]


RULES = (
    *[Rule(name, each(ops.by_element(name))) for name in _SAME.split()],
    *_rows(_PAIRS, _folded),
    *_rows(_COMPARED, _compared),
    *_rows(_LOGICAL, _logical),
    Rule("acosh", lambda n, x: n.b.op("acosh", n.real(x))),
    Rule("activation", activation),
    Rule("asinh", lambda n, x: n.b.op("asinh", n.real(x))),
    Rule("average", _folded("add", mean=True)),
    Rule("batchedMatmul", batched_matmul),
    Rule("batchnorm", batchnorm),
    Rule("bias", bias),
    Rule("clampedReLU", each(ops.clamped_relu, alpha="alpha", beta="beta")),
    Rule("clip", clip),
    Rule("copy", lambda n, x: x),
    Rule("dot", dot),
    Rule("embedding", embedding),
    Rule("embeddingND", embedding_nd),
    Rule("exp2", each(ops.exp2)),
    Rule("gelu", gelu),
    Rule("innerProduct", inner_product),
    Rule("l2normalize", l2_normalize),
    Rule("layerNormalization", layer_normalization),
    Rule("loadConstant", constant),
    Rule("loadConstantND", constant),
    Rule("lrn", local_response),
    Rule("mvn", mean_variance),
    Rule("round", each(ops.rounded)),
    Rule("scale", scale),
    Rule("softmax", softmax),
    Rule("softmaxND", lambda n, x: n.b.op("nn.softmax", n.real(x), axis=n.axis(x, n.p.axis))),
    Rule("unary", unary),
    Rule("whereBroadcastable", where),
)
