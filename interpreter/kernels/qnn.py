"""Quantised operators, exact to the integer.

They compute TVM's lowering to integer arithmetic. `requantize` multiplies by a 32-bit fixed-point number in int64 and
rounds halves upwards (`rounding="TONEAREST"`: away from zero). Its `compute_dtype` can ask for floats instead. The rest
is exact integer arithmetic in int32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels import nn_pool
from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    along,
    convert,
    from_plain,
    norm_axis,
    np_dtype,
    out_dtype,
    paddings,
    round_away,
    saturate,
    to_plain,
)
from relaylang.interpreter.kernels.nn_conv import convolve, exact_matmul, transposed
from relaylang.interpreter.kernels.tensor import KERNELS as ELEMENTWISE
from relaylang.interpreter.kernels.tensor import multiply_fixed

_INT32 = np.dtype(np.int32)
_FLOAT32 = np.dtype(np.float32)
_AVG_POOL = nn_pool.avg_pool(2)


def fixed_point(multiplier: Any) -> tuple[np.ndarray, np.ndarray]:
    """Real multipliers as `significand * 2**(shift - 31)` with a significand of 31 bits, both int64."""
    if not np.isfinite(multiplier).all():
        raise KernelError("a scale, or the quotient of two, is no finite number")
    fraction, shift = np.frexp(np.asarray(multiplier, np.float64))
    significand = round_away(fraction * np.float64(2.0**31)).astype(np.int64)
    over = significand == 2**31
    return np.where(over, significand // 2, significand), np.where(over, shift + 1, shift).astype(np.int64)


def multiply_to_nearest(x: Any, significand: Any, shift: Any) -> Any:
    """`multiply_fixed` with halves away from zero."""
    left, total = np.clip(shift, 0, 63), np.minimum(np.maximum(-np.asarray(shift), 0) + 31, 63)
    product = np.left_shift(np.asarray(x).astype(np.int64), left) * np.asarray(significand, np.int64)
    half = np.left_shift(np.int64(1), total - 1)
    return ((product + np.where(product >= 0, half, half - 1)) >> total).astype(np.int32)


def requantize_to(
    x: Any,
    in_scale: Any,
    in_zero: Any,
    out_scale: Any,
    out_zero: Any,
    dtype: np.dtype,
    axis: int = -1,
    rounding: str = "None",
    compute: str = "None",
) -> Any:
    """From one scale and zero point to another; the incoming ones may be vectors along `axis`."""
    if float(out_scale) == 0:
        raise KernelError("the output scale is 0")
    x = np.asarray(x).astype(np.int32) - along(in_zero, axis, x.ndim).astype(np.int32)
    upward = rounding in ("None", "UPWARD")
    multiplier = along(np.asarray(in_scale).astype(np.float64), axis, x.ndim) / np.float64(out_scale)
    if compute in ("float32", "float64"):
        kind = np.dtype(compute).type
        scaled = x.astype(kind) * np.asarray(multiplier).astype(kind) + np.asarray(out_zero).astype(kind)
        shifted = convert(np.asarray(np.floor(scaled + kind(0.5)) if upward else round_away(scaled)), _INT32)
    else:
        significand, shift = fixed_point(multiplier)
        scaled = (multiply_fixed if upward else multiply_to_nearest)(x, significand, shift)
        shifted = scaled + np.asarray(out_zero).astype(np.int32)
    return saturate(shifted, dtype)


def requantize(attrs: Any, x: Any, in_scale: Any, in_zero: Any, out_scale: Any, out_zero: Any) -> Any:
    dtype = out_dtype(attrs, np.dtype(np.int8))
    return requantize_to(x, in_scale, in_zero, out_scale, out_zero, dtype, attrs.axis, attrs.rounding, attrs.compute_dtype)


def quantize_to(x: Any, scale: Any, zero: Any, dtype: np.dtype, axis: int = -1) -> Any:
    info = np.iinfo(dtype)
    shifted = round_away(np.asarray(x) / along(scale, axis, x.ndim)) + along(zero, axis, x.ndim).astype(np.float32)
    held = np.clip(np.nan_to_num(shifted, nan=0.0).astype(np.float64), float(info.min), float(info.max))
    return held.astype(np.int64).astype(dtype)


def quantize(attrs: Any, x: Any, scale: Any, zero: Any) -> Any:
    """`round(x / scale) + zero point`, halves away from zero, held to the element type's range."""
    return quantize_to(x, scale, zero, np_dtype(attrs.out_dtype), attrs.axis)


def dequantize_to(x: Any, scale: Any, zero: Any, axis: int = -1) -> Any:
    shifted = np.asarray(x).astype(np.int32) - along(zero, axis, x.ndim).astype(np.int32)
    return shifted.astype(np.float32) * along(scale, axis, x.ndim)


