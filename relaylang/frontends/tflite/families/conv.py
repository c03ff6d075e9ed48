"""Convolutions, fully connected layers, products of matrices and pools, in NHWC."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.common.nn import matmul, padding_of, same_padding
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


def _with_bias(n: Node, made: Expr, index: int, axis: int = -1) -> Any:
    return n.b.op("nn.bias_add", made, n.x(index), axis=axis) if n.has(index) else made


def _scale_of_products(n: Node, data: int, weight: int) -> np.ndarray:
    """The scale of an accumulator: of each output channel, or of all."""
    left, right = n.q(data), n.q(weight)
    assert left is not None and right is not None
    return (left.scales.astype(np.float64) * right.scales).astype(np.float32)


def _requantized(n: Node, made: Expr, scale: np.ndarray, axis: int) -> Any:
    """An accumulator as the result is stored, held to what the activation allows."""
    b, q = n.b, n.q_out()
    if q is None:
        raise Unsupported("its operands are quantised, and its result is not")
    scales = b.const(scale.reshape(()) if scale.size == 1 else scale)
    out_scale, out_zero = n.pair(q)
    least, most = n.range_of()
    made = b.op("qnn.requantize", made, scales, b.const(0, "int32"), out_scale, out_zero, axis=axis, out_dtype=n.out_dtype())
    info = np.iinfo(n.out_dtype())
    return made if (least, most) == (info.min, info.max) else b.op("clip", made, a_min=float(least), a_max=float(most))


def _integers(n: Node) -> bool:
    return n.q(0) is not None and n.q(1) is not None


def conv_2d(n: Node) -> Any:
    """Weights are stored as OHWI; groups follow from their channels."""
    b = n.b
    shape = b.static_shape(n.x(1), "the weights")
    channels = b.extent(n.x(0), 3, "the channels")
    groups = channels // shape[3]
    attrs: dict[str, Any] = dict(
        window(n, shape[1:3]), groups=groups, channels=shape[0], kernel_size=shape[1:3], data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    order = (1, 2, 3, 0)
    if not _integers(n):
        return n.result(_with_bias(n, b.op("nn.conv2d", n.real(0), _float_weights(n, 1, order), **attrs), 2))
    return _integer_conv(n, _weights(n, 1, order), attrs)


def _integer_conv(n: Node, weights: Expr, attrs: dict[str, Any]) -> Any:
    b, data, weight = n.b, n.q(0), n.q(1)
    assert data is not None and weight is not None
    (scale, zero), (w_scale, w_zero) = n.pair(data), n.pair(weight)
    if not weight.zero_points.any():
        w_zero = b.const(0, "int32")
    made = b.op("qnn.conv2d", n.x(0), weights, zero, w_zero, scale, w_scale, out_dtype="int32", **attrs)
    return _requantized(n, _with_bias(n, made, 2), _scale_of_products(n, 0, 1), 3)


def depthwise_conv_2d(n: Node) -> Any:
    """Weights are stored as 1HWC, with the multiplier inside the channels."""
    b = n.b
    shape = b.static_shape(n.x(1), "the weights")
    channels = b.extent(n.x(0), 3, "the channels")
    attrs: dict[str, Any] = dict(
        window(n, shape[1:3]), groups=channels, channels=shape[3], kernel_size=shape[1:3], data_layout="NHWC", kernel_layout="HWOI",
    )  # fmt: skip
    multiplier = shape[3] // channels
    made = [*shape[1:3], channels, multiplier]
    value, tensor = b.value(n.x(1)), n.ins[1]
    if _integers(n):
        weights = b.weight(tensor.name, value.reshape(made)) if value is not None and tensor else b.reshape(n.x(1), made)
        return _integer_conv(n, weights, attrs)
    if value is not None and n.q(1) is None and tensor is not None:
        weights = b.weight(tensor.name, value.reshape(made))
    else:
        weights = b.reshape(n.real(1), made)
    return n.result(_with_bias(n, b.op("nn.conv2d", n.real(0), weights, **attrs), 2))


def transpose_conv(n: Node) -> Any:
    """The result's shape is the first operand; weights are OHWI, and the bias is the fourth operand."""
    b = n.b
    wanted = n.ints(0, "the shape of the result")
    real = n.dequantized(n.x(1), q) if (q := n.q(1)) is not None else n.x(1)
    shape = b.static_shape(n.x(1), "the weights")
    made = transposed(n, n.real(2), b.transpose(real, (3, 0, 1, 2)), shape, wanted[1:3], _strides(n))
    if n.has(3):
        made = b.op("nn.bias_add", made, n.real(3), axis=3)
    return n.result(made)


def _strides(n: Node) -> tuple[int, int]:
    return n.options["stride_h"], n.options["stride_w"]


