"""Element-wise operators that are made of others: shrinking, hyperbolas, comparisons of signs, shifts, second names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.torch.families import arithmetic
from relaylang.frontends.torch.families.arithmetic import promoted
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr

Convert = Callable[[Node], Any]


def floating(n: Node, name: str = "self") -> Expr:
    """An operand as real numbers."""
    x = n.x(name)
    return x if "float" in n.b.dtype(x) else n.b.cast(x, n.result_dtype())


def pair(n: Node, left: str = "self", right: str = "other") -> tuple[Expr, Expr]:
    """Two operands of one element type."""
    x, y = promoted(n.b, n.get(left), n.get(right))
    return x, y


def real_pair(n: Node) -> tuple[Expr, Expr]:
    """Two operands as real numbers of the result's element type."""
    x, y = pair(n)
    dtype = n.result_dtype()
    return n.b.cast(x, dtype), n.b.cast(y, dtype)


def scaled_by(factor: float) -> Convert:
    return lambda n: n.b.op("multiply", floating(n), factor)


def exp2(n: Node) -> Any:
    x = floating(n)
    return n.b.op("power", n.b.const(2, n.b.dtype(x)), x)


def erfc(n: Node) -> Any:
    return n.b.op("subtract", n.b.const(1, n.result_dtype()), n.b.op("erf", floating(n)))


def logit(n: Node) -> Any:
    b, x, eps = n.b, floating(n), n.get("eps")
    x = x if eps is None else nn.clip(b, x, float(eps), 1.0 - float(eps))
    return b.op("log", b.op("divide", x, b.op("subtract", b.const(1, b.dtype(x)), x)))


def log_sigmoid(n: Node) -> Any:
    b = n.b
    logarithm = b.op("negative", nn.softplus(b, b.op("negative", n.x())))
    return [logarithm] if n.call.target.startswith("aten.log_sigmoid_forward") else logarithm


def hard_shrink(n: Node) -> Any:
    b, x, edge = n.b, n.x(), n.get("lambd", 0.5)
    return b.op("where", b.op("greater", b.op("abs", x), edge), x, b.op("zeros_like", x))


def soft_shrink(n: Node) -> Any:
    b, x, edge = n.b, n.x(), n.get("lambd", 0.5)
    less = nn.clip(b, x, -float(edge), float(edge))
    return b.op("subtract", x, less)


def less(op: str) -> Convert:
    return lambda n: n.b.op("subtract", n.x(), n.b.op(op, n.x()))


def threshold(n: Node) -> Any:
    b, x = n.b, n.x()
    return b.op("where", b.op("greater", x, n.get("threshold")), x, b.const(n.get("value"), b.dtype(x)))


def rrelu(n: Node) -> Any:
    """Outside training, the slope is the mean of its bounds."""
    if n.get("training"):
        raise Unsupported("rrelu in training gives random numbers")
    slope = (float(n.get("lower", 1 / 8)) + float(n.get("upper", 1 / 3))) / 2
    return n.b.op("nn.leaky_relu", n.x(), alpha=slope)


def addcdiv(n: Node) -> Any:
    b = n.b
    quotient = b.op("divide", n.x("tensor1"), n.x("tensor2"))
    value = n.get("value", 1)
    return b.op("add", n.x(), quotient if value == 1 else b.op("multiply", quotient, value))


def negative_sign(b: Builder, x: Expr) -> Expr:
    """Whether the sign is minus, also that of a zero."""
    if "float" not in b.dtype(x):
        return b.op("less", x, 0)
    one = b.const(1, b.dtype(x))
    return b.op("less", b.op("where", b.op("equal", x, 0.0), b.op("divide", one, x), x), 0.0)


def copy_sign(n: Node) -> Any:
    b = n.b
    x, y = real_pair(n)
    size = b.op("abs", x)
    return b.op("where", negative_sign(b, y), b.op("negative", size), size)


def hypot(n: Node) -> Any:
    b = n.b
    x, y = pair(n)
    return b.op("sqrt", b.op("add", b.op("multiply", x, x), b.op("multiply", y, y)))


