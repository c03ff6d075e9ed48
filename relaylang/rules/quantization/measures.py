"""Measurements of a network's values for calibration and comparison, as expressions."""

from __future__ import annotations

from math import prod

import numpy as np

from relaylang.ir import Call, Expr
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import typed_constant
from relaylang.ops.build import op_call, scalar


def extremes(x: Expr) -> list[Call]:
    """The least and the greatest number."""
    return [op_call(name, [x]) for name in ("min", "max")]


def histogram(x: Expr, bins: int, number: int, lows: Expr, factors: Expr) -> Call:
    """The numbers in each bin, int32 of shape (bins,). `lows[number]` is the first bin's low end, `factors[number]` the bins of 1."""
    shape = static_shape(x.checked_type)
    assert shape is not None
    low, factor = (op_call("take", [v, typed_constant(np.asarray(number, "int32"))]) for v in (lows, factors))
    scaled = op_call("multiply", [op_call("subtract", [op_call("reshape", [x], newshape=[-1]), low]), factor])
    places = op_call("cast", [op_call("clip", [scaled], a_min=0.0, a_max=bins - 1.0)], dtype="int32")
    empty = op_call("zeros", [], shape=[bins], dtype="int32")
    ones = op_call("ones", [], shape=[prod(shape)], dtype="int32")
    return op_call("scatter_elements", [empty, places, ones], axis=0, reduction="add")


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


__all__ = ["error_sum", "extremes", "histogram", "mean_error", "product_sum", "share_outside"]
