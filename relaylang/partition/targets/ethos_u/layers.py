"""Layers: a composite for the Ethos-U, read from its calls into numbers.

A reader takes the composite's calls, producers first, and returns a layer or raises `Unsupported` with the reason. The
pattern table's checks and the writer of TOSA both use the readers, so every offered layer can be written. Values here
are those of Relay (its zero points, its uint8); the writer makes int8 of them.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType, Tuple
from relaylang.ops.record import Op
from relaylang.partition.fixed_point import IDENTITY, Rescale, Unsupported, make_rescale

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}
_MAX_ABS_WEIGHTS = 127 * 65536
_MAX_EXTENT = 65536


@dataclass(frozen=True)
class Output:
    """What happens to a layer's int32 sum (or to a value) on its way out: rescaled, saturated to `dtype`, clamped."""

    dtype: str
    rescale: Rescale | None
    clamp: tuple[int, int] | None


@dataclass(frozen=True)
class Conv:
    """A convolution or a fully connected layer: weight OHWI (depthwise HWCM), int32 bias, int32 sum, then `out`.

    `pad` is (top, left, bottom, right). It may be negative at the end, where the last rows or columns are never read.
    """

    weight: np.ndarray
    bias: np.ndarray
    pad: tuple[int, int, int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    depthwise: bool
    input_zp: int
    weight_zp: int
    layout: str
    out: Output


@dataclass(frozen=True)
class Operand:
    """One input of an addition or concatenation and how it gets to the output's scale."""

    input_zp: int
    rescale: Rescale


@dataclass(frozen=True)
class Add:
    """The sum of two rescaled operands, plus `output_zp`, saturated and clamped."""

    operands: tuple[Operand, Operand]
    output_zp: int
    out: Output


@dataclass(frozen=True)
class Concat:
    axis: int
    operands: tuple[Operand | None, ...]


@dataclass(frozen=True)
class Elementwise:
    """A requantize, clip or relu of an (u)int8 or int32 tensor."""

    input_zp: int
    out: Output


@dataclass(frozen=True)
class Pad:
    widths: tuple[tuple[int, int], ...]
    value: int


# ---- parts


def op_name(call: Expr) -> str:
    return call.op.name if isinstance(call, Call) and isinstance(call.op, Op) else ""


def tensor_of(expr: Expr, what: str) -> TensorType:
    """The static tensor type of an expression."""
    ty = expr.checked_type
    if not isinstance(ty, TensorType):
        raise Unsupported(f"{what} is not a tensor")
    if not all(isinstance(d, int) for d in ty.shape):
        raise Unsupported(f"{what} has a shape that is known only at run time")
    return ty


def feature_type(expr: Expr, what: str = "its input", dtypes: Sequence[str] = ("int8", "uint8")) -> TensorType:
    """The type of a feature map that the accelerator can hold."""
    ty = tensor_of(expr, what)
    if ty.dtype not in dtypes:
        raise Unsupported(f"{what} is {ty.dtype}, the accelerator computes on {' and '.join(dtypes)}")
    if any(d < 1 for d in ty.shape):  # type: ignore[operator]
        raise Unsupported(f"{what} is empty")
    return ty


def constant(expr: Expr, what: str) -> np.ndarray:
    """The value of an argument that must be known at compile time."""
    if not isinstance(expr, Constant):
        raise Unsupported(f"{what} is not a constant; give it with the parameters")
    return expr.data


def scalar(expr: Expr, what: str) -> int:
    """A zero point: one integer, or the same for all channels."""
    value = constant(expr, what)
    if value.size == 0 or not np.all(value == value.flat[0]):
        raise Unsupported(f"{what} differs between channels")
    return int(value.flat[0])


def scales(expr: Expr, what: str) -> np.ndarray:
    value = constant(expr, what)
    if value.ndim > 1:
        raise Unsupported(f"{what} has {value.ndim} axes")
    return value.astype(np.float32)


def _in_range(zero_point: int, dtype: str, what: str) -> int:
    low, high = RANGES[dtype]
    if not low <= zero_point <= high:
        raise Unsupported(f"{what} {zero_point} is no {dtype} number")
    return zero_point


def spread_of(dtype: str, zero_point: int) -> int:
    """The largest |x - zero_point| of a tensor."""
    low, high = RANGES[dtype]
    return max(abs(low - zero_point), abs(high - zero_point))


def requantize(call: Call, bounds: np.ndarray) -> tuple[Rescale, str]:
    """A `qnn.requantize` as a rescale and its element type. `bounds` are those of the value less its zero point."""
    attrs = call.attrs
    if attrs.compute_dtype not in ("None", "int64", ""):
        raise Unsupported(f"its compute_dtype is {attrs.compute_dtype}; the accelerator rescales in integers")
    if attrs.rounding not in ("None", "", "UPWARD", "TONEAREST"):
        raise Unsupported(f"rounding {attrs.rounding} is unknown")
    dtype = tensor_of(call, "its result").dtype
    if dtype not in RANGES:
        raise Unsupported(f"it makes {dtype}; the accelerator makes int8, uint8 and int32")
    input_scale = scales(call.args[1], "its input scale")
    output_scale = scales(call.args[3], "its output scale")
    if output_scale.size != 1:
        raise Unsupported("its output scale differs between channels")
    output_zp = scalar(call.args[4], "its output zero point")
    rank = len(tensor_of(call, "its result").shape)
    axis = attrs.axis if attrs.axis >= 0 else rank + attrs.axis
    if input_scale.ndim == 0 and np.float32(input_scale) == np.float32(output_scale.flat[0]):
        _fits_int32(bounds, output_zp)
        return Rescale((IDENTITY[0],), (IDENTITY[1],), output_zp), dtype
    rounding = "TONEAREST" if attrs.rounding == "TONEAREST" else "UPWARD"
    return make_rescale(
        input_scale, output_scale.flat[0], output_zp, bounds, rounding=rounding, axis=axis
    ), dtype


def _fits_int32(bounds: np.ndarray, output_zp: int) -> None:
    if int(np.max(bounds)) + abs(output_zp) >= 1 << 29:
        raise Unsupported("the value may leave the range in which a TOSA rescale is defined")


def tail(calls: Sequence[Call], bounds: np.ndarray) -> Output:
    """The calls behind a sum: requantize, then clip, relu and cast in any order."""
    relu_first = bool(calls) and op_name(calls[0]) == "nn.relu"
    if relu_first:
        calls = calls[1:]
    if not calls:
        if relu_first:
            raise Unsupported("a relu on int32 is taken only in front of a requantize")
        return Output("int32", None, None)
    first, *rest = calls
    rescale, dtype = requantize(first, bounds)
    low, high = RANGES[dtype]
    if relu_first:
        if scalar(first.args[2], "its input zero point") != 0:
            raise Unsupported("a relu on int32 in front of a requantize wants the zero point 0")
        low = max(low, rescale.output_zp)
    low, high, dtype = narrow(rest, low, high, dtype)
    if dtype == "int32":
        if (low, high) != RANGES["int32"]:
            raise Unsupported("a clip of int32 is taken only in front of a cast to int8 or uint8")
        if rescale.output_zp != 0:
            raise Unsupported("an int32 result wants the zero point 0")
    return Output(dtype, rescale, clamp_of(low, high, dtype))


def clamp_of(low: int, high: int, dtype: str) -> tuple[int, int] | None:
    """The clamp behind a saturation, or None where it does nothing."""
    least, most = RANGES[dtype]
    low, high = max(low, least), min(high, most)
    return None if (low, high) == (least, most) else (low, high)


def narrow(calls: Sequence[Call], low: int, high: int, dtype: str) -> tuple[int, int, str]:
    """The range and type of a value in [low, high] after clips, relus and casts."""
    for call in calls:
        name = op_name(call)
        if name == "clip":
            least, most = _clip_bounds(call, dtype)
            low, high = min(max(low, least), most), max(min(high, most), least)
        elif name == "nn.relu":
            low, high = max(low, 0), max(high, 0)
        elif name == "cast":
            wanted = tensor_of(call, "the result of the cast").dtype
            if wanted not in RANGES:
                raise Unsupported(f"a cast to {wanted}")
            if low < RANGES[wanted][0] or high > RANGES[wanted][1]:
                raise Unsupported(f"a cast to {wanted} of values that it may wrap around; clip them first")
            dtype = wanted
        else:
            raise AssertionError(f"{name} in the tail of a composite")
    return low, high, dtype


def _clip_bounds(call: Call, dtype: str) -> tuple[int, int]:
    low, high = call.attrs.a_min, call.attrs.a_max
    if not (float(low).is_integer() and float(high).is_integer()) or low > high:
        raise Unsupported(f"clip bounds {low} and {high}: an integer tensor wants whole numbers in order")
    least, most = RANGES[dtype]
    if low > most or high < least:
        raise Unsupported(f"clip bounds {low} and {high} leave no {dtype} number")
    return max(int(low), least), min(int(high), most)


# ---- convolution, dense


def read_conv(calls: Sequence[Call]) -> Conv:
    """[nn.pad] qnn.conv2d [nn.bias_add | add] [[nn.relu] qnn.requantize [clip | nn.relu | cast]*]"""
    calls = list(calls)
    outer = calls.pop(0) if op_name(calls[0]) == "nn.pad" else None
    conv = calls.pop(0)
    attrs = conv.attrs
    source = feature_type((outer or conv).args[0])
    input_zp = _in_range(scalar(conv.args[2], "its input zero point"), source.dtype, "the input zero point")
    weight, weight_dtype = _weight(conv.args[1])
    weight_zp = _in_range(scalar(conv.args[3], "its kernel zero point"), weight_dtype, "the kernel zero point")
    layout = attrs.data_layout
    if layout not in ("NCHW", "NHWC"):
        raise Unsupported(f"data layout {layout}; NCHW and NHWC are taken")
    if attrs.out_layout not in ("", layout):
        raise Unsupported(f"out_layout {attrs.out_layout} differs from data_layout {layout}")
    if tensor_of(conv, "its result").dtype != "int32":
        raise Unsupported(f"out_dtype {tensor_of(conv, 'its result').dtype}; the accelerator sums in int32")
    _, c, h, w = nchw(source.shape, layout)
    depthwise, weight = _arrange(weight, attrs.kernel_layout, attrs.groups, c)
    kh, kw = weight.shape[:2] if depthwise else weight.shape[1:3]
    channels = weight.shape[2] * weight.shape[3] if depthwise else weight.shape[0]
    pad = padding4(attrs.padding)
    if outer is not None:
        pad = tuple(a + b for a, b in zip(pad, _outer_pad(outer, layout, input_zp)))  # type: ignore[assignment]
    stride, dilation = pair(attrs.strides), pair(attrs.dilation)
    _, _, oh, ow = nchw(tensor_of(conv, "its result").shape, layout)
    pad = exact_padding((h, w), (oh, ow), (kh, kw), pad, stride, dilation)
    if kh * kw > 4096 or kh > 64:
        raise Unsupported(f"a kernel of {kh} x {kw}; at most 64 rows and 4096 elements")
    channel_axis = layout.index("C")
    bias = _bias(calls, channels, channel_axis, 4)
    return _sum_layer(
        calls, weight, weight_zp, bias, channels, channel_axis, source.dtype, input_zp,
        pad=pad, stride=stride, dilation=dilation, depthwise=depthwise, layout=layout,
    )  # fmt: skip


def read_dense(calls: Sequence[Call]) -> Conv:
    """qnn.dense [nn.bias_add | add] [[nn.relu] qnn.requantize [clip | nn.relu | cast]*]"""
    calls = list(calls)
    dense = calls.pop(0)
    source = feature_type(dense.args[0])
    if len(source.shape) != 2:
        raise Unsupported(f"an input of {len(source.shape)} axes; a dense layer wants 2")
    input_zp = _in_range(scalar(dense.args[2], "its input zero point"), source.dtype, "the input zero point")
    weight, weight_dtype = _weight(dense.args[1])
    weight_zp = _in_range(scalar(dense.args[3], "its kernel zero point"), weight_dtype, "the kernel zero point")
    if tensor_of(dense, "its result").dtype != "int32":
        raise Unsupported(f"out_dtype {tensor_of(dense, 'its result').dtype}; the accelerator sums in int32")
    units = weight.shape[0]
    bias = _bias(calls, units, 1, 2)
    return _sum_layer(
        calls, weight.reshape(units, 1, 1, -1), weight_zp, bias, units, 1, source.dtype, input_zp,
        pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), depthwise=False, layout="NC",
    )  # fmt: skip