def known_extreme(op: str) -> Convert:
    """The larger or smaller operand; one that is no number gives way."""

    def convert(n: Node) -> Any:
        b = n.b
        x, y = pair(n)
        if "float" not in b.dtype(x):
            return b.op(op, x, y)
        return b.op("where", b.op("isnan", x), y, b.op("where", b.op("isnan", y), x, b.op(op, x, y)))

    return convert


def sinc(n: Node) -> Any:
    b, x = n.b, floating(n)
    angle = b.op("multiply", x, math.pi)
    zero = b.op("equal", x, 0.0)
    one = b.op("ones_like", x)
    return b.op("where", zero, one, b.op("divide", b.op("sin", angle), b.op("where", zero, one, angle)))


def nan_to_num(n: Node) -> Any:
    b, x = n.b, n.x()
    if "float" not in b.dtype(x):
        return x
    info = np.finfo(b.dtype(x))
    for test, sign, name, default in (
        ("isnan", 0, "nan", 0.0),
        ("isinf", 1, "posinf", float(info.max)),
        ("isinf", -1, "neginf", float(info.min)),
    ):
        value = n.get(name)
        mask = b.op(test, x)
        if sign:
            mask = b.op("logical_and", mask, b.op("greater" if sign > 0 else "less", x, 0.0))
        x = b.op("where", mask, b.const(default if value is None else value, b.dtype(x)), x)
    return x


def infinite(sign: int) -> Convert:
    def convert(n: Node) -> Any:
        x = n.x()
        if "float" not in n.b.dtype(x):
            return n.b.op("full_like", n.b.cast(x, "bool"), n.b.const(False))
        return n.b.op("equal", x, n.b.const(sign * np.inf, n.b.dtype(x)))

    return convert


def is_close(n: Node) -> Any:
    """`|x - y| <= atol + rtol |y|`, or equal."""
    b = n.b
    x, y = pair(n)
    dtype = b.dtype(x) if "float" in b.dtype(x) else "float32"
    x, y = b.cast(x, dtype), b.cast(y, dtype)
    room = b.op("add", b.op("multiply", b.op("abs", y), float(n.get("rtol", 1e-5))), float(n.get("atol", 1e-8)))
    near = b.op("logical_and", b.op("isfinite", y), b.op("less_equal", b.op("abs", b.op("subtract", x, y)), room))
    same = b.op("logical_or", near, b.op("equal", x, y))
    if not n.get("equal_nan"):
        return same
    return b.op("logical_or", same, b.op("logical_and", b.op("isnan", x), b.op("isnan", y)))


def x_log_y(n: Node) -> Any:
    b = n.b
    x, y = real_pair(n)
    product = b.op("multiply", x, b.op("log", y))
    zero = b.op("logical_and", b.op("equal", x, 0.0), b.op("logical_not", b.op("isnan", y)))
    return b.op("where", zero, b.op("zeros_like", product), product)


def log_add(b: Builder, x: Expr, y: Expr, factor: float = 1.0) -> Expr:
    """`log(exp(x) + exp(y))`, without overflow; `factor` is the logarithm of another base."""
    more = nn.log1p_exp(b, b.op("multiply", b.op("subtract", x, y), factor))
    top = b.op("maximum", x, y)
    return b.op("where", b.op("equal", x, y), b.op("add", top, math.log(2) / factor), b.op("add", top, b.op("divide", more, factor)))


def log_add_exp(factor: float) -> Convert:
    return lambda n: log_add(n.b, *pair(n), factor)


def heaviside(n: Node) -> Any:
    b, x, values = n.b, n.x(), n.x("values")
    step = b.cast(b.op("greater", x, b.const(0, b.dtype(x))), b.dtype(x))
    return b.op("where", b.op("equal", x, b.const(0, b.dtype(x))), b.op("add", values, b.op("zeros_like", x)), step)


def ldexp(n: Node) -> Any:
    b = n.b
    x, y = real_pair(n)
    return b.op("multiply", x, b.op("power", b.const(2, b.dtype(y)), y))


def shift(op: str) -> Convert:
    return lambda n: n.b.op(op, *pair(n))


