"""Quantised operators of ai.onnx: QuantizeLinear and its kin, products and convolutions of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.common.nn import matmul, padding_of
from relaylang.frontends.common.quantized import along, dequantize, held, less_zero, quantize, requantize, round_even, zero_like
from relaylang.frontends.onnx.families.casts import as_dtype
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.windows import ones, padding
from relaylang.ir import Expr


def quantize_linear(n: Node, x: Expr, scale: Expr, zero: Expr | None = None) -> Any:
    b = n.b
    dtype = b.dtype(zero) if zero is not None else _out_dtype(n, "uint8")
    if "float" in dtype:
        return _to_float(n, x, scale, dtype)
    axis = _axis(n, x, scale)
    scale, zero = _blocks(n, x, scale, axis), None if zero is None else _blocks(n, x, zero, axis)
    return quantize(b, x, scale, zero, dtype, axis)


def dequantize_linear(n: Node, x: Expr, scale: Expr, zero: Expr | None = None) -> Any:
    b = n.b
    axis = _axis(n, x, scale)
    dtype = _out_dtype(n, b.dtype(scale))
    scale, zero = _blocks(n, x, scale, axis), None if zero is None else _blocks(n, x, zero, axis)
    return dequantize(b, x, scale, zero, axis, dtype)


def _out_dtype(n: Node, default: str) -> str:
    """The attribute `output_dtype`; 0 stands for the default."""
    return n.dtype("output_dtype") if n.int("output_dtype", 0) else default


def _axis(n: Node, x: Expr, scale: Expr) -> int:
    """The axis of the scales; any axis where there is one scale, whatever the layer says."""
    rank, several = n.b.rank(x), tuple(n.b.shape(scale)) not in ((), (1,))
    return n.int("axis", 1) % rank if rank and several else -1


def _blocks(n: Node, x: Expr, values: Expr, axis: int) -> Expr:
    """Scales or zero points of blocks along the axis: one for each element."""
    b, size = n.b, n.int("block_size", 0)
    if not size or b.rank(values) < 2:
        return values
    extent = b.extent(x, axis)
    repeated = b.op("repeat", values, repeats=size, axis=axis)
    return repeated if b.extent(repeated, axis) == extent else b.slice(repeated, [0], [extent], [axis])


def _to_float(n: Node, x: Expr, scale: Expr, dtype: str) -> Expr:
    """Divided and cast; `saturate` holds values beyond the range at its ends."""
    b = n.b
    axis = _axis(n, x, scale)
    values = along(b, b.cast(_blocks(n, x, scale, axis), "float32"), axis, b.rank(x))
    return as_dtype(n, b.op("divide", b.cast(x, "float32"), values), dtype)


def dynamic_quantize(b: Builder, x: Expr) -> list[Expr]:
    """The numbers as uint8, the scale and the zero point; the scale is that of the numbers' range with 0 in it."""
    least = b.op("minimum", b.op("min", x), 0.0)
    most = b.op("maximum", b.op("max", x), 0.0)
    scale = b.op("divide", b.op("subtract", most, least), 255.0)
    scale = b.op("where", b.op("equal", scale, 0.0), b.op("ones_like", scale), scale)
    zero = b.op("clip", round_even(b, b.op("divide", b.op("negative", least), scale)), a_min=0.0, a_max=255.0)
    real = b.op("add", round_even(b, b.op("divide", x, scale)), zero)
    return [held(b, real, "uint8"), scale, b.cast(zero, "uint8")]


# ---- convolutions


def geometry(n: Node, x: Expr, kernel: list[int]) -> dict[str, Any]:
    """Strides, padding and dilation as attributes of Relay's convolutions and pools, for data (N, C, *space)."""
    strides, dilation = ones(n, "strides", len(kernel)), ones(n, "dilations", len(kernel))
    pairs = padding(n, n.b.shape(x)[2:], kernel, strides, dilation)
    return {"strides": strides, "padding": padding_of(pairs), "dilation": dilation}


def integer_conv(n: Node, x: Expr, w: Expr, x_zero: Expr | None, w_zero: Expr | None, scales: Any = None) -> Expr:
    """The sums of a convolution of whole numbers as int32; `scales` are those of a qnn.conv2d where they are constants."""
    b = n.b
    shape = b.static_shape(w, "the kernel")
    kernel = list(shape[2:])
    attrs = {**geometry(n, x, kernel), "groups": n.int("group", 1), "channels": shape[0], "kernel_size": kernel}
    zeros = single_zeros(b, x_zero, w_zero)
    if len(kernel) == 2 and zeros:
        return b.op("qnn.conv2d", x, w, *zeros, *(scales or _ones(b)), **attrs, out_dtype="int32")
    if len(kernel) == 1:
        return _as_2d(n, x, w, x_zero, w_zero, scales, attrs)
    left, right = less_zero(b, x, x_zero, 1), less_zero(b, w, w_zero, 0)
    layouts = {} if len(kernel) == 2 else {"data_layout": "NCDHW", "kernel_layout": "OIDHW"}
    return b.op(f"nn.conv{len(kernel)}d", left, right, **attrs, **layouts, out_dtype="int32")


