"""Element-wise operators: arithmetic, comparison, logic, activations, element types."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.quantized import round_even
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr
from relaylang.ops.shapes import is_float_dtype


def unary(op: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr) -> Any:
        return n.b.op(op, x)

    return convert


def binary(op: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, y: Expr) -> Any:
        return n.b.op(op, x, y)

    return convert


def composed(make: Callable[..., Any]) -> Callable[..., Any]:
    """A composition of the common ones, of one operand."""

    def convert(n: Node, x: Expr) -> Any:
        return make(n.b, x)

    return convert


def _is_real(n: Node, x: Expr) -> bool:
    return is_float_dtype(n.b.dtype(x))


def divide(n: Node, x: Expr, y: Expr) -> Any:
    """Real numbers are divided, whole ones cut off towards 0."""
    return n.b.op("divide" if _is_real(n, x) else "trunc_divide", x, y)


def truncate_mod(n: Node, x: Expr, y: Expr) -> Any:
    """The remainder with the sign of the dividend."""
    return n.b.op("mod", x, y)


def guarded(n: Node, x: Expr, y: Expr) -> Any:
    """A quotient, 0 where the divisor is 0."""
    b = n.b
    zero = b.op("equal", y, 0.0)
    quotient = b.op("divide", x, b.op("where", zero, n.real(y, 1), y))
    return b.op("where", zero, n.real(y, 0), quotient)


def times_log(op: Callable[..., Any]) -> Callable[..., Any]:
    """`x * log(y)` and its like, 0 where x is 0."""

    def convert(n: Node, x: Expr, y: Expr) -> Any:
        b = n.b
        zero = b.op("equal", x, 0.0)
        product = b.op("multiply", x, op(b, b.op("where", zero, n.real(y, 1), y)))
        return b.op("where", zero, n.real(x, 0), product)

    return convert


def xdivy(n: Node, x: Expr, y: Expr) -> Any:
    b = n.b
    zero = b.op("equal", x, 0.0)
    return b.op("where", zero, n.real(x, 0), b.op("divide", x, b.op("where", zero, n.real(y, 1), y)))


def add_n(n: Node, *xs: Expr) -> Any:
    if not xs:
        raise Malformed("it has no operands")
    return reduce(lambda a, c: n.b.op("add", a, c), xs)


def square(n: Node, x: Expr) -> Any:
    return n.b.op("multiply", x, x)


def squared_difference(n: Node, x: Expr, y: Expr) -> Any:
    d = n.b.op("subtract", x, y)
    return n.b.op("multiply", d, d)


def reciprocal(n: Node, x: Expr) -> Any:
    return n.b.op("divide", n.b.const(1, n.b.dtype(x)), x)


def relu(n: Node, x: Expr) -> Any:
    return n.b.op("nn.relu", x)


def leaky_relu(n: Node, x: Expr) -> Any:
    return n.b.op("nn.leaky_relu", x, alpha=n.float("alpha", 0.2))


def clip(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    b = n.b
    bounds = b.value(low), b.value(high)
    if all(v is not None and v.size == 1 for v in bounds) and _is_real(n, x):
        first, last = (float(v.reshape(-1)[0]) for v in bounds if v is not None)
        return b.op("clip", x, a_min=first, a_max=last)
    return b.op("minimum", b.op("maximum", x, low), high)


def rounded(n: Node, x: Expr) -> Any:
    """Halves go to the even number."""
    return round_even(n.b, x) if _is_real(n, x) else x


def cast(n: Node, x: Expr) -> Any:
    b, wanted = n.b, n.dtype("DstT")
    if wanted == "bool" and b.dtype(x) != "bool":
        return b.op("not_equal", x, n.real(x, 0))
    return b.cast(x, wanted)


def bitcast(n: Node, x: Expr) -> Any:
    b, wanted = n.b, n.dtype("type")
    if np.dtype(b.dtype(x)).itemsize != np.dtype(wanted).itemsize:
        raise Unsupported(f"it makes elements of {wanted} of those of {b.dtype(x)}, which have another size")
    return b.op("reinterpret", x, dtype=wanted)


def select(n: Node, cond: Expr, x: Expr, y: Expr) -> Any:
    """A condition of one axis chooses rows in the older operator."""
    b = n.b
    if n.op == "Select" and b.rank(cond) == 1 and b.rank(x) > 1:
        cond = b.unsqueeze(cond, range(1, b.rank(x)))
    return b.op("where", cond, x, y)


def bias_add(n: Node, x: Expr, bias: Expr) -> Any:
    """The channels are the last axis, or the second with NCHW."""
    second = n.choice("data_format", "NHWC", ("NHWC", "NCHW")) == "NCHW" and n.op == "BiasAdd"
    return n.b.op("nn.bias_add", x, bias, axis=1 if second else -1)


def atan2(n: Node, y: Expr, x: Expr) -> Any:
    return nn.angle(n.b, y, x)


def near(n: Node, x: Expr, y: Expr) -> Any:
    b = n.b
    return b.op("less", b.op("abs", b.op("subtract", x, y)), n.real(x, n.float("tolerance", 1e-5)))


_UNARY = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "IsFinite": "isfinite",
    "IsInf": "isinf",
    "IsNan": "isnan",
    "Log": "log",
    "LogicalNot": "logical_not",
    "Neg": "negative",
    "OnesLike": "ones_like",
    "Rsqrt": "rsqrt",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
_BINARY = {
    "Add": "add",
    "AddV2": "add",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Equal": "equal",
    "FloorDiv": "floor_divide",
    "FloorMod": "floor_mod",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "LeftShift": "left_shift",
    "Less": "less",
    "LessEqual": "less_equal",
    "LogicalAnd": "logical_and",
    "LogicalOr": "logical_or",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mul": "multiply",
    "NotEqual": "not_equal",
    "Pow": "power",
    "RightShift": "right_shift",
    "Sub": "subtract",
}

RULES = (
    *[Rule(name, unary(op)) for name, op in _UNARY.items()],
    *[Rule(name, binary(op)) for name, op in _BINARY.items()],
    Rule("AccumulateNV2", add_n),
    Rule("AddN", add_n),
    Rule("ApproximateEqual", near),
    Rule("Atan2", atan2),
    Rule("BiasAdd", bias_add),
    Rule("BiasAddV1", bias_add),
    Rule("Bitcast", bitcast),
    Rule("Cast", cast),
    Rule("ClipByValue", clip),
    Rule("Div", divide),
    Rule("DivNoNan", guarded),
    Rule("Elu", composed(nn.elu)),
    Rule("Erfc", lambda n, x: n.b.op("subtract", n.b.const(1, n.b.dtype(x)), n.b.op("erf", x))),
    Rule("Expm1", composed(nn.expm1)),
    Rule("Inv", reciprocal),
    Rule("Invert", lambda n, x: n.b.op("bitwise_not", x)),
    Rule("L2Loss", lambda n, x: n.b.op("multiply", n.b.op("sum", n.b.op("multiply", x, x)), 0.5)),
    Rule("LeakyRelu", leaky_relu),
    Rule("Log1p", composed(nn.log1p)),
    Rule("Mod", truncate_mod),
    Rule("MulNoNan", lambda n, x, y: n.b.op("where", n.b.op("equal", y, 0.0), n.real(y, 0), n.b.op("multiply", x, y))),
    Rule("RealDiv", divide),
    Rule("Reciprocal", reciprocal),
    Rule("Relu", relu),
    Rule("Relu6", lambda n, x: nn.clip(n.b, x, 0, 6)),
    Rule("Rint", rounded),
    Rule("Round", rounded),
    Rule("Select", select),
    Rule("SelectV2", select),
    Rule("Selu", composed(nn.selu)),
    Rule("Softplus", composed(nn.softplus)),
    Rule("Softsign", composed(nn.softsign)),
    Rule("Square", square),
    Rule("SquaredDifference", squared_difference),
    Rule("TruncateDiv", divide),
    Rule("TruncateMod", truncate_mod),
    Rule("Xdivy", xdivy),
    Rule("Xlog1py", times_log(nn.log1p)),
    Rule("Xlogy", times_log(lambda b, y: b.op("log", y))),
)
