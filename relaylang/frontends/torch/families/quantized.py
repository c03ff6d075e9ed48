"""Quantised programs: `quantized_decomposed` operators as `qnn.quantize` and `qnn.dequantize`, fake quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule
from relaylang.frontends.common.quantized import dequantize, limits, quantize, round_even
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def _scalar(n: Node, name: str, dtype: str) -> Expr:
    """A scale or zero point that is a number, or a tensor of one element."""
    b, value = n.b, n.get(name)
    if not isinstance(value, Expr):
        return b.const(value, dtype)
    return b.cast(b.scalar(value), dtype) if all(d == 1 for d in b.shape(value)) else b.cast(value, dtype)


def _range(n: Node) -> tuple[int, int]:
    return n.int("quant_min"), n.int("quant_max")


def _held(b: Builder, x: Expr, low: int, high: int) -> Expr:
    """Whole numbers within bounds that may be narrower than their element type."""
    least, most = limits(b.dtype(x))
    x = b.op("maximum", x, b.const(low, b.dtype(x))) if low > least else x
    return b.op("minimum", x, b.const(high, b.dtype(x))) if high < most else x


def _computed(b: Builder, x: Expr, scale: Expr, zero: Expr, low: int, high: int, dtype: str) -> Expr:
    """`round(x / scale) + zero` within bounds, for computed scales; halves go to the even number."""
    inverse = b.op("divide", b.const(1, b.dtype(scale)), scale)
    rounded = round_even(b, b.op("multiply", x, b.cast(inverse, b.dtype(x))))
    steps = b.op("add", rounded, b.cast(zero, b.dtype(x)))
    return b.cast(b.op("clip", steps, a_min=float(low), a_max=float(high)), dtype)


def _along(b: Builder, values: Expr, axis: int, rank: int) -> Expr:
    return b.unsqueeze(values, [i for i in range(rank) if i != axis])


def quantize_tensor(n: Node) -> Any:
    """One scale for all; constants become `qnn.quantize`, computed ones arithmetic."""
    b, (low, high) = n.b, _range(n)
    x = b.cast(n.x("input"), "float32")
    dtype = n.dtype() or n.result_dtype()
    scale, zero = _scalar(n, "scale", "float64"), _scalar(n, "zero_point", "int32")
    if b.value(scale) is None or b.value(zero) is None:
        return _computed(b, x, scale, zero, low, high, dtype)
    return _held(b, quantize(b, x, b.cast(scale, "float32"), zero, dtype), low, high)


def _channels(n: Node) -> tuple[Expr, Expr | None]:
    b = n.b
    scales = b.cast(n.x("scales"), "float32")
    return scales, b.cast(n.x("zero_points"), "int32") if n.has("zero_points") else None


def quantize_channels(n: Node) -> Any:
    b, (low, high) = n.b, _range(n)
    x = b.cast(n.x("input"), "float32")
    scales, zeros = _channels(n)
    axis = n.int("axis") % b.rank(x)
    steps = quantize(b, x, scales, zeros, n.dtype() or n.result_dtype(), axis)
    return _held(b, steps, low, high)


def dequantize_channels(n: Node) -> Any:
    b, x = n.b, n.x("input")
    scales, zeros = _channels(n)
    return dequantize(b, x, scales, zeros, n.int("axis") % b.rank(x), n.dtype("out_dtype") or n.result_dtype())


def _extremes(n: Node, axis: list[int] | None = None) -> tuple[Expr, Expr]:
    """The smallest and largest number, with 0 between them."""
    b, x = n.b, n.x("input")
    keep = axis is not None
    least, most = (b.op(op, x, axis=axis, keepdims=keep) for op in ("min", "max"))
    return b.op("minimum", least, 0.0), b.op("maximum", most, 0.0)


def choose(n: Node) -> Any:
    """The scale and zero point that map the range of a tensor to that of the element type."""
    b, (low, high) = n.b, _range(n)
    least, most = _extremes(n)
    scale = b.op("maximum", b.op("divide", b.op("subtract", most, least), float(high - low)), float(n.get("eps")))
    zero = b.op("subtract", b.const(low, b.dtype(scale)), round_even(b, b.op("divide", least, scale)))
    zero = b.op("clip", zero, a_min=float(low), a_max=float(high))
    return [b.reshape(b.cast(scale, "float64"), [1]), b.reshape(b.cast(zero, "int64"), [1])]


def choose_symmetric(n: Node) -> Any:
    """The zero point is 0, or the middle of uint8."""
    b, (low, high) = n.b, _range(n)
    least, most = _extremes(n)
    size = b.op("maximum", b.op("negative", least), most)
    scale = b.op("maximum", b.op("divide", size, float(high - low) / 2), float(n.get("eps")))
    zero = b.const(np.array([128 if n.dtype() == "uint8" else 0]), "int64")
    return [b.reshape(b.cast(scale, "float64"), [1]), zero]


def choose_for_rows(n: Node) -> Any:
    """A scale for each row, without zero points."""
    b, x = n.b, n.x("input")
    size = b.op("max", b.op("abs", x), axis=[-1], keepdims=True)
    size = b.cast(size, "float32") if b.dtype(size) == "float16" else size
    scale = b.op("divide", b.op("maximum", size, 1e-5), 127.0)
    return [scale, b.op("zeros_like", scale)]


def choose_for_rows_asymmetric(n: Node) -> Any:
    b = n.b
    least, most = _extremes(n, [-1])
    scale = b.op("maximum", b.op("divide", b.op("subtract", most, least), 255.0), float(np.finfo(np.float32).eps))
    low, high = b.op("divide", least, scale), b.op("divide", most, scale)
    wrong = b.op("add", b.op("add", low, -128.0), b.op("add", high, 127.0))
    one, other = b.const(-128.0, b.dtype(scale)), b.const(127.0, b.dtype(scale))
    zero = b.op("where", b.op("greater", wrong, 0.0), b.op("subtract", one, low), b.op("subtract", other, high))
    rounded = round_even(b, b.op("clip", zero, a_min=-128.0, a_max=127.0))
    return [b.cast(scale, n.result_dtype()), b.cast(rounded, n.result_dtype(1))]


def quantize_rows(n: Node) -> Any:
    """Scales of rows have an axis of extent 1 behind."""
    b, (low, high) = n.b, _range(n)
    x = n.x("input")
    scales = n.x("scales")
    inverse = b.op("divide", b.const(1, b.dtype(scales)), scales)
    kind = "float64" if "float64" in (b.dtype(scales), b.dtype(x)) else "float32"
    shifted = b.op("add", b.op("multiply", b.cast(x, kind), b.cast(inverse, kind)), b.cast(n.x("zero_points"), kind))
    steps = b.op("clip", round_even(b, shifted), a_min=float(low), a_max=float(high))
    return b.cast(steps, n.dtype() or n.result_dtype())


def dequantize_rows(n: Node) -> Any:
    b, scales = n.b, n.x("scales")
    kind = b.dtype(scales)
    apart = b.op("subtract", b.cast(n.x("input"), kind), b.cast(n.x("zero_points"), kind))
    return b.cast(b.op("multiply", apart, scales), n.dtype("output_dtype") or n.result_dtype())


def _groups(n: Node) -> tuple[Expr, Expr, Expr]:
    """The data as rows of a group each, with scales and zero points as columns."""
    b, x = n.b, n.x("input")
    size = min(n.int("group_size", 128), b.extent(x, -1))
    kind = "float32"
    scales = b.reshape(b.cast(n.x("scales"), kind), [-1, 1])
    zeros = b.reshape(b.cast(n.x("zero_points"), kind), [-1, 1]) if n.has("zero_points") else b.op("zeros_like", scales)
    return b.reshape(x, [-1, size]), scales, zeros


def quantize_groups(n: Node) -> Any:
    b, (low, high) = n.b, _range(n)
    rows, scales, zeros = _groups(n)
    inverse = b.op("divide", b.const(1, "float32"), scales)
    shifted = b.op("add", b.op("multiply", b.cast(rows, "float32"), inverse), zeros)
    steps = b.op("clip", round_even(b, shifted), a_min=float(low), a_max=float(high))
    return b.reshape_to(b.cast(steps, n.dtype() or n.result_dtype()), b.shape_of(n.x("input")))


def dequantize_groups(n: Node) -> Any:
    b = n.b
    rows, scales, zeros = _groups(n)
    real = b.op("multiply", b.op("subtract", b.cast(rows, "float32"), zeros), scales)
    return b.reshape_to(b.cast(real, n.dtype("output_dtype") or n.result_dtype()), b.shape_of(n.x("input")))


def _fake(b: Builder, x: Expr, scale: Expr, zero: Expr, low: int, high: int, axis: int = -1) -> Expr:
    """Quantised and back. Where the bounds are those of int8 or uint8, by the qnn operators."""
    dtype = {(-128, 127): "int8", (0, 255): "uint8"}.get((low, high))
    if dtype is not None and b.value(scale) is not None and b.value(zero) is not None:
        return dequantize(b, quantize(b, x, scale, zero, dtype, axis), scale, zero, axis)
    if b.rank(scale):
        scale, zero = (_along(b, v, axis, b.rank(x)) for v in (scale, zero))
    zero = b.cast(zero, "float32")
    inverse = b.op("divide", b.const(1, "float32"), scale)
    steps = b.op("add", round_even(b, b.op("multiply", x, inverse)), zero)
    steps = b.op("clip", steps, a_min=float(low), a_max=float(high))
    return b.op("multiply", b.op("subtract", steps, zero), scale)


def fake_quantize(n: Node) -> Any:
    scale, zero = _scalar(n, "scale", "float32"), _scalar(n, "zero_point", "int32")
    faked = _fake(n.b, n.x(), scale, zero, *_range(n))
    return faked if "cachemask" not in n.call.target else [faked]


def fake_quantize_channels(n: Node) -> Any:
    b = n.b
    x = n.x("self" if "self" in n.call.args else "input")
    names = ("scale", "zero_point") if "scale" in n.call.args else ("scales", "zero_points")
    scale, zero = b.cast(n.x(names[0]), "float32"), b.cast(n.x(names[1]), "int32")
    faked = _fake(b, x, scale, zero, *_range(n), n.int("axis") % b.rank(x))
    return faked if "cachemask" not in n.call.target else [faked]


def as_dtype(n: Node) -> Any:
    return n.b.cast(n.x("input"), n.dtype() or n.result_dtype())


_RULES = {
    "choose_qparams": choose,
    "choose_qparams_per_token": choose_for_rows,
    "choose_qparams_per_token_asymmetric": choose_for_rows_asymmetric,
    "choose_qparams_symmetric": choose_symmetric,
    "convert_element_type": as_dtype,
    "dequantize_per_channel": dequantize_channels,
    "dequantize_per_channel_group": dequantize_groups,
    "dequantize_per_tensor": lambda n: dequantize(
        n.b,
        n.x("input"),
        _scalar(n, "scale", "float32"),
        _scalar(n, "zero_point", "int32"),
        dtype=n.dtype("out_dtype") or n.result_dtype(),
    ),
    "dequantize_per_token": dequantize_rows,
    "fake_quant_per_channel": fake_quantize_channels,
    "quantize_per_channel": quantize_channels,
    "quantize_per_channel_group": quantize_groups,
    "quantize_per_tensor": quantize_tensor,
    "quantize_per_token": quantize_rows,
}

RULES = (
    *(Rule(f"quantized_decomposed.{name}", convert) for name, convert in _RULES.items()),
    Rule("aten.fake_quantize_per_channel_affine", fake_quantize_channels),
    Rule("aten.fake_quantize_per_channel_affine_cachemask", fake_quantize_channels),
    Rule("aten.fake_quantize_per_tensor_affine", fake_quantize),
    Rule("aten.fake_quantize_per_tensor_affine_cachemask", fake_quantize),
)
