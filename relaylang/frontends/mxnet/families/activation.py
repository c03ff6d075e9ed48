"""Activations and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr

#: The functions of `Activation`, and of layers that have one inside.
FUNCTIONS: dict[str, Callable[[Builder, Expr], Expr]] = {
    "relu": lambda b, x: b.op("nn.relu", x),
    "sigmoid": lambda b, x: b.op("sigmoid", x),
    "tanh": lambda b, x: b.op("tanh", x),
    "softrelu": nn.softplus,
    "softsign": nn.softsign,
    "log_sigmoid": lambda b, x: b.op("negative", nn.softplus(b, b.op("negative", x))),
    "mish": nn.mish,
}


def activation(n: Node, x: Expr) -> Any:
    return FUNCTIONS[n.choice("act_type", "", FUNCTIONS)](n.b, x)


def leaky_relu(n: Node, x: Expr, gamma: Expr | None = None) -> Any:
    """`LeakyReLU`: the name of a family. `rrelu` draws slopes in training alone, and has their mean elsewhere."""
    b, slope = n.b, n.float("slope", 0.25)
    kind = n.string("act_type", "leaky")
    if kind == "prelu":
        if gamma is None:
            raise Malformed("prelu needs its slopes")
        if b.rank(gamma) == 1 and b.rank(x) > 1:
            gamma = b.unsqueeze(gamma, list(range(1, b.rank(x) - 1)))
        return nn.prelu(b, x, gamma)
    if kind == "rrelu":
        slope = (n.float("lower_bound", 0.125) + n.float("upper_bound", 0.334)) / 2
    functions: dict[str, Callable[[], Expr]] = {
        "leaky": lambda: b.op("nn.leaky_relu", x, alpha=slope),
        "rrelu": lambda: b.op("nn.leaky_relu", x, alpha=slope),
        "elu": lambda: nn.elu(b, x, slope),
        "selu": lambda: nn.selu(b, x),
        "gelu": lambda: nn.gelu(b, x),
        "gelu_erf": lambda: nn.gelu(b, x),
        "gelu_tanh": lambda: nn.gelu(b, x, approximate=True),
    }
    if kind not in functions:
        raise Unsupported(f"the activation {kind[:40]!r} is unknown")
    return functions[kind]()


def hard_sigmoid(n: Node, x: Expr) -> Any:
    return nn.hard_sigmoid(n.b, x, n.float("alpha", 0.2), n.float("beta", 0.5))


def _softmax(operator: str, sign: float = 1.0) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, length: Expr | None = None) -> Any:
        b = n.b
        axis, dtype = n.axis("axis", b.rank(x), -1), b.dtype(x)
        scale = sign / n.float("temperature", 1.0)
        x = x if scale == 1.0 else b.op("multiply", x, scale)
        if length is None:
            shares = b.op(operator, x, axis=axis)
        else:
            if not n.bool("use_length"):
                raise Malformed("it has lengths, and use_length is False")
            steps: Expr = b.const(b.arrays.arange(b.extent(x, axis, "the axis of a softmax with lengths"), dtype="int32"))
            steps = b.unsqueeze(steps, [i for i in range(b.rank(x)) if i != axis])
            inside = b.op("less", steps, b.unsqueeze(b.cast(length, "int32"), [axis]))
            # The first places alone count; the others are 0 in the result.
            held = b.op("where", inside, x, b.const(-1e30 if dtype != "float16" else -6e4, dtype))
            shares = b.op("where", inside, b.op(operator, held, axis=axis), b.const(0.0, dtype))
        return b.cast(shares, n.dtype("dtype", dtype))

    return convert


def softmax_output(n: Node, x: Expr) -> Any:
    """A loss: its result is the softmax along the channels, along the last axis, or over all axes but the first."""
    b = n.b
    if n.bool("multi_output"):
        return b.op("nn.softmax", x, axis=1)
    if n.bool("preserve_shape") or b.rank(x) <= 2:
        return b.op("nn.softmax", x, axis=-1)
    return b.op("reshape_like", b.op("nn.softmax", b.op("nn.batch_flatten", x), axis=-1), x)


RULES = (
    Rule("Activation", activation),
    Rule("LeakyReLU", leaky_relu),
    Rule("hard_sigmoid", hard_sigmoid),
    Rule("softmax", _softmax("nn.softmax")),
    Rule("softmin", _softmax("nn.softmax", -1.0)),
    Rule("log_softmax", _softmax("nn.log_softmax")),
    Rule("SoftmaxOutput", softmax_output),
    Rule(
        "SoftmaxActivation",
        lambda n, x: n.b.op("nn.softmax", x, axis=1 if n.choice("mode", "instance", ("instance", "channel")) == "channel" else -1),
    ),
)

__all__ = ["FUNCTIONS", "RULES"]
