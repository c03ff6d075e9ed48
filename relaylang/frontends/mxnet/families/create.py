"""Tensors of no operand, and of the extents of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr


def _shape(n: Node) -> list[int]:
    shape = n.ints("shape", [])
    if any(d < 0 for d in shape):
        raise Malformed(f"the attribute shape is {shape}; its extents must be 0 or more")
    return shape


def _full(n: Node, value: float, default: str = "float32") -> Any:
    b, shape = n.b, _shape(n)
    numpy = n.layer.op.startswith("_np")
    b.arrays.reserve(shape)
    dtype = n.dtype("dtype", default)
    if 0 in shape and not numpy:
        # The extent 0 stands for one that follows from the layers after. One row broadcasts to any number of them.
        shape = [d or 1 for d in shape]
    return b.op("full", b.const(value, dtype), shape=shape or ([] if numpy else [1]), dtype=dtype)


def zeros_(n: Node) -> Any:
    return _full(n, 0)


def ones(n: Node) -> Any:
    return _full(n, 1)


def full(n: Node) -> Any:
    return _full(n, n.float("value"))


def arange(n: Node) -> Any:
    b = n.b
    start, step, repeat = n.float("start", 0.0), n.float("step", 1.0), n.int("repeat", 1)
    stop = n.float("stop", math.nan)
    if math.isnan(stop):
        start, stop = 0.0, start
    if step == 0 or repeat < 1 or not all(map(math.isfinite, (start, stop, step))):
        raise Malformed(f"it counts from {start} to {stop} by {step}, each {repeat} times")
    count = max(math.ceil((stop - start) / step), 0)
    numbers = (start + step * b.arrays.arange(count)).astype(n.dtype("dtype", "float32"))
    return b.const(b.arrays.repeat(numbers, repeat))


def arange_like(n: Node, x: Expr) -> Any:
    """Numbers along an axis of a tensor, or over all its elements."""
    b = n.b
    start, step, repeat = n.float("start", 0.0), n.float("step", 1.0), n.int("repeat", 1)
    if repeat < 1:
        raise Malformed(f"the attribute repeat is {repeat}; it must be 1 or more")
    shape = b.static_shape(x, "the operand of arange_like") if not n.has("axis") else (b.extent(x, n.axis("axis", b.rank(x))),)
    count = math.prod(int(d) for d in shape)
    numbers = np.repeat(b.arrays.arange(-(-count // repeat)), repeat)[:count]
    return b.const((start + step * numbers).astype(b.dtype(x)).reshape(shape))


def linspace(n: Node) -> Any:
    b, count = n.b, n.int("num")
    start, stop, end = n.float("start"), n.float("stop"), n.bool("endpoint", True)
    return b.const(np.linspace(start, stop, b.arrays.reserve(count), endpoint=end).astype(n.dtype("dtype", "float32")))


def eye(n: Node) -> Any:
    rows, columns = n.int("N"), n.int("M", 0)
    identity = n.b.arrays.eye(rows, columns or rows, n.int("k", 0))
    return n.b.const(identity, n.dtype("dtype", "float32"))


def one_hot(n: Node, x: Expr) -> Any:
    b, dtype = n.b, n.dtype("dtype", "float32")
    on, off = (b.const(n.float(name, value), dtype) for name, value in (("on_value", 1.0), ("off_value", 0.0)))
    return b.op("one_hot", b.cast(x, "int32"), on, off, depth=n.int("depth"), axis=-1, dtype=dtype)


RULES = (
    Rule("_zeros", zeros_),
    Rule("_zeros_without_dtype", zeros_),
    Rule("_ones", ones),
    Rule("_full", full),
    Rule("_npi_zeros", zeros_),
    Rule("_npi_ones", ones),
    Rule("_arange", arange),
    Rule("_npi_arange", arange),
    Rule("_contrib_arange_like", arange_like),
    Rule("_linspace", linspace),
    Rule("_eye", eye),
    Rule("one_hot", one_hot),
)
