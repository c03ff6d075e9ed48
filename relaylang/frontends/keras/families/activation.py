"""Activations: layers of their own, and the functions that other layers name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.keras.node import Node, Tensor
from relaylang.ir import Expr

Function = Callable[[Builder, Expr], Any]


def leaky(b: Builder, x: Expr, slope: float) -> Any:
    """x where it is positive, else `slope * x`."""
    return b.op("nn.leaky_relu", x, alpha=slope)


def threshold(b: Builder, x: Expr, least: float, value: float) -> Any:
    """x where it is above a bound, else a number."""
    return b.op("where", b.op("greater", x, least), x, b.const(value, b.dtype(x)))


def soft_shrink(b: Builder, x: Expr, width: float) -> Any:
    """x less its projection into [-width, width]."""
    return b.op("subtract", x, b.op("clip", x, a_min=-width, a_max=width))


def hard_shrink(b: Builder, x: Expr, width: float) -> Any:
    """x where it lies outside of [-width, width], else 0."""
    return b.op("where", b.op("greater", b.op("abs", x), width), x, b.const(0.0, b.dtype(x)))


def log_sigmoid(b: Builder, x: Expr) -> Any:
    return b.op("negative", nn.softplus(b, b.op("negative", x)))


def celu(b: Builder, x: Expr, alpha: float) -> Any:
    """x where it is positive, else `alpha * (exp(x / alpha) - 1)`."""
    return nn.elu(b, x, alpha, 1.0, 1 / alpha)


def squareplus(b: Builder, x: Expr, width: float) -> Any:
    """`(x + sqrt(x^2 + width)) / 2`."""
    return b.op("multiply", b.op("add", x, b.op("sqrt", b.op("add", b.op("multiply", x, x), width))), 0.5)


def sparse_plus(b: Builder, x: Expr) -> Any:
    """0 up to -1, `(x + 1)^2 / 4` up to 1, x behind it."""
    up = b.op("add", x, 1.0)
    curve = b.op("multiply", b.op("multiply", up, up), 0.25)
    middle = b.op("where", b.op("less", x, 1.0), curve, x)
    return b.op("where", b.op("greater", x, -1.0), middle, b.const(0.0, b.dtype(x)))


def glu(b: Builder, x: Expr, axis: int = -1) -> Any:
    """The first half of an axis times the sigmoid of the second."""
    if b.extent(x, axis) % 2:
        raise Malformed(f"its operand has {b.extent(x, axis)} elements on the axis that it halves")
    left, right = b.fields(b.op("split", x, indices_or_sections=2, axis=axis))
    return b.op("multiply", left, b.op("sigmoid", right))


def softmax(b: Builder, x: Expr, axis: int = -1) -> Any:
    return b.op("nn.softmax", x, axis=axis)


#: The functions that a name stands for in every version.
FUNCTIONS: dict[str, Function] = {
    "linear": lambda b, x: x,
    "relu": lambda b, x: b.op("nn.relu", x),
    "relu6": lambda b, x: b.op("clip", x, a_min=0.0, a_max=6.0),
    "sigmoid": lambda b, x: b.op("sigmoid", x),
    "tanh": lambda b, x: b.op("tanh", x),
    "softmax": softmax,
    "log_softmax": lambda b, x: b.op("nn.log_softmax", x, axis=-1),
    "elu": lambda b, x: nn.elu(b, x),
    "selu": lambda b, x: nn.selu(b, x),
    "softplus": lambda b, x: nn.softplus(b, x),
    "softsign": lambda b, x: nn.softsign(b, x),
    "exponential": lambda b, x: b.op("exp", x),
    "silu": lambda b, x: nn.swish(b, x),
    "swish": lambda b, x: nn.swish(b, x),
    "gelu": lambda b, x: nn.gelu(b, x),
    "mish": lambda b, x: nn.mish(b, x),
    "leaky_relu": lambda b, x: leaky(b, x, 0.2),
    "hard_silu": lambda b, x: nn.hard_swish(b, x),
    "hard_swish": lambda b, x: nn.hard_swish(b, x),
    "hard_tanh": lambda b, x: b.op("clip", x, a_min=-1.0, a_max=1.0),
    "hard_shrink": lambda b, x: hard_shrink(b, x, 0.5),
    "soft_shrink": lambda b, x: soft_shrink(b, x, 0.5),
    "tanh_shrink": lambda b, x: b.op("subtract", x, b.op("tanh", x)),
    "log_sigmoid": log_sigmoid,
    "celu": lambda b, x: celu(b, x, 1.0),
    "glu": glu,
    "squareplus": lambda b, x: squareplus(b, x, 4.0),
    "sparse_plus": sparse_plus,
    "sparse_sigmoid": lambda b, x: b.op("clip", b.op("add", b.op("multiply", x, 0.5), 0.5), a_min=0.0, a_max=1.0),
}


def hard_sigmoid(n: Node, x: Expr) -> Any:
    """`clip(x / 6 + 1/2)` in Keras 3, `clip(x / 5 + 1/2)` before."""
    return nn.hard_sigmoid(n.b, x) if n.spec.major >= 3 else nn.hard_sigmoid(n.b, x, 0.2, 0.5)


def function(n: Node, key: str = "activation", default: str = "linear") -> Callable[[Expr], Any]:
    """The function that an entry of the configuration names: a word, or a layer in its place."""
    named = n.value(key, default)
    named = default if named is None else named
    if isinstance(named, Mapping):
        config = named.get("config")
        if isinstance(config, str):
            named = config
        elif isinstance(named.get("class_name"), str):
            layer = n.spec.inner(named)
            return lambda x: n.inner(key, layer, Tensor(x))[0].x
    if not isinstance(named, str):
        raise Unsupported(f"its {key} is {repr(named)[:40]}")
    word = named.rpartition(">")[2]
    if word == "hard_sigmoid":
        return lambda x: hard_sigmoid(n, x)
    if word not in FUNCTIONS:
        raise Unsupported(f"its {key} is {word[:40]}, which the importer does not have")
    return lambda x: FUNCTIONS[word](n.b, x)


def activated(n: Node, x: Expr, key: str = "activation") -> Any:
    """A result behind the layer's activation."""
    return function(n, key)(x)


