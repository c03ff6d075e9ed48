"""Element-wise operators: functions of one and two tensors, comparisons, casts."""

from __future__ import annotations

import math
from typing import Any

from relaylang.export.onnx.emitter import Emitter
from relaylang.export.walk import Value
from relaylang.ir import Call


def same(kind: str, **attrs: Any) -> Any:
    """The rule of an operator that ONNX has, too."""

    def rule(e: Emitter, call: Call, *args: Value) -> Any:
        return e.op(kind, *args, **attrs)

    return rule


def _integer(x: Value) -> bool:
    return "int" in x.dtype


def relu(e: Emitter, call: Call, x: Value) -> Value:
    return e.op("Max", x, e.scalar(0, x.dtype)) if _integer(x) else e.op("Relu", x)


def rounded(e: Emitter, call: Call, x: Value) -> Value:
    """Halves away from zero, where ONNX's Round takes them to even."""
    if _integer(x):
        return e.op("Identity", x)
    size = e.op("Abs", x)
    floor = e.op("Floor", size)
    up = e.op("GreaterOrEqual", e.op("Sub", size, floor), e.scalar(0.5, x.dtype))
    return e.op("Mul", e.op("Sign", x), e.op("Add", floor, e.cast(up, x.dtype, "bool")))


def trunc(e: Emitter, call: Call, x: Value) -> Value:
    if _integer(x):
        return e.op("Identity", x)
    return e.op("Mul", e.op("Sign", x), e.op("Floor", e.op("Abs", x)))


def unless_integer(kind: str) -> Any:
    """A rounding, which leaves integers as they are."""

    def rule(e: Emitter, call: Call, x: Value) -> Value:
        return e.op("Identity" if _integer(x) else kind, x)

    return rule


def rsqrt(e: Emitter, call: Call, x: Value) -> Value:
    return e.op("Reciprocal", e.op("Sqrt", x))


def logarithm(base: float) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        return e.op("Mul", e.op("Log", x), e.scalar(1 / math.log(base), x.dtype))

    return rule


def isfinite(e: Emitter, call: Call, x: Value) -> Value:
    return e.op("Not", e.op("Or", e.op("IsNaN", x), e.op("IsInf", x)))


def filled(value: float) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        return e.op("Expand", e.scalar(value, x.dtype), e.op("Shape", x))

    return rule


def full_like(e: Emitter, call: Call, x: Value, value: Value) -> Value:
    return e.op("Expand", e.cast(value, x.dtype), e.op("Shape", x))


def two(kind: str, logical: str = "") -> Any:
    """A function of two tensors; `logical` is what it means for truth values."""

    def rule(e: Emitter, call: Call, a: Value, b: Value) -> Any:
        return e.op(logical if logical and a.dtype == "bool" else kind, a, b)

    return rule


def floor_mod(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    if _integer(a):
        return e.op("Mod", a, b)
    return e.op("Sub", a, e.op("Mul", e.op("Floor", e.op("Div", a, b)), b))


def floor_divide(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    if _integer(a):
        return e.op("Div", e.op("Sub", a, e.op("Mod", a, b)), b)
    return e.op("Floor", e.op("Div", a, b))


def trunc_divide(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    quotient = e.op("Div", a, b, ty=a.type)
    return quotient if _integer(a) else trunc(e, call, quotient)


def trunc_mod(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    return e.op("Mod", a, b, fmod=1)


def shift(direction: str) -> Any:
    """ONNX shifts numbers without sign only; a signed one is multiplied by a power of two, or divided and rounded down."""

    def rule(e: Emitter, call: Call, a: Value, b: Value) -> Value:
        if a.dtype.startswith("uint"):
            return e.op("BitShift", a, b, direction=direction)
        wide = e.cast(a, "int64")
        power = e.op("Cast", e.op("Pow", e.scalar(2.0, "float64"), e.cast(b, "float64")), to=e.kind("int64"))
        if direction == "LEFT":
            return e.op("Cast", e.op("Mul", wide, power), to=e.kind(a.dtype))
        return e.op("Cast", e.op("Div", e.op("Sub", wide, e.op("Mod", wide, power)), power), to=e.kind(a.dtype))

    return rule


def not_equal(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    return e.op("Xor", a, b) if a.dtype == "bool" else e.op("Not", e.op("Equal", a, b))


def clip(e: Emitter, call: Call, x: Value) -> Value:
    attrs: Any = call.attrs
    low, high = attrs.a_min, attrs.a_max
    if _integer(x):
        width = int(x.dtype.lstrip("uint"))
        least, most = (0, 2**width - 1) if x.dtype.startswith("u") else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
        low, high = max(int(low), least), min(int(high), most)
    return e.op("Clip", x, e.scalar(low, x.dtype, "low"), e.scalar(high, x.dtype, "high"))


def cast(e: Emitter, call: Call, x: Value) -> Value:
    attrs: Any = call.attrs
    converted = e.op("Cast", x, to=e.kind(attrs.dtype))
    if x.dtype in ("int8", "uint8") and "int" in attrs.dtype:
        converted.narrow = x
    return converted


def cast_like(e: Emitter, call: Call, x: Value, like: Value) -> Value:
    return e.op("Cast", x, to=e.kind(like.dtype))


def where(e: Emitter, call: Call, condition: Value, a: Value, b: Value) -> Value:
    return e.op("Where", e.cast(condition, "bool"), a, b)


_UNARY = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "bitwise_not": "BitwiseNot",
    "copy": "Identity",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "fast_erf": "Erf",
    "exp": "Exp",
    "fast_exp": "Exp",
    "tanh": "Tanh",
    "fast_tanh": "Tanh",
    "log": "Log",
    "logical_not": "Not",
    "negative": "Neg",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "isinf": "IsInf",
    "isnan": "IsNaN",
    "annotation.stop_fusion": "Identity",
}

RULES = {
    **{name: same(kind) for name, kind in _UNARY.items()},
    "ceil": unless_integer("Ceil"),
    "floor": unless_integer("Floor"),
    "nn.relu": relu,
    "round": rounded,
    "trunc": trunc,
    "rsqrt": rsqrt,
    "log2": logarithm(2),
    "log10": logarithm(10),
    "isfinite": isfinite,
    "zeros_like": filled(0),
    "ones_like": filled(1),
    "full_like": full_like,
    "add": two("Add", "Xor"),
    "subtract": two("Sub"),
    "multiply": two("Mul", "And"),
    "divide": two("Div"),
    "maximum": two("Max", "Or"),
    "minimum": two("Min", "And"),
    "power": two("Pow"),
    "bitwise_and": two("BitwiseAnd", "And"),
    "bitwise_or": two("BitwiseOr", "Or"),
    "bitwise_xor": two("BitwiseXor", "Xor"),
    "logical_and": two("And"),
    "logical_or": two("Or"),
    "logical_xor": two("Xor"),
    "equal": two("Equal"),
    "not_equal": not_equal,
    "greater": two("Greater"),
    "greater_equal": two("GreaterOrEqual"),
    "less": two("Less"),
    "less_equal": two("LessOrEqual"),
    "floor_divide": floor_divide,
    "floor_mod": floor_mod,
    "trunc_divide": trunc_divide,
    "trunc_mod": trunc_mod,
    "mod": trunc_mod,
    "left_shift": shift("LEFT"),
    "right_shift": shift("RIGHT"),
    "clip": clip,
    "cast": cast,
    "cast_like": cast_like,
    "where": where,
}

__all__ = ["RULES"]
