"""Reductions, running sums, and selections of extreme elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr
from relaylang.ops.shapes import is_float_dtype


def reduce_(op: str) -> Callable[..., Any]:
    """A reduction over the axes of the second operand; over no axis it is the operand."""

    def convert(n: Node, x: Expr, axes: Expr) -> Any:
        b = n.b
        over = n.axes_of(axes, b.rank(x))
        if not over:
            return [x]
        return b.op(op, x, axis=over, keepdims=n.bool("keep_dims"))

    return convert


def mean(n: Node, x: Expr, axes: Expr) -> Any:
    """The mean of whole numbers is cut off towards 0."""
    b = n.b
    over = n.axes_of(axes, b.rank(x))
    if is_float_dtype(b.dtype(x)) or not over:
        return reduce_("mean")(n, x, axes)
    count = int(np.prod([b.extent(x, a, "a reduced axis") for a in over]))
    return b.op("trunc_divide", b.op("sum", x, axis=over, keepdims=n.bool("keep_dims")), count)


def length(n: Node, x: Expr, axes: Expr) -> Any:
    """The root of the sum of squares."""
    b, over = n.b, n.axes_of(axes, n.b.rank(x))
    square = b.op("multiply", x, x)
    return b.op("sqrt", b.op("sum", square, axis=over, keepdims=n.bool("keep_dims")) if over else square)


def arg(op: str) -> Callable[..., Any]:
    """The index of an extreme element, the first of equal ones."""

    def convert(n: Node, x: Expr, axis: Expr) -> Any:
        return n.b.cast(n.b.op(op, x, axis=[n.axis_of(axis, n.b.rank(x))]), n.dtype("output_type", "int64"))

    return convert


def running(op: str) -> Callable[..., Any]:
    """Sums or products of the elements so far, or of those from here on where reversed."""

    def convert(n: Node, x: Expr, axis: Expr) -> Any:
        b = n.b
        place = n.axis_of(axis, b.rank(x))
        back = n.bool("reverse")
        x = b.op("reverse", x, axis=place) if back else x
        totals = b.op(op, x, axis=place, exclusive=n.bool("exclusive"), dtype=b.dtype(x))
        return b.op("reverse", totals, axis=place) if back else totals

    return convert


def top_k(n: Node, x: Expr, k: Expr | None = None) -> Any:
    """The greatest elements of the last axis and their places, in order."""
    b = n.b
    count = n.int("k") if k is None else n.ints_of(k, "the number of elements")[0]
    have = b.extent(x, -1, "the last axis")
    if not 0 <= count <= have:
        raise Malformed(f"it takes {count} elements of an axis of {have}")
    if not count:
        shape = [*b.static_shape(x)[:-1], 0]
        return [b.const(b.arrays.zeros(shape), b.dtype(x)), b.const(b.arrays.zeros(shape), "int32")]
    top = b.fields(b.op("topk", x, k=count, axis=-1, ret_type="both", is_ascend=False, dtype="int32"))
    return [top[0], b.cast(top[1], n.dtype("index_type", "int32"))]


def in_top_k(n: Node, predictions: Expr, targets: Expr, k: Expr | None = None) -> Any:
    """Whether the target's value is among the k greatest of its row."""
    b = n.b
    count = b.const(n.int("k"), "int32") if k is None else b.cast(k, "int32")
    at = b.unsqueeze(targets, [1])
    own = b.op("take", predictions, at, axis=1, batch_dims=1)
    above = b.op("sum", b.cast(b.op("greater", predictions, own), "int32"), axis=[1])
    fine = b.op("all", b.op("isfinite", own), axis=[1])
    return b.op("logical_and", b.op("less", above, count), fine)


RULES = (
    Rule("All", reduce_("all")),
    Rule("Any", reduce_("any")),
    Rule("ArgMax", arg("argmax")),
    Rule("ArgMin", arg("argmin")),
    Rule("Cumprod", running("cumprod")),
    Rule("Cumsum", running("cumsum")),
    Rule("EuclideanNorm", length),
    Rule("InTopK", in_top_k),
    Rule("InTopKV2", in_top_k),
    Rule("Max", reduce_("max")),
    Rule("Mean", mean),
    Rule("Min", reduce_("min")),
    Rule("Prod", reduce_("prod")),
    Rule("Sum", reduce_("sum")),
    Rule("TopK", top_k),
    Rule("TopKV2", top_k),
)