def _sum_layer(
    calls: Sequence[Call],
    weight: np.ndarray,
    weight_zp: int,
    bias: np.ndarray,
    channels: int,
    channel_axis: int,
    dtype: str,
    input_zp: int,
    **geometry: Any,
) -> Conv:
    """The common end of convolution and dense: the bounds of the sums, and the operators applied to them."""
    centred = weight.astype(np.int64) - weight_zp
    axes = (0, 1) if geometry["depthwise"] else (1, 2, 3)
    sums = np.abs(centred).sum(axis=axes).reshape(-1)
    if int(sums.max(initial=0)) > _MAX_ABS_WEIGHTS:
        raise Unsupported("a channel's weights add up to more than 127 * 65536")
    if max(weight.shape) > _MAX_EXTENT:
        raise Unsupported(f"more than {_MAX_EXTENT} channels")
    behind = [c for c in calls if op_name(c) == "qnn.requantize"][:1]
    if behind:
        bias = bias - _channel_values(behind[0].args[2], channels, "its input zero point")
        axis = behind[0].attrs.axis
        rank = len(tensor_of(behind[0], "its result").shape)
        if np.ndim(constant(behind[0].args[1], "its input scale")) == 1 and axis % rank != channel_axis:
            if constant(behind[0].args[1], "its input scale").size > 1:
                raise Unsupported(f"scales along axis {axis}; the accelerator has one for each output channel")
    bounds = sums * spread_of(dtype, input_zp) + np.abs(bias)
    if int(bounds.max(initial=0)) >= 1 << 31:
        raise Unsupported("its sums may leave the range of int32")
    out = tail(calls, bounds)
    return Conv(
        weight=weight, bias=bias.astype(np.int32), input_zp=input_zp, weight_zp=weight_zp, out=out, **geometry
    )


