"""Convolutions, fully connected layers, products of matrices and pools, in NHWC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.tflite.hybrid import Matrix, is_hybrid, matrix, product, rounded, scaled
from relaylang.frontends.tflite.integers import added, is_whole, requantized, shifted
from relaylang.frontends.tflite.node import Node
from relaylang.frontends.tflite.windows import window
from relaylang.ir import Expr


def _weights(n: Node, index: int, order: tuple[int, ...]) -> Expr:
    """A weight with its axes in another order, changed now where it is constant."""
    value = n.b.value(n.x(index))
    tensor = n.ins[index]
    if value is not None and tensor is not None:
        return n.b.weight(tensor.name, np.ascontiguousarray(value.transpose(order)))
    return n.b.transpose(n.x(index), order)


def _float_weights(n: Node, index: int, order: tuple[int, ...]) -> Expr:
    """As `_weights`, with real numbers of quantised weights (hybrid layers compute with floats)."""
    if n.q(index) is None:
        return _weights(n, index, order)
    return n.b.transpose(n.real(index), order)


def _with_bias(n: Node, sums: Expr, index: int, axis: int = -1) -> Any:
    if not n.has(index):
        return sums
    bias = n.real(index) if n.b.dtype(sums).startswith("float") else n.b.cast(n.x(index), n.b.dtype(sums))
    return n.b.op("nn.bias_add", sums, bias, axis=axis)


def _products(n: Node, data: int, weight: int) -> list[Expr]:
    """Zero points and scales of data and weights, as the quantised products take them."""
    left, right = n.q(data), n.q(weight)
    assert left is not None and right is not None
    (scale, zero), (w_scale, w_zero) = n.pair(left), n.pair(right)
    return [zero, w_zero if right.zero_points.any() else n.b.const(0, "int32"), scale, w_scale]


def _requantized(n: Node, sums: Expr, axis: int, data: int = 0) -> Any:
    """An accumulator as the result is stored, held to what the activation allows."""
    left, right = n.q(data), n.q(1)
    if n.q_out() is None or left is None or right is None:
        raise Unsupported("its operands are quantised, and its result is not")
    scale = left.scales.astype(np.float64) * right.scales
    wide = n.b.dtype(sums) == "int64" and not (n.operator.name == "FULLY_CONNECTED" and _fits(n))
    return n.held(shifted(n, sums, scale) if wide else requantized(n, sums, scale, axis=axis))


def _integers(n: Node) -> bool:
    """Whether the layer adds up whole numbers."""
    return n.q(0) is not None and n.q(1) is not None


def _fits(n: Node) -> bool:
    """Whether int32 holds all sums of a dense layer of int16. TensorFlow Lite multiplies these by 31 bits."""
    weights, bias = n.b.value(n.x(1)), n.b.value(n.x(2)) if n.has(2) else np.zeros(1, np.int64)
    if weights is None or bias is None:
        return False
    return bool((np.abs(weights.astype(np.int64)).sum(1) * (1 << 15) + np.abs(bias) < 1 << 31).all())


def _sums(n: Node, data: int, bias: int) -> str:
    """The type of a layer's sums. TensorFlow Lite adds products of int16 up as the bias is stored; without one it differs."""
    stored = n.b.dtype(n.x(bias)) if n.has(bias) else "int32" if n.operator.name == "FULLY_CONNECTED" else "int64"
    wide = n.b.dtype(n.x(data)) == "int16" and stored != "int32"
    return "int64" if wide else "int32"


