"""Element-wise operators: arithmetic, comparison, logic, functions of one variable, sums along an axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.texts import Texts, equal
from relaylang.ir import Expr


def same(op: str) -> Callable[..., Any]:
    """The conversion of an operator that Relay has under another name, with the same operands and no attributes."""
    return lambda n, *xs: n.b.op(op, *xs)


def fold(op: str) -> Callable[..., Any]:
    """The conversion of an operator of any number of operands that are joined pair by pair."""
    return lambda n, *xs: reduce(lambda a, b: n.b.op(op, a, b), xs) if xs[1:] else [xs[0]]


def aligned(convert: Callable[..., Any]) -> Callable[..., Any]:
    """The form before opset 7: with `broadcast`, the second operand's axes begin at `axis` of the first."""

    def converted(n: Node, a: Expr, b: Expr) -> Any:
        if n.int("broadcast", 0) and n.has("axis"):
            behind = n.b.rank(a) - n.int("axis") % n.b.rank(a) - n.b.rank(b)
            b = n.b.unsqueeze(b, [n.b.rank(b) + i for i in range(behind)])
        return convert(n, a, b)

    return converted


def mean(n: Node, *xs: Expr) -> Any:
    total = reduce(lambda a, b: n.b.op("add", a, b), xs)
    return n.b.op("divide", total, float(len(xs))) if xs[1:] else [total]


def divide(n: Node, a: Expr, b: Expr) -> Any:
    """Whole numbers are cut towards zero."""
    return n.b.op("divide" if "float" in n.b.dtype(a) else "trunc_divide", a, b)


def mod(n: Node, a: Expr, b: Expr) -> Any:
    """`fmod` takes the sign of the dividend, the other form that of the divisor."""
    build = n.b
    if n.int("fmod", 0):
        return build.op("trunc_mod", a, b)
    if "float" not in build.dtype(a):
        return build.op("floor_mod", a, b)
    # The remainder of the division, moved to the divisor's side: exact, also for infinite divisors.
    rest, zero = build.op("trunc_mod", a, b), build.const(0, build.dtype(a))
    apart = build.op("not_equal", build.op("less", rest, zero), build.op("less", b, zero))
    moved = build.op("logical_and", apart, build.op("not_equal", rest, zero))
    return build.op("where", moved, build.op("add", rest, b), rest)


def power(n: Node, a: Expr, b: Expr) -> Any:
    """The result has the base's element type. A whole base with another exponent is computed in float64."""
    build, dtype = n.b, n.b.dtype(a)
    if dtype == build.dtype(b):
        return _power(build, a, b)
    if "float" in dtype:
        return _power(build, a, build.cast(b, dtype))
    if "float" in build.dtype(b):
        return build.cast(build.op("power", build.cast(a, "float64"), build.cast(b, "float64")), dtype)
    return build.op("power", a, build.cast(b, dtype))


def _power(b: Builder, x: Expr, exponent: Expr) -> Expr:
    """A square is a product, a root a root: both are faster, and patterns look for them."""
    value = b.value(exponent)
    if value is not None and value.size == 1 and b.rank(exponent) <= b.rank(x):
        if value.reshape(-1)[0] == 2:
            return b.op("multiply", x, x)
        if value.reshape(-1)[0] == 0.5:
            return b.op("sqrt", x)
    return b.op("power", x, exponent)


def round_half_even(n: Node, x: Expr) -> Any:
    """Relay rounds halves away from zero: a half goes to twice the rounded half of itself."""
    b = n.b
    half = b.op("equal", b.op("abs", b.op("subtract", x, b.op("trunc", x))), 0.5)
    even = b.op("multiply", b.op("round", b.op("multiply", x, 0.5)), 2.0)
    return b.op("where", half, even, b.op("round", x))


def is_inf(n: Node, x: Expr) -> Any:
    b, negative, positive = n.b, n.int("detect_negative", 1), n.int("detect_positive", 1)
    infinite = b.op("isinf", x)
    if negative and positive:
        return infinite
    if not negative and not positive:
        return b.op("logical_and", infinite, b.const(False, "bool"))
    return b.op("logical_and", infinite, b.op("greater" if positive else "less", x, 0.0))