def _weight(expr: Expr) -> tuple[np.ndarray, str]:
    weight = constant(expr, "its weight")
    if weight.dtype.name not in ("int8", "uint8"):
        raise Unsupported(f"its weight is {weight.dtype.name}, the accelerator takes int8 and uint8")
    return weight, weight.dtype.name


def _arrange(weight: np.ndarray, layout: str, groups: int, channels: int) -> tuple[bool, np.ndarray]:
    """The weight as OHWI, or as HWCM where the convolution is depthwise."""
    if sorted(layout) != sorted("OIHW"):
        raise Unsupported(f"kernel layout {layout}")
    by_name = {name: i for i, name in enumerate(layout)}
    if groups == 1:
        return False, weight.transpose([by_name[a] for a in "OHWI"])
    if groups != channels:
        raise Unsupported(f"a grouped convolution ({groups} groups of {channels} channels)")
    hwoi = weight.transpose([by_name[a] for a in "HWOI"])
    kh, kw = hwoi.shape[:2]
    return True, hwoi.reshape(kh, kw, channels, -1)


def _bias(calls: list[Call], channels: int, channel_axis: int, rank: int) -> np.ndarray:
    """The int64 bias of each channel; takes its call off the list."""
    if not calls or op_name(calls[0]) not in ("nn.bias_add", "add"):
        return np.zeros(channels, np.int64)
    call = calls.pop(0)
    if op_name(call) == "nn.bias_add":
        value = constant(call.args[1], "the bias")
        if call.attrs.axis % rank != channel_axis:
            raise Unsupported(f"a bias along axis {call.attrs.axis}")
        return value.astype(np.int64).reshape(-1)
    constants = [a.data for a in call.args if isinstance(a, Constant)]
    if not constants:
        raise Unsupported("the bias is not a constant; give it with the parameters")
    value = constants[0]
    shape = (1,) * (rank - value.ndim) + value.shape
    if any(extent != 1 and axis != channel_axis for axis, extent in enumerate(shape)):
        raise Unsupported(f"an added constant of shape {value.shape} is no bias of the channels")
    return np.broadcast_to(value.astype(np.int64).reshape(-1), (channels,))