def transposed(
    n: Node, x: Expr, weights: Expr, shape: tuple[int, ...], size: Any, strides: tuple[int, int], same_pad: bool | None = None
) -> Any:
    """A transposed convolution of NHWC data with IOHW-like weights (I, O, H, W given as I, O, H, W after a transposition).

    `weights` are (I, O, H, W); `shape` is OHWI; `size` is the result's height and width.
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
    planes = b.transpose(x, (0, 3, 1, 2))
    made = b.op(
        "nn.conv2d_transpose", planes, weights, strides=strides, padding=[*begin, *end], output_padding=extra, channels=shape[0],
        kernel_size=shape[1:3], data_layout="NCHW", kernel_layout="IOHW",
    )  # fmt: skip
    return b.transpose(made, (0, 2, 3, 1))


def fully_connected(n: Node) -> Any:
    """Weights are (units, inputs), as Relay's; the operand becomes a matrix unless the axes in front are kept."""
    b = n.b
    units, depth = b.static_shape(n.x(1), "the weights")
    front = list(b.shape(n.x(0))[:-1])
    integers = _integers(n)
    data = b.reshape(n.x(0) if integers else n.real(0), [-1, depth])
    if integers:
        left, right = n.q(0), n.q(1)
        assert left is not None and right is not None
        (scale, zero), (w_scale, w_zero) = n.pair(left), n.pair(right)
        if not right.zero_points.any():
            w_zero = b.const(0, "int32")
        made = b.op("qnn.dense", data, n.x(1), zero, w_zero, scale, w_scale, units=units, out_dtype="int32")
        made = _requantized(n, _with_bias(n, made, 2), _scale_of_products(n, 0, 1), 1)
    else:
        made = _with_bias(n, b.op("nn.dense", data, n.real(1), units=units), 2)
    if n.options.get("keep_num_dims"):
        made = b.reshape(made, [-1 if not isinstance(d, int) else int(d) for d in front] + [units])
    return made if integers else n.result(made)


def batch_matmul(n: Node) -> Any:
    b = n.b
    x, y = n.real(0), n.real(1)
    if n.options.get("adj_x"):
        x = b.transpose(x, [*range(b.rank(x) - 2), b.rank(x) - 1, b.rank(x) - 2])
    if n.options.get("adj_y"):
        y = b.transpose(y, [*range(b.rank(y) - 2), b.rank(y) - 1, b.rank(y) - 2])
    return n.result(matmul(b, x, y))


def _pool_attrs(n: Node) -> dict[str, Any]:
    size = (n.options["filter_height"], n.options["filter_width"])
    return {**window(n, size), "pool_size": size, "layout": "NHWC"}


def max_pool(n: Node) -> Any:
    """The largest element; its integers are as large as its real numbers where both are stored alike."""
    b, attrs = n.b, _pool_attrs(n)
    if n.q(0) is not None and n.same_scales():
        made = b.op("nn.max_pool2d", n.x(0), **attrs)
        least, most = n.range_of()
        info = np.iinfo(n.out_dtype())
        return made if (least, most) == (info.min, info.max) else b.op("clip", made, a_min=float(least), a_max=float(most))
    return n.result(b.op("nn.max_pool2d", n.real(0), **attrs))


def average_pool(n: Node) -> Any:
    return n.result(n.b.op("nn.avg_pool2d", n.real(0), count_include_pad=False, **_pool_attrs(n)))


def l2_pool(n: Node) -> Any:
    b, x = n.b, n.real(0)
    return n.result(b.op("sqrt", b.op("nn.avg_pool2d", b.op("multiply", x, x), count_include_pad=False, **_pool_attrs(n))))


def conv_3d(n: Node) -> Any:
    """Weights are stored as DHWIO."""
    b = n.b
    shape = b.static_shape(n.x(1), "the weights")
    names = ("d", "h", "w")
    strides = tuple(n.options[f"stride_{a}"] for a in names)
    dilation = tuple(n.options.get(f"dilation_{a}factor", n.options.get(f"dilation_{a}_factor", 1)) for a in names)
    pads = [(0, 0)] * 3
    if n.options["padding"] == 0:
        pads = same_padding(b.shape(n.x(0))[1:4], shape[:3], strides, dilation)
    made = b.op(
        "nn.conv3d", n.real(0), n.real(1), strides=strides, dilation=dilation, padding=padding_of(pads),
        channels=shape[4], kernel_size=shape[:3], data_layout="NDHWC", kernel_layout="DHWIO",
    )  # fmt: skip
    return n.result(_with_bias(n, made, 2))


RULES = (
    Rule("AVERAGE_POOL_2D", average_pool),
    Rule("BATCH_MATMUL", batch_matmul),
    Rule("CONV_2D", conv_2d),
    Rule("CONV_3D", conv_3d),
    Rule("DEPTHWISE_CONV_2D", depthwise_conv_2d),
    Rule("FULLY_CONNECTED", fully_connected),
    Rule("L2_POOL_2D", l2_pool),
    Rule("MAX_POOL_2D", max_pool),
    Rule("TRANSPOSE_CONV", transpose_conv),
)
