"""The qnn dialect: QuantizeLinear and its kin, QLinearConv and QLinearMatMul where a requantize follows, else QDQ form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import result
from relaylang.export.onnx.emitter import Emitter
from relaylang.export.onnx.families.nn import RULES as REAL
from relaylang.export.onnx.families.nn import geometry, kernel_first
from relaylang.export.onnx.families.shape import channels_first, concatenate
from relaylang.export.walk import Value
from relaylang.ir import Call, TensorType, Var
from relaylang.ops.record import Op


def _zero(e: Emitter, zero: Value, dtype: str, like: Value) -> Value:
    """A zero point in the element type of the numbers, of the scale's shape."""
    if zero.data is not None and zero.rank <= like.rank:
        limits = np.iinfo(np.dtype(dtype))
        if zero.data.size and not limits.min <= zero.data.min() <= zero.data.max() <= limits.max:
            raise Unsupported(f"a zero point is no number of the type {dtype}")
        return e.array(np.broadcast_to(zero.data.astype(np.dtype(dtype)), like.static()).copy(), zero.name, dtype)
    if zero.rank > like.rank:
        raise Unsupported("it has several zero points for one scale")
    small = e.cast(zero, dtype)
    return small if zero.rank == like.rank else e.op("Expand", small, e.op("Shape", like))


def quantize(e: Emitter, call: Call, x: Value, scale: Value, zero: Value) -> Value:
    attrs: Any = call.attrs
    return e.op("QuantizeLinear", x, scale, _zero(e, zero, result(call).dtype, scale), axis=attrs.axis % max(x.rank, 1))


def dequantize(e: Emitter, call: Call, x: Value, scale: Value, zero: Value) -> Value:
    attrs: Any = call.attrs
    real = e.op("DequantizeLinear", x, scale, _zero(e, zero, x.dtype, scale), axis=attrs.axis % max(x.rank, 1))
    return e.cast(real, result(call).dtype, "float32")


def _real(e: Emitter, x: Value, scale: Value, zero: Value, axis: int = -1) -> Value:
    real = e.op("DequantizeLinear", x, scale, _zero(e, zero, x.dtype, scale), axis=axis % max(x.rank, 1))
    real.type = TensorType(x.type.shape, "float32")
    return real


def _whole(e: Emitter, call: Call, x: Value, scale: Value, zero: Value) -> Value:
    return e.op("QuantizeLinear", x, scale, _zero(e, zero, result(call).dtype, scale))


def unary(compute: Any) -> Any:
    """A function of real numbers between DequantizeLinear and QuantizeLinear."""

    def rule(e: Emitter, call: Call, x: Value, scale: Value, zero: Value, out_scale: Value, out_zero: Value) -> Value:
        real = compute(e, call, _real(e, x, scale, zero))
        return _whole(e, call, real, out_scale, out_zero)

    return rule


def binary(kind: str) -> Any:
    def rule(
        e: Emitter,
        call: Call,
        a: Value,
        b: Value,
        a_scale: Value,
        a_zero: Value,
        b_scale: Value,
        b_zero: Value,
        scale: Value,
        zero: Value,
    ) -> Value:
        attrs: Any = call.attrs
        left, right = _real(e, a, a_scale, a_zero, attrs.lhs_axis), _real(e, b, b_scale, b_zero, attrs.rhs_axis)
        return _whole(e, call, e.op(kind, left, right), scale, zero)

    return rule


def _concatenate(
    e: Emitter, call: Call, parts: list[Value], scales: list[Value], zeros: list[Value], scale: Value, zero: Value
) -> Value:
    real = concatenate(e, call, [_real(e, p, s, z) for p, s, z in zip(parts, scales, zeros)])
    return _whole(e, call, real, scale, zero)


# ---- products