def dequantize(attrs: Any, x: Any, scale: Any, zero: Any) -> Any:
    real = dequantize_to(x, scale, zero, attrs.axis)
    dtype = np_dtype(attrs.out_dtype) if attrs.out_dtype else _FLOAT32
    if dtype == _FLOAT32:
        return real
    top = np.float32(np.finfo(dtype).max) if dtype.kind == "f" else np.float32(np.finfo(np.float32).max)
    return np.clip(real, -top, top).astype(dtype)


# Products: the zero points go first, then exact sums.


def less_zero(x: Any, zero: Any, axis: int) -> np.ndarray:
    if np.ndim(zero) == 1 and np.size(zero) not in (1, x.shape[axis]):
        raise KernelError(f"{np.size(zero)} zero points for {x.shape[axis]} channels")
    return x.astype(np.int32) - along(zero, axis, x.ndim).astype(np.int32)


def conv2d(attrs: Any, data: Any, weight: Any, in_zero: Any, w_zero: Any, in_scale: Any, w_scale: Any) -> Any:
    """The padding holds the input's zero point. Scales do not enter: the result is int32 at their product."""
    plain = less_zero(to_plain(data, attrs.data_layout, "NCHW"), in_zero, 1)
    kernel = less_zero(to_plain(weight, attrs.kernel_layout, "OIHW"), w_zero, 0)
    pads = paddings(attrs.padding, 2)
    result = convolve(plain, kernel, attrs.strides, pads, attrs.dilation, attrs.groups, out_dtype(attrs, _INT32))
    return from_plain(result, "NCHW", attrs.out_layout or attrs.data_layout)


def conv2d_transpose(attrs: Any, data: Any, weight: Any, in_zero: Any, w_zero: Any, in_scale: Any, w_scale: Any) -> Any:
    plain = less_zero(to_plain(data, attrs.data_layout, "NCHW"), in_zero, 1)
    kernel = less_zero(to_plain(weight, attrs.kernel_layout, "IOHW"), w_zero, 1)
    return from_plain(transposed(plain, kernel, attrs, out_dtype(attrs, _INT32)), "NCHW", attrs.out_layout or attrs.data_layout)


def dense(attrs: Any, data: Any, weight: Any, in_zero: Any, w_zero: Any, in_scale: Any, w_scale: Any) -> Any:
    rows = less_zero(weight, w_zero, 0)
    return exact_matmul(less_zero(data, in_zero, -1), rows.T, out_dtype(attrs, _INT32))


def batch_matmul(attrs: Any, x: Any, y: Any, x_zero: Any, y_zero: Any, x_scale: Any, y_scale: Any) -> Any:
    left, right = less_zero(x, x_zero, 0), less_zero(y, y_zero, 0)
    left = left.swapaxes(-1, -2) if attrs.transpose_a else left
    right = right.swapaxes(-1, -2) if attrs.transpose_b else right
    return exact_matmul(left, right, out_dtype(attrs, _INT32))


# Operators whose inputs and output each have a scale and a zero point.


def _same(a: Any, b: Any) -> bool:
    return np.ndim(a) == 0 and np.ndim(b) == 0 and bool(a == b)


def upcast(x: Any, scale: Any, zero: Any, out_scale: Any, out_zero: Any, axis: int = -1) -> Any:
    """At the output's scale and zero point, as int32."""
    if _same(scale, out_scale) and _same(zero, out_zero):
        return x.astype(np.int32)
    return requantize_to(x, scale, zero, out_scale, out_zero, _INT32, axis)


def _channels(axis: int, x: Any) -> int:
    """The axis of the channels; a vector has only one."""
    return axis if x.ndim > 1 else 0


def add(attrs: Any, a: Any, b: Any, a_scale: Any, a_zero: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any) -> Any:
    left = upcast(a, a_scale, a_zero, scale, zero, _channels(attrs.lhs_axis, a))
    right = upcast(b, b_scale, b_zero, scale, zero, _channels(attrs.rhs_axis, b))
    return saturate(left + right - zero, a.dtype)


def subtract(attrs: Any, a: Any, b: Any, a_scale: Any, a_zero: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any) -> Any:
    left = upcast(a, a_scale, a_zero, scale, zero, _channels(attrs.lhs_axis, a))
    right = upcast(b, b_scale, b_zero, scale, zero, _channels(attrs.rhs_axis, b))
    return saturate(left - right + zero, a.dtype)


def multiply(attrs: Any, a: Any, b: Any, a_scale: Any, a_zero: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any) -> Any:
    left, right = _channels(attrs.lhs_axis, a), _channels(attrs.rhs_axis, b)
    product = less_zero(a, a_zero, left) * less_zero(b, b_zero, right)
    both = along(a_scale, left, a.ndim) * along(b_scale, right, b.ndim)
    return requantize_to(product, both, _INT32.type(0), scale, zero, a.dtype)


def concatenate(attrs: Any, parts: Any, scales: Any, zeros: Any, scale: Any, zero: Any) -> Any:
    held = [
        part if _same(s, scale) and _same(z, zero) else requantize_to(part, s, z, scale, zero, part.dtype)
        for part, s, z in zip(parts, scales, zeros)
    ]
    return np.concatenate(held, axis=attrs.axis)


