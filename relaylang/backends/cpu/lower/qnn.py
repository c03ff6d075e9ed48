"""Quantised operators, in the integers that the interpreter computes (`relaylang.interpreter.kernels.qnn`).

Requantisation multiplies by a fixed-point number of 31 bits in int64. With constant scales that number is made here.
With scales that arrive when the program runs, the generated code makes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import Kernel, Number, Recipe, Sink, Tensor, Value, unsupported
from relaylang.backends.cpu.lower import nn_conv, nn_dense
from relaylang.backends.cpu.lower.common import axis_of, broadcast_at, clamp, elements, own_index, result_type, saturate
from relaylang.backends.cpu.lower.factors import Zero
from relaylang.backends.cpu.lower.few_rows import Product
from relaylang.backends.cpu.lower.fixed_point import FixedPoints, along, fixed_points, multiply_fixed, scale_quotient
from relaylang.backends.cpu.lower.nn_pool import ANCHORS as POOLS
from relaylang.backends.cpu.lower.tensor import unary
from relaylang.backends.cpu.lower.transform import Joined
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.dtypes import int_range
from relaylang.kernels.index import ZERO, variable
from relaylang.kernels.nest import Index, Nest, Scalar
from relaylang.kernels.sizes import has_sizes


def _minus(nest: Nest, value: Scalar, zero: Scalar) -> Scalar:
    """`value - zero` in int32."""
    value = value.cast("int32")
    if isinstance(zero, ir.Const) and zero.value == 0:
        return value
    return value - zero.cast("int32")


def _plus(nest: Nest, value: Scalar, zero: Scalar) -> Scalar:
    zero = zero.cast("int32")
    if isinstance(zero, ir.Const) and zero.value == 0:
        return value
    return value + zero


def requantized(
    nest: Nest,
    value: Scalar,
    index: Sequence[Index],
    scale: Tensor | float,
    zero: Tensor,
    out_scale: Tensor,
    out_zero: Tensor,
    dtype: str,
    axis: int = -1,
    rounding: str = "None",
    compute: str = "None",
    points: FixedPoints | None = None,
) -> Scalar:
    """One element, from one scale and zero point to another. `points` are those of `fixed_points`, if there are any."""
    value = _minus(nest, value, along(zero, axis, index, nest))
    upward = rounding in ("None", "UPWARD", "")
    if compute in ("float32", "float64"):
        multiplier = scale_quotient(nest, scale, out_scale, axis, index).cast(compute)
        shift = along(out_zero, axis, (), nest).cast(compute)
        scaled = value.cast(compute) * multiplier + shift
        if upward:
            scaled = unary("floor", nest, scaled + nest.const(0.5, compute))
        else:
            scaled = unary("round", nest, scaled)
        shifted = scaled.cast("int32")
    else:
        if points is not None and upward:
            shifted = points.multiply(nest, value, index[axis_of(axis, len(index))])
        else:
            shifted = multiply_fixed(nest, value, scale, out_scale, axis, index, upward)
        shifted = _plus(nest, shifted, along(out_zero, axis, (), nest))
    return shifted if dtype == "int32" else saturate(nest, shifted, dtype)


@dataclass(frozen=True)
class Quotient:
    """Division by a known scale as `x * high + x * low`, of whose results the nearest whole number counts.

    `ends[n]` is the greatest float32 whose quotient rounds to n.
    """

    high: float
    low: float
    ends: tuple[float, ...]


@cache
def quotient(scale: float) -> Quotient | None:
    """The parts of a float32's reciprocal, if they give the division's whole numbers from -256 to 256; else None.

    The quotient of two floats, and the sum in its place, grow with x. So both round alike if they pass each half at the
    same float. Each half is tried.
    """
    divisor = np.float32(scale)
    if not 1e-20 < divisor < 1e20:
        return None
    inverse = 1 / np.float64(divisor)
    high = np.float32(inverse)
    low = np.float32(inverse - np.float64(high))
    halves = np.arange(257) + 0.5
    near = (halves * divisor).astype("f4").view("i4")[:, None] + np.arange(-4, 5, dtype="i4")
    x = near.view("f4")
    past = x / divisor >= halves[:, None]
    # float64 has all bits of the sum, before it is rounded as a fused step rounds it.
    quotients = (x.astype("f8") * np.float64(high) + (x * low).astype("f8")).astype("f4") >= halves[:, None]
    if (quotients != past).any() or past[:, 0].any() or not past[:, -1].all():
        return None
    last = np.argmax(past, axis=1) - 1
    return Quotient(float(high), float(low), tuple(np.take_along_axis(x, last[:, None], 1)[:, 0].tolist()))


def _by_reciprocal(nest: Nest, value: Scalar, scale: Tensor, zero: Tensor, dtype: str) -> Scalar | None:
    """What `quantized` gives, by products. The limits are on the value, not the result. None where the results could differ."""
    known = isinstance(scale, Number) and isinstance(zero, Number) and value.type == "float32"
    if not known or dtype not in ("int8", "uint8"):
        return None
    least, most = int_range(dtype)
    shift, parts = int(zero.value), quotient(float(scale.value))  # type: ignore[attr-defined]
    if parts is None or not least <= shift <= most:
        return None
    low, high = (nest.const(end, "float32") for end in (-parts.ends[shift - least], parts.ends[most - shift]))
    if least == 0:
        held = low.op("max", value)
    else:
        # A nan becomes a zero, which the shift makes of this value.
        nan = nest.const(-parts.ends[abs(shift)] if shift > 0 else parts.ends[abs(shift)], "float32")
        held = value.op("number", nan)
        held = held.op("max", low)
    held = held.op("min", high)
    factors = [nest.const(part, "float32") for part in (float(np.float32(scale.value)), parts.high, parts.low)]  # type: ignore[attr-defined]
    rounded = unary("round", nest, held.op("near_quotient", *factors))
    if shift:
        rounded = rounded + nest.const(float(shift), "float32")
    return rounded.cast(dtype)


def quantized(nest: Nest, value: Scalar, index: Sequence[Index], scale: Tensor, zero: Tensor, dtype: str, axis: int) -> Scalar:
    """`round(value / scale) + zero`, held to the type's range."""
    scaled = _by_reciprocal(nest, value, scale, zero, dtype)
    if scaled is not None:
        return scaled
    divided = value / along(scale, axis, index, nest)
    shift = along(zero, axis, index, nest).cast("int32").cast(value.type)
    shifted = unary("round", nest, divided) + shift
    low, high = int_range(dtype)
    # float32 holds the bounds of 8 and 16 bits exactly; those of 32 bits need float64.
    wide = "float64" if high >= 1 << 24 else value.type
    if low == 0:
        # A nan is not greater, either.
        held = nest.const(low, wide).op("max", shifted.cast(wide))
    else:
        held = shifted.op("number", 0).cast(wide)
        held = held.op("max", nest.const(low, wide))
    held = held.op("min", nest.const(high, wide))
    return held.cast(dtype)


