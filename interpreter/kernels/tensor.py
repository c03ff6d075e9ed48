"""Element by element: arithmetic, comparison, functions of one number, conversion, clipping.

Truth values are whole numbers of one bit, as in TVM's compiled code: arithmetic on them is modulo 2. So `add` and
`subtract` are exclusive or, and `multiply` is and. A shift by one gives False, and a division is by True.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, convert, is_float, np_dtype, round_away, wide

_BOOL = np.dtype(np.bool_)


def add(attrs: Any, a: Any, b: Any) -> Any:
    return a + b if a.dtype != _BOOL else a ^ b


def subtract(attrs: Any, a: Any, b: Any) -> Any:
    return a - b if a.dtype != _BOOL else a ^ b


def multiply(attrs: Any, a: Any, b: Any) -> Any:
    return a * b


def _check_divisor(b: Any) -> None:
    if not (b.all() if b.ndim else b):
        raise KernelError("division by zero")


def divide(attrs: Any, a: Any, b: Any) -> Any:
    """Integers are divided towards zero."""
    if is_float(a.dtype):
        return a / b
    _check_divisor(b)
    if a.dtype == _BOOL:
        return a & b
    if a.dtype.kind == "u":
        return a // b
    return (a - np.fmod(a, b)) // b


def floor_divide(attrs: Any, a: Any, b: Any) -> Any:
    if is_float(a.dtype):
        return np.floor(wide(a) / wide(b)).astype(a.dtype)
    _check_divisor(b)
    return a // b if a.dtype != _BOOL else a & b


def trunc_divide(attrs: Any, a: Any, b: Any) -> Any:
    return np.trunc(wide(a) / wide(b)).astype(a.dtype) if is_float(a.dtype) else divide(attrs, a, b)


def mod(attrs: Any, a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend."""
    if not is_float(a.dtype):
        _check_divisor(b)
    return np.fmod(a, b) if a.dtype != _BOOL else a & ~b


def floor_mod(attrs: Any, a: Any, b: Any) -> Any:
    """The remainder with the sign of the divisor."""
    if is_float(a.dtype):
        x, y = wide(a), wide(b)
        return (x - np.floor(x / y) * y).astype(a.dtype)
    _check_divisor(b)
    return np.remainder(a, b) if a.dtype != _BOOL else a & ~b


def power(attrs: Any, a: Any, b: Any) -> Any:
    """Of whole numbers, a negative power is the quotient 1 / a**-b, towards zero."""
    if a.dtype == _BOOL:
        return a | ~b
    if a.dtype.kind != "i" or not (b < 0).any():
        return np.power(a, b)
    if ((a == 0) & (b < 0)).any():
        raise KernelError("a negative power of 0")
    one, below = a.dtype.type(1), b < 0
    inverse = np.where(a == one, one, np.where(a == -one, np.where(b & one, -one, one), a.dtype.type(0)))
    return np.where(below, inverse, np.power(a, np.where(below, a.dtype.type(0), b)))


def maximum(attrs: Any, a: Any, b: Any) -> Any:
    """Where neither is greater, as with nan, the second."""
    return np.where(a > b, a, b) if is_float(a.dtype) else np.maximum(a, b)


def minimum(attrs: Any, a: Any, b: Any) -> Any:
    return np.where(a < b, a, b) if is_float(a.dtype) else np.minimum(a, b)


def equal(attrs: Any, a: Any, b: Any) -> Any:
    return a == b


def not_equal(attrs: Any, a: Any, b: Any) -> Any:
    return a != b


def less(attrs: Any, a: Any, b: Any) -> Any:
    return a < b


def less_equal(attrs: Any, a: Any, b: Any) -> Any:
    return a <= b


def greater(attrs: Any, a: Any, b: Any) -> Any:
    return a > b


def greater_equal(attrs: Any, a: Any, b: Any) -> Any:
    return a >= b


def _check_shift(b: Any) -> None:
    if b.dtype.kind == "i" and (b < 0).any():
        raise KernelError(f"a shift by {int(b.min())} bits")


def left_shift(attrs: Any, a: Any, b: Any) -> Any:
    _check_shift(b)
    return np.left_shift(a, b) if a.dtype != _BOOL else a & ~b


def right_shift(attrs: Any, a: Any, b: Any) -> Any:
    _check_shift(b)
    return np.right_shift(a, b) if a.dtype != _BOOL else a & ~b


def negative(attrs: Any, a: Any) -> Any:
    return -a if a.dtype != _BOOL else a


def _of_float(f: Any) -> Kernel:
    """A function of real numbers; integers go through float64, short floats through float32."""

    def kernel(attrs: Any, x: Any) -> Any:
        if x.dtype.itemsize >= 4 and x.dtype.kind == "f":
            return f(x)
        return convert(np.asarray(f(wide(x) if is_float(x.dtype) else x.astype(np.float64))), x.dtype)

    return kernel


def _rounding(f: Any) -> Kernel:
    """A rounding; integers are whole already."""
    return lambda attrs, x: f(x) if is_float(x.dtype) else x


def sigmoid(x: Any) -> Any:
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Any) -> Any:
    return np.asarray(_erf(x), dtype=np.float64).astype(x.dtype)


def sign(attrs: Any, x: Any) -> Any:
    if x.dtype == _BOOL:
        return x
    zero = x.dtype.type(0)
    return ((x > zero).astype(x.dtype) - (x < zero).astype(x.dtype)) if x.dtype.kind != "u" else (x > zero).astype(x.dtype)


def _test(f: Any) -> Kernel:
    return lambda attrs, x: f(x) if is_float(x.dtype) else np.full(x.shape, f(np.float32(0)))


