"""Quantised operators of com.microsoft: what onnxruntime's quantiser and optimiser write.

Element-wise operators and pools become a float operator between qnn.dequantize and qnn.quantize. That computes what the
runtime computes, and FakeQuantizationToInteger makes integers of it. Products become `qnn` products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.common.quantized import along, dequantize, quantize, requantize
from relaylang.frontends.onnx.families.quantized import (
    dynamic_quantize,
    geometry,
    integer_matmul,
    product_of,
    qlinear_conv,
    qnn_scales,
)
from relaylang.frontends.onnx.families.rnn import Product, layer, lstm_of
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr
from relaylang.rules.quantization.blocks import Blocks


def through_reals(f: Callable[..., Expr], count: int = 1) -> Callable[..., Any]:
    """The conversion of an operator whose operands are `count` triples of numbers, scale and zero point, then the result's.

    `f` takes the node and the operands as real numbers.
    """

    def convert(n: Node, *operands: Expr | None) -> Any:
        b = n.b
        reals = [_real(b, operands[3 * i : 3 * i + 3]) for i in range(count)]
        scale, zero = (*operands[3 * count :], None)[:2]
        assert scale is not None and operands[0] is not None
        return quantize(b, f(n, *reals), scale, zero, b.dtype(zero) if zero is not None else b.dtype(operands[0]))

    return convert


def _real(b: Builder, triple: Any) -> Expr:
    x, scale, zero = triple
    return dequantize(b, x, scale, zero)


def same(op: str) -> Callable[..., Expr]:
    """An operator of Relay without attributes."""
    return lambda n, *xs: n.b.op(op, *xs)


def leaky_relu(n: Node, x: Expr) -> Expr:
    return n.b.op("nn.leaky_relu", x, alpha=n.float("alpha", 0.01))


def softmax(n: Node, x: Expr) -> Expr:
    """Along the axis; over all axes from there on before opset 13."""
    b, axis = n.b, n.int("axis", -1)
    if n.int("opset") >= 13 or axis % b.rank(x) == b.rank(x) - 1:
        return b.op("nn.softmax", x, axis=axis)
    axis %= b.rank(x)
    shape = b.static_shape(x)
    flat = b.reshape(x, [int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))])
    return b.reshape(b.op("nn.softmax", flat, axis=1), shape)


def _channels_second(n: Node, x: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """A function of data (N, C, ...) for data in the layer's layout."""
    if not n.int("channels_last", 0):
        return f(x)
    b, rank = n.b, n.b.rank(x)
    converted = f(b.transpose(x, [0, rank - 1, *range(1, rank - 1)]))
    return b.transpose(converted, [0, *range(2, rank), 1])


def global_average_pool(n: Node, x: Expr) -> Expr:
    b = n.b
    return _channels_second(n, x, lambda v: b.op("mean", v, axis=list(range(2, b.rank(v))), keepdims=True))


def average_pool(n: Node, x: Expr) -> Expr:
    b, kernel = n.b, n.ints("kernel_shape")
    if b.rank(x) != 4:
        raise Unsupported("quantised pools have two spatial axes")

    def pool(v: Expr) -> Expr:
        attributes = geometry(n, v, kernel)
        return b.op(
            "nn.avg_pool2d",
            v,
            pool_size=kernel,
            **attributes,
            ceil_mode=bool(n.int("ceil_mode", 0)),
            count_include_pad=bool(n.int("count_include_pad", 0)),
        )

    return _channels_second(n, x, pool)


def reduce_mean(n: Node, x: Expr) -> Expr:
    axes = n.ints("axes", list(range(n.b.rank(x))))
    return n.b.op("mean", x, axis=axes, keepdims=bool(n.int("keepdims", 1)))


def concat(n: Node, scale: Expr, zero: Expr, *operands: Expr) -> Any:
    b = n.b
    parts = [_real(b, operands[i : i + 3]) for i in range(0, len(operands), 3)]
    return quantize(b, b.concat(parts, n.int("axis")), scale, zero, b.dtype(zero))


def where(n: Node, cond: Expr, *operands: Expr) -> Any:
    b = n.b
    x, y = _real(b, operands[:3]), _real(b, operands[3:6])
    return quantize(b, b.op("where", cond, x, y), operands[6], operands[7], b.dtype(operands[7]))


# ---- products


