"""Whole numbers with ranges, as `mxnet.contrib.quantization` makes them, with the scales of oneDNN.

A quantised tensor is three results: the numbers, and the least and greatest real number. The ranges are constants. Zero is 0,
and the greater end of the range is half a step beyond the greatest number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common.quantized import limits
from relaylang.frontends.mxnet.families.activation import FUNCTIONS
from relaylang.frontends.mxnet.families.conv import Window
from relaylang.frontends.mxnet.families.pool import pooling
from relaylang.frontends.mxnet.families.sequence import fifo_buffer
from relaylang.frontends.mxnet.node import Node
from relaylang.frontends.mxnet.reader import Layer
from relaylang.ir import Expr

#: Steps between 0 and the greater end of a range.
_STEPS = {"int8": 127.5, "uint8": 255.5, "int32": float(2**31 - 1)}


def _range(n: Node, low: Expr, high: Expr) -> tuple[float, float]:
    """The ends of a range. Raises `Unsupported` where the program computes them."""
    b = n.b
    if b.value(low) is None or b.value(high) is None:
        raise Unsupported("its range is not known before it runs; calibrate the network")
    return float(b.need(low, "a range").reshape(-1)[0]), float(b.need(high, "a range").reshape(-1)[0])


def _scale(dtype: str, low: float, high: float) -> float:
    """The real number of one step. Raises `Unsupported` for another element type."""
    if dtype not in _STEPS:
        raise Unsupported(f"it quantises to {dtype}")
    return max(abs(low), abs(high), 1e-30) / _STEPS[dtype]


def _of(n: Node, x: Expr, low: Expr, high: Expr) -> float:
    return _scale(n.b.dtype(x), *_range(n, low, high))


def _ends(b: Builder, low: float, high: float) -> list[Expr]:
    return [b.const(np.array([end], "float32")) for end in (low, high)]


def _zero(b: Builder) -> Expr:
    return b.const(0, "int32")


def _factor(b: Builder, scale: float | np.ndarray) -> Expr:
    return b.const(np.asarray(scale, "float32"))


def _to_real(b: Builder, x: Expr, scale: float | np.ndarray, axis: int = -1) -> Expr:
    real: Expr = b.op("qnn.dequantize", x, _factor(b, scale), _zero(b), axis=axis, out_dtype="float32")
    return real


def _to_steps(b: Builder, x: Expr, scale: float, dtype: str) -> Expr:
    steps: Expr = b.op("qnn.quantize", x, _factor(b, scale), _zero(b), out_dtype=dtype)
    return steps


def _calibrated(n: Node) -> tuple[float, float, str] | None:
    """The range that calibration found for a result, and the element type for it."""
    if not n.has("min_calib_range") or not n.has("max_calib_range"):
        return None
    low, high = n.float("min_calib_range"), n.float("max_calib_range")
    return low, high, "uint8" if low >= 0 else "int8"


def quantize_v2(n: Node, x: Expr) -> Any:
    b, calibrated = n.b, _calibrated(n)
    if calibrated is None:
        raise Unsupported("its range is not known before it runs; calibrate the network")
    low, high, dtype = calibrated
    kind = n.choice("out_type", "int8", ("auto", "int8", "uint8"))
    dtype = dtype if kind == "auto" else kind
    if b.dtype(x) == dtype:
        return [x, *_ends(b, low, high)]
    if dtype == "int8":
        high = max(abs(low), abs(high))
        low = -high
    return [_to_steps(b, x, _scale(dtype, low, high), dtype), *_ends(b, low, high)]


def quantize(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    """The older form, whose greatest number is the end of the range."""
    b, dtype = n.b, n.choice("out_type", "uint8", ("int8", "uint8"))
    ends = _range(n, low, high)
    most = max(map(abs, ends))
    quantized = _to_steps(b, x, max(most, 1e-30) / limits(dtype)[1], dtype)
    if dtype == "int8":
        quantized = b.op("clip", quantized, a_min=-127.0, a_max=127.0)
    return [quantized, *_ends(b, -most if dtype == "int8" or ends[0] < 0 else 0.0, most)]


def dequantize(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    return _to_real(n.b, x, _of(n, x, low, high))


def requantize(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    b, calibrated = n.b, _calibrated(n)
    if calibrated is None:
        raise Unsupported("its range is not known before it runs; calibrate the network")
    least, most, dtype = calibrated
    kind = n.choice("out_type", "int8", ("auto", "int8", "uint8"))
    dtype = dtype if kind == "auto" else kind
    if dtype == "int8":
        most = max(abs(least), abs(most))
        least = -most
    return [_requantized(b, x, _of(n, x, low, high), _scale(dtype, least, most), dtype), *_ends(b, least, most)]


def _requantized(b: Builder, x: Expr, scale: float | np.ndarray, to: float, dtype: str, axis: int = -1) -> Expr:
    steps: Expr = b.op("qnn.requantize", x, _factor(b, scale), _zero(b), _factor(b, to), _zero(b), axis=axis, out_dtype=dtype)
    return steps


# ---- layers that keep the steps


def _kept(n: Node, result: Expr, low: Expr, high: Expr) -> list[Expr]:
    return [result, low, high]


def flatten(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    return _kept(n, x if n.b.rank(x) == 2 else n.b.op("nn.batch_flatten", x), low, high)


def buffer(n: Node, x: Expr, kept: Expr, low: Expr, high: Expr) -> Any:
    """The newest elements of a stream; both operands have one range."""
    return _kept(n, fifo_buffer(n, x, kept), low, high)


def activation(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    n.choice("act_type", "", ("relu",))
    return _kept(n, n.b.op("maximum", x, 0), low, high)


def pool(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    """Means are rounded to the nearest step."""
    b = n.b
    if n.string("pool_type", "max") == "max":
        return _kept(n, pooling(n, x), low, high)
    scale, dtype = _of(n, x, low, high), b.dtype(x)
    return _kept(n, _to_steps(b, pooling(n, _to_real(b, x, scale)), scale, dtype), low, high)


def concat(n: Node, *xs: Expr) -> Any:
    """Tensors in the steps of the widest range."""
    b, count = n.b, n.int("num_args")
    if count < 1 or len(xs) != 3 * count:
        raise Malformed(f"it has {len(xs)} operands for {count} tensors with ranges")
    data = xs[:count]
    ranges = [_range(n, xs[count + 2 * i], xs[count + 2 * i + 1]) for i in range(count)]
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    dtype = "int8" if any(b.dtype(x) == "int8" for x in data) else "uint8"
    to = _scale(dtype, low, high)
    parts = []
    for x, ends in zip(data, ranges):
        own = _scale(b.dtype(x), *ends)
        parts.append(x if own == to and b.dtype(x) == dtype else _requantized(b, x, own, to, dtype))
    return [b.concat(parts, n.axis("dim", b.rank(data[0]), 1)), *_ends(b, low, high)]


def _elementwise(operator: str) -> Any:
    def convert(n: Node, x: Expr, y: Expr, x_low: Expr, x_high: Expr, y_low: Expr, y_high: Expr) -> Any:
        """Sums and products of real numbers, in the steps of the calibrated range; without one, int32 or real."""
        b = n.b
        real = b.op(operator, _to_real(b, x, _of(n, x, x_low, x_high)), _to_real(b, y, _of(n, y, y_low, y_high)))
        calibrated = _calibrated(n)
        if calibrated is not None:
            low, high, dtype = calibrated
            dtype = dtype if operator == "add" else "int8"
            return [_to_steps(b, real, _scale(dtype, low, high), dtype), *_ends(b, low, high)]
        if n.bool("enable_float_output"):
            return [real]
        raise Unsupported("its range is not known before it runs; calibrate the network")

    return convert


def batch_norm(n: Node, x: Expr, gamma: Expr, beta: Expr, mean: Expr, var: Expr, low: Expr, high: Expr) -> Any:
    b, calibrated = n.b, _calibrated(n)
    if calibrated is None:
        raise Unsupported("its range is not known before it runs; calibrate the network")
    gamma = b.op("ones_like", gamma) if n.bool("fix_gamma", True) else gamma
    real = _to_real(b, x, _of(n, x, low, high))
    how = {"axis": n.axis("axis", b.rank(x), 1), "epsilon": n.float("eps", 1e-3)}
    normalised = b.fields(b.op("nn.batch_norm", real, gamma, beta, mean, var, **how))[0]
    least, most, _ = calibrated
    return [_to_steps(b, normalised, _scale("int8", least, most), "int8"), *_ends(b, least, most)]


def embedding(n: Node, index: Expr, weight: Expr, low: Expr, high: Expr) -> Any:
    b = n.b
    places = b.op("clip", b.cast(index, "int32"), a_min=0.0, a_max=float(b.extent(weight, 0) - 1))
    return _kept(n, b.op("take", weight, places, axis=0, mode="fast"), low, high)


# ---- convolutions and dense layers


def _product(
    n: Node, x: Expr, weight: Expr, scale: float, weight_scale: float | np.ndarray, window: Window | None, groups: int
) -> Expr:
    """Sums of int32: a convolution with the window, or a dense layer without one."""
    b = n.b
    shape = b.static_shape(weight, "the weight")
    scales = _factor(b, scale), _factor(b, weight_scale)
    zeros = _zero(b), _zero(b)
    sums: Expr
    if window is None:
        sums = b.op("qnn.dense", x, weight, *zeros, *scales, units=shape[0], out_dtype="int32")
        return sums
    pads = [p[0] for p in window.pads] + [p[1] for p in window.pads]
    sums = b.op(
        "qnn.conv2d",
        x,
        weight,
        *zeros,
        *scales,
        strides=window.strides,
        padding=pads,
        dilation=window.dilations,
        groups=groups,
        channels=shape[0],
        kernel_size=list(shape[2:]),
        out_dtype="int32",
    )
    return sums


def _with_bias(n: Node, sums: Expr, bias: np.ndarray | None, scale: float | np.ndarray) -> Expr:
    """Sums with a real bias in their own steps."""
    if bias is None:
        return sums
    steps = np.clip(np.rint(bias / np.asarray(scale)), -(2.0**31), 2.0**31 - 1).astype("int32")
    total: Expr = n.b.op("nn.bias_add", sums, n.b.const(steps), axis=1)
    return total


def _sums(n: Node, sums: Expr, scale: float) -> list[Expr]:
    """Sums of int32 and their range."""
    most = scale * _STEPS["int32"]
    return [sums, *_ends(n.b, -most, most)]


def _plain(dense: bool) -> Any:
    def convert(n: Node, x: Expr, weight: Expr, *rest: Expr) -> Any:
        """`_contrib_quantized_conv` and `..._fully_connected`: all operands are quantised, and the result is int32."""
        b, none = n.b, n.bool("no_bias")
        if len(rest) != (4 if none else 7):
            raise Malformed(f"it has {len(rest) + 2} operands; it must have {6 if none else 9}")
        bias, ends = (None, rest) if none else (rest[0], rest[1:])
        # These layers count a step as a whole part of the range, unlike those that quantise.
        own, other = (
            _of(n, v, low, high) * _STEPS[b.dtype(v)] / limits(b.dtype(v))[1]
            for v, low, high in ((x, *ends[:2]), (weight, *ends[2:4]))
        )
        if dense and b.rank(x) != 2:
            x = b.op("nn.batch_flatten", x)
        window = None if dense else Window(n, b.rank(x) - 2)
        sums = _product(n, x, weight, own, other, window, n.int("num_group", 1))
        real = None
        if bias is not None:
            real = b.need(bias, "the bias").astype("float64") * _of(n, bias, ends[4], ends[5])
        return _sums(n, _with_bias(n, sums, real, own * other), own * other)

    return convert


@dataclass
class _Fused:
    """The layers inside of a fused one: the product, and whether normalisation, a sum and functions are around it."""

    n: Node
    layers: dict[str, Layer]
    functions: list[Layer]

    def node(self, name: str) -> Node:
        """A layer inside by its operator."""
        if name not in self.layers:
            raise Malformed(f"its graph has no {name}")
        return Node(self.n.importer, self.n.graph, self.layers[name])

    def activated(self, x: Expr) -> Expr:
        """Real numbers after the functions inside."""
        for layer in self.functions:
            inner = Node(self.n.importer, self.n.graph, layer)
            if layer.op == "Activation":
                x = FUNCTIONS[inner.choice("act_type", "", FUNCTIONS)](self.n.b, x)
            elif layer.op == "clip":
                x = self.n.b.op("clip", x, a_min=inner.float("a_min"), a_max=inner.float("a_max"))
            elif layer.op in ("relu", "sigmoid", "tanh", "abs", "exp", "sqrt"):
                x = self.n.b.op("nn.relu" if layer.op == "relu" else layer.op, x)
            else:
                raise Unsupported(f"it has a {layer.op} inside")
        return x


def _fused(n: Node, allowed: Sequence[str]) -> _Fused:
    if len(n.graphs) != 1:
        raise Malformed(f"it has {len(n.graphs)} graphs inside; it must have 1")
    inside = [layer for layer in n.graphs[0].nodes if layer.op != "null"]
    layers = {layer.op: layer for layer in inside if layer.op in allowed}
    return _Fused(n, layers, [layer for layer in inside if layer.op not in allowed])


def _result(n: Node, fused: _Fused, sums: Expr, scale: float | np.ndarray, other: Expr | None, float_too: bool) -> list[Expr]:
    """Sums of int32 as the layer gives them: after a sum and functions, in the calibrated range's steps or real."""
    b, calibrated = n.b, None if n.bool("enable_float_output") else _calibrated(n)
    axis = 1 if np.ndim(scale) else -1
    relu = all(layer.op in ("Activation", "relu") and layer.attributes.get("act_type", "relu") == "relu" for layer in fused.functions)
    if calibrated is not None and other is None and relu:
        low, high, dtype = calibrated
        steps = _requantized(b, sums, scale, _scale(dtype, low, high), dtype, axis)
        if fused.functions and dtype == "int8":
            steps = b.op("maximum", steps, 0)
        return [steps, *_ends(b, low, high)]
    real = _to_real(b, sums, scale, axis)
    real = fused.activated(real if other is None else b.op("add", real, other))
    if calibrated is None:
        if not float_too and not n.bool("enable_float_output"):
            raise Unsupported("its range is not known before it runs; calibrate the network")
        return [real]
    low, high, dtype = calibrated
    return [_to_steps(b, real, _scale(dtype, low, high), dtype), *_ends(b, low, high)]


