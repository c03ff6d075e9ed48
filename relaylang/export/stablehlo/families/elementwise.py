"""Element-wise operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.export.shared import compared, fixed_point, one, rounding
from relaylang.export.stablehlo.emitter import Emitter, is_real, limits
from relaylang.export.walk import Value
from relaylang.frontends.stablehlo.names import COMPARED, ONE, TWO
from relaylang.ir import Call


def two(name: str) -> Any:
    def rule(e: Emitter, call: Call, a: Value, b: Value) -> Value:
        return e.two(name, a, b)

    return rule


def trunc(e: Emitter, call: Call, x: Value) -> Value:
    if not is_real(x.dtype):
        return x
    return e.select(e.compare("LT", x, e.splat(0, x)), e.same("ceil", x), e.same("floor", x))


def sigmoid(e: Emitter, call: Call, x: Value) -> Value:
    return e.same("logistic", x)


def magnitude(e: Emitter, call: Call, x: Value) -> Value:
    return x if x.dtype.startswith("u") else e.same("abs", x)


def isnan(e: Emitter, call: Call, x: Value) -> Value:
    return e.compare("NE", x, x)


def isinf(e: Emitter, call: Call, x: Value) -> Value:
    return e.compare("EQ", e.same("abs", x), e.splat(np.inf, x))


def isfinite(e: Emitter, call: Call, x: Value) -> Value:
    return e.op(f"stablehlo.is_finite %{x.name}", [x], x.static(), "bool")


def filled(value: float) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        return e.splat(value, x)

    return rule


def full_like(e: Emitter, call: Call, x: Value, value: Value) -> Value:
    return e.broadcast(e.reshape(e.cast(value, x.dtype), []), x.static())


def sign(e: Emitter, call: Call, x: Value) -> Value:
    if x.dtype.startswith("u"):
        return e.same("minimum", x, e.splat(1, x))
    return e.same("sign", x)


def floor_divide(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    if is_real(a.dtype):
        return e.same("floor", e.two("divide", a, b))
    a, b = e.together(a, b)
    quotient = e.same("divide", a, b)
    if a.dtype.startswith("u"):
        return quotient
    rest = e.same("remainder", a, b)
    apart = e.same("and", e.compare("NE", rest, e.splat(0, rest)), e.compare("LT", e.same("xor", rest, b), e.splat(0, rest)))
    return e.select(apart, e.same("subtract", quotient, e.splat(1, quotient)), quotient)


def floor_mod(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    quotient = floor_divide(e, call, a, b)
    return e.two("subtract", a, e.two("multiply", quotient, b))


def trunc_divide(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    quotient = e.two("divide", a, b)
    return trunc(e, call, quotient)


def shift(name: str) -> Any:
    def rule(e: Emitter, call: Call, a: Value, b: Value) -> Value:
        unsigned = a.dtype.startswith("u")
        kind = "shift_left" if name == "left" else "shift_right_logical" if unsigned else "shift_right_arithmetic"
        return e.two(kind, a, e.cast(b, a.dtype))

    return rule


def power(e: Emitter, call: Call, a: Value, b: Value) -> Value:
    return e.two("power", a, b)


def clip(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    low, high = a.a_min, a.a_max
    if not is_real(x.dtype):
        least, most = limits(x.dtype)
        low, high = max(int(max(low, -(2.0**63))), least), min(int(min(high, 2.0**63)), most)
    bottom, top = e.scalar(low, x.dtype), e.scalar(high, x.dtype)
    return e.op(f"stablehlo.clamp %{bottom.name}, %{x.name}, %{top.name}", [bottom, x, top], x.static(), x.dtype)


def reinterpret(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.op(f"stablehlo.bitcast_convert %{x.name}", [x], x.static(), a.dtype)


def where(e: Emitter, call: Call, condition: Value, a: Value, b: Value) -> Value:
    return e.select(e.cast(condition, "bool"), a, b)


def fixed_point_multiply(e: Emitter, call: Call, x: Value, *operands: Value) -> Value:
    multiplier, left, right = fixed_point(call, x, *operands)
    wide = e.cast(x, "int64")

    def number(value: Any) -> Value:
        return e.broadcast(e.array(np.asarray(value)), x.static())

    raised = e.same("shift_left", wide, number(left))
    product = e.same("multiply", raised, number(multiplier))
    half = number(np.left_shift(np.int64(1), right - 1))
    return e.cast(e.same("shift_right_arithmetic", e.same("add", product, half), number(right)), x.dtype)


#: Operators whose names alone are not StableHLO's, besides those that the importer reads.
_ONE = {**ONE, "fast_exp": "exponential", "fast_tanh": "tanh", "fast_erf": "chlo.erf"}
_TWO = {**TWO, "mod": "remainder"}

RULES = {
    **{name: one(kind) for name, kind in _ONE.items()},
    **{name: two(kind) for name, kind in _TWO.items()},
    **{name: compared(way) for name, way in COMPARED.items()},
    "ceil": rounding("ceil"),
    "floor": rounding("floor"),
    "round": rounding("round_nearest_afz"),
    "trunc": trunc,
    "abs": magnitude,
    "sign": sign,
    "sigmoid": sigmoid,
    "isnan": isnan,
    "isinf": isinf,
    "isfinite": isfinite,
    "zeros_like": filled(0),
    "ones_like": filled(1),
    "full_like": full_like,
    "floor_divide": floor_divide,
    "floor_mod": floor_mod,
    "trunc_divide": trunc_divide,
    "left_shift": shift("left"),
    "right_shift": shift("right"),
    "power": power,
    "clip": clip,
    "reinterpret": reinterpret,
    "where": where,
    "fixed_point_multiply": fixed_point_multiply,
    "fixed_point_multiply_per_axis": fixed_point_multiply,
}

__all__ = ["RULES"]