def reciprocal(n: Node, x: Expr) -> Any:
    return n.b.op("divide", 1.0, x)


def bit_shift(n: Node, a: Expr, b: Expr) -> Any:
    """A signed shift by a number that is negative, or not below the bits, moves all bits out."""
    build, left = n.b, n.string("direction") == "LEFT"
    op, bits = "left_shift" if left else "right_shift", np.dtype(n.b.dtype(a)).itemsize * 8
    value = build.value(b)
    if build.dtype(a)[0] == "u" or (value is not None and (value >= 0).all() and (value < bits).all()):
        return build.op(op, a, b)
    most = build.const(bits - 1, build.dtype(a))
    fits = build.op("logical_and", build.op("greater_equal", b, 0), build.op("less_equal", b, most))
    if not left:
        return build.op(op, a, build.op("where", fits, b, most))
    zero = build.const(0, build.dtype(a))
    return build.op("where", fits, build.op(op, a, build.op("where", fits, b, zero)), zero)


def bit_cast(n: Node, x: Expr) -> Any:
    """A bool is a byte in memory, 0 or 1."""
    b, dtype = n.b, n.dtype("to")
    if "bool" in (b.dtype(x), dtype):
        return b.cast(x if b.dtype(x) != "bool" else b.cast(x, "uint8"), dtype)
    return b.op("reinterpret", x, dtype=dtype)


def where(n: Node, condition: Expr, x: Expr, y: Expr) -> Any:
    return n.b.op("where", condition, x, y)


def scan(op: str) -> Callable[..., Any]:
    """Sums or products of the elements up to each one, from either end."""

    def converted(n: Node, x: Expr, axis: Expr) -> Any:
        b = n.b
        at = b.need_ints(axis, "the axis")[0] % b.rank(x)
        back = bool(n.int("reverse", 0))
        x = b.op("reverse", x, axis=at) if back else x
        prefix = b.op(op, x, axis=at, exclusive=bool(n.int("exclusive", 0)), dtype=b.dtype(x))
        return b.op("reverse", prefix, axis=at) if back else prefix

    return converted


def identity(n: Node, x: Any) -> Any:
    return [x]


def equal_elements(n: Node, x: Expr | Texts, y: Expr | Texts) -> Any:
    if isinstance(x, Texts) or isinstance(y, Texts):
        if not isinstance(x, Texts) or not isinstance(y, Texts):
            raise Malformed("it compares texts with numbers")
        return equal(n.b, x, y)
    return n.b.op("equal", x, y)


#: Functions of one variable by ONNX's name.
UNARY = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "BitwiseNot": "bitwise_not",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "IsNaN": "isnan",
    "Log": "log",
    "Neg": "negative",
    "Not": "logical_not",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
#: Functions of two variables by ONNX's name.
BINARY = {
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "GreaterOrEqual": "greater_equal",
    "LessOrEqual": "less_equal",
}
#: Those that stated how they broadcast before opset 7.
ALIGNED = {
    "Add": same("add"),
    "And": same("logical_and"),
    "Div": divide,
    "Equal": equal_elements,
    "Greater": same("greater"),
    "Less": same("less"),
    "Mul": same("multiply"),
    "Or": same("logical_or"),
    "Pow": power,
    "Sub": same("subtract"),
    "Xor": same("logical_xor"),
}

RULES = (
    *(Rule(name, same(op)) for name, op in UNARY.items()),
    *(Rule(name, same(op)) for name, op in BINARY.items()),
    *(rule for name, convert in ALIGNED.items() for rule in (Rule(name, aligned(convert), until=6), Rule(name, convert, since=7))),
    Rule("BitCast", bit_cast),
    Rule("BitShift", bit_shift),
    Rule("CumProd", scan("cumprod")),
    Rule("CumSum", scan("cumsum")),
    Rule("Identity", identity),
    Rule("IsInf", is_inf),
    Rule("Max", fold("maximum")),
    Rule("Mean", mean),
    Rule("Min", fold("minimum")),
    Rule("Mod", mod),
    Rule("Reciprocal", reciprocal),
    Rule("Round", round_half_even),
    Rule("Sum", fold("add")),
    Rule("Where", where),
)