def fused_conv(n: Node, *xs: Expr) -> Any:
    """`_sg_mkldnn_conv`: a convolution with normalisation, a sum and a function after it, in whole numbers or real ones."""
    b = n.b
    if not n.bool("quantized"):
        return n.importer.convert_body(n, n.graphs[0], xs) if len(n.graphs) == 1 else []
    fused = _fused(n, ("Convolution", "BatchNorm", "elemwise_add", "_plus", "broadcast_add"))
    conv = fused.node("Convolution")
    rest = list(xs)
    total = n.bool("with_sum")
    if len(xs) < (7 if total else 4):
        raise Malformed(f"it has {len(xs)} operands, too few for a convolution with ranges")
    ends = [rest.pop() for _ in range(4 if total else 2)][::-1]
    summand = rest.pop() if total else None
    # Weights are float32 until they are rounded, as in MXNet, so that those in the middle of two steps go the same way.
    x, kernel = rest[0], b.need(rest[1], "the weight").astype("float32")
    bias = b.need(rest[2], "the bias").astype("float32") if not conv.bool("no_bias") and len(rest) > 2 else None
    if n.bool("with_bn"):
        norm = fused.node("BatchNorm")
        states = [b.need(v, "a normalisation's state").astype("float32") for v in rest[2 + (bias is not None) :]]
        if len(states) != 4:
            raise Malformed(f"its normalisation has {len(states)} operands; it must have 4")
        gamma, beta, mean, var = states
        gamma = np.ones_like(gamma) if norm.bool("fix_gamma", True) else gamma
        factor = gamma / np.sqrt(var + np.float32(norm.float("eps", 1e-3)))
        kernel = kernel * np.reshape(factor, (-1, *[1] * (kernel.ndim - 1)))
        bias = beta - mean * factor + (0.0 if bias is None else bias * factor)
    own = _of(n, x, ends[0], ends[1])
    scales, steps = _weight_steps(kernel, bias, own)
    if kernel.ndim != 4:
        raise Unsupported("quantised convolutions have two spatial axes")
    sums = _product(n, x, b.const(steps), own, scales, Window(conv, 2), conv.int("num_group", 1))
    sums = _with_bias(n, sums, bias, own * scales)
    other = None
    if summand is not None:
        other = summand if "float" in b.dtype(summand) else _to_real(b, summand, _of(n, summand, ends[2], ends[3]))
    return _result(n, fused, sums, own * scales, other, float_too=False)


