"""Layers for the Ethos-U that move elements, read from their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.arithmetic import Operand, operand
from relaylang.backends.ethosu.layers.operands import (
    FEATURES,
    RANGES,
    constant,
    feature_type,
    in_range,
    op_name,
    scalar,
    scales,
    tensor_of,
)
from relaylang.backends.ethosu.layers.writer import CHANNELS_LAST, Composite, Value, Writer
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant, Expr, TensorType, Tuple


@dataclass(frozen=True)
class Concat:
    """Operands behind each other along an axis, which they do not have if `stacks`."""

    axis: int
    operands: tuple[Operand | None, ...]
    stacks: bool = False


@dataclass(frozen=True)
class Transpose:
    """Axis i of the result is axis `axes[i]` of the input."""

    axes: tuple[int, ...]


@dataclass(frozen=True)
class Reshape:
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Pad:
    widths: tuple[tuple[int, int], ...]
    value: int


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
    low, high = RANGES[dtype]
    if not low <= value <= high:
        raise Unsupported(f"the pad value {value:g} is no {dtype} number")
    return Pad(widths, int(value))


def read_channel_pad(calls: Sequence[Call]) -> Pad:
    """nn.pad of the channels of an image in NHWC, and of no other axis: TVM has a name for it."""
    pad = read_pad(calls)
    if len(pad.widths) != 4 or any(map(any, pad.widths[:3])):
        raise Unsupported("it pads more than channels")
    return pad


def _read_quantised_concat(call: Call) -> Concat:
    data, input_scales, zero_points = call.args[:3]
    for part, what in ((data, "inputs"), (input_scales, "scales"), (zero_points, "zero points")):
        if not isinstance(part, Tuple):
            raise Unsupported(f"its {what} are not written as a tuple")
    assert isinstance(data, Tuple) and isinstance(input_scales, Tuple) and isinstance(zero_points, Tuple)
    result = feature_type(call, "its result")
    output_scale = scales(call.args[3], "its output scale")
    output_zp = in_range(scalar(call.args[4], "its output zero point"), result.dtype, "the output zero point")
    operands: list[Operand | None] = []
    for field, scale, zero_point in zip(data.fields, input_scales.fields, zero_points.fields):
        source = _concat_input(field, result)
        input_scale = scales(scale, "an input scale")
        zp = scalar(zero_point, "an input zero point")
        same = input_scale.size == 1 and np.float32(input_scale.flat[0]) == np.float32(output_scale.flat[0]) and zp == output_zp
        operands.append(None if same else operand(source.dtype, input_scale, zp, output_scale, output_zp, output_zp))
    return Concat(call.attrs.axis % len(result.shape), tuple(operands))


def read_concat(calls: Sequence[Call]) -> Concat:
    """concatenate, stack or qnn.concatenate of a tuple that is written there."""
    call = calls[-1]
    if op_name(call) == "qnn.concatenate":
        return _read_quantised_concat(call)
    data = call.args[0]
    if not isinstance(data, Tuple):
        raise Unsupported("its inputs are not written as a tuple")
    result = feature_type(call, "its result")
    if len(result.shape) > 4:
        raise Unsupported(f"a result of {len(result.shape)} axes; at most 4 are taken")
    for field in data.fields:
        _concat_input(field, result)
    return Concat(call.attrs.axis % len(result.shape), (None,) * len(data.fields), op_name(call) == "stack")


def _concat_input(field: Expr, result: TensorType) -> TensorType:
    if isinstance(field, Constant):
        raise Unsupported("one of its inputs is a constant")
    source = feature_type(field, "an input")
    if source.dtype != result.dtype:
        raise Unsupported(f"an input is {source.dtype}, the result {result.dtype}")
    return source


def read_transpose(calls: Sequence[Call]) -> Transpose:
    """transpose, or a layout_transform that moves whole axes."""
    (call,) = calls
    source = feature_type(call.args[0])
    if len(source.shape) > 4:
        raise Unsupported(f"an input of {len(source.shape)} axes; at most 4 are taken")
    if op_name(call) == "layout_transform":
        old, new = call.attrs.src_layout, call.attrs.dst_layout
        if sorted(old) != sorted(new) or not old.isupper():
            raise Unsupported(f"from layout {old} to {new}, which splits axes")
        return Transpose(tuple(old.index(axis) for axis in new))
    rank = len(source.shape)
    axes = call.attrs.axes
    return Transpose(tuple(a % rank for a in axes) if axes else tuple(range(rank))[::-1])


def read_reshape(calls: Sequence[Call]) -> Reshape:
    """reshape, nn.batch_flatten, squeeze or expand_dims: the new shape."""
    (call,) = calls
    source = feature_type(call.args[0], dtypes=(*FEATURES, "int32"))
    shape = tensor_of(call, "its result").shape
    if len(shape) > 4 or not shape:
        raise Unsupported(f"a result of {len(shape)} axes; 1 to 4 are taken")
    if len(source.shape) > 4 or not source.shape:
        raise Unsupported(f"an input of {len(source.shape)} axes; 1 to 4 are taken")
    return Reshape(tuple(int(d) for d in shape))  # type: ignore[arg-type]


def concat(w: Writer, layer: Concat, at: Composite) -> Value:
    data = at.calls[-1].args[0]
    assert isinstance(data, Tuple)
    inputs = [at.operand(field) for field in data.fields]
    if layer.stacks:
        inputs = [_with_axis(w, value, layer.axis) for value in inputs]
    perm, _ = w.any_order(inputs[0])
    parts = []
    for value, side in zip(inputs, layer.operands):
        tensor = w.in_order(value, perm)
        if side is not None:
            tensor = w.rescale(tensor, side.rescale, at.dtype, side.input_zp - value.offset)
        parts.append(tensor)
    out = parts[0] if len(parts) == 1 else w.graph.concat(parts, perm.index(layer.axis))
    return Value(at.dtype, {perm: out})


def _with_axis(w: Writer, value: Value, axis: int) -> Value:
    """A value with a further axis of extent 1."""
    shape = value.shape
    out = w.graph.reshape(w.in_order(value), (*shape[:axis], 1, *shape[axis:]))
    return Value(value.dtype, {tuple(range(len(out.shape))): out})


def pad(w: Writer, layer: Pad, at: Composite) -> Value:
    perm, x = w.any_order(at.source)
    out = w.pad(x, [layer.widths[axis] for axis in perm], layer.value - at.source.offset)
    return Value(at.source.dtype, {perm: out})


def transpose(w: Writer, layer: Transpose, at: Composite) -> Value:
    """Nothing moves: the same tensors have their axes in other orders of the result's."""
    if not at.source.stored:
        w.in_order(at.source)
    stored = {tuple(layer.axes.index(axis) for axis in perm): x for perm, x in at.source.stored.items()}
    return Value(at.dtype, stored)


def reshape(w: Writer, layer: Reshape, at: Composite) -> Value:
    source, shape = at.source, layer.shape
    last = CHANNELS_LAST["NCHW"]
    if len(shape) == 2 and last in source.stored and source.stored[last].shape[0] == shape[0]:
        if (0, 1, 2, 3) not in source.stored:
            return Value(source.dtype, {}, source)
    out = w.graph.reshape(w.in_order(source), shape)
    return Value(source.dtype, {tuple(range(len(shape))): out})
