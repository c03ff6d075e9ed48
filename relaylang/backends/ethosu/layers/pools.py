"""Pooling layers for the Ethos-U.

Relay averages whole numbers by dividing their sum with truncation towards zero; the accelerator's average rounds. So an
average is written as a sum: a depthwise convolution with twos, or fours. Its rescale rounds where the truncation would fall.
With n numbers in a window, sum s, and rounding half up,

    floor(s / n) = round((2 s - n + 1) / 2 n)        ceil(s / n) = round((2 s + n - 1) / 2 n)

and the truncation is max(floor, min(ceil, 0)). The rescale's multiplier is off by 2^-31 at most. So the value is off by
2^-22, for int16 by 2^-14. The nearest midpoint is 1 / 2n away, at least 2^-13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.operands import (
    BYTES,
    RANGES,
    Output,
    check_exact,
    clamp_of,
    constant,
    feature_type,
    in_range,
    narrow,
    op_name,
    scalar,
    scales,
    spread_of,
    tail,
    tensor_of,
)
from relaylang.backends.ethosu.layers.windows import check_steps, exact_padding, nchw, padding4, pair
from relaylang.backends.ethosu.layers.writer import CHANNELS_LAST, Composite, Sides, Value, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, TensorType
from relaylang.partition.fixed_point import Rescale, multiplier_and_shift, unscaled


@dataclass(frozen=True)
class Pool:
    """Maximum over windows; `pad` is (top, left, bottom, right), negative where no window reaches the last rows."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int, int, int]
    layout: str


@dataclass(frozen=True)
class AvgPool:
    """The truncated average over windows, then `out` of it less `out_input_zp`.

    `signed` says whether a sum can be negative.
    """

    window: Pool
    signed: bool
    out: Output
    out_input_zp: int

    @property
    def numbers(self) -> int:
        """How many numbers a window has."""
        return self.window.kernel[0] * self.window.kernel[1]

    def division(self, weight: int) -> Rescale:
        """The rescale of sums of numbers times `weight`, by 1 / (weight n)."""
        multiplier, shift = multiplier_and_shift(1 / (weight * self.numbers))
        return Rescale((multiplier,), (shift,), 0)


@dataclass(frozen=True)
class RoundedPool:
    """Averages over what lies on the image, less a zero point and plus another. Halves are rounded away from zero.

    The accelerator's own average does that: the multiplier of TOSA's is a little too large.
    """

    window: Pool
    input_zp: int
    output_zp: int
    dtype: str


def read_max_pool(calls: Sequence[Call]) -> Pool:
    """nn.max_pool2d of a feature map."""
    (call,) = calls
    feature_type(call.args[0])
    pool = _window(call)
    if any(p >= k for p, k in zip(pool.pad, (*pool.kernel, *pool.kernel))):
        raise Unsupported("a padding as wide as the window")
    if pool.kernel[0] > 256 or pool.kernel[0] * pool.kernel[1] > 65536:
        raise Unsupported(f"a window of {pool.kernel[0]} x {pool.kernel[1]}")
    return pool


def read_avg_pool(calls: Sequence[Call]) -> AvgPool | RoundedPool:
    """cast(int32) nn.avg_pool2d, then cast or qnn.requantize, then limits; or qnn.avg_pool2d, then limits.

    Or nn.avg_pool2d between qnn.dequantize and qnn.quantize.
    """
    calls = list(calls)
    if op_name(calls[0]) == "qnn.dequantize":
        return _read_real_pool(*calls)
    if op_name(calls[0]) == "qnn.avg_pool2d":
        return _read_qnn_avg_pool(calls)
    if op_name(calls[0]) != "cast":
        dtype = tensor_of(calls[0].args[0], "its input").dtype
        raise Unsupported(f"it adds in {dtype}, which may overflow; cast to int32 in front of it and back behind it")
    widened, pool, *rest = calls
    source = feature_type(widened.args[0])
    if tensor_of(widened, "the result of the cast").dtype != "int32":
        raise Unsupported("it is taken on int32 only")
    return average_of(_average_window(pool), source, rest)