def clip(attrs: Any, x: Any) -> Any:
    """Bounds beyond an integer type's range are that range's ends."""
    low, high = attrs.a_min, attrs.a_max
    if is_float(x.dtype):
        return np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high))
    least, most = (0, 1) if x.dtype == _BOOL else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    low, high = max(_whole(low), least), min(_whole(high), most)
    if low > most or high < least:
        return np.full(x.shape, min(max(high, least), most), x.dtype)
    return np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high))


def _whole(bound: float) -> int:
    return 0 if math.isnan(bound) else math.trunc(min(max(bound, -1e30), 1e30))


def cast(attrs: Any, x: Any) -> Any:
    return convert(x, np_dtype(attrs.dtype))


def cast_like(attrs: Any, x: Any, like: Any) -> Any:
    return convert(x, like.dtype)


def reinterpret(attrs: Any, x: Any) -> Any:
    return np.asarray(x).view(np_dtype(attrs.dtype))


def full_like(attrs: Any, x: Any, value: Any) -> Any:
    return np.full(x.shape, convert(np.asarray(value), x.dtype), x.dtype)


def multiply_fixed(x: Any, multiplier: Any, shift: Any) -> Any:
    """`x * multiplier * 2**(shift - 31)` in int64, halves upwards, as int32; `multiplier` and `shift` may be arrays."""
    left, right = np.clip(shift, 0, 63), np.maximum(-np.asarray(shift), 0)
    total = np.minimum(right + 31, 63).astype(np.int64)  # beyond that nothing is left
    product = np.left_shift(np.asarray(x).astype(np.int64), left.astype(np.int64)) * np.asarray(multiplier, np.int64)
    return ((product + np.left_shift(np.int64(1), total - np.int64(1))) >> total).astype(np.int32)


def fixed_point_multiply(attrs: Any, x: Any) -> Any:
    return convert(multiply_fixed(x, attrs.multiplier, np.int64(attrs.shift)), x.dtype)


def fixed_point_multiply_per_axis(attrs: Any, x: Any, multiplier: Any, left: Any, right: Any) -> Any:
    axes = [a % x.ndim for a in ([attrs.axes] if isinstance(attrs.axes, int) else attrs.axes)]
    shape = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
    shift = np.asarray(left, np.int64) - np.asarray(right, np.int64)
    return convert(multiply_fixed(x, np.reshape(multiplier, shape), np.reshape(shift, shape)), x.dtype)


KERNELS: dict[str, Kernel] = {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "floor_divide": floor_divide,
    "trunc_divide": trunc_divide,
    "mod": mod,
    "trunc_mod": mod,
    "floor_mod": floor_mod,
    "power": power,
    "maximum": maximum,
    "minimum": minimum,
    "equal": equal,
    "not_equal": not_equal,
    "less": less,
    "less_equal": less_equal,
    "greater": greater,
    "greater_equal": greater_equal,
    "logical_and": lambda attrs, a, b: np.logical_and(a, b).astype(a.dtype),
    "logical_or": lambda attrs, a, b: np.logical_or(a, b).astype(a.dtype),
    "logical_xor": lambda attrs, a, b: np.logical_xor(a, b).astype(a.dtype),
    "logical_not": lambda attrs, a: np.logical_not(a).astype(a.dtype),
    "bitwise_and": lambda attrs, a, b: a & b,
    "bitwise_or": lambda attrs, a, b: a | b,
    "bitwise_xor": lambda attrs, a, b: a ^ b,
    "bitwise_not": lambda attrs, a: ~a,
    "left_shift": left_shift,
    "right_shift": right_shift,
    "negative": negative,
    "abs": lambda attrs, x: np.abs(x),
    "sign": sign,
    "exp": _of_float(np.exp),
    "log": _of_float(np.log),
    "log10": _of_float(np.log10),
    "log2": _of_float(np.log2),
    "sqrt": _of_float(np.sqrt),
    "rsqrt": _of_float(lambda x: x.dtype.type(1) / np.sqrt(x)),
    "sin": _of_float(np.sin),
    "cos": _of_float(np.cos),
    "tan": _of_float(np.tan),
    "sinh": _of_float(np.sinh),
    "cosh": _of_float(np.cosh),
    "tanh": _of_float(np.tanh),
    "asin": _of_float(np.arcsin),
    "acos": _of_float(np.arccos),
    "atan": _of_float(np.arctan),
    "asinh": _of_float(np.arcsinh),
    "acosh": _of_float(np.arccosh),
    "atanh": _of_float(np.arctanh),
    "erf": _of_float(erf),
    "sigmoid": _of_float(sigmoid),
    "fast_exp": _of_float(np.exp),
    "fast_tanh": _of_float(np.tanh),
    "fast_erf": _of_float(erf),
    "floor": _rounding(np.floor),
    "ceil": _rounding(np.ceil),
    "trunc": _rounding(np.trunc),
    "round": _rounding(round_away),
    "isnan": _test(np.isnan),
    "isinf": _test(np.isinf),
    "isfinite": _test(np.isfinite),
    "copy": lambda attrs, x: np.copy(x) if x.ndim else x,
    "clip": clip,
    "cast": cast,
    "cast_like": cast_like,
    "reinterpret": reinterpret,
    "full_like": full_like,
    "zeros_like": lambda attrs, x: np.zeros(x.shape, x.dtype),
    "ones_like": lambda attrs, x: np.ones(x.shape, x.dtype),
    "fixed_point_multiply": fixed_point_multiply,
    "fixed_point_multiply_per_axis": fixed_point_multiply_per_axis,
}
