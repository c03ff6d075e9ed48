"""Scales and zero points as expressions: known ones are computed at once, others become operators.

A product with a quotient of two scales is one in fixed point, with a significand and a shift. Known scales
make both constants. For others, integer operators read them from the bits of the quotient in float64. The result is the
same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType, Type
from relaylang.ir.typed import typed_constant
from relaylang.ops.build import op_call

#: `(call, arrays)` to an array; None where it cannot be computed.
Compute = Callable[[Call, "list[Any]"], Any]


def constant(value: Any, dtype: str) -> Constant:
    """A constant with its type."""
    return typed_constant(np.asarray(value).astype(dtype), dtype)


def is_zero(expr: Expr) -> bool:
    """Whether an expression is known to be 0 everywhere."""
    return isinstance(expr, Constant) and not expr.data.any()


#: Casts that every library makes alike.
_EXACT = frozenset({("float32", "float64"), ("int32", "float32"), ("int32", "float64"), ("int32", "int64")})


class Numbers:
    """Arithmetic with numbers that may be known. `rounding` and `compute_dtype` are for products that name none."""

    def __init__(self, compute: Compute, rounding: str = "UPWARD", compute_dtype: str = "int64") -> None:
        self.compute = compute
        self.rounding = rounding
        self.compute_dtype = compute_dtype

    def op(self, name: str, *args: Expr, **attrs: Any) -> Expr:
        """A call of an operator; its value where the operands are known."""
        call = op_call(name, list(args), **attrs)
        if all(isinstance(a, Constant) for a in args):
            value = self.compute(call, [a.data for a in args if isinstance(a, Constant)])
            if value is not None:
                return constant(value, np.asarray(value).dtype.name)
        return call

    def cast(self, x: Expr, dtype: str) -> Expr:
        if isinstance(x, Constant) and (x.dtype == dtype or (x.dtype, dtype) in _EXACT):
            return x if x.dtype == dtype else constant(x.data, dtype)
        return self.op("cast", x, dtype=dtype)

    def along(self, x: Expr, ty: Type | None, axis: int, rank: int) -> Expr:
        """A vector of type `ty`, shaped to lie along an axis of a tensor of that rank. Other expressions stay."""
        if not isinstance(ty, TensorType) or len(ty.shape) != 1:
            return x
        if ty.shape[0] == 1:
            return self.op("reshape", x, newshape=[])
        shape = [1] * rank
        shape[axis % rank] = -1
        return self.op("reshape", x, newshape=shape) if rank > 1 else x

    # ---- fixed point

    def ratio(self, scale: Expr, out_scale: Expr) -> Expr:
        """The quotient of two scales in float64."""
        if isinstance(scale, Constant) and isinstance(out_scale, Constant):
            return constant(scale.data.astype(np.float64) / out_scale.data.astype(np.float64), "float64")
        return self.op("divide", self.cast(scale, "float64"), self.cast(out_scale, "float64"))

    def _significand(self, multiplier: Expr) -> tuple[Expr, Expr]:
        """`multiplier = significand * 2**(shift - 31)`, both int64, of a number that is not negative."""

        def n(value: int) -> Constant:
            return constant(value, "int64")

        bits = self.op("reinterpret", multiplier, dtype="int64")
        exponent = self.op("subtract", self.op("right_shift", bits, n(52)), n(1022))
        mantissa = self.op("bitwise_or", self.op("bitwise_and", bits, n((1 << 52) - 1)), n(1 << 52))
        rounded = self.op("right_shift", self.op("add", mantissa, n(1 << 21)), n(22))
        carry = self.op("right_shift", rounded, n(31))
        return self.op("right_shift", rounded, carry), self.op("add", exponent, carry)

    def scaled(self, x: Expr, multiplier: Expr, rank: int, upward: bool) -> Expr:
        """An int32 tensor times real numbers (float64, of the tensor's rank or scalar); halves upwards, or away from
        zero."""
        if isinstance(multiplier, Constant):
            if np.all(multiplier.data == 1):
                return x
            significand, shift = fixed_point(multiplier.data)
            wide = [i for i, n in enumerate(significand.shape) if n != 1]
            if upward and not wide:
                factor = {"multiplier": int(significand.reshape(-1)[0]), "shift": int(shift.reshape(-1)[0])}
                return op_call("fixed_point_multiply", [x], **factor)
            left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
            if upward and len(wide) == 1:
                vectors = [constant(v.reshape(-1), "int32") for v in (significand, left, right)]
                return op_call(
                    "fixed_point_multiply_per_axis",
                    [x, *vectors],
                    is_lshift_required=bool(left.any()),
                    is_rshift_required=bool(right.any()),
                    axes=[rank - significand.ndim + wide[0]],
                )
            parts: list[Expr] = [constant(v, "int64") for v in (significand, left, right + 31)]
        else:
            known, moved = self._significand(multiplier)
            none, most = constant(0, "int64"), constant(63, "int64")
            down = self.op("maximum", self.op("negative", moved), none)
            down = self.op("minimum", self.op("add", down, constant(31, "int64")), most)
            parts = [known, self.op("minimum", self.op("maximum", moved, none), most), down]
        return self._shifted(x, parts, upward)

    def _shifted(self, x: Expr, parts: list[Expr], upward: bool) -> Expr:
        known, left, total = parts
        one = constant(1, "int64")
        wide = op_call("cast", [x], dtype="int64")
        if not is_zero(left):
            wide = op_call("left_shift", [wide, left])
        product = op_call("multiply", [wide, known])
        half = self.op("left_shift", one, self.op("subtract", total, one))
        if not upward:
            positive = op_call("greater_equal", [product, constant(0, "int64")])
            half = op_call("where", [positive, half, self.op("subtract", half, one)])
        return op_call("cast", [op_call("right_shift", [op_call("add", [product, half]), total])], dtype="int32")


def round_away(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


def fixed_point(multiplier: Any) -> tuple[np.ndarray, np.ndarray]:
    """Real numbers as `significand * 2**(shift - 31)`, both int64.

    A number may be too small for a product with an int32 to keep anything of it. It may become another number as small.
    """
    if np.ndim(multiplier) == 0:  # mostly, and quicker so
        part, power = frexp(float(multiplier))
        mantissa = int(part * 2.0**31 + (0.5 if part >= 0 else -0.5))
        if mantissa == 1 << 31:
            mantissa, power = mantissa >> 1, power + 1
        return np.asarray(mantissa, np.int64), np.asarray(min(max(power, -32), 63), np.int64)
    fraction, shift = np.frexp(np.asarray(multiplier, np.float64))
    significand = round_away(fraction * 2.0**31).astype(np.int64)
    over = significand == 2**31
    moved = np.clip(np.where(over, shift + 1, shift), -32, 63).astype(np.int64)
    return np.where(over, significand // 2, significand), moved


def saturated(x: Expr, dtype: str) -> Expr:
    """An int32 tensor in a narrower type, held to its range; int32 is the accumulator and wraps."""
    if dtype == "int32":
        return x
    info = np.iinfo(dtype)
    return op_call("cast", [op_call("clip", [x], a_min=float(info.min), a_max=float(info.max))], dtype=dtype)