def _channel_values(expr: Expr, channels: int, what: str) -> np.ndarray:
    value = constant(expr, what).astype(np.int64).reshape(-1)
    if value.size not in (1, channels):
        raise Unsupported(f"{what} has {value.size} values for {channels} channels")
    return np.broadcast_to(value, (channels,))


def _outer_pad(call: Call, layout: str, input_zp: int) -> tuple[int, int, int, int]:
    pad = read_pad([call])
    if pad.value != input_zp:
        raise Unsupported(f"it is padded with {pad.value}, not with the zero point {input_zp}")
    n, c, h, w = (pad.widths[layout.index(a)] for a in "NCHW")
    if any(n) or any(c):
        raise Unsupported("it is padded along batch or channels")
    return h[0], w[0], h[1], w[1]


# ---- the others


def read_pad(calls: Sequence[Call]) -> Pad:
    """nn.pad with a constant; the value is cast to the tensor's type as Relay does."""
    (call,) = calls
    dtype = feature_type(call.args[0]).dtype
    if call.attrs.pad_mode != "constant":
        raise Unsupported(f"pad_mode {call.attrs.pad_mode}")
    value = float(constant(call.args[1], "the pad value").reshape(()))
    if not value.is_integer():
        raise Unsupported(f"the pad value {value:g} is not a whole number")
    widths = tuple((int(a), int(b)) for a, b in call.attrs.pad_width)
    if any(a < 0 or b < 0 for a, b in widths):
        raise Unsupported("a negative pad width")
    return Pad(widths, _in_range(int(value), dtype, "the pad value"))


