"""Measurements of a network's values for calibration and comparison, as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

import numpy as np

from relaylang.ir import Call, Expr, Tuple
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import typed_constant
from relaylang.ops.build import op_call, scalar
from relaylang.ops.record import Op
from relaylang.rules.padding import both_sides

#: The elements of a tensor that its histogram counts in a batch, if it has more. All would take longer than the network.
SAMPLES = 1 << 14


def extremes(x: Expr) -> list[Call]:
    """The least and the greatest number."""
    return [op_call(name, [x]) for name in ("min", "max")]


def histograms(xs: Sequence[Expr], bins: int, lows: Expr, factors: Expr) -> Call:
    """The numbers in each bin for each tensor, int32 of shape (tensors, bins).

    `lows[i]` is the low end of the first bin for tensor i, `factors[i]` its bins in a range of 1. Of a tensor with more than
    `SAMPLES` elements, about so many are counted, evenly spread over all its axes.
    """
    parts = [_samples(x) for x in xs]
    counts = [count for _, count in parts]
    rows = np.repeat(np.arange(len(xs), dtype="int32"), counts)
    values = op_call("concatenate", [Tuple([values for values, _ in parts])], axis=0)
    low, factor = (op_call("take", [ends, typed_constant(rows)]) for ends in (lows, factors))
    scaled = op_call("multiply", [op_call("subtract", [values, low]), factor])
    bin_of = op_call("cast", [op_call("clip", [scaled], a_min=0.0, a_max=bins - 1.0)], dtype="int32")
    places = op_call("add", [bin_of, typed_constant(rows * np.int32(bins))])
    empty = op_call("zeros", [], shape=[len(xs) * bins], dtype="int32")
    ones = op_call("ones", [], shape=[len(rows)], dtype="int32")
    counted = op_call("scatter_elements", [empty, places, ones], axis=0, reduction="add")
    return op_call("reshape", [counted], newshape=[len(xs), bins])


def _samples(x: Expr) -> tuple[Expr, int]:
    """Elements of a tensor as a vector, and their number."""
    shape = static_shape(x.checked_type)
    assert shape is not None
    values, size = op_call("reshape", [x], newshape=[-1]), prod(shape)
    step = -(-size // SAMPLES)
    while gcd(step, size) > 1:  # a divisor would take the same places of an axis only
        step += 1
    if step > 1:
        values = op_call("strided_slice", [values], begin=[0], end=[size], strides=[step])
    return values, -(-size // step)


def error_sum(x: Expr, y: Expr) -> Call:
    """The sum of (x - y)²."""
    difference = op_call("subtract", [x, y])
    return product_sum(difference, difference)


def product_sum(x: Expr, y: Expr) -> Call:
    """The sum of xy."""
    return op_call("sum", [op_call("multiply", [x, y])])


def mean_error(x: Expr, y: Expr, axis: int) -> Call:
    """The mean of x - y for each index of an axis."""
    return op_call("mean", [op_call("subtract", [x, y])], axis=[axis], exclude=True)


def share_outside(x: Expr, low: float, high: float) -> Call:
    """The share of elements outside of a range, float32."""
    outside = op_call("logical_or", [op_call("less", [x, scalar(low, "float32")]), op_call("greater", [x, scalar(high, "float32")])])
    return op_call("mean", [op_call("cast", [outside], dtype="float32")])


def gram(product: Call, x: Expr) -> Call | None:
    """The sums of products of the data that meet a result's weights: float32 of shape (groups, K, K).

    `x` takes the place of the product's data. The K weights of a result lie as `weight_rows` has them. None for products other
    than `nn.dense` and `nn.conv2d`.
    """
    shape, out = static_shape(product.args[0].checked_type), static_shape(product.checked_type)
    assert isinstance(product.op, Op)
    if shape is None or out is None or product.op.name not in ("nn.dense", "nn.conv2d"):
        return None
    attrs: Any = product.attrs
    if product.op.name == "nn.dense":
        rows = op_call("transpose", [op_call("reshape", [x], newshape=[1, -1, shape[-1]])], axes=[0, 2, 1])
        return op_call("nn.batch_matmul", [rows, rows], transpose_a=False, transpose_b=True)
    layout, result = attrs.data_layout, attrs.out_layout or attrs.data_layout
    if sorted(layout) != sorted("NCHW"):
        return None
    image = op_call("transpose", [x], axes=[layout.index(c) for c in "NCHW"])
    batch, channels, *_ = (shape[layout.index(c)] for c in "NCHW")
    high, wide = (out[result.index(c)] for c in "HW")
    top, left, bottom, right = both_sides(attrs.padding, 2)
    zero = scalar(0.0, "float32")
    image = op_call("nn.pad", [image, zero], pad_width=[[0, 0], [0, 0], [top, bottom], [left, right]], pad_mode="constant")
    (down, along), (dy, dx) = attrs.strides, attrs.dilation
    rows, columns = (product.args[1].data.shape[attrs.kernel_layout.index(c)] for c in "HW")  # type: ignore[attr-defined]
    taps = [
        op_call(
            "strided_slice",
            [image],
            begin=[0, 0, i * dy, j * dx],
            end=[batch, channels, i * dy + (high - 1) * down + 1, j * dx + (wide - 1) * along + 1],
            strides=[1, 1, down, along],
        )
        for i in range(rows)
        for j in range(columns)
    ]
    parts = op_call("transpose", [op_call("stack", [Tuple(taps)], axis=2)], axes=[1, 2, 0, 3, 4])
    each = channels // attrs.groups * rows * columns
    parts = op_call("reshape", [parts], newshape=[attrs.groups, each, batch * high * wide])
    return op_call("nn.batch_matmul", [parts, parts], transpose_a=False, transpose_b=True)


def weight_rows(product: Call, weight: np.ndarray) -> np.ndarray:
    """A view of a product's weight: (groups, results of a group, K)."""
    attrs: Any = product.attrs
    if not hasattr(attrs, "kernel_layout"):
        return weight[None]
    turned = weight.transpose([attrs.kernel_layout.index(c) for c in "OIHW"])
    return turned.reshape(attrs.groups, turned.shape[0] // attrs.groups, -1)


def weight_of_rows(product: Call, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The weight of the given shape whose `weight_rows` are these."""
    attrs: Any = product.attrs
    if not hasattr(attrs, "kernel_layout"):
        return rows.reshape(shape)
    axes = [attrs.kernel_layout.index(c) for c in "OIHW"]
    return np.ascontiguousarray(rows.reshape([shape[a] for a in axes]).transpose(np.argsort(axes)))


__all__ = [
    "SAMPLES",
    "error_sum",
    "extremes",
    "gram",
    "histograms",
    "mean_error",
    "product_sum",
    "share_outside",
    "weight_of_rows",
    "weight_rows",
]