def activation(n: Node, x: Expr) -> Any:
    return activated(n, n.real(x))


def relu(n: Node, x: Expr) -> Any:
    """`slope * (x - threshold)` below the threshold, x above it, held below `max_value`."""
    b, x = n.b, n.real(x)
    slope = n.float("negative_slope", 0.0) if n.config.get("negative_slope") is not None else 0.0
    bound = n.float("threshold", 0.0) if n.config.get("threshold") is not None else 0.0
    most = None if n.value("max_value", None) is None else n.float("max_value")
    if bound == 0.0:
        if slope == 0.0 and most is not None:
            return b.op("clip", x, a_min=0.0, a_max=most)
        bounded = leaky(b, x, slope) if slope else b.op("nn.relu", x)
    else:
        low = b.op("multiply", b.op("subtract", x, bound), slope) if slope else b.const(0.0, b.dtype(x))
        bounded = b.op("where", b.op("greater_equal", x, bound), x, low)
    return bounded if most is None else b.op("minimum", bounded, most)


def leaky_relu(n: Node, x: Expr) -> Any:
    key = "negative_slope" if "negative_slope" in n.config else "alpha"
    return leaky(n.b, n.real(x), n.float(key, 0.3))


def prelu(n: Node, x: Expr) -> Any:
    return nn.prelu(n.b, n.real(x), n.weight(0, "alpha"))


def elu(n: Node, x: Expr) -> Any:
    return nn.elu(n.b, n.real(x), n.float("alpha", 1.0))


def thresholded_relu(n: Node, x: Expr) -> Any:
    return threshold(n.b, n.real(x), n.float("theta", 1.0), 0.0)