def conv2d(e: Emitter, call: Call, x: Value, w: Value, x_zero: Value, w_zero: Value, *_: Value) -> Value:
    """The sums of whole numbers. A requantize behind them makes them a QLinearConv, and this layer is dropped."""
    a: Any = call.attrs
    data, back = channels_first(e, x, a.data_layout, a.out_layout)
    kernel = kernel_first(e, w, a.kernel_layout, "OI")
    sums = e.op(
        "ConvInteger",
        data,
        kernel,
        _zero(e, x_zero, x.dtype, x_zero),
        _zero(e, w_zero, w.dtype, w_zero),
        group=a.groups,
        **geometry(a, 2),
    )
    return e.cast(back(sums), result(call).dtype, "int32")


def dense(e: Emitter, call: Call, x: Value, w: Value, x_zero: Value, w_zero: Value, *_: Value) -> Value:
    zeros = _zero(e, x_zero, x.dtype, x_zero), _zero(e, w_zero, w.dtype, w_zero)
    return e.cast(e.op("MatMulInteger", x, e.transpose(w, [1, 0]), *zeros), result(call).dtype, "int32")


def batch_matmul(e: Emitter, call: Call, x: Value, y: Value, x_zero: Value, y_zero: Value, *_: Value) -> Value:
    a: Any = call.attrs
    left = e.transpose(x, [0, 2, 1]) if a.transpose_a else x
    right = e.transpose(y, [0, 2, 1]) if a.transpose_b else y
    zeros = _zero(e, x_zero, x.dtype, x_zero), _zero(e, y_zero, y.dtype, y_zero)
    return e.cast(e.op("MatMulInteger", left, right, *zeros), result(call).dtype, "int32")


def requantize(e: Emitter, call: Call, x: Value, scale: Value, zero: Value, out_scale: Value, out_zero: Value) -> Value:
    dtype = result(call).dtype
    if dtype in ("int8", "uint8") and zero.data is not None and not zero.data.any():
        fused = _fused(e, call, scale, out_scale, _zero(e, out_zero, dtype, out_scale))
        if fused is not None:
            return fused
    attrs: Any = call.attrs
    if zero.data is not None and zero.data.any() and x.dtype == "int32":
        x, zero = e.op("Sub", x, e.cast(zero, "int32"), ty=x.type), e.scalar(0, "int32")
        zero = e.array(np.zeros(scale.static(), np.int32), "zero")
    real = _real(e, x, scale, zero, attrs.axis)
    if dtype == "int32":  # QuantizeLinear makes 8 and 16 bits
        rounded = e.cast(e.op("Round", e.op("Div", real, out_scale, ty=real.type), ty=real.type), "int32")
        return rounded if out_zero.data is not None and not out_zero.data.any() else e.op("Add", rounded, out_zero, ty=rounded.type)
    return e.op("QuantizeLinear", real, out_scale, _zero(e, out_zero, dtype, out_scale))


def _of_channels(e: Emitter, bias: Value, axis: int | None, channel: int) -> Value | None:
    """The bias of a convolution as a vector of int32, one for each channel; None where it is another.

    Without an `axis`, it is the constant operand of an `add`, with the shape of channels.
    """
    if bias.dtype != "int32" or (axis is not None and axis % 4 != channel):
        return None
    if axis is not None:
        return bias
    at = channel - 4 + len(bias.shape)
    if bias.data is None or any(extent != 1 for i, extent in enumerate(bias.shape) if i != at):
        return None
    vector: Value = e.reshape(bias, [-1])
    return vector


