"""Whole numbers in the place of rounded floats: a value is a tensor of them and one scale.

Scales that are quotients of powers of two become shifts, whole quotients become products, and others products in fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, log2, prod

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, TensorType, Tuple
from relaylang.ir.tensors import static_shape
from relaylang.ops.build import op_call, scalar
from relaylang.ops.record import Op
from relaylang.rules.layout.rule import changed
from relaylang.rules.macs import RULES as MACS
from relaylang.rules.qnn_lowering.numbers import Numbers, constant
from relaylang.rules.quantization.common import (
    CAST_HINT,
    SIMULATED,
    STOP_FUSION,
    Mark,
    QAnnotateKind,
    QConfig,
    Rules,
    Value,
    with_args,
)


@dataclass(frozen=True)
class Integers(Mark):
    """A value as `data * scale`. `data` holds whole numbers from `-most` to `most`.

    Its element type is `dtype`, a float right behind rounding.
    """

    data: Expr
    scale: np.float32
    dtype: str
    most: float

    def plain(self) -> Expr:
        return op_call("multiply", [_cast(self.data, "float32"), scalar(float(self.scale), "float32")])

    def of(self, dtype: str) -> Expr:
        """The whole numbers in an element type."""
        return self.data if self.dtype == dtype else _cast(self.data, dtype)


def _cast(data: Expr, dtype: str) -> Expr:
    return op_call("cast", [data], dtype=dtype)


def _limit(dtype: str) -> float:
    """The largest number of an integer type."""
    return float(np.iinfo(dtype).max)


def _clip(data: Expr, low: float, high: float) -> Expr:
    return op_call("clip", [data], a_min=low, a_max=high)


def _known(call: Call, config: QConfig) -> tuple[np.float32, float, float]:
    """The scale and the bounds of a rounded value. The bounds are numbers of float32 within the integer type."""
    if not all(isinstance(a, Constant) for a in call.args[1:]):
        title = "the scale of a rounded value is not known"
        raise RelayError(error("R0530", title, call.span, notes=["QuantizeCalibrate finds the scales, in front of QuantizeRealize"]))
    scale, low, high = [np.float32(a.data) for a in call.args[1:] if isinstance(a, Constant)]
    limit = _limit(config.get_dtype_by_kind(call.attrs.kind))
    nearest = np.float32(limit)
    most = float(nearest if float(nearest) <= limit else np.nextafter(nearest, np.float32(0)))
    return scale, max(float(low), -most), min(float(high), most)


def _in_fixed_point(data: Expr, dtype: str, factor: np.float32, rank: int, config: QConfig) -> Expr:
    """A tensor of type `dtype` times a number, rounded; computed in int32."""
    numbers = Numbers(lambda call, values: None)
    wide = data if dtype == "int32" else _cast(data, "int32")
    scaled = numbers.scaled(wide, constant(np.float64(factor), "float64"), rank, config.rounding == "UPWARD")
    return scaled if dtype == "int32" else _cast(scaled, dtype)


def _rank(expr: Expr) -> int:
    return len(expr.checked_type.shape) if isinstance(expr.checked_type, TensorType) else 0


def _times(data: Expr, dtype: str, most: float, factor: float, rank: int, config: QConfig) -> Expr:
    """Whole numbers up to `most` times a number, rounded; the products fit the type `dtype`."""
    if most * factor < 0.5:
        return op_call("zeros_like", [data])
    power = log2(factor)
    if power == 0:
        return data
    if power > 0 and power == int(power):
        return op_call("left_shift", [data, scalar(power, dtype)])
    if factor == int(factor):
        return op_call("multiply", [data, scalar(float(factor), dtype)])
    if power == int(power) and most + 2 ** (-power - 1) <= _limit(dtype):
        if config.round_for_shift:
            data = op_call("add", [data, scalar(2 ** (-power - 1), dtype)])
        return op_call("right_shift", [data, scalar(-power, dtype)])
    return _in_fixed_point(data, dtype, np.float32(factor), rank, config)


def _rounded(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    scale, low, high = _known(call, config)
    value = args[0]
    if not isinstance(value, Integers):
        scaled = op_call("multiply", [value, scalar(float(np.float32(1) / scale), "float32")])
        return Integers(_clip(op_call("round", [scaled]), low, high), scale, "float32", high)
    if scale == value.scale:
        return Integers(_clip(value.data, low, high), scale, value.dtype, min(value.most, high))
    dtype = config.dtype_activation
    data, most, factor = value.of(dtype), value.most, float(value.scale / scale)
    if factor >= high:  # every number but 0 leaves the bounds
        data = op_call("multiply", [_clip(data, -1.0, 1.0), scalar(int(high), dtype)])
        return Integers(data, scale, dtype, high)
    if most * factor > _limit(dtype):  # the products would not fit before they are clipped
        most = _limit(dtype) // factor
        data = _clip(data, -most, most)
    data = _times(data, dtype, most, factor, _rank(call), config)
    return Integers(_clip(data, low, high), scale, dtype, min(most * factor + 1, high))


def _terms(call: Call) -> float:
    """The number of products in each sum of a product of inputs and weights; infinity where it is not known."""
    out, weight = static_shape(call.checked_type), static_shape(call.args[1].checked_type)
    if out is not None and prod(out) > 0:
        return MACS[call.op.name](call) / prod(out)  # type: ignore[attr-defined]
    return prod(weight) if weight is not None else inf


def _product(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    """A sum of products of inputs and weights."""
    lhs, rhs = args
    if not isinstance(lhs, Integers) or not isinstance(rhs, Integers):
        return None
    if lhs.most > _limit(config.dtype_input) or rhs.most > _limit(config.dtype_weight):
        return None
    dtype = config.dtype_activation
    operands = [lhs.of(config.dtype_input), rhs.of(config.dtype_weight)]
    product = with_args(call, operands, changed(call.attrs, out_dtype=dtype))
    most = min(_terms(call) * lhs.most * rhs.most, _limit(dtype))
    return Integers(product, _scale(lhs, rhs), dtype, most)


def _scale(lhs: Integers, rhs: Integers) -> np.float32:
    """The scale of a product, a normal number."""
    info = np.finfo(np.float32)
    return np.float32(min(max(float(lhs.scale) * float(rhs.scale), float(info.tiny)), float(info.max)))


def _multiply(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    lhs, rhs = args
    if not isinstance(lhs, Integers) or not isinstance(rhs, Integers):
        return None
    dtype, most = config.dtype_activation, lhs.most * rhs.most
    if most > _limit(dtype):
        return None
    return Integers(with_args(call, [lhs.of(dtype), rhs.of(dtype)]), _scale(lhs, rhs), dtype, most)


def _is_rounded_input(expr: Expr) -> bool:
    named = isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == SIMULATED
    return named and expr.attrs.kind == QAnnotateKind.INPUT  # type: ignore[attr-defined]


def _at_one_scale(
    old: Sequence[Expr], values: Sequence[Integers], dtype: str, config: QConfig, together: Callable[[list[float]], float]
) -> tuple[list[Expr], np.float32, float]:
    """Values in one element type and at one scale, and the largest number of their join. `old` are their expressions before.

    `together` is the magnitude of a join of values of these magnitudes. The scale grows, by a power of two, until it fits.
    """
    if len(values) == 2:
        scale = min(v.scale for v in values)
    else:
        scale = np.float32(config.global_scale / 2.0 ** (config.nbit_activation - 1))
    limit = _limit(dtype)

    def most(scale: np.float32) -> float:
        return together([v.most * float(v.scale / scale) + (v.scale != scale) for v in values])  # rounding may add one

    while most(scale) > limit:
        scale *= np.float32(2)
    rescaled = []
    for before, value in zip(old, values, strict=True):
        data = value.of(dtype)
        if data is value.data and _is_rounded_input(before):
            data = _cast(op_call(STOP_FUSION, [_cast(data, config.dtype_input)]), dtype)
        rescaled.append(_times(data, dtype, value.most, float(value.scale / scale), _rank(before), config))
    return rescaled, scale, most(scale)


def _add(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    if not all(isinstance(a, Integers) for a in args):
        return None
    dtype = config.dtype_activation
    rescaled, scale, most = _at_one_scale(call.args, args, dtype, config, sum)
    # a float right behind rounding stays a kernel of its own
    rescaled = [op_call(STOP_FUSION, [m]) if a.dtype == "float32" else m for m, a in zip(rescaled, args, strict=True)]
    return Integers(with_args(call, rescaled), scale, dtype, most)


def _concatenate(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    fields, old = args[0], call.args[0]
    if not isinstance(fields, tuple) or not isinstance(old, Tuple) or not all(isinstance(f, Integers) for f in fields):
        return None
    # at another scale a number may need more bits
    narrow = len(fields) == 2 and fields[1].dtype == config.dtype_input and fields[0].scale == fields[1].scale
    narrow = narrow and fields[0].most <= _limit(config.dtype_input)
    dtype = config.dtype_input if narrow else config.dtype_activation
    rescaled, scale, most = _at_one_scale(old.fields, fields, dtype, config, max)
    return Integers(with_args(call, [Tuple(rescaled)]), scale, dtype, most)


def _bounded(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    value = args[0]
    if not isinstance(value, Integers):
        return None
    bounds = [getattr(call.attrs, name) / float(value.scale) for name in ("a_min", "a_max")]
    low, high = [float(round(min(max(b, -value.most), value.most))) for b in bounds]
    bounded = with_args(call, [value.data], changed(call.attrs, a_min=low, a_max=high))
    return Integers(bounded, value.scale, value.dtype, min(value.most, max(abs(low), abs(high))))


def _same(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    """An operator that moves or drops numbers."""
    value = args[0]
    return replace(value, data=with_args(call, [value.data])) if isinstance(value, Integers) else None


def _max_pool(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    value = args[0]
    if not isinstance(value, Integers):
        return None
    dtype = config.dtype_input if value.most <= _limit(config.dtype_input) else config.dtype_activation
    return replace(value, data=with_args(call, [value.of(dtype)]), dtype=dtype)


def _mean(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    """Means of a window, without their fractions, as TVM has them."""
    value = args[0]
    if not isinstance(value, Integers):
        return None
    dtype = config.dtype_activation
    return replace(value, data=with_args(call, [value.of(dtype)]), dtype=dtype)


def _hinted(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    value, dtype = args[0], call.attrs.dtype
    if not isinstance(value, Integers):
        return None
    if value.most > _limit(dtype):
        return value
    return replace(value, data=_cast(value.data, dtype), dtype=dtype)


#: The operators of conversions between floats and whole numbers.
CONVERSIONS = ("add", "multiply", "right_shift", "clip", "round", "cast")
RULES: Rules = {
    SIMULATED: _rounded,
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.dense", "nn.batch_matmul"), _product),
    "multiply": _multiply,
    "add": _add,
    "concatenate": _concatenate,
    "clip": _bounded,
    **dict.fromkeys(("nn.relu", "reshape", "strided_slice", "nn.batch_flatten", "transpose", STOP_FUSION), _same),
    **dict.fromkeys(("nn.max_pool1d", "nn.max_pool2d"), _max_pool),
    **dict.fromkeys(("nn.avg_pool2d", "nn.global_avg_pool2d"), _mean),
    CAST_HINT: _hinted,
}
