"""Quantised numbers: real ones rounded as such, and conversions with their ranges.

Source: TensorFlow, core/kernels/fake_quant_ops_functor.h, quantize_op.cc and dequantize_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.quantized import dequantize as scaled
from relaylang.frontends.common.quantized import limits, round_even
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr


def _bits(n: Node) -> int:
    bits = n.int("num_bits", 8)
    if not 2 <= bits <= 16:
        raise Malformed(f"the attribute num_bits is {bits}; it must be from 2 to 16")
    return bits


def _fake(n: Node, x: Expr, low: np.ndarray, high: np.ndarray) -> Any:
    """Numbers rounded to those that so many bits hold between two ends; the ends move until 0 is among them."""
    b = n.b
    low, high = low.astype("float32"), high.astype("float32")
    least, most = np.float32(n.bool("narrow_range")), np.float32((1 << _bits(n)) - 1)
    none = (low == 0) & (high == 0)
    if (~none & (low >= high)).any():
        raise Malformed("a range of it ends before its begin")
    scale = (high - low) / (most - least)
    scale = np.where(none, np.float32(1), scale)
    start = least - low / scale
    zero = np.clip(np.floor(start + np.float32(0.5)), least, most)
    first, last = (least - zero) * scale, (most - zero) * scale
    inverse = np.float32(1) / scale
    shift = np.floor(-first * inverse + np.float32(0.5))
    held = b.op("minimum", b.op("maximum", x, b.const(first)), b.const(last))
    steps = b.op("multiply", b.op("subtract", held, b.const(first)), b.const(inverse))
    rounded = b.op("floor", b.op("add", b.op("subtract", steps, b.const(shift)), np.float32(0.5)))
    rounded = b.op("multiply", rounded, b.const(scale))
    return b.op("multiply", rounded, b.const((~none).astype("float32"))) if none.any() else rounded


def fake_quant(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    return _fake(n, x, _range(n, low, "its minimum"), _range(n, high, "its maximum"))


def fake_quant_channels(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    """A range for each channel, the last axis."""
    return _fake(n, x, n.b.need(n.b.of_rank(low, 1), "its minimum"), n.b.need(n.b.of_rank(high, 1), "its maximum"))


def _range(n: Node, x: Expr, what: str) -> np.ndarray:
    value = n.b.need(x, what)
    if value.size != 1:
        raise Unsupported(f"{what} has {value.size} elements")
    return value.reshape(())


def _scale(low: float, high: float, kind: str, narrow: bool) -> float:
    """The numbers of a step of 1, of ranges around 0: the greatest that lets both ends fit."""
    least, most = limits(kind)
    least += narrow
    factors = [end / real for end, real in ((least, low), (most, high)) if end * real > 0]
    if not factors:
        raise Malformed(f"its range goes from {low} to {high}")
    return min(factors)


def quantize(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    """Real numbers as whole ones by a range, and the range that these have."""
    b, kind = n.b, n.dtype("T")
    if n.int("axis", -1) != -1:
        raise Unsupported("it has a range for each channel")
    first, last = float(_range(n, low, "its minimum")), float(_range(n, high, "its maximum"))
    # The range holds 0, and is not narrower than the attribute says.
    first = min(first, 0.0)
    least_width = max(1.0, abs(first), abs(last)) * n.float("ensure_minimum_range", 0.01)
    last = max(last, 0.0, first + least_width)
    mode = n.choice("mode", "MIN_COMBINED", ("MIN_COMBINED", "MIN_FIRST", "SCALED"))
    even = n.choice("round_mode", "HALF_AWAY_FROM_ZERO", ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN")) == "HALF_TO_EVEN"
    least, most = limits(kind)
    if mode == "SCALED":
        narrow = n.bool("narrow_range")
        factor = np.float32(_scale(first, last, kind, narrow))
        low_end = float(np.float32((least + narrow) / float(factor)))
        high_end = float(np.float32(most / float(factor)))
        held = b.op("clip", x, a_min=low_end, a_max=high_end)
        steps = b.op("multiply", held, factor)
        rounded = round_even(b, steps) if even else b.op("round", steps)
        return [b.cast(rounded, kind), b.const(np.float32(low_end)), b.const(np.float32(high_end))]
    if mode == "MIN_FIRST":
        raise Unsupported("its mode is MIN_FIRST")
    factor = np.float32((most - least) / (last - first))
    held = b.op("subtract", b.op("clip", x, a_min=first, a_max=last), np.float32(first))
    steps = b.op("multiply", held, factor)
    if least < 0:
        steps = b.op("subtract", steps, np.float32((most - least + 1) / 2))
    rounded = b.op("round", steps)
    return [b.cast(rounded, kind), b.const(np.float32(first)), b.const(np.float32(last))]


def dequantize(n: Node, x: Expr, low: Expr, high: Expr) -> Any:
    b, kind = n.b, n.b.dtype(x)
    if n.int("axis", -1) != -1:
        raise Unsupported("it has a range for each channel")
    first, last = float(_range(n, low, "its minimum")), float(_range(n, high, "its maximum"))
    mode = n.choice("mode", "MIN_COMBINED", ("MIN_COMBINED", "MIN_FIRST", "SCALED"))
    least, most = limits(kind)
    dtype = n.dtype("dtype", "float32")
    if mode == "SCALED":
        narrow = n.bool("narrow_range")
        step = max(first / (least + narrow), last / most) if least < 0 else last / most
        return scaled(b, x, b.const(np.float32(step)), None, dtype=dtype)
    if mode == "MIN_FIRST":
        raise Unsupported("its mode is MIN_FIRST")
    half = (most - least + 1) / 2 if least < 0 else 0.0
    real = b.op("add", b.cast(x, "float32"), np.float32(half))
    factor = np.float32((last - first) / (most - least))
    return b.cast(b.op("add", b.op("multiply", real, factor), np.float32(first)), dtype)


def there_and_back(n: Node, x: Expr, low: Expr | None = None, high: Expr | None = None, bits: Expr | None = None) -> Any:
    """Numbers rounded to steps around 0; without a range, to that of the operand."""
    b = n.b
    if n.int("axis", -1) != -1:
        raise Unsupported("it has a range for each channel")
    count = n.ints_of(bits, "the number of bits")[0] if bits is not None else n.int("num_bits", 8)
    if not 2 <= count <= 31:
        raise Malformed(f"it has {count} bits")
    signed, narrow = n.bool("signed_input", True), n.bool("narrow_range")
    least = float(-(1 << (count - 1)) + narrow) if signed else 0.0
    most = float((1 << (count - signed)) - 1)
    if n.bool("range_given"):
        if low is None or high is None:
            raise Malformed("its range is missing")
        first, last = low, high
    else:
        axes = list(range(b.rank(x)))
        first, last = b.op("min", x, axis=axes), b.op("max", x, axis=axes)
    first, last = b.cast(b.scalar(first), "float32"), b.cast(b.scalar(last), "float32")
    big = b.const(np.float32(np.finfo("float32").max))
    zero = b.const(np.float32(0))

    def factor(end: float, real: Expr) -> Expr:
        fits = b.op("greater", b.op("multiply", real, np.float32(end)), zero)
        safe = b.op("where", fits, real, b.const(np.float32(1)))
        return b.op("where", fits, b.op("divide", b.const(np.float32(end)), safe), big)

    below, above = factor(least, first), factor(most, last)
    step = b.op("minimum", below, above)
    inverse = b.op("divide", b.const(np.float32(1)), step)
    ends = [b.op("multiply", inverse, np.float32(end)) for end in (least, most)]
    held = b.op("minimum", b.op("maximum", x, ends[0]), ends[1])
    steps = b.op("multiply", held, step)
    up = n.choice("round_mode", "HALF_TO_EVEN", ("HALF_TO_EVEN", "HALF_UP")) == "HALF_UP"
    rounded = b.op("floor", b.op("add", steps, np.float32(0.5))) if up else round_even(b, steps)
    return b.op("multiply", rounded, inverse)


RULES = (
    Rule("Dequantize", dequantize),
    Rule("FakeQuantWithMinMaxArgs", lambda n, x: _fake(n, x, np.asarray(n.float("min", -6.0)), np.asarray(n.float("max", 6.0)))),
    Rule("FakeQuantWithMinMaxVars", fake_quant),
    Rule("FakeQuantWithMinMaxVarsPerChannel", fake_quant_channels),
    Rule("QuantizeAndDequantizeV2", there_and_back),
    Rule("QuantizeAndDequantizeV3", there_and_back),
    Rule("QuantizeAndDequantizeV4", there_and_back),
    Rule("QuantizeV2", quantize),
)
