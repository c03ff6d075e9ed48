"""Whole numbers in the place of rounded floats: a value is a tensor of them and one scale.

Scales that are quotients of powers of two become shifts, whole quotients become products, and others products in fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, TensorType, Tuple
from relaylang.ops.build import op_call, scalar
from relaylang.ops.record import Op
from relaylang.rules.layout.rule import changed
from relaylang.rules.qnn_lowering.numbers import Numbers, constant
from relaylang.rules.quantisation.common import (
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
    """A value as `data * scale`. `data` holds whole numbers; its element type is `dtype`, a float right behind rounding."""

    data: Expr
    scale: np.float32
    dtype: str

    def plain(self) -> Expr:
        return op_call("multiply", [_cast(self.data, "float32"), scalar(float(self.scale), "float32")])

    def of(self, dtype: str) -> Expr:
        """The whole numbers in an element type."""
        return self.data if self.dtype == dtype else _cast(self.data, dtype)


def _cast(data: Expr, dtype: str) -> Expr:
    return op_call("cast", [data], dtype=dtype)


def _clip(data: Expr, low: float, high: float) -> Expr:
    return op_call("clip", [data], a_min=low, a_max=high)


def _known(call: Call) -> list[np.float32]:
    """The scale and the bounds of a rounded value."""
    if not all(isinstance(a, Constant) for a in call.args[1:]):
        title = "the scale of a rounded value is not known"
        raise RelayError(error("R0530", title, call.span, notes=["QuantizeCalibrate finds the scales, in front of QuantizeRealize"]))
    return [np.float32(a.data) for a in call.args[1:] if isinstance(a, Constant)]


def _in_fixed_point(data: Expr, dtype: str, factor: np.float32, rank: int, config: QConfig) -> Expr:
    """A tensor of type `dtype` times a number, rounded; computed in int32."""
    numbers = Numbers(lambda call, values: None)
    wide = data if dtype == "int32" else _cast(data, "int32")
    made = numbers.scaled(wide, constant(np.float64(factor), "float64"), rank, config.rounding == "UPWARD")
    return made if dtype == "int32" else _cast(made, dtype)


def _rank(expr: Expr) -> int:
    return len(expr.checked_type.shape) if isinstance(expr.checked_type, TensorType) else 0


def _rounded(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    scale, low, high = _known(call)
    value = args[0]
    if not isinstance(value, Integers):
        scaled = op_call("multiply", [value, scalar(float(np.float32(1) / scale), "float32")])
        return Integers(_clip(op_call("round", [scaled]), float(low), float(high)), scale, "float32")
    if scale == value.scale:
        return Integers(_clip(value.data, float(low), float(high)), scale, value.dtype)
    dtype = config.dtype_activation
    data = value.of(dtype)
    shift = log2(scale / value.scale)
    if shift != int(shift):
        data = _in_fixed_point(data, dtype, value.scale / scale, _rank(call), config)
    elif shift > 0:
        if config.round_for_shift:
            data = op_call("add", [data, scalar(2 ** (shift - 1), dtype)])
        data = op_call("right_shift", [data, scalar(shift, dtype)])
    else:
        data = op_call("left_shift", [data, scalar(-shift, dtype)])
    return Integers(_clip(data, float(low), float(high)), scale, dtype)


def _product(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    """A sum of products of inputs and weights."""
    lhs, rhs = args
    if not isinstance(lhs, Integers) or not isinstance(rhs, Integers):
        return None
    dtype = config.dtype_activation
    operands = [lhs.of(config.dtype_input), rhs.of(config.dtype_weight)]
    return Integers(with_args(call, operands, changed(call.attrs, out_dtype=dtype)), lhs.scale * rhs.scale, dtype)


def _multiply(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    lhs, rhs = args
    if not isinstance(lhs, Integers) or not isinstance(rhs, Integers):
        return None
    dtype = config.dtype_activation
    return Integers(with_args(call, [lhs.of(dtype), rhs.of(dtype)]), lhs.scale * rhs.scale, dtype)


def _is_rounded_input(expr: Expr) -> bool:
    named = isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == SIMULATED
    return named and expr.attrs.kind == QAnnotateKind.INPUT  # type: ignore[attr-defined]


def _rescaled(value: Integers, data: Expr, scale: np.float32, dtype: str, rank: int, config: QConfig) -> Expr:
    """Whole numbers of type `dtype` at another scale."""
    factor = value.scale / scale
    power = log2(factor)
    if power == 0:
        return data
    if power > 0 and power == int(power):
        return op_call("left_shift", [data, scalar(power, dtype)])
    if factor == int(factor):
        return op_call("multiply", [data, scalar(float(factor), dtype)])
    return _in_fixed_point(data, dtype, factor, rank, config)


def _at_one_scale(old: Sequence[Expr], values: Sequence[Integers], dtype: str, config: QConfig) -> tuple[list[Expr], np.float32]:
    """Values in one element type and at one scale. `old` are their expressions before."""
    if len(values) == 2:
        scale = min(v.scale for v in values)
    else:
        scale = np.float32(config.global_scale / 2.0 ** (config.nbit_activation - 1))
    made = []
    for before, value in zip(old, values, strict=True):
        data = value.of(dtype)
        if data is value.data and _is_rounded_input(before):
            data = _cast(op_call(STOP_FUSION, [_cast(data, config.dtype_input)]), dtype)
        made.append(_rescaled(value, data, scale, dtype, _rank(before), config))
    return made, scale


def _add(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    if not all(isinstance(a, Integers) for a in args):
        return None
    dtype = config.dtype_activation
    made, scale = _at_one_scale(call.args, args, dtype, config)
    # a float right behind rounding stays a kernel of its own
    made = [op_call(STOP_FUSION, [m]) if a.dtype == "float32" else m for m, a in zip(made, args, strict=True)]
    return Integers(with_args(call, made), scale, dtype)


def _concatenate(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    fields, old = args[0], call.args[0]
    if not isinstance(fields, tuple) or not isinstance(old, Tuple) or not all(isinstance(f, Integers) for f in fields):
        return None
    # at another scale a number may need more bits
    narrow = len(fields) == 2 and fields[1].dtype == config.dtype_input and fields[0].scale == fields[1].scale
    dtype = config.dtype_input if narrow else config.dtype_activation
    made, scale = _at_one_scale(old.fields, fields, dtype, config)
    return Integers(with_args(call, [Tuple(made)]), scale, dtype)


def _bounded(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    value = args[0]
    if not isinstance(value, Integers):
        return None
    bounds = {name: getattr(call.attrs, name) / float(value.scale) for name in ("a_min", "a_max")}
    return Integers(with_args(call, [value.data], changed(call.attrs, **bounds)), value.scale, value.dtype)


def _kept(dtype: Callable[[Call, Integers, QConfig], str]) -> Callable[[Call, Sequence[Value], QConfig], Value]:
    """The rule of an operator that does not touch the scale, computed in an element type."""

    def rule(call: Call, args: Sequence[Value], config: QConfig) -> Value:
        value = args[0]
        if not isinstance(value, Integers):
            return None
        wanted = dtype(call, value, config)
        return Integers(with_args(call, [value.of(wanted)]), value.scale, wanted)

    return rule


def _hinted(call: Call, args: Sequence[Value], config: QConfig) -> Value:
    value, dtype = args[0], call.attrs.dtype
    return Integers(_cast(value.data, dtype), value.scale, dtype) if isinstance(value, Integers) else None


_AS_IT_IS = _kept(lambda call, value, config: value.dtype)
_NARROW = _kept(lambda call, value, config: config.dtype_input)
_WIDE = _kept(lambda call, value, config: config.dtype_activation)

#: The operators of conversions between floats and whole numbers.
CONVERSIONS = ("add", "multiply", "right_shift", "clip", "round", "cast")
RULES: Rules = {
    SIMULATED: _rounded,
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.dense", "nn.batch_matmul"), _product),
    "multiply": _multiply,
    "add": _add,
    "concatenate": _concatenate,
    "clip": _bounded,
    **dict.fromkeys(("nn.relu", "reshape", "strided_slice", "nn.batch_flatten", "transpose", STOP_FUSION), _AS_IT_IS),
    **dict.fromkeys(("nn.max_pool1d", "nn.max_pool2d"), _NARROW),
    **dict.fromkeys(("nn.avg_pool2d", "nn.global_avg_pool2d"), _WIDE),
    CAST_HINT: _hinted,
}