def qgemm(
    n: Node,
    x: Expr,
    x_scale: Expr,
    x_zero: Expr,
    y: Expr,
    y_scale: Expr,
    y_zero: Expr,
    bias: Expr | None = None,
    scale: Expr | None = None,
    zero: Expr | None = None,
) -> Any:
    """Without a scale of the result, the result is in real numbers."""
    b = n.b
    x = b.transpose(x, [1, 0]) if n.int("transA", 0) else x
    y = b.transpose(y, [1, 0]) if n.int("transB", 0) else y
    sums = integer_matmul(b, x, y, x_zero, y_zero, qnn_scales(b, x_scale, y_scale))
    if bias is not None:
        sums = b.op("add", sums, bias)
    factor = product_of(b, x_scale, y_scale)
    if n.float("alpha", 1.0) != 1.0:
        factor = b.op("multiply", factor, n.float("alpha", 1.0))
    if scale is None:
        return _scaled(b, sums, factor)
    return requantize(b, sums, factor, scale, zero, b.dtype(zero) if zero is not None else b.dtype(x), 1)


def _scaled(b: Builder, sums: Expr, factor: Expr, bias: Expr | None = None) -> Expr:
    """Sums of int32 as real numbers; the factor is one number, or one a column."""
    real = b.op("multiply", b.cast(sums, "float32"), along(b, factor, -1, b.rank(sums)))
    return real if bias is None else b.op("add", real, bias)


def to_float(
    n: Node,
    x: Expr,
    y: Expr,
    x_scale: Expr,
    y_scale: Expr,
    x_zero: Expr | None = None,
    y_zero: Expr | None = None,
    bias: Expr | None = None,
) -> Any:
    """MatMulIntegerToFloat."""
    b = n.b
    if b.rank(x_scale) and b.shape(x_scale) != (1,):
        raise Unsupported("scales of the left operand's columns are not converted")
    sums = integer_matmul(b, x, y, x_zero, y_zero, qnn_scales(b, x_scale, y_scale))
    return _scaled(b, sums, product_of(b, x_scale, y_scale), bias)


def _dynamic_product(b: Builder, x: Expr, y: Expr, y_scale: Expr, y_zero: Expr | None, bias: Expr | None = None) -> Expr:
    """A product of real numbers, quantised at run time, with a quantised matrix."""
    ints, x_scale, x_zero = dynamic_quantize(b, x)
    sums = integer_matmul(b, ints, y, x_zero, y_zero)
    return _scaled(b, sums, product_of(b, x_scale, y_scale), bias)


def dynamic_lstm(
    n: Node,
    x: Expr,
    w: Expr,
    r: Expr,
    bias: Expr | None,
    lengths: Expr | None,
    h: Expr | None,
    c: Expr | None,
    peepholes: Expr | None,
    w_scale: Expr,
    w_zero: Expr,
    r_scale: Expr,
    r_zero: Expr,
) -> Any:
    """DynamicQuantizeLSTM: the weights are (directions, in, units)."""
    b = n.b

    def product(matrix: Expr, scale: Expr, zero: Expr) -> Product:
        def of(x: Expr, way: int) -> Expr:
            parts = [b.squeeze(b.slice(v, [way], [way + 1], [0]), [0]) for v in (matrix, scale, zero)]
            return _dynamic_product(b, x, *parts)

        return of

    products = product(w, w_scale, w_zero), product(r, r_scale, r_zero)
    return lstm_of(layer(n, x, b.extent(r, 1), 4, products, bias, lengths, [h, c]), peepholes)