def softmax_layer(n: Node, x: Expr, mask: Expr | None = None) -> Any:
    """Along one axis or several; elements that the mask leaves out get no share."""
    b, x = n.b, n.real(x)
    axes = n.axes("axis", b.rank(x), -1)
    kept = mask if mask is not None else n.argument("mask")
    if isinstance(kept, Expr):
        low = -3e4 if b.dtype(x) == "float16" else -1e9
        x = b.op("add", x, b.op("where", b.cast(kept, "bool"), b.const(0.0, b.dtype(x)), b.const(low, b.dtype(x))))
    if len(axes) == 1:
        return softmax(b, x, axes[0])
    return b.op("exp", b.op("subtract", x, nn.log_sum_exp(b, x, axes, keepdims=True)))


def same(n: Node, x: Expr) -> Any:
    """The operand itself: layers that act in training alone."""
    return x


def _operation(convert: Function) -> Callable[[Node, Expr], Any]:
    return lambda n, x: convert(n.b, x)


#: The operations of Keras 3 without further arguments -> the names of their functions.
_OPERATIONS = {
    "Relu": "relu",
    "Relu6": "relu6",
    "Sigmoid": "sigmoid",
    "SparseSigmoid": "sparse_sigmoid",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "SparsePlus": "sparse_plus",
    "Silu": "silu",
    "LogSigmoid": "log_sigmoid",
    "HardSilu": "hard_silu",
    "Selu": "selu",
    "TanhShrink": "tanh_shrink",
    "HardTanh": "hard_tanh",
}

RULES = (
    Rule("Activation", activation),
    Rule("ELU", elu),
    Rule("LeakyReLU", leaky_relu),
    Rule("PReLU", prelu),
    Rule("ReLU", relu),
    Rule("Softmax", softmax_layer),
    Rule("ThresholdedReLU", thresholded_relu),
    *(
        Rule(name, same)
        for name in (
            "ActivityRegularization",
            "AlphaDropout",
            "Dropout",
            "GaussianDropout",
            "GaussianNoise",
            "Identity",
            "RandomBrightness",
            "RandomContrast",
            "RandomFlip",
            "RandomHeight",
            "RandomRotation",
            "RandomTranslation",
            "RandomWidth",
            "RandomZoom",
            "SpatialDropout1D",
            "SpatialDropout2D",
            "SpatialDropout3D",
            "StochasticDepth",
            "DropConnect",
        )
    ),
    *(Rule(name, _operation(FUNCTIONS[word]), domain="ops") for name, word in _OPERATIONS.items()),
    Rule("HardSigmoid", hard_sigmoid, domain="ops"),
    Rule("Elu", lambda n, x: nn.elu(n.b, x, n.float("alpha", 1.0)), domain="ops"),
    Rule("Celu", lambda n, x: celu(n.b, x, n.float("alpha", 1.0)), domain="ops"),
    Rule("Gelu", lambda n, x: nn.gelu(n.b, x, n.bool("approximate", True)), domain="ops"),
    Rule("Glu", lambda n, x: glu(n.b, x, n.int("axis", -1)), domain="ops"),
    Rule("LeakyRelu", lambda n, x: leaky(n.b, x, n.float("negative_slope", 0.2)), domain="ops"),
    Rule("SoftShrink", lambda n, x: soft_shrink(n.b, x, n.float("threshold", 0.5)), domain="ops"),
    Rule("HardShrink", lambda n, x: hard_shrink(n.b, x, n.float("threshold", 0.5)), domain="ops"),
    Rule("Threshold", lambda n, x: threshold(n.b, x, n.float("threshold"), n.float("default_value")), domain="ops"),
    Rule("Squareplus", lambda n, x: squareplus(n.b, x, n.float("b", 4.0)), domain="ops"),
    Rule("Softmax", lambda n, x: softmax_layer(n, x), domain="ops"),
    Rule("LogSoftmax", lambda n, x: n.b.op("nn.log_softmax", x, axis=n.axis("axis", n.b.rank(x), -1)), domain="ops"),
)