def average_of(window: Pool, source: TensorType, rest: Sequence[Call]) -> AvgPool:
    """Averages of a tensor widened to int32, and the calls behind: cast or qnn.requantize, then limits."""
    low, high = RANGES[source.dtype]
    input_zp = 0
    if op_name(rest[0]) == "qnn.requantize":
        input_zp = scalar(rest[0].args[2], "its input zero point")
        if not low <= input_zp <= high:
            raise Unsupported(f"the input zero point {input_zp} is no {source.dtype} number")
        if constant(rest[0].args[1], "its input scale").size != 1:
            raise Unsupported("scales of channels behind an average")
        out = tail(rest, np.array([spread_of(source.dtype, input_zp)]))
    else:
        low, high, dtype = narrow(rest, low, high, "int32")
        if dtype != source.dtype:
            raise Unsupported(f"the average of {source.dtype} becomes {dtype}")
        out = Output(dtype, None, clamp_of(low, high, dtype))
    return AvgPool(window, source.dtype != "uint8", out, input_zp)


def _read_real_pool(first: Call, pool: Call, last: Call) -> RoundedPool:
    source = feature_type(first.args[0], dtypes=BYTES)
    if feature_type(last, "its result", BYTES).dtype != source.dtype:
        raise Unsupported("its input and its result are of two types")
    window = _window(pool)
    _check_window(window)
    if any(p > 0 for p in window.pad):
        if max(window.stride) > 3:  # the compiler would give the U85 wrong windows
            raise Unsupported(f"padding, and steps of {max(window.stride)}; at most 3 are taken")
        if max(window.kernel) > 8:  # the compiler would split it, and move padding to the other side
            raise Unsupported(f"padding, and a window of {window.kernel[0]} x {window.kernel[1]}; at most 8 x 8 is taken")
        if pool.attrs.count_include_pad:
            raise Unsupported("an average of real numbers that counts the padding")
        if source.shape[0] != 1 or any(p >= k for p, k in zip(window.pad, (*window.kernel, *window.kernel))):
            raise Unsupported("padding around several images, or as wide as the window")
    input_zp, output_zp = (in_range(scalar(call.args[2], "a zero point"), source.dtype, "a zero point") for call in (first, last))
    numbers = window.kernel[0] * window.kernel[1]
    check_exact(first.args[1], last.args[1], spread_of(source.dtype, input_zp) * numbers)
    return RoundedPool(window, input_zp, output_zp, source.dtype)


def _check_window(window: Pool) -> None:
    kh, kw = window.kernel
    if kh * kw > 4096 or kh > 64:
        raise Unsupported(f"a window of {kh} x {kw}; at most 64 rows and 4096 numbers")


def _read_qnn_avg_pool(calls: list[Call]) -> AvgPool:
    pool, *rest = calls
    source = feature_type(pool.args[0])
    input_scale, output_scale = scales(pool.args[1], "its input scale"), scales(pool.args[3], "its output scale")
    same_zp = scalar(pool.args[2], "its input zero point") == scalar(pool.args[4], "its output zero point")
    if input_scale.size != 1 or output_scale.size != 1 or input_scale.flat[0] != output_scale.flat[0] or not same_zp:
        raise Unsupported("its input and output scales differ: Relay averages rescaled numbers that int8 does not hold")
    low, high, dtype = narrow(rest, *RANGES[source.dtype], source.dtype)
    if dtype != source.dtype:
        raise Unsupported(f"a cast to {dtype} behind it")
    out = Output(dtype, None, clamp_of(low, high, dtype))
    return AvgPool(_average_window(pool), source.dtype != "uint8", out, 0)


def _average_window(call: Call) -> Pool:
    window = _window(call)
    _check_window(window)
    if op_name(call) == "nn.global_avg_pool2d":
        return window
    check_steps(window.stride, nchw(tensor_of(call.args[0], "its input").shape, window.layout)[1])
    padding = padding4(call.attrs.padding)
    if any(have > asked for have, asked in zip(window.pad, padding)):
        raise Unsupported("a window that ceil_mode lets reach beyond the padding")
    if any(p > 0 for p in window.pad) and not call.attrs.count_include_pad:
        raise Unsupported("an average that does not count the padding divides by another number at the border")
    return window


