"""Layers that act on each element, and products with weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.caffe.node import Node, product
from relaylang.frontends.common import Malformed, Rule, nn
from relaylang.ir import Expr


def inner_product(n: Node, x: Expr) -> Any:
    """The axes from `axis` on become one. Weights are (results, elements), or turned."""
    b, p = n.b, n.params("inner_product_param")
    axis, units = n.axis(p, x), p.num_output
    front, rest = b.shape(x)[:axis], product([b.extent(x, i) for i in range(axis, b.rank(x))])
    if not units:
        raise Malformed("it has no results")
    if p.transpose:
        weight = n.array(0, (rest, units), "weight").T
    else:
        weight = n.array(0, (units, rest), "weight")
    data = x
    if len(front) != 1 or b.rank(x) != 2:
        data = b.op("nn.batch_flatten", x) if axis == 1 else n.reshape(x, [product(front), rest])
    dense = b.op("nn.dense", data, n.weight(weight, "weight"), units=units)
    if p.bias_term:
        dense = b.op("nn.bias_add", dense, n.weight(n.array(1, (units,), "bias"), "bias"), axis=1)
    return dense if len(front) == 1 else n.reshape(dense, [*front, units])


def embed(n: Node, x: Expr) -> Any:
    """The rows of a table with these numbers."""
    b, p = n.b, n.params("embed_param")
    if not p.num_output or not p.input_dim:
        raise Malformed("its table has no elements")
    rows = n.weight(n.array(0, (p.input_dim, p.num_output), "weight"), "weight")
    taken = b.op("take", rows, b.cast(x, "int32"), axis=0)
    return b.op("add", taken, n.weight(n.array(1, (p.num_output,), "bias"), "bias")) if p.bias_term else taken


def relu(n: Node, x: Expr) -> Any:
    slope = n.float(n.params("relu_param"), "negative_slope")
    return n.b.op("nn.leaky_relu", x, alpha=slope) if slope else n.b.op("nn.relu", x)


def prelu(n: Node, x: Expr) -> Any:
    """A slope below zero for each channel, or one for all."""
    b, channels = n.b, n.b.extent(x, 1)
    if n.params("prelu_param").channel_shared:
        slope = b.arrays.full(channels, n.array(0, (1,), "slope")[0], np.float32)
    else:
        slope = n.array(0, (channels,), "slope")
    return b.op("nn.prelu", x, n.weight(slope, "slope"), axis=1)


def _affine(n: Node, x: Expr, scale: float, shift: float) -> Expr:
    x = x if scale == 1 else n.b.op("multiply", x, scale)
    return x if shift == 0 else n.b.op("add", x, shift)


def power(n: Node, x: Expr) -> Any:
    """`(shift + scale * x) ** power`."""
    p = n.params("power_param")
    inner, exponent = _affine(n, x, n.float(p, "scale"), n.float(p, "shift")), n.float(p, "power")
    return inner if exponent == 1 else n.b.op("power", inner, exponent)


def _base(n: Node, p: Any) -> float:
    """The logarithm of the base, which is e where it is -1."""
    base = n.float(p, "base")
    if base != -1 and base <= 0:
        raise Malformed(f"its base is {base}")
    return 1.0 if base == -1 else math.log(base)


def exp(n: Node, x: Expr) -> Any:
    """`base ** (shift + scale * x)`."""
    p = n.params("exp_param")
    base = _base(n, p)
    return n.b.op("exp", _affine(n, x, n.float(p, "scale") * base, n.float(p, "shift") * base))


def log(n: Node, x: Expr) -> Any:
    """The logarithm of `shift + scale * x`."""
    p = n.params("log_param")
    base = _base(n, p)
    if base == 0:
        raise Malformed("its base is 1")
    logarithm = n.b.op("log", _affine(n, x, n.float(p, "scale"), n.float(p, "shift")))
    return logarithm if base == 1 else n.b.op("divide", logarithm, base)


def eltwise(n: Node, *operands: Expr) -> Any:
    """The sum with coefficients, the product, or the largest of operands of one shape."""
    b, p = n.b, n.params("eltwise_param")
    shapes = [tuple(b.shape(x)) for x in operands]
    if len(operands) < 2 or any(shape != shapes[0] for shape in shapes):
        raise Malformed("its operands are not two or more of one shape")
    factors = n.floats(p, "coeff")
    if factors and (len(factors) != len(operands) or p.operation != 1):
        raise Malformed(f"it has {len(factors)} coefficients, and its {len(operands)} operands need as many in a sum alone")
    name = ("multiply", "add", "maximum")[p.operation]
    parts = [_affine(n, x, factor, 0.0) for x, factor in zip(operands, factors or [1.0] * len(operands))]
    joined = parts[0]
    for part in parts[1:]:
        joined = b.op(name, joined, part)
    return joined


def threshold(n: Node, x: Expr) -> Any:
    """1 above a number, else 0."""
    return n.b.cast(n.b.op("greater", x, n.float(n.params("threshold_param"), "threshold")), n.b.dtype(x))


def clip(n: Node, x: Expr) -> Any:
    p = n.params("clip_param")
    return n.b.op("clip", x, a_min=n.float(p, "min"), a_max=n.float(p, "max"))


def dropout(n: Node, x: Expr) -> Any:
    """The operand; its share that training keeps, where training does not scale it."""
    p = n.params("dropout_param")
    return x if p.scale_train else n.b.op("multiply", x, 1.0 - n.float(p, "dropout_ratio"))


def softmax(n: Node, x: Expr) -> Any:
    return n.b.op("nn.softmax", x, axis=n.axis(n.params("softmax_param"), x))


def _each(name: str, **attrs: float) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        """An operator of each element."""
        return n.b.op(name, x, **attrs)

    return convert


def elu(n: Node, x: Expr) -> Any:
    return nn.elu(n.b, x, n.float(n.params("elu_param"), "alpha"))


def softplus(n: Node, x: Expr) -> Any:
    return nn.softplus(n.b, x)


def swish(n: Node, x: Expr) -> Any:
    return nn.swish(n.b, x, n.float(n.params("swish_param"), "beta"))


RULES = (
    Rule("AbsVal", _each("abs")),
    Rule("Axpy", lambda n, scale, x, y: n.b.op("add", n.b.op("multiply", x, n.b.reshape(n.b.of_rank(scale, 4), [0, 0, 1, 1])), y)),
    Rule("BNLL", softplus),
    Rule("Clip", clip),
    Rule("Dropout", dropout),
    Rule("ELU", elu),
    Rule("Eltwise", eltwise),
    Rule("Embed", embed),
    Rule("Exp", exp),
    Rule("InnerProduct", inner_product),
    Rule("Log", log),
    Rule("PReLU", prelu),
    Rule("Power", power),
    Rule("ReLU", relu),
    Rule("ReLU6", _each("clip", a_min=0.0, a_max=6.0)),
    Rule("Sigmoid", _each("sigmoid")),
    Rule("SigmoidCrossEntropyLoss", _each("sigmoid")),
    Rule("Softmax", softmax),
    Rule("SoftmaxWithLoss", lambda n, x: [softmax(n, x)] * 2),  # a second result has the shares, too
    Rule("Swish", swish),
    Rule("TanH", _each("tanh")),
    Rule("Threshold", threshold),
)