def angle(n: Node) -> Any:
    """0 for positive numbers, else pi."""
    b, x = n.b, floating(n)
    phase = b.op("where", b.op("less", x, 0.0), b.const(math.pi, b.dtype(x)), b.op("zeros_like", x))
    return b.op("where", b.op("isnan", x), x, phase)


def digits(n: Node) -> Any:
    """Rounding to decimals; halves go to the even number."""
    decimals = n.int("decimals", 0)
    b, x = n.b, n.x()
    if "float" not in b.dtype(x):
        return x
    if not decimals:
        return rounded(b, x)
    power, (scale, back) = 10.0 ** abs(decimals), ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    return b.op(back, rounded(b, b.op(scale, x, power)), power)


def rounded(b: Builder, x: Expr) -> Expr:
    """To the nearest whole numbers, halves to the even one."""
    low = b.op("floor", x)
    rest = b.op("subtract", x, low)
    odd = b.op("not_equal", b.op("floor_mod", low, 2.0), 0.0)
    up = b.op("logical_or", b.op("greater", rest, 0.5), b.op("logical_and", b.op("equal", rest, 0.5), odd))
    return b.op("add", low, b.cast(up, b.dtype(x)))


def nothing_changes(n: Node) -> Any:
    return n.x(next(iter(n.call.args)))


def cast_to(dtype: str) -> Convert:
    return lambda n: n.b.cast(n.x(), dtype)


def is_real(n: Node) -> Any:
    return n.b.cast(n.b.op("ones_like", n.x()), "bool")


#: Second names of operators.
SAME = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "clip": "clamp",
    "divide": "div",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "subtract": "sub",
    "true_divide": "div",
    "special_exp2": "exp2",
    "special_expit": "sigmoid",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_expm1": "expm1",
    "special_log1p": "log1p",
    "special_logit": "logit",
    "special_xlogy": "xlogy",
    "special_sinc": "sinc",
    "special_round": "round",
}
_RULES: dict[str, Convert] = {
    "__lshift__": shift("left_shift"), "__rshift__": shift("right_shift"), "addcdiv": addcdiv,
    "angle": angle, "bitwise_left_shift": shift("left_shift"), "bitwise_right_shift": shift("right_shift"),
    "copysign": copy_sign, "deg2rad": scaled_by(math.pi / 180), "erfc": erfc, "exp2": exp2,
    "float_power": lambda n: n.b.op("power", *(n.b.cast(n.get(name), "float64") for name in ("self", "exponent"))),
    "fmax": known_extreme("maximum"), "fmin": known_extreme("minimum"), "frac": less("trunc"),
    "hardshrink": hard_shrink, "heaviside": heaviside, "hypot": hypot, "isclose": is_close, "isneginf": infinite(-1),
    "isposinf": infinite(1), "isreal": is_real, "ldexp": ldexp, "lift": nothing_changes, "lift_fresh": nothing_changes,
    "log_sigmoid": log_sigmoid, "log_sigmoid_forward": log_sigmoid, "logaddexp": log_add_exp(1.0),
    "logaddexp2": log_add_exp(math.log(2)), "logit": logit, "nan_to_num": nan_to_num, "positive": nothing_changes,
    "rad2deg": scaled_by(180 / math.pi), "real": nothing_changes, "resolve_conj": nothing_changes,
    "resolve_neg": nothing_changes, "round": digits, "rrelu": rrelu, "signbit": lambda n: negative_sign(n.b, n.x()), "sinc": sinc,
    "softshrink": soft_shrink, "tanhshrink": less("tanh"), "threshold": threshold, "xlogy": x_log_y,
    "double": cast_to("float64"), "float": cast_to("float32"), "half": cast_to("float16"), "bfloat16": cast_to("bfloat16"),
    "int": cast_to("int32"), "long": cast_to("int64"), "alpha_dropout": arithmetic.dropout,
}  # fmt: skip
_OLD = {rule.name: rule.convert for rule in arithmetic.RULES}

RULES = (
    *(Rule(f"aten.{name}", convert) for name, convert in _RULES.items()),
    *(Rule(f"aten.{name}", _RULES.get(other) or _OLD[f"aten.{other}"]) for name, other in SAME.items()),
)
