"""Element-wise operators: arithmetic, comparison, logic, activations."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from relaylang.frontends.common import Rule
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def same(op: str) -> Callable[..., Any]:
    """The conversion of an operator that Relay has under another name, with the same operands and no attributes."""
    return lambda n, *xs: n.b.op(op, *xs)


def fold(op: str) -> Callable[..., Any]:
    """The conversion of an operator of any number of operands that are joined pair by pair."""
    return lambda n, *xs: reduce(lambda a, b: n.b.op(op, a, b), xs)


def mean(n: Node, *xs: Expr) -> Any:
    return n.b.op("divide", reduce(lambda a, b: n.b.op("add", a, b), xs), float(len(xs)))


def divide(n: Node, a: Expr, b: Expr) -> Any:
    """Whole numbers are cut towards zero."""
    return n.b.op("divide" if "float" in n.b.dtype(a) else "trunc_divide", a, b)


def mod(n: Node, a: Expr, b: Expr) -> Any:
    """`fmod` takes the sign of the dividend, the other form that of the divisor."""
    return n.b.op("trunc_mod" if n.int("fmod", 0) else "floor_mod", a, b)


def leaky_relu(n: Node, x: Expr) -> Any:
    return n.b.op("nn.leaky_relu", x, alpha=n.float("alpha", 0.01))


def hard_sigmoid(n: Node, x: Expr) -> Any:
    b = n.b
    line = b.op("add", b.op("multiply", x, n.float("alpha", 0.2)), n.float("beta", 0.5))
    return b.op("clip", line, a_min=0.0, a_max=1.0)


def identity(n: Node, x: Any) -> Any:
    return [x]


RULES = (
    Rule("Add", same("add"), since=7),
    Rule("Sub", same("subtract"), since=7),
    Rule("Mul", same("multiply"), since=7),
    Rule("Div", divide, since=7),
    Rule("Mod", mod),
    Rule("Sum", fold("add")),
    Rule("Mean", mean),
    Rule("Max", fold("maximum")),
    Rule("Min", fold("minimum")),
    Rule("Relu", same("nn.relu")),
    Rule("Sigmoid", same("sigmoid")),
    Rule("Tanh", same("tanh")),
    Rule("Sqrt", same("sqrt")),
    Rule("Erf", same("erf")),
    Rule("LeakyRelu", leaky_relu),
    Rule("HardSigmoid", hard_sigmoid),
    Rule("Identity", identity),
)