def _as_2d(n: Node, x: Expr, w: Expr, x_zero: Expr | None, w_zero: Expr | None, scales: Any, attrs: dict[str, Any]) -> Expr:
    """A convolution over one axis, as one over two with an extent of 1."""
    b = n.b
    wide = {
        **attrs,
        "strides": [1, *attrs["strides"]],
        "dilation": [1, *attrs["dilation"]],
        "padding": [0, attrs["padding"][0], 0, attrs["padding"][1]],
        "kernel_size": [1, *attrs["kernel_size"]],
    }
    zeros = single_zeros(b, x_zero, w_zero)
    left, right = b.unsqueeze(x, [2]), b.unsqueeze(w, [2])
    if zeros:
        conv = b.op("qnn.conv2d", left, right, *zeros, *(scales or _ones(b)), **wide, out_dtype="int32")
    else:
        conv = b.op("nn.conv2d", less_zero(b, left, x_zero, 1), less_zero(b, right, w_zero, 0), **wide, out_dtype="int32")
    return b.squeeze(conv, [2])


def single_zeros(b: Builder, *zeros: Expr | None) -> list[Expr]:
    """Zero points as scalars of the qnn dialect; [] where one is computed, or differs between channels."""
    values = [b.value(zero_like(b, z, "int32")) for z in zeros]
    if any(v is None or not v.size or np.any(v != v.reshape(-1)[0]) for v in values):
        return []
    return [b.const(v.reshape(-1)[0].astype("int32")) for v in values if v is not None]


def _ones(b: Builder) -> list[Expr]:
    return [b.const(1.0, "float32")] * 2


def qlinear_conv(
    n: Node,
    x: Expr,
    x_scale: Expr,
    x_zero: Expr,
    w: Expr,
    w_scale: Expr,
    w_zero: Expr,
    y_scale: Expr,
    y_zero: Expr,
    bias: Expr | None = None,
) -> Any:
    b = n.b
    sums = integer_conv(n, x, w, x_zero, w_zero, qnn_scales(b, x_scale, w_scale))
    if bias is not None:
        sums = b.op("nn.bias_add", sums, bias, axis=1)
    return requantize(b, sums, product_of(b, x_scale, w_scale), y_scale, y_zero, b.dtype(y_zero))


def qnn_scales(b: Builder, *scales: Expr) -> list[Expr] | None:
    """Scales as operands of the qnn dialect; None where one is computed."""
    values = [b.value(s) for s in scales]
    if any(v is None for v in values):
        return None
    return [b.const((v.reshape(()) if v.size == 1 else v).astype("float32")) for v in values if v is not None]


def product_of(b: Builder, left: Expr, right: Expr) -> Expr:
    """The product of two scales, each one number or a vector."""
    flat = [b.scalar(s) if b.shape(s) == (1,) else s for s in (left, right)]
    return b.op("multiply", *[b.cast(s, "float32") for s in flat])


# ---- products of matrices


def integer_matmul(b: Builder, x: Expr, y: Expr, x_zero: Expr | None, y_zero: Expr | None, scales: list[Expr] | None = None) -> Expr:
    """The sums of a product of matrices of whole numbers as int32."""
    zeros = single_zeros(b, x_zero, y_zero)
    if zeros and b.rank(y) == 2 and b.rank(x) >= 2 and isinstance(b.shape(y)[1], int):
        turned, factors = b.transpose(y, [1, 0]), scales or _ones(b)
        return b.op("qnn.dense", x, turned, *zeros, *factors, units=b.extent(y, 1), out_dtype="int32")
    left = _less_row_zero(b, x, x_zero)
    return matmul(b, left, less_zero(b, y, y_zero, -1))


def _less_row_zero(b: Builder, x: Expr, zero: Expr | None) -> Expr:
    """Without zero points that are one for all, or one a row."""
    if zero is not None and b.rank(zero) == 1 and b.shape(zero) != (1,):
        return less_zero(b, x, zero, -2)
    return less_zero(b, x, zero, -1)


def qlinear_matmul(
    n: Node, x: Expr, x_scale: Expr, x_zero: Expr, y: Expr, y_scale: Expr, y_zero: Expr, out_scale: Expr, out_zero: Expr
) -> Any:
    b = n.b
    if any(b.rank(v) and b.shape(v) != (1,) for v in (x_scale, x_zero, out_scale, out_zero)):
        raise Unsupported("scales of rows are not converted")
    sums = integer_matmul(b, x, y, x_zero, y_zero, qnn_scales(b, x_scale, y_scale))
    return requantize(b, sums, product_of(b, x_scale, y_scale), out_scale, out_zero, b.dtype(out_zero), b.rank(sums) - 1)


RULES = (
    Rule("QuantizeLinear", quantize_linear, since=10),
    Rule("DequantizeLinear", dequantize_linear, since=10),
    Rule("DynamicQuantizeLinear", lambda n, x: dynamic_quantize(n.b, x), since=11),
    Rule("ConvInteger", lambda n, x, w, x_zero=None, w_zero=None: integer_conv(n, x, w, x_zero, w_zero), since=10),
    Rule("QLinearConv", qlinear_conv, since=10),
    Rule("MatMulInteger", lambda n, x, y, x_zero=None, y_zero=None: integer_matmul(n.b, x, y, x_zero, y_zero), since=10),
    Rule("QLinearMatMul", qlinear_matmul, since=10),
    Rule("QuantizeLinear", quantize_linear, domain="com.microsoft"),
    Rule("DequantizeLinear", dequantize_linear, domain="com.microsoft"),
)

__all__ = ["RULES", "dynamic_quantize", "geometry", "integer_conv", "integer_matmul", "product_of", "qnn_scales", "single_zeros"]