def leaky_relu(attrs: Any, x: Any, in_scale: Any, in_zero: Any, scale: Any, zero: Any) -> Any:
    held = upcast(x, in_scale, in_zero, scale, zero)
    slope, slope_shift = fixed_point(attrs.alpha)
    rest, rest_shift = fixed_point(1 - attrs.alpha)
    below = multiply_fixed(held, slope, slope_shift) + multiply_fixed(zero, rest, rest_shift)
    return saturate(np.where(x.astype(np.int32) < in_zero, below, held), x.dtype)


def avg_pool2d(attrs: Any, x: Any, in_scale: Any, in_zero: Any, scale: Any, zero: Any) -> Any:
    return saturate(_AVG_POOL(attrs, upcast(x, in_scale, in_zero, scale, zero)), x.dtype)


def softmax(attrs: Any, x: Any, in_scale: Any, in_zero: Any, scale: Any, zero: Any) -> Any:
    """The integer-only softmax of arXiv 2207.01405: powers of two by shifts, a quotient in 30 bits."""
    axis = norm_axis(attrs.axis, x.ndim)
    shifted = x.astype(np.int32) - np.asarray(in_zero).astype(np.int32)
    unit = np.int32(round_away(np.asarray(np.float32(1) / np.float32(in_scale))))
    apart = shifted - shifted.max(axis=axis, keepdims=True, initial=np.iinfo(np.int32).min)
    power = apart + (apart >> np.int32(1)) - (apart >> np.int32(4))
    exponent = np.clip((power - np.fmod(power, -unit)) // -unit, np.int32(0), np.int32(20))
    rest = power + exponent * unit
    exps = ((rest >> np.int32(1)) + unit) << (exponent.max(axis=axis, keepdims=True, initial=0) - exponent)
    sums = exps.sum(axis=axis, keepdims=True, dtype=np.int32)
    output = (np.int32(1 << 30) // sums * exps) >> np.int32(30 - 7)
    return requantize_to(output, np.float32(1 / 128), _INT32.type(0), scale, zero, np.dtype(np.int8), 0)


def _through_floats(f: Kernel) -> Kernel:
    """A function of real numbers, between dequantize and quantize."""

    def kernel(attrs: Any, x: Any, in_scale: Any, in_zero: Any, scale: Any, zero: Any) -> Any:
        return quantize_to(np.asarray(f(None, dequantize_to(x, in_scale, in_zero))), scale, zero, x.dtype)

    return kernel


def hardswish(attrs: Any, x: Any) -> Any:
    kind = x.dtype.type
    return x * np.clip(x + kind(3), kind(0), kind(6)) / kind(6)


#: The element types that a simulated quantization takes as a value; any other number passes the data through.
_SIMULATED: dict[int, Any] = {1: np.int8, 2: np.uint8, 3: np.int32}


def _every(values: Any, axis: int, x: Any) -> Any:
    """A vector along an axis, or one value for all."""
    return along(values, axis, x.ndim) if np.size(values) != 1 else np.reshape(values, ())


def simulated_quantize(attrs: Any, x: Any, code: Any, scale: Any, zero: Any) -> Any:
    """Quantised values as floats; `code` is the number of their element type."""
    info = _SIMULATED.get(int(code))
    if info is None:
        return x
    held = np.iinfo(info)
    zero, scale = (_every(v, attrs.axis, x).astype(x.dtype) for v in (zero, scale))
    shifted = round_away(x / scale) + zero
    return np.clip(shifted, x.dtype.type(held.min), x.dtype.type(held.max)).astype(x.dtype)


def simulated_dequantize(attrs: Any, x: Any, code: Any, scale: Any, zero: Any) -> Any:
    if int(code) not in _SIMULATED:
        return x
    zero, scale = (_every(v, attrs.axis, x).astype(x.dtype) for v in (zero, scale))
    return (x - zero) * scale


_UNARY = ("abs", "erf", "exp", "log", "rsqrt", "sigmoid", "sqrt", "tanh")

KERNELS: dict[str, Kernel] = {
    "qnn.simulated_quantize": simulated_quantize,
    "qnn.simulated_dequantize": simulated_dequantize,
    "qnn.quantize": quantize,
    "qnn.dequantize": dequantize,
    "qnn.requantize": requantize,
    "qnn.conv2d": conv2d,
    "qnn.conv2d_transpose": conv2d_transpose,
    "qnn.dense": dense,
    "qnn.batch_matmul": batch_matmul,
    "qnn.add": add,
    "qnn.subtract": subtract,
    "qnn.mul": multiply,
    "qnn.concatenate": concatenate,
    "qnn.leaky_relu": leaky_relu,
    "qnn.avg_pool2d": avg_pool2d,
    "qnn.softmax": softmax,
    "qnn.hardswish": _through_floats(hardswish),
    **{f"qnn.{name}": _through_floats(ELEMENTWISE[name]) for name in _UNARY},
}