def _window(call: Call) -> Pool:
    attrs = call.attrs
    if attrs.layout not in ("NCHW", "NHWC") or attrs.out_layout not in ("", attrs.layout):
        raise Unsupported(f"layout {attrs.layout}; NCHW and NHWC are taken")
    _, _, h, w = nchw(tensor_of(call.args[0], "its input").shape, attrs.layout)
    if op_name(call).startswith("nn.global"):
        return Pool((h, w), (1, 1), (0, 0, 0, 0), attrs.layout)
    if pair(attrs.dilation) != (1, 1):
        raise Unsupported("a dilated pool")
    kernel, stride = pair(attrs.pool_size), pair(attrs.strides)
    _, _, oh, ow = nchw(tensor_of(call, "its result").shape, attrs.layout)
    pad = exact_padding((h, w), (oh, ow), kernel, padding4(attrs.padding), stride, (1, 1))
    return Pool(kernel, stride, pad, attrs.layout)


def pool(w: Writer, layer: Pool, at: Composite) -> Value:
    """A maximum over windows."""
    perm = CHANNELS_LAST[layer.layout]
    x = w.fit(w.in_order(at.source, perm), layer.pad)
    x, pad = w.padded(x, layer.pad, int(np.iinfo(x.dtype).min), layer.stride)
    out = w.graph.max_pool2d(x, layer.kernel, layer.stride, pad)
    if max(layer.stride) > 3:  # Vela splits the pool, and has a rescale that it joins write all parts to one place
        out = w.held(out)
    return Value(at.source.dtype, {perm: out})


def _rounded(w: Writer, layer: RoundedPool, at: Composite) -> Value:
    window, offset = layer.window, at.source.offset
    perm = CHANNELS_LAST[window.layout]
    x, pad = w.padded(w.fit(w.in_order(at.source, perm), window.pad), window.pad, layer.input_zp - offset)
    zero_points = layer.input_zp - offset, layer.output_zp - offset
    out = w.graph.avg_pool2d(x, window.kernel, *zero_points, stride=window.stride, pad=pad)
    return Value(layer.dtype, {perm: out})


def average(w: Writer, layer: AvgPool | RoundedPool, at: Composite) -> Value:
    if isinstance(layer, RoundedPool):
        return _rounded(w, layer, at)
    window = layer.window
    perm = CHANNELS_LAST[window.layout]
    x = w.fit(w.in_order(at.source, perm), window.pad)
    x, pad = w.padded(x, window.pad, -at.source.offset, window.stride)
    return Value(layer.out.dtype, {perm: averaged(w, x, pad, layer, at.source)})


def averaged(w: Writer, x: Tensor, pad: Sides, layer: AvgPool, source: Value) -> Tensor:
    """Sums of NHWC whose rescale rounds down, and up where sums can be negative; see the layer's file.

    Vela takes convolutions with equal weights for one, though their biases differ. So each direction has its own weight.
    """
    graph, window, channels = w.graph, layer.window, x.shape[3]

    def divided(weight: int, rounding: int, dtype: str) -> Tensor:
        total = graph.conv2d(
            x,
            np.full((*window.kernel, channels, 1), weight, np.int8),
            np.full(channels, weight // 2 * rounding, np.int32),
            pad=pad,
            stride=window.stride,
            dilation=(1, 1),
            input_zp=-source.offset,
            weight_zp=0,
            depthwise=True,
        )
        return w.rescale(total, layer.division(weight), dtype)

    n = layer.numbers
    if layer.signed:
        up = graph.binary("MINIMUM", divided(4, n - 1, "int32"), w.number(0))
        average = graph.binary("MAXIMUM", divided(2, 1 - n, "int32"), up)
        average = w.rescale(average, unscaled(), source.dtype)
    else:
        average = divided(2, 1 - n, source.dtype)
    return w.finish(average, layer.out, layer.out_input_zp - source.offset)
