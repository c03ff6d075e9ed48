"""Element-wise operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.export.relax.emitter import Emitter
from relaylang.export.shared import compared, fixed_point, one, rounding
from relaylang.export.walk import Value
from relaylang.ir import Call


def rounded(e: Emitter, call: Call, x: Value) -> Value:
    """Halves away from zero, where Relax's round takes them to even."""
    if "float" not in x.dtype:
        return x
    size = e.same("abs", x)
    floor = e.same("floor", size)
    up = e.compare("greater_equal", e.same("subtract", size, floor), e.scalar(0.5, x.dtype))
    return e.same("multiply", e.same("sign", x), e.same("add", floor, e.cast(up, x.dtype)))


def two(name: str) -> Any:
    def rule(e: Emitter, call: Call, a: Value, b: Value) -> Value:
        return e.same(_LOGICAL.get(name, name) if a.dtype == "bool" else name, a, b)

    return rule


def tested(name: str) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        return e.op(f"R.{name}({x.name})", x.static(), "bool")

    return rule


def trunc_mod(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    """The rest with the sign of the dividend, of one with the sign of the divisor."""
    if a.dtype.startswith("u"):
        return e.same("mod", a, b)
    rest = e.same("floor_mod", e.same("abs", a), e.same("abs", b))
    return e.same("multiply", e.same("sign", a), rest)


def trunc_divide(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    if "float" in a.dtype:
        return e.same("trunc", e.same("divide", a, b))
    if a.dtype.startswith("u"):
        return e.same("floor_divide", a, b)
    quotient = e.same("floor_divide", e.same("abs", a), e.same("abs", b))
    return e.same("multiply", e.same("multiply", e.same("sign", a), e.same("sign", b)), quotient)


def divide(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    return e.same("divide", a, b) if "float" in a.dtype else trunc_divide(e, call, a, b)


def clip(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    low, high = a.a_min, a.a_max
    if "int" in x.dtype:
        info = np.iinfo(np.dtype(x.dtype))
        low, high = max(int(max(low, -(2.0**63))), info.min), min(int(min(high, 2.0**63)), info.max)
    return e.same("minimum", e.same("maximum", x, e.scalar(low, x.dtype)), e.scalar(high, x.dtype))


def where(e: Emitter, call: Call, condition: Value, a: Value, b: Value) -> Value:
    condition = e.cast(condition, "bool")
    extents = np.broadcast_shapes(condition.static(), a.static(), b.static())
    return e.op(f"R.where({condition.name}, {a.name}, {b.name})", extents, a.dtype)


def filled(value: float) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        return full(e, e.scalar(value, x.dtype), x.static(), x.dtype)

    return rule


def full_like(e: Emitter, call: Call, x: Value, value: Value) -> Value:
    return full(e, value, x.static(), x.dtype)


def full(e: Emitter, value: Value, extents: Any, dtype: str) -> Value:
    """A tensor of one value."""
    return e.op(f'R.full(R.shape({list(extents)}), {e.cast(value, dtype).name}, dtype="{dtype}")', extents, dtype)


def fixed_point_multiply(e: Emitter, call: Call, x: Value, *operands: Value) -> Value:
    multiplier, left, right = fixed_point(call, x, *operands)

    def number(value: np.ndarray) -> Value:
        return e.array(value, "int64", "multiplier")

    half = np.left_shift(np.int64(1), right - 1)
    product = e.same("multiply", e.same("left_shift", e.cast(x, "int64"), number(left)), number(multiplier))
    return e.cast(e.same("right_shift", e.same("add", product, number(np.asarray(half))), number(right)), x.dtype)


#: Arithmetic of truth values.
_LOGICAL = {
    "add": "logical_xor",
    "subtract": "logical_xor",
    "multiply": "logical_and",
    "maximum": "logical_or",
    "minimum": "logical_and",
}
_ONE = (
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_not",
    "cos",
    "cosh",
    "erf",
    "exp",
    "log",
    "logical_not",
    "negative",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "nn.relu",
)
_TWO = (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "power",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "logical_xor",
    "floor_divide",
    "floor_mod",
    "left_shift",
    "right_shift",
)

RULES = {
    **{name: one(name) for name in _ONE},
    **{f"fast_{name}": one(name) for name in ("exp", "tanh", "erf")},
    **{name: two(name) for name in _TWO},
    **{name: compared(name) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    **{name: tested(name) for name in ("isnan", "isinf", "isfinite")},
    "trunc": rounding("trunc"),
    "round": rounded,
    "divide": divide,
    "trunc_divide": trunc_divide,
    "trunc_mod": trunc_mod,
    "mod": trunc_mod,
    "clip": clip,
    "where": where,
    "zeros_like": filled(0),
    "ones_like": filled(1),
    "full_like": full_like,
    "fixed_point_multiply": fixed_point_multiply,
    "fixed_point_multiply_per_axis": fixed_point_multiply,
}

__all__ = ["RULES", "full"]