def _weight_steps(kernel: np.ndarray, bias: np.ndarray | None, own: float) -> tuple[np.ndarray, np.ndarray]:
    """The scale of each channel, by its greatest weight, in which the bias fits into 31 bits; and the weights in its steps."""
    most = np.abs(kernel).reshape(len(kernel), -1).max(axis=1)
    rates = np.where(most == 0, np.float32(1), np.float32(_STEPS["int8"]) / np.where(most == 0, np.float32(1), most))
    if bias is not None:
        room = np.abs(bias) * 2 / (own * _STEPS["int32"])
        rates = np.minimum(rates, 1 / np.maximum(room, 1e-30)).astype("float32")
    steps = np.rint(kernel * rates.reshape(-1, *[1] * (kernel.ndim - 1)))
    return 1 / rates.astype("float64"), np.clip(steps, -128, 127).astype("int8")


def fused_dense(n: Node, *xs: Expr) -> Any:
    """`_sg_mkldnn_fully_connected`: a dense layer with a function after it, in whole numbers or real ones."""
    b = n.b
    if not n.bool("quantized"):
        return n.importer.convert_body(n, n.graphs[0], xs) if len(n.graphs) == 1 else []
    fused = _fused(n, ("FullyConnected",))
    dense = fused.node("FullyConnected")
    none, each = dense.bool("no_bias"), n.bool("channel_wise_quantize")
    count = (2 if none else 3) + 2 + (0 if each else 2 if none else 4)
    if len(xs) != count:
        raise Malformed(f"it has {len(xs)} operands; it must have {count}")
    x, weight, ends = xs[0], xs[1], xs[2 if none else 3 :]
    own = _of(n, x, ends[0], ends[1])
    bias = None if none else b.need(xs[2], "the bias").astype("float64")
    scales: float | np.ndarray
    if each:
        scales, steps = _weight_steps(b.need(weight, "the weight").astype("float32"), bias, own)
        weight = b.const(steps)
    else:
        scales = _of(n, weight, ends[2], ends[3])
        if bias is not None and "float" not in b.dtype(xs[2]):
            bias = bias * _of(n, xs[2], ends[4], ends[5])
    if b.rank(x) != 2:
        if not dense.bool("flatten", True):
            raise Unsupported("quantised dense layers take matrices")
        x = b.op("nn.batch_flatten", x)
    sums = _with_bias(n, _product(n, x, weight, own, scales, None, 1), bias, own * scales)
    return _result(n, fused, sums, own * scales, None, float_too=False)


RULES = (
    Rule("_contrib_quantize_v2", quantize_v2),
    Rule("_contrib_quantize", quantize),
    Rule("_contrib_dequantize", dequantize),
    Rule("_contrib_requantize", requantize),
    Rule("_contrib_quantized_flatten", flatten),
    Rule("_contrib_quantized_ring_buffer", buffer),
    Rule("_contrib_quantized_act", activation),
    Rule("_contrib_quantized_pooling", pool),
    Rule("_contrib_quantized_concat", concat),
    Rule("_contrib_quantized_elemwise_add", _elementwise("add")),
    Rule("_contrib_quantized_elemwise_mul", _elementwise("multiply")),
    Rule("_contrib_quantized_batch_norm", batch_norm),
    Rule("_contrib_quantized_embedding", embedding),
    Rule("_contrib_quantized_conv", _plain(dense=False)),
    Rule("_contrib_quantized_fully_connected", _plain(dense=True)),
    Rule("_sg_mkldnn_conv", fused_conv),
    Rule("_sg_mkldnn_fully_connected", fused_dense),
)