def _fused(e: Emitter, call: Call, scale: Value, out_scale: Value, out_zero: Value) -> Value | None:
    """requantize(bias_add(qnn.conv2d)) as QLinearConv, requantize(qnn.dense) as QLinearMatMul; None for other sums."""
    definition = e.defined(call.args[0])
    bias: Value | None = None
    if definition is not None and _name(definition[0]) in ("nn.bias_add", "add"):
        node, scope = definition
        definition = e.defined(node.args[0])
        bias = scope.get(node.args[1]) if isinstance(node.args[1], Var) else None
        axis = getattr(node.attrs, "axis", None)
        if definition is None or bias is None:
            return None
    else:
        axis = None
    if definition is None or _name(definition[0]) not in ("qnn.conv2d", "qnn.dense"):
        return None
    node, scope = definition
    x, w, x_zero, w_zero, x_scale, w_scale = [scope[a] for a in node.args]  # type: ignore[index]
    if any(v.data is None for v in (x_zero, w_zero, scale)) or x.dtype not in ("int8", "uint8") or w.dtype not in ("int8", "uint8"):
        return None
    left, right = _scales(e, x_scale, w_scale, scale)
    zeros = _zero(e, x_zero, x.dtype, left), _zero(e, w_zero, w.dtype, right)
    a: Any = node.attrs
    if _name(node) == "qnn.dense":
        if bias is not None or x.rank != 2:
            return None
        return e.op("QLinearMatMul", x, left, zeros[0], e.transpose(w, [1, 0]), right, zeros[1], out_scale, out_zero)
    channel = (a.out_layout or a.data_layout).index("C") if "C" in a.data_layout else -1
    if bias is not None:
        bias = _of_channels(e, bias, axis, channel)
        if bias is None:
            return None
    data, back = channels_first(e, x, a.data_layout, a.out_layout)
    kernel = kernel_first(e, w, a.kernel_layout, "OI")
    fused = e.op(
        "QLinearConv",
        data,
        left,
        zeros[0],
        kernel,
        right,
        zeros[1],
        out_scale,
        out_zero,
        bias,
        group=a.groups,
        **geometry(a, 2),
        ty=TensorType(data.type.shape, result(call).dtype),
    )
    return back(fused)


def _name(call: Any) -> str:
    return call.op.name if isinstance(call, Call) and isinstance(call.op, Op) else ""


def _scales(e: Emitter, x_scale: Value, w_scale: Value, product: Value) -> tuple[Value, Value]:
    """The scales of data and kernel; where their product is not that of the sums, 1 and the latter."""
    if x_scale.data is not None and w_scale.data is not None and product.data is not None:
        own = x_scale.data * w_scale.data
        if own.shape == product.data.shape and np.array_equal(own, product.data):
            return x_scale, w_scale
    return e.scalar(1.0, "float32", "one"), product


def _avg_pool(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    if a.count_include_pad and any(a.padding):
        raise Unsupported("padding counts as the number 0, not as the zero point")
    return REAL["nn.avg_pool2d"](e, call, x)


def _real_rule(name: str) -> Any:
    """The rule of the operator of real numbers that has the same attributes."""

    def compute(e: Emitter, call: Call, x: Value) -> Value:
        return REAL[name](e, call, x)

    return compute


def _kind(kind: str) -> Any:
    def compute(e: Emitter, call: Call, x: Value) -> Value:
        return e.op(kind, x)

    return compute


RULES: Mapping[str, Any] = {
    "qnn.quantize": quantize,
    "qnn.dequantize": dequantize,
    "qnn.requantize": requantize,
    "qnn.conv2d": conv2d,
    "qnn.dense": dense,
    "qnn.batch_matmul": batch_matmul,
    "qnn.add": binary("Add"),
    "qnn.subtract": binary("Sub"),
    "qnn.mul": binary("Mul"),
    "qnn.concatenate": _concatenate,
    "qnn.abs": unary(_kind("Abs")),
    "qnn.erf": unary(_kind("Erf")),
    "qnn.exp": unary(_kind("Exp")),
    "qnn.hardswish": unary(_kind("HardSwish")),
    "qnn.log": unary(_kind("Log")),
    "qnn.rsqrt": unary(lambda e, call, x: e.op("Reciprocal", e.op("Sqrt", x))),
    "qnn.sigmoid": unary(_kind("Sigmoid")),
    "qnn.sqrt": unary(_kind("Sqrt")),
    "qnn.tanh": unary(_kind("Tanh")),
    "qnn.softmax": unary(_real_rule("nn.softmax")),
    "qnn.leaky_relu": unary(_real_rule("nn.leaky_relu")),
    "qnn.avg_pool2d": unary(_avg_pool),
}

__all__ = ["RULES"]