def conv_2d(n: Node) -> Any:
    """Weights are stored as OHWI; groups follow from their channels."""
    b = n.b
    shape = b.static_shape(n.x(1), "the weights")
    channels = b.extent(n.x(0), 3, "the channels")
    if not shape[3] or channels % shape[3]:
        raise Malformed(f"its operand has {channels} channels, and its weights take {shape[3]}")
    groups = channels // shape[3]
    attrs: dict[str, Any] = dict(
        window(n, shape[1:3]),
        groups=groups,
        channels=shape[0],
        kernel_size=shape[1:3],
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    order = (1, 2, 3, 0)
    if _integers(n):
        return _integer_conv(n, _weights(n, 1, order), attrs)
    if is_hybrid(n, 1):
        return _hybrid_conv(n, _weights(n, 1, order), attrs)
    return n.result(_with_bias(n, b.op("nn.conv2d", n.real(0), _float_weights(n, 1, order), **attrs), 2))


def _hybrid_conv(n: Node, weights: Expr, attrs: dict[str, Any]) -> Any:
    """Real operands, int8 weights. The operand gets a zero point where channels differ in their scales, or form groups."""
    b, q = n.b, n.q(1)
    assert q is not None
    apart = n.operator.name == "DEPTHWISE_CONV_2D" or attrs["groups"] > 1 or bool((q.scales != q.scales[0]).any())
    integers, scale = rounded(b, n.x(0), asymmetric=apart)
    sums = b.op("nn.conv2d", integers, b.cast(b.cast(weights, "int8"), b.dtype(integers)), out_dtype="int32", **attrs)
    return n.result(_with_bias(n, scaled(b, sums, scale, q.scales), 2))


def _integer_conv(n: Node, weights: Expr, attrs: dict[str, Any]) -> Any:
    sums = n.b.op("qnn.conv2d", n.x(0), weights, *_products(n, 0, 1), out_dtype=_sums(n, 0, 2), **attrs)
    return _requantized(n, _with_bias(n, sums, 2), 3)


def depthwise_conv_2d(n: Node) -> Any:
    """Weights are stored as 1HWC, with the multiplier inside the channels."""
    b = n.b
    shape = b.static_shape(n.x(1), "the weights")
    channels = b.extent(n.x(0), 3, "the channels")
    attrs: dict[str, Any] = dict(
        window(n, shape[1:3]),
        groups=channels,
        channels=shape[3],
        kernel_size=shape[1:3],
        data_layout="NHWC",
        kernel_layout="HWOI",
    )
    if shape[0] != 1 or not channels or shape[3] % channels:
        raise Malformed(f"its operand has {channels} channels, and its weights have the shape {tuple(shape)}")
    multiplier = shape[3] // channels
    kernel_shape = [*shape[1:3], channels, multiplier]
    value, tensor = b.value(n.x(1)), n.ins[1]
    if _integers(n):
        weights = (
            b.weight(tensor.name, value.reshape(kernel_shape)) if value is not None and tensor else b.reshape(n.x(1), kernel_shape)
        )
        return _integer_conv(n, weights, attrs)
    if is_hybrid(n, 1) and value is not None and tensor is not None:
        return _hybrid_conv(n, b.weight(tensor.name, value.reshape(kernel_shape)), attrs)
    if value is not None and n.q(1) is None and tensor is not None:
        weights = b.weight(tensor.name, value.reshape(kernel_shape))
    else:
        weights = b.reshape(n.real(1), kernel_shape)
    return n.result(_with_bias(n, b.op("nn.conv2d", n.real(0), weights, **attrs), 2))


def transpose_conv(n: Node) -> Any:
    """The result's shape is the first operand; weights are OHWI, and the bias is the fourth operand."""
    b = n.b
    wanted = n.ints(0, "the shape of the result")
    shape = b.static_shape(n.x(1), "the weights")
    if n.q(1) is not None and n.q(2) is not None:
        weights = _weights(n, 1, (1, 2, 3, 0))
        operands, sums = _products(n, 2, 1), _sums(n, 2, 3)
        conv = transposed(n, n.x(2), weights, shape, wanted[1:3], _strides(n), quantised=operands, sums=sums)
        conv = b.op("nn.bias_add", conv, n.x(3), axis=3) if n.has(3) else conv
        return _requantized(n, conv, 3, data=2)
    right = n.q(1)
    if n.q(2) is None and right is not None and is_hybrid(n, 1):
        integers, scale = rounded(b, n.x(2), asymmetric=True)
        plain = [b.const(0, "int32"), b.const(0, "int32"), b.const(1.0, "float32"), b.const(1.0, "float32")]
        weights = _weights(n, 1, (1, 2, 3, 0))
        sums = transposed(n, integers, weights, shape, wanted[1:3], _strides(n), quantised=plain)
        conv = scaled(b, sums, scale, right.scales)
        return n.result(b.op("nn.bias_add", conv, n.real(3), axis=3) if n.has(3) else conv)
    conv = transposed(n, n.real(2), b.transpose(n.real(1), (3, 0, 1, 2)), shape, wanted[1:3], _strides(n))
    if n.has(3):
        conv = b.op("nn.bias_add", conv, n.real(3), axis=3)
    return n.result(conv)


def _strides(n: Node) -> tuple[int, int]:
    return n.options["stride_h"], n.options["stride_w"]


def transposed(
    n: Node,
    x: Expr,
    weights: Expr,
    shape: tuple[int, ...],
    size: Any,
    strides: tuple[int, int],
    same_pad: bool | None = None,
    quantised: Sequence[Expr] = (),
    sums: str = "int32",
) -> Any:
    """A transposed convolution of NHWC data.

    `weights` are (I, O, H, W); `shape` is OHWI; `size` is the result's height and width. `quantised` are zero points and
    scales for a product of integers, whose type is `sums`; its `weights` are (H, W, I, O).
    """
    b = n.b
    pad = n.options.get("padding", 0) == 0 if same_pad is None else same_pad
    begin, end, extra = [], [], []
    for have, kernel, stride, out in zip(b.shape(x)[1:3], shape[1:3], strides, size):
        if not isinstance(have, int):
            raise Unsupported("the extents of its operand are not known; --shape gives them")
        full = (int(have) - 1) * stride + kernel
        total = max(full - out, 0)
        begin.append(total // 2 if pad else 0)
        end.append(total - begin[-1])
        extra.append(max(out - full, 0))
    attrs = {"strides": strides, "padding": [*begin, *end], "output_padding": extra, "channels": shape[0], "kernel_size": shape[1:3]}
    if quantised:
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return b.op("qnn.conv2d_transpose", x, weights, *quantised, **attrs, **layouts, out_dtype=sums)
    planes = b.transpose(x, (0, 3, 1, 2))
    conv = b.op("nn.conv2d_transpose", planes, weights, **attrs, data_layout="NCHW", kernel_layout="IOHW", out_dtype="")
    return b.transpose(conv, (0, 2, 3, 1))


def fully_connected(n: Node) -> Any:
    """Weights are (units, inputs), as Relay's; the operand becomes a matrix unless the axes in front are kept."""
    b = n.b
    if n.options.get("weights_format"):
        raise Unsupported("its weights are shuffled for another machine")
    units, depth = b.static_shape(n.x(1), "the weights")
    front = list(b.shape(n.x(0))[:-1])
    integers = _integers(n)
    data = b.reshape(n.x(0) if integers else n.real(0), [-1, depth])
    if integers:
        sums = b.op("qnn.dense", data, n.x(1), *_products(n, 0, 1), units=units, out_dtype=_sums(n, 0, 2))
        sums = _requantized(n, _with_bias(n, sums, 2), 1)
    else:
        by = matrix(n, [1]) if is_hybrid(n, 1) else Matrix(n.real(1))
        sums = _with_bias(n, product(n, data, by), 2)
    if n.options.get("keep_num_dims"):
        sums = b.reshape(sums, [-1 if not isinstance(d, int) else int(d) for d in front] + [units])
    return sums if integers else n.result(sums)


def _turned(n: Node, index: int, x: Expr) -> Expr:
    """An operand of a product, with its last axes exchanged by its options."""
    rank = n.b.rank(x)
    return n.b.transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if n.options.get(("adj_x", "adj_y")[index]) else x


def batch_matmul(n: Node) -> Any:
    """Real rows with int8 matrices are rounded, a row at a time."""
    b, right = n.b, n.q(1)
    x, y = (_turned(n, i, n.x(i)) for i in (0, 1))
    if n.q(0) is None and right is not None and right.per_tensor and is_hybrid(n, 1):
        rows, scale = rounded(b, b.reshape(x, [-1, b.extent(x, -1)]), bool(n.options.get("asymmetric_quantize_inputs")))
        front = [d if isinstance(d, int) else 0 for d in b.shape(x)[:-1]]
        rows, scale = b.reshape(rows, [*front, -1]), b.reshape(scale, [*front, 1])
        return scaled(b, matmul(b, rows, b.cast(y, b.dtype(rows)), "int32"), scale, right.scales)
    wide = is_whole(n, 0, 1, dtypes=("int16",)) and not any(q.zero_points.any() for q in (n.q(0), n.q(1)) if q is not None)
    if (wide or is_whole(n, 0, 1)) and b.rank(x) > 2 and b.shape(x)[:-2] == b.shape(y)[:-2]:
        flat = [b.reshape(v, [-1, *b.static_shape(v)[-2:]]) for v in (x, y)]
        plain = {"transpose_a": False, "transpose_b": False}
        if wide:
            sums = b.op("nn.batch_matmul", *[b.cast(v, "int64") for v in flat], **plain, out_dtype="int64")
        else:
            sums = b.op("qnn.batch_matmul", *flat, *_products(n, 0, 1), **plain, out_dtype="int32")
        return b.reshape(_requantized(n, sums, -1), [*b.static_shape(x)[:-1], b.extent(y, -1)])
    return n.result(matmul(b, _turned(n, 0, n.real(0)), _turned(n, 1, n.real(1))))


def _pool_attrs(n: Node) -> dict[str, Any]:
    size = (n.options["filter_height"], n.options["filter_width"])
    return {**window(n, size), "pool_size": size, "layout": "NHWC"}


def max_pool(n: Node) -> Any:
    """The largest element; its integers are as large as its real numbers where both are stored alike."""
    b, attrs = n.b, _pool_attrs(n)
    if n.q(0) is not None and n.same_scales():
        return n.held(b.op("nn.max_pool2d", n.x(0), **attrs))
    return n.result(b.op("nn.max_pool2d", n.real(0), **attrs))


def average_pool(n: Node) -> Any:
    """A window over the whole picture is a sum. (qnn.avg_pool2d rounds towards 0, which would make each mean smaller.)"""
    b, attrs = n.b, _pool_attrs(n)
    if attrs["pool_size"] == b.shape(n.x(0))[1:3] and not any(attrs["padding"]):
        mean = added(n, (1, 2), True, mean=True)
        if mean is not None:
            return n.held(mean)
    if is_whole(n, 0) and n.same_scales():
        # TensorFlow Lite averages the stored numbers, and rounds halves away from zero.
        return n.held(n.stored(b.op("nn.avg_pool2d", n.numbers(0), count_include_pad=False, **attrs)))
    return n.result(b.op("nn.avg_pool2d", n.real(0), count_include_pad=False, **attrs))


def l2_pool(n: Node) -> Any:
    b, x = n.b, n.real(0)
    return n.result(b.op("sqrt", b.op("nn.avg_pool2d", b.op("multiply", x, x), count_include_pad=False, **_pool_attrs(n))))


RULES = (
    Rule("AVERAGE_POOL_2D", average_pool),
    Rule("BATCH_MATMUL", batch_matmul),
    Rule("CONV_2D", conv_2d),
    Rule("DEPTHWISE_CONV_2D", depthwise_conv_2d),
    Rule("FULLY_CONNECTED", fully_connected),
    Rule("L2_POOL_2D", l2_pool),
    Rule("MAX_POOL_2D", max_pool),
    Rule("TRANSPOSE_CONV", transpose_conv),
)
