"""Reductions, normalisations over axes, and selections of extreme elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule
from relaylang.frontends.tflite.integers import added
from relaylang.frontends.tflite.node import Node


def reduce_(op: str) -> Callable[[Node], Any]:
    """A reduction over the axes of the second operand, on real numbers."""

    def convert(n: Node) -> Any:
        axes, keep = tuple(n.ints(1, "the axes")), bool(n.options.get("keep_dims"))
        if op in ("max", "min") and n.q(0) is not None and n.same_scales():
            return n.b.op(op, n.x(0), axis=axes, keepdims=keep)
        integer_sums = added(n, axes, keep, op == "mean") if op in ("sum", "mean") else None
        if integer_sums is not None:
            return integer_sums
        return n.result(n.b.op(op, n.real(0), axis=axes, keepdims=keep), activation=False)

    return convert


def arg(op: str) -> Callable[[Node], Any]:
    """The index of an extreme element."""

    def convert(n: Node) -> Any:
        return n.b.cast(n.b.op(op, n.x(0), axis=tuple(n.ints(1, "the axis"))), n.out_dtype())

    return convert


def softmax(n: Node) -> Any:
    b, x, beta = n.b, n.real(0), n.options.get("beta", 1.0)
    return n.result(b.op("nn.softmax", x if beta == 1.0 else b.op("multiply", x, beta), axis=-1))


def log_softmax(n: Node) -> Any:
    return n.result(n.b.op("nn.log_softmax", n.real(0), axis=-1))


def l2_normalization(n: Node) -> Any:
    """Over the last axis: `x / sqrt(max(sum(x * x), 1e-6))`."""
    b, x = n.b, n.real(0)
    length = b.op("sum", b.op("multiply", x, x), axis=(-1,), keepdims=True)
    return n.result(b.op("divide", x, b.op("sqrt", b.op("maximum", length, 1e-12))))


def local_response(n: Node) -> Any:
    """TFLite's alpha is not divided by the window, Relay's is."""
    o = n.options
    size = 2 * o["radius"] + 1
    return n.result(n.b.op("nn.lrn", n.real(0), size=size, axis=3, bias=o["bias"], alpha=o["alpha"] * size, beta=o["beta"]))


def top_k(n: Node) -> Any:
    b = n.b
    k = n.ints(1, "the number of elements")[0]
    values, indices = b.fields(b.op("topk", n.x(0), k=k, axis=-1, ret_type="both", is_ascend=False, dtype="int32"))
    return [values, indices]


def cumsum(n: Node) -> Any:
    b, o = n.b, n.options
    axis = n.ints(1, "the axis")[0]
    x = n.real(0)
    if o.get("reverse"):
        x = b.op("reverse", x, axis=axis)
    sums = b.op("cumsum", x, axis=axis, exclusive=bool(o.get("exclusive")), dtype=b.dtype(x))
    return n.result(b.op("reverse", sums, axis=axis) if o.get("reverse") else sums, activation=False)


def segment_sum(n: Node) -> Any:
    """Rows with the same constant number are added."""
    b, numbers = n.b, np.array(n.ints(1, "the numbers of segments"))
    count = int(numbers.max()) + 1 if numbers.size else 0
    zeros = b.op("zeros", shape=(count, *b.static_shape(n.x(0))[1:]), dtype=b.dtype(n.x(0)))
    return b.op("scatter_nd", zeros, b.const(numbers[None]), n.x(0), mode="add")


RULES = (
    Rule("ARG_MAX", arg("argmax")),
    Rule("ARG_MIN", arg("argmin")),
    Rule("CUMSUM", cumsum),
    Rule("L2_NORMALIZATION", l2_normalization),
    Rule("LOCAL_RESPONSE_NORMALIZATION", local_response),
    Rule("LOG_SOFTMAX", log_softmax),
    Rule("MEAN", reduce_("mean")),
    Rule("REDUCE_ALL", reduce_("all")),
    Rule("REDUCE_ANY", reduce_("any")),
    Rule("REDUCE_MAX", reduce_("max")),
    Rule("REDUCE_MIN", reduce_("min")),
    Rule("REDUCE_PROD", reduce_("prod")),
    Rule("SEGMENT_SUM", segment_sum),
    Rule("SOFTMAX", softmax),
    Rule("SUM", reduce_("sum")),
    Rule("TOPK_V2", top_k),
)