def read_add(calls: Sequence[Call]) -> Add:
    """qnn.add [clip | nn.relu | cast]*: both sides are brought to the output's scale in int32 and added there."""
    call, *rest = calls
    result = feature_type(call, "its result")
    output_scale = scales(call.args[6], "its output scale")
    output_zp = _in_range(scalar(call.args[7], "its output zero point"), result.dtype, "the output zero point")
    sides = []
    for name, data, scale, zero_point in (("left", 0, 2, 3), ("right", 1, 4, 5)):
        source = feature_type(call.args[data], f"its {name} side")
        if isinstance(call.args[data], Constant):
            raise Unsupported(f"its {name} side is a constant")
        if len(source.shape) != len(result.shape):
            raise Unsupported(f"its {name} side has {len(source.shape)} axes, the result {len(result.shape)}")
        zp = scalar(call.args[zero_point], f"the zero point of its {name} side")
        sides.append(_operand(source.dtype, scales(call.args[scale], f"the scale of its {name} side"), zp,
                              output_scale, output_zp, 0))  # fmt: skip
    low, high, dtype = narrow(rest, *RANGES[result.dtype], result.dtype)
    if dtype != result.dtype:
        raise Unsupported(f"a cast to {dtype} behind it")
    return Add((sides[0], sides[1]), output_zp, Output(dtype, None, clamp_of(low, high, dtype)))


def _operand(
    dtype: str, scale: np.ndarray, zero_point: int, output_scale: np.ndarray, output_zp: int, added: int
) -> Operand:
    """An input's way to another scale; `added` is the zero point that is added behind the rescale."""
    _in_range(zero_point, dtype, "an input zero point")
    if scale.size != 1 or output_scale.size != 1:
        raise Unsupported("a scale differs between channels")
    if np.float32(scale.flat[0]) == np.float32(output_scale.flat[0]):
        return Operand(zero_point, Rescale((IDENTITY[0],), (IDENTITY[1],), added))
    limit = np.array([spread_of(dtype, zero_point)])
    return Operand(zero_point, make_rescale(scale.reshape(()), output_scale.flat[0], added, limit))


def read_qnn_concat(calls: Sequence[Call]) -> Concat:
    call = calls[-1]
    data, input_scales, zero_points = call.args[:3]
    for part, what in ((data, "inputs"), (input_scales, "scales"), (zero_points, "zero points")):
        if not isinstance(part, Tuple):
            raise Unsupported(f"its {what} are not written as a tuple")
    assert isinstance(data, Tuple) and isinstance(input_scales, Tuple) and isinstance(zero_points, Tuple)
    result = feature_type(call, "its result")
    output_scale = scales(call.args[3], "its output scale")
    output_zp = _in_range(scalar(call.args[4], "its output zero point"), result.dtype, "the output zero point")
    operands: list[Operand | None] = []
    for field, scale, zero_point in zip(data.fields, input_scales.fields, zero_points.fields):
        source = _concat_input(field, result)
        given = scales(scale, "an input scale")
        zp = scalar(zero_point, "an input zero point")
        same = given.size == 1 and np.float32(given.flat[0]) == np.float32(output_scale.flat[0]) and zp == output_zp
        operands.append(None if same else _operand(source.dtype, given, zp, output_scale, output_zp, output_zp))
    return Concat(call.attrs.axis % len(result.shape), tuple(operands))