def dequantized(nest: Nest, value: Scalar, index: Sequence[Index], scale: Tensor, zero: Tensor, axis: int) -> Scalar:
    shifted = _minus(nest, value, along(zero, axis, index, nest)).cast("float32")
    return shifted * along(scale, axis, index, nest).cast("float32")


def _quantize(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data, scale, zero = args
    shape, dtype = result_type(call)
    axis = call.attrs.axis
    return Recipe(shape, dtype, lambda nest, index: quantized(nest, data.at(nest, index), index, scale, zero, dtype, axis))


@elements
def _dequantize(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, scale, zero = args
    _, dtype = result_type(call)
    axis = call.attrs.axis
    real = dequantized(nest, data.at(nest, index), index, scale, zero, axis)
    return real.cast(dtype)


def _simulated(back: bool) -> Any:
    """Quantised numbers held in floats. A code names their type when the program runs: 1 int8, 2 uint8, 3 int32, else
    none."""

    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        data, code, scale, zero = args
        shape, dtype = result_type(call)
        axis = call.attrs.axis

        def of(part: Tensor, nest: Nest, index: Sequence[Index]) -> Scalar:
            at = axis_of(axis, len(shape)) if part.shape and shape else 0
            own = slice(at, at + len(part.shape))
            return (broadcast_at(part, nest, index[own], shape[own]) if shape else along(part, axis, index, nest)).cast(dtype)

        def at(nest: Nest, index: Sequence[Index]) -> Scalar:
            value = data.at(nest, index)
            kind = code.at(nest, [ZERO for _ in code.shape]).cast("int32")
            by, shift = (of(part, nest, index) for part in (scale, zero))
            if back:
                simulated = (value - shift) * by
            else:
                divided = unary("round", nest, value / by)
                simulated = divided + shift
                ends = [[nest.const(end, dtype) for end in int_range(code)] for code in ("int8", "uint8", "int32")]
                low, high = (kind.eq(1).select(a, kind.eq(2).select(b, c)) for a, b, c in zip(*ends))
                simulated = clamp(simulated, low, high)
            return ((kind >= 1) & (kind <= 3)).select(simulated, value)

        return Recipe(shape, dtype, at)

    return lower


def _annotated(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Rounding as quantization would do it; kind 0 is none."""
    data, scale, low, high = args
    shape, dtype = result_type(call)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        value = data.at(nest, index)
        by, least, most = (broadcast_at(part, nest, index, shape) for part in (scale, low, high))
        held = value / by
        held = held.op("min", most)
        held = held.op("max", least)
        return unary("round", nest, held) * by

    return data if call.attrs.kind == 0 else Recipe(shape, dtype, at)


def _requantize(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data, scale, zero, out_scale, out_zero = args
    shape, dtype = result_type(call)
    attrs = call.attrs
    points = fixed_points(kernel, scale, out_scale) if attrs.compute_dtype not in ("float32", "float64") else None

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        return requantized(
            nest,
            data.at(nest, index),
            index,
            scale,
            zero,
            out_scale,
            out_zero,
            dtype,
            attrs.axis,
            attrs.rounding,
            attrs.compute_dtype,
            points,
        )

    return Recipe(shape, dtype, at)


def _same(a: Tensor, b: Tensor) -> bool:
    return isinstance(a, Number) and isinstance(b, Number) and bool(a.value == b.value)


def upcast(
    nest: Nest, data: Tensor, own: Sequence[Index], scale: Tensor, zero: Tensor, out_scale: Tensor, out_zero: Tensor, axis: int
) -> Scalar:
    """An operand's element at its own index, with the output's scale and zero point, as int32."""
    value = data.at(nest, own)
    if _same(scale, out_scale) and _same(zero, out_zero):
        return value.cast("int32")
    return requantized(nest, value, own, scale, zero, out_scale, out_zero, "int32", axis)


def _sum(name: str) -> Any:
    other = "sub" if name == "add" else "add"

    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        a, b, a_scale, a_zero, b_scale, b_zero, scale, zero = args
        shape, dtype = result_type(call)

        def at(nest: Nest, index: Sequence[Index]) -> Scalar:
            left = upcast(nest, a, own_index(a, nest, index, shape), a_scale, a_zero, scale, zero, call.attrs.lhs_axis)
            right = upcast(nest, b, own_index(b, nest, index, shape), b_scale, b_zero, scale, zero, call.attrs.rhs_axis)
            shift = along(zero, -1, (), nest).cast("int32")
            total = left.op(name, right).op(other, shift)
            return saturate(nest, total, dtype) if dtype != "int32" else total

        return Recipe(shape, dtype, at)

    return lower


def _mul(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    a, b, a_scale, a_zero, b_scale, b_zero, scale, zero = args
    shape, dtype = result_type(call)
    if a_scale.shape or b_scale.shape:
        raise unsupported("qnn.mul with a scale per channel cannot be compiled", call)

    def both(nest: Nest, index: Sequence[Index]) -> Scalar:
        # The product of the scales is taken in float32, as the interpreter takes it.
        parts = [s.at(nest, []).cast("float32") for s in (a_scale, b_scale)]
        return parts[0] * parts[1]

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        left = _minus(nest, broadcast_at(a, nest, index, shape), along(a_zero, -1, (), nest))
        right = _minus(nest, broadcast_at(b, nest, index, shape), along(b_zero, -1, (), nest))
        product = left * right
        return requantized(nest, product, index, Recipe((), "float32", both), Number(0, "int32"), scale, zero, dtype)

    return Recipe(shape, dtype, at)


def _concatenate(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    parts, scales, zeros, scale, zero = args
    shape, dtype = result_type(call)

    def held(part: Tensor, own: Tensor, own_zero: Tensor) -> Tensor:
        if _same(own, scale) and _same(own_zero, zero):
            return part

        def at(nest: Nest, index: Sequence[Index]) -> Scalar:
            return requantized(nest, part.at(nest, index), index, own, own_zero, scale, zero, dtype)

        return Recipe(part.shape, dtype, at)

    items = [held(p, s, z) for p, s, z in zip(parts, scales, zeros)]
    return Joined(shape, dtype, axis_of(call.attrs.axis, len(shape)), items)


@elements
def _leaky_relu(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, in_scale, in_zero, scale, zero = args
    _, dtype = result_type(call)
    alpha = call.attrs.alpha
    held = upcast(nest, data, index, in_scale, in_zero, scale, zero, -1)
    shift = along(zero, -1, (), nest).cast("int32")
    low = multiply_fixed(nest, held, float(alpha), 1.0, -1, index, True)
    low = low + multiply_fixed(nest, shift, float(1 - alpha), 1.0, -1, index, True)
    x = data.at(nest, index).cast("int32")
    first = along(in_zero, -1, (), nest).cast("int32")
    return saturate(nest, (x < first).select(low, held), dtype)


def _through_floats(name: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        data, in_scale, in_zero, scale, zero = args
        shape, dtype = result_type(call)

        def at(nest: Nest, index: Sequence[Index]) -> Scalar:
            real = dequantized(nest, data.at(nest, index), index, in_scale, in_zero, -1)
            return quantized(nest, unary(name, nest, real), index, scale, zero, dtype, -1)

        return Recipe(shape, dtype, at)

    return lower


@elements
def _fixed_multiply(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data = args[0]
    _, dtype = result_type(call)
    numbers = call.attrs.multiplier, call.attrs.shift
    value = data.at(nest, index).cast("int64")
    parts = [nest.const(n, "int64") for n in numbers]
    return ir.op("fixed_multiply", value, *parts, type="int32").cast(dtype)


@elements
def _fixed_multiply_axis(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, multiplier, left, right = args
    shape, dtype = result_type(call)
    axes = call.attrs.axes
    named = [axis_of(a, len(shape)) for a in ([axes] if isinstance(axes, int) else axes)]
    where = [index[d] for d in named]
    own = [
        t.at(nest, nest.unravel(nest.offset(where, [shape[d] for d in named]), t.shape)) if t.shape else t.at(nest, [])
        for t in (multiplier, left, right)
    ]
    significand, lefts, rights = (v.cast("int64") for v in own)
    shift = lefts - rights
    value = data.at(nest, index).cast("int64")
    return ir.op("fixed_multiply", value, significand, shift, type="int32").cast(dtype)


# Products


def _zero(kernel: Kernel, zero: Tensor, call: Call, columns: bool = False) -> Zero:
    """A zero point: a number, or where it lies in memory. Only with `columns` may there be one for each column."""
    if isinstance(zero, Number):
        return int(zero.value)
    buf = kernel.in_memory(zero)
    if buf.size != 1 and not columns:
        raise unsupported("a zero point per channel cannot be compiled here", call)
    return buf


def _conv2d(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, weight, in_zero, weight_zero, _, _ = args
    dtype = nn_dense.accumulator(sink.anchor.dtype)
    inner = sink if dtype == sink.anchor.dtype else nn_dense.through_buffer(kernel, sink, dtype)
    zero = _zero(kernel, in_zero, call)
    own: Zero = 0
    if isinstance(weight_zero, Number):
        own = int(weight_zero.value)
    else:
        # A zero point that arrives with the data: the weights are shifted first.
        weight = nn_dense.converted(kernel, weight, "int32", None)
        plain, row = weight, call.attrs.kernel_layout.index("O")

        def shifted(nest: Nest, index: Sequence[Index]) -> Scalar:
            return _minus(nest, plain.at(nest, index), along(weight_zero, row, index, nest))

        weight = Recipe(plain.shape, "int32", shifted)
    nn_conv.lower_conv(kernel, call, data, weight, inner, dtype, zero, own)
    nn_dense.finish(kernel, sink, inner)


def _dense(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, weight, in_zero, weight_zero, _, _ = args
    dtype = sink.anchor.dtype
    inner = sink if nn_dense.fused_ready(sink, len(data.shape)) else nn_dense.through_buffer(kernel, sink)
    if has_sizes(weight.shape):
        if math.prod(weight_zero.shape) != 1:
            raise unsupported("a zero point for each of an unknown number of channels cannot be compiled", call)
        data, weight = (nn_dense.converted(kernel, x, dtype, z) for x, z in ((data, in_zero), (weight, weight_zero)))
        nn_dense.of_sizes(kernel, data, weight, sink, False, True)
        return
    own = _zero(kernel, weight_zero, call, columns=True)
    zero: Zero = 0
    if isinstance(in_zero, Number):
        zero = int(in_zero.value)
    else:
        data = nn_dense.converted(kernel, data, "int32", in_zero)
    depth = data.shape[-1]
    product = Product(1, math.prod(data.shape[:-1]), weight.shape[0], depth, (0, depth, 1), (0, depth, 1))
    nn_dense.lower_product(kernel, product, data, weight, inner, dtype, zero, own)
    nn_dense.finish(kernel, sink, inner)


def _avg_pool2d(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, in_scale, in_zero, scale, zero = args

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        return upcast(nest, data, index, in_scale, in_zero, scale, zero, -1)

    held = Recipe(data.shape, "int32", at)
    dtype = sink.anchor.dtype
    sink.anchor.dtype = "int32"
    wide = kernel.buffer(sink.anchor.shape, "int32")
    POOLS["nn.avg_pool2d"](kernel, call, [held], Sink(kernel, sink.anchor, sink.anchor, wide))
    sink.anchor.dtype = dtype
    nest = Nest(sink.anchor.shape)
    index = [variable(d) for d in range(len(sink.anchor.shape))]
    sink.store(nest, index, saturate(nest, nest.load(wide, nest.offset(index, wide.shape)), dtype))
    kernel.loops(nest)


RECIPES: dict[str, Any] = {
    "qnn.quantize": _quantize,
    "qnn.dequantize": _dequantize,
    "qnn.simulated_quantize": _simulated(back=False),
    "qnn.simulated_dequantize": _simulated(back=True),
    "relay.op.annotation.simulated_quantize": _annotated,
    "qnn.requantize": _requantize,
    "qnn.add": _sum("add"),
    "qnn.subtract": _sum("sub"),
    "qnn.mul": _mul,
    "qnn.concatenate": _concatenate,
    "qnn.leaky_relu": _leaky_relu,
    "fixed_point_multiply": _fixed_multiply,
    "fixed_point_multiply_per_axis": _fixed_multiply_axis,
    **{f"qnn.{n}": _through_floats(n) for n in ("abs", "erf", "exp", "log", "rsqrt", "sigmoid", "sqrt", "tanh")},
}
ANCHORS: dict[str, Any] = {"qnn.conv2d": _conv2d, "qnn.dense": _dense, "qnn.avg_pool2d": _avg_pool2d}
