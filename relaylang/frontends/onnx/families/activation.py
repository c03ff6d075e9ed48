"""Activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def coerced(convert: Callable[[Builder, Expr, int], Expr]) -> Callable[..., Any]:
    """The form before opset 13: all axes from `axis` on count as one."""

    def converted(n: Node, x: Expr) -> Any:
        b = n.b
        axis = n.int("axis", 1) % max(b.rank(x), 1)
        shape = b.shape(x)
        if axis == b.rank(x) - 1 or all(d == 1 for d in shape[axis + 1 :]):
            return convert(b, x, axis)
        if all(isinstance(d, int) for d in shape):
            known = [int(d) for d in shape if isinstance(d, int)]
            flat = b.reshape_exactly(x, [math.prod(known[:axis]), math.prod(known[axis:])])
            return b.reshape_exactly(convert(b, flat, 1), known)
        if all(isinstance(d, int) for d in shape[axis:]):
            flat = b.reshape(x, [-1, math.prod(int(d) for d in shape[axis:] if isinstance(d, int))])
        else:
            flat = x
            for _ in range(b.rank(x) - axis - 1):
                flat = b.op("reshape", flat, newshape=[*[0] * axis, -3, -2])
            return b.op("reshape_like", convert(b, flat, axis), x)
        return b.op("reshape_like", convert(b, flat, 1), x)

    return converted


def along(convert: Callable[[Builder, Expr, int], Expr]) -> Callable[..., Any]:
    """The form of opset 13: one axis."""
    return lambda n, x: convert(n.b, x, n.int("axis", -1))


def softmax(b: Builder, x: Expr, axis: int) -> Expr:
    return b.op("nn.softmax", x, axis=axis)


def log_softmax(b: Builder, x: Expr, axis: int) -> Expr:
    return b.op("nn.log_softmax", x, axis=axis)


def hardmax(b: Builder, x: Expr, axis: int) -> Expr:
    """1 at the first largest element."""
    axis %= b.rank(x)
    best = b.op("argmax", x, axis=[axis])
    one, zero = b.const(1, b.dtype(x)), b.const(0, b.dtype(x))
    at = -1 if axis == b.rank(x) - 1 else axis
    return b.op("one_hot", best, one, zero, depth=b.extent(x, axis), axis=at, dtype=b.dtype(x))


def relu(n: Node, x: Expr) -> Any:
    return n.b.op("nn.relu", x)


def leaky_relu(n: Node, x: Expr) -> Any:
    alpha = n.float("alpha", 0.01)
    if alpha < 0:
        return n.b.op("where", n.b.op("less", x, 0.0), n.b.op("multiply", x, alpha), x)
    return n.b.op("nn.leaky_relu", x, alpha=alpha)


def elu(n: Node, x: Expr) -> Any:
    return nn.elu(n.b, x, n.float("alpha", 1.0))


def celu(n: Node, x: Expr) -> Any:
    alpha = n.float("alpha", 1.0)
    return nn.elu(n.b, x, alpha, inner=1 / alpha)


def selu(n: Node, x: Expr) -> Any:
    return nn.selu(n.b, x, n.float("alpha", 1.6732632423543772), n.float("gamma", 1.0507009873554805))


def gelu(n: Node, x: Expr) -> Any:
    return nn.gelu(n.b, x, n.string("approximate", "none") == "tanh")


def hard_sigmoid(n: Node, x: Expr) -> Any:
    return nn.hard_sigmoid(n.b, x, n.float("alpha", 0.2), n.float("beta", 0.5))


def hard_swish(n: Node, x: Expr) -> Any:
    return nn.hard_swish(n.b, x)


def swish(n: Node, x: Expr) -> Any:
    return nn.swish(n.b, x, n.float("alpha", 1.0))


def mish(n: Node, x: Expr) -> Any:
    return nn.mish(n.b, x)


def softplus(n: Node, x: Expr) -> Any:
    return nn.softplus(n.b, x)


def softsign(n: Node, x: Expr) -> Any:
    return nn.softsign(n.b, x)


def prelu(n: Node, x: Expr, slope: Expr) -> Any:
    """A slope for each channel is `nn.prelu`."""
    b = n.b
    shape, channels = b.shape(slope), b.shape(x)[1] if b.rank(x) > 1 else 1
    by_channel = len(shape) == b.rank(x) - 1 and len(shape) >= 1 and all(d == 1 for d in shape[1:])
    if b.rank(x) > 1 and by_channel and shape[0] == channels and isinstance(channels, int):
        return b.op("nn.prelu", x, b.reshape(slope, [channels]), axis=1)
    return nn.prelu(b, x, slope)


def prelu_by_channel(n: Node, x: Expr, slope: Expr) -> Any:
    """Before opset 7, a vector of slopes goes along axis 1."""
    rank = n.b.rank(x)
    if n.b.rank(slope) == 1 and rank > 2:
        slope = n.b.unsqueeze(slope, list(range(1, rank - 1)))
    return prelu(n, x, slope)


def thresholded_relu(n: Node, x: Expr) -> Any:
    b = n.b
    return b.op("where", b.op("greater", x, n.float("alpha", 1.0)), x, b.const(0, b.dtype(x)))


def shrink(n: Node, x: Expr) -> Any:
    b, lambd, bias = n.b, n.float("lambd", 0.5), n.float("bias", 0.0)
    kind = "float32" if "float" not in b.dtype(x) else b.dtype(x)
    wide = b.cast(x, kind)
    zero = b.const(0, kind)
    above = b.op("where", b.op("greater", wide, lambd), b.op("subtract", wide, bias), zero)
    return b.cast(b.op("where", b.op("less", wide, -lambd), b.op("add", wide, bias), above), b.dtype(x))


def clip_by_attributes(n: Node, x: Expr) -> Any:
    low, high = n.float("min", -math.inf), n.float("max", math.inf)
    return nn.clip(n.b, x, low if low > -3e38 else None, high if high < 3e38 else None)


def clip(n: Node, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Any:
    b = n.b
    bounds = [b.value(v) for v in (low, high)]
    if all(v is not None or bound is None for v, bound in zip(bounds, (low, high))):
        kind = float if "float" in b.dtype(x) else int
        numbers = [None if v is None else kind(v.reshape(())) for v in bounds]
        return nn.clip(b, x, numbers[0], numbers[1])
    x = x if low is None else b.op("maximum", x, b.scalar(low))
    return x if high is None else b.op("minimum", x, b.scalar(high))


def dropout(n: Node, x: Expr, ratio: Expr | None = None, training: Expr | None = None) -> Any:
    """At inference: the data, and a mask that keeps everything."""
    b = n.b
    if training is not None and b.need(training, "training_mode").any():
        if ratio is None or b.need(ratio, "ratio") != 0:
            raise Unsupported("Dropout is converted for inference, not for training")
    kind = "bool" if n.version >= 10 else b.dtype(x)
    if not n.has_output(1):
        return [x]
    return [x, b.op("ones_like", x) if kind == b.dtype(x) else b.cast(b.op("ones_like", x), kind)]


RULES = (
    Rule("Celu", celu),
    Rule("Clip", clip_by_attributes, until=10),
    Rule("Clip", clip, since=11),
    Rule("Dropout", dropout),
    Rule("Elu", elu),
    Rule("Gelu", gelu),
    Rule("HardSigmoid", hard_sigmoid),
    Rule("HardSwish", hard_swish),
    Rule("Hardmax", coerced(hardmax), until=12),
    Rule("Hardmax", along(hardmax), since=13),
    Rule("LeakyRelu", leaky_relu),
    Rule("LogSoftmax", coerced(log_softmax), until=12),
    Rule("LogSoftmax", along(log_softmax), since=13),
    Rule("Mish", mish),
    Rule("PRelu", prelu_by_channel, until=6),
    Rule("PRelu", prelu, since=7),
    Rule("Relu", relu),
    Rule("Selu", selu),
    Rule("Shrink", shrink),
    Rule("Softmax", coerced(softmax), until=12),
    Rule("Softmax", along(softmax), since=13),
    Rule("Softplus", softplus),
    Rule("Softsign", softsign),
    Rule("Swish", swish),
    Rule("ThresholdedRelu", thresholded_relu),
)