def read_concat(calls: Sequence[Call]) -> Concat:
    call = calls[-1]
    data = call.args[0]
    if not isinstance(data, Tuple):
        raise Unsupported("its inputs are not written as a tuple")
    result = feature_type(call, "its result")
    for field in data.fields:
        _concat_input(field, result)
    return Concat(call.attrs.axis % len(result.shape), (None,) * len(data.fields))


def _concat_input(field: Expr, result: TensorType) -> TensorType:
    if isinstance(field, Constant):
        raise Unsupported("one of its inputs is a constant")
    source = feature_type(field, "an input")
    if source.dtype != result.dtype:
        raise Unsupported(f"an input is {source.dtype}, the result {result.dtype}")
    return source


def read_requantize(calls: Sequence[Call]) -> Elementwise:
    """qnn.requantize [clip | nn.relu | cast]* of an int8, uint8 or int32 tensor."""
    first = calls[0]
    source = feature_type(first.args[0], dtypes=("int8", "uint8", "int32"))
    input_zp = scalar(first.args[2], "its input zero point")
    if source.dtype == "int32":
        if input_zp != 0:
            raise Unsupported("an int32 input wants the zero point 0")
        bound = 1 << 31
    else:
        bound = spread_of(source.dtype, _in_range(input_zp, source.dtype, "the input zero point"))
    return Elementwise(input_zp, tail(calls, np.array([bound], dtype=object)))


def read_clamp(calls: Sequence[Call]) -> Elementwise:
    """[clip | nn.relu]+ of an int8 or uint8 tensor."""
    source = feature_type(calls[0].args[0])
    low, high, dtype = narrow(calls, *RANGES[source.dtype], source.dtype)
    return Elementwise(0, Output(dtype, None, clamp_of(low, high, dtype)))


def read_reshape(calls: Sequence[Call]) -> tuple[int, ...]:
    """reshape, nn.batch_flatten, squeeze or expand_dims: the new shape."""
    (call,) = calls
    source = feature_type(call.args[0])
    shape = tensor_of(call, "its result").shape
    if len(shape) > 4 or not shape:
        raise Unsupported(f"a result of {len(shape)} axes; 1 to 4 are taken")
    if len(source.shape) > 4 or not source.shape:
        raise Unsupported(f"an input of {len(source.shape)} axes; 1 to 4 are taken")
    return tuple(int(d) for d in shape)  # type: ignore[arg-type]


# ---- geometry


def pair(values: Any) -> tuple[int, int]:
    values = tuple(int(v) for v in values) if isinstance(values, (list, tuple)) else (int(values),)
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def padding4(values: Any) -> tuple[int, int, int, int]:
    """Relay's padding of 1, 2 or 4 numbers as (top, left, bottom, right)."""
    values = tuple(int(v) for v in values) if isinstance(values, (list, tuple)) else (int(values),)
    if len(values) == 1:
        return (values[0],) * 4  # type: ignore[return-value]
    if len(values) == 2:
        return values[0], values[1], values[0], values[1]
    return values  # type: ignore[return-value]


def nchw(shape: Sequence[Any], layout: str) -> tuple[int, int, int, int]:
    return tuple(int(shape[layout.index(a)]) for a in "NCHW")  # type: ignore[return-value]


def exact_padding(
    size: tuple[int, int],
    out: tuple[int, int],
    kernel: tuple[int, int],
    pad: tuple[int, int, int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
) -> tuple[int, int, int, int]:
    """The padding with which the windows fill the input exactly, as TOSA wants: only the far sides change.

    A negative number says how many last rows or columns no window reaches.
    """
    if min(out) < 1:
        raise Unsupported("its result is empty")
    top, left = pad[:2]
    bottom, right = (
        (out[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - size[i] - pad[i] for i in (0, 1)
    )
    if min(top, left) < 0:
        raise Unsupported("a negative padding")
    if -bottom >= size[0] or -right >= size[1]:
        raise Unsupported("its windows lie in the padding only")
    return top, left, bottom, right