# ---- weights of few bits


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of 2, 4 or 8 bits from the last axis of bytes, the lowest bits first."""
    if bits not in (2, 4, 8):
        raise Unsupported(f"weights of {bits} bits are not converted")
    per_byte = 8 // bits
    shifts = np.array(range(0, 8, bits), np.uint8)
    spread = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return spread.reshape(*packed.shape[:-1], packed.shape[-1] * per_byte)


def matmul_nbits(
    n: Node,
    x: Expr,
    packed: Expr,
    scales: Expr,
    zeros: Expr | None = None,
    index: Expr | None = None,
    bias: Expr | None = None,
) -> Any:
    """Whole weights stay so, as `Blocks`. Those with real zero points, and those beside other floats, become real numbers."""
    b = n.b
    rows, columns, size, bits = n.int("N"), n.int("K"), n.int("block_size"), n.int("bits", 4)
    blocks = -(-columns // size)
    ints = unpacked(b.need(packed, "the weights").reshape(rows, blocks, -1), bits)[..., :size]
    if index is not None:
        raise Unsupported("an order of the groups is not converted")
    if zeros is None:
        shift = b.arrays.full((rows, blocks), float(1 << (bits - 1)), np.float32)
    else:
        zero_points = b.need(zeros, "the zero points")
        if zero_points.dtype == np.uint8:
            zero_points = unpacked(zero_points.reshape(rows, -1), bits)[:, :blocks]
        shift = zero_points.reshape(rows, blocks).astype(np.float32)
    factor = b.need(scales, "the scales").reshape(rows, blocks)
    if b.dtype(x) == "float32" and b.rank(x) > 1 and not (shift % 1).any():
        weight = Blocks(ints, factor, shift, columns).expr(b.op, b.const)
        product = b.op("nn.dense", x, weight, units=rows)
        return product if bias is None else b.op("add", product, bias)
    weights = (ints.astype(np.float32) - shift[..., None]) * factor[..., None].astype(np.float32)
    product = matmul(b, x, b.const(weights.reshape(rows, blocks * size)[:, :columns].T.astype(np.dtype(b.dtype(x)))))
    return product if bias is None else b.op("add", product, bias)


def gather_quantized(n: Node, data: Expr, indices: Expr, scales: Expr, zeros: Expr | None = None) -> Any:
    """GatherBlockQuantized: rows are gathered, then made real."""
    b, bits = n.b, n.int("bits", 4)
    axis = n.int("gather_axis", 0) % b.rank(data)
    blocks = n.int("quantize_axis", 1) % b.rank(data)
    size = n.int("block_size", 128)
    if axis == blocks:
        raise Unsupported("the gathered axis has the blocks")
    if b.dtype(data) == "uint8" and bits < 8:
        data = b.const(unpacked(b.need(data, "the data"), bits))
        if zeros is not None:
            zeros = b.const(unpacked(b.need(zeros, "the zero points"), bits)[..., : b.extent(scales, blocks)])
        elif zeros is None:
            zeros = b.const(1 << (bits - 1), "uint8")
    elif zeros is None and b.dtype(data) == "uint8":
        zeros = b.const(128, "uint8")
    moved = blocks + b.rank(indices) - 1 if axis < blocks else blocks
    rows = b.op("take", b.cast(data, "int32"), indices, axis=axis, mode="clip")

    def each(values: Expr) -> Expr:
        taken = b.op("take", values, indices, axis=axis, mode="clip")
        repeated = b.op("repeat", taken, repeats=size, axis=moved)
        return b.slice(repeated, [0], [b.extent(rows, moved)], [moved])

    if zeros is not None:
        rows = b.op("subtract", rows, each(b.cast(zeros, "int32")) if b.rank(zeros) else b.cast(zeros, "int32"))
    return b.op("multiply", b.cast(rows, b.dtype(scales)), each(scales))


def conv(n: Node, *operands: Any) -> Any:
    """QLinearConv of this domain may have its channels last."""
    if not n.int("channels_last", 0):
        return qlinear_conv(n, *operands)
    b, rank = n.b, n.b.rank(operands[0])
    first = b.transpose(operands[0], [0, rank - 1, *range(1, rank - 1)])
    return b.transpose(qlinear_conv(n, first, *operands[1:]), [0, *range(2, rank), 1])


_ROWS = (
    ("DynamicQuantizeLSTM", dynamic_lstm),
    ("DynamicQuantizeMatMul", lambda n, x, y, y_scale, y_zero=None, bias=None: _dynamic_product(n.b, x, y, y_scale, y_zero, bias)),
    ("GatherBlockQuantized", gather_quantized),
    ("MatMulIntegerToFloat", to_float),
    ("MatMulNBits", matmul_nbits),
    ("QGemm", qgemm),
    ("QLinearAdd", through_reals(same("add"), 2)),
    ("QLinearAveragePool", through_reals(average_pool)),
    ("QLinearConcat", concat),
    ("QLinearConv", conv),
    ("QLinearGlobalAveragePool", through_reals(global_average_pool)),
    ("QLinearLeakyRelu", through_reals(leaky_relu)),
    ("QLinearMul", through_reals(same("multiply"), 2)),
    ("QLinearReduceMean", through_reals(reduce_mean)),
    ("QLinearSigmoid", through_reals(same("sigmoid"))),
    ("QLinearSoftmax", through_reals(softmax)),
    ("QLinearWhere", where),
)
RULES = tuple(Rule(name, convert, domain="com.microsoft") for name, convert in _ROWS)

__all__ = ["RULES", "unpacked"]
