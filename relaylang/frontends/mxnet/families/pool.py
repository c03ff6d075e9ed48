"""Pools over windows, over whole images, and to a given number of places."""

from __future__ import annotations

import math
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, windows
from relaylang.frontends.common.slices import pad
from relaylang.frontends.mxnet.families.conv import Window, channels_last, to_first, to_last
from relaylang.frontends.mxnet.families.elementwise import cube_root
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr

_KINDS = ("max", "avg", "sum", "lp")


def pooling(n: Node, x: Expr) -> Any:
    b = n.b
    count = windows.spatial(b, x)
    last = channels_last(n, count)
    x = to_first(b, x) if last else x
    kind = n.choice("pool_type", "max", _KINDS)
    pooled = _whole(n, kind, x) if n.bool("global_pool") else _windowed(n, kind, x, count)
    return to_last(b, pooled) if last else pooled


def _power(n: Node, x: Expr) -> Expr:
    p = n.int("p_value")
    if p not in (1, 2, 3):
        raise Malformed(f"the attribute p_value is {p}; it must be 1, 2 or 3")
    square = n.b.op("multiply", x, x) if p > 1 else x
    return n.b.op("multiply", square, x) if p == 3 else square


def _root(n: Node, x: Expr) -> Expr:
    p = n.int("p_value")
    return x if p == 1 else n.b.op("sqrt", x) if p == 2 else cube_root(n.b, x)


def _whole(n: Node, kind: str, x: Expr) -> Expr:
    """Over all places, which become one."""
    b = n.b
    if kind in ("max", "avg"):
        return windows.global_pool(b, kind, x)
    total = b.op("sum", _power(n, x) if kind == "lp" else x, axis=list(range(2, b.rank(x))), keepdims=True)
    return _root(n, total) if kind == "lp" else total


def _windowed(n: Node, kind: str, x: Expr, count: int) -> Expr:
    b, w = n.b, Window(n, count)
    convention = n.choice("pooling_convention", "valid", ("valid", "full", "same"))
    if convention == "same":
        raise Unsupported("MXNet has no meaning of pooling_convention=same on a CPU")
    pads = list(w.pads)
    if convention == "full":
        # Each window that begins within the padded data counts; the last one may reach beyond.
        sizes = b.shape(x)[2:]
        if not all(isinstance(s, int) for s in sizes):
            raise Unsupported("pooling_convention=full needs known extents; --shape gives them")
        pads = [(p, q + _beyond(s + p + q, k, t)) for s, (p, q), k, t in zip(sizes, pads, w.kernel, w.strides)]
    ones = [1] * count
    if kind == "max":
        return windows.pool(b, "max", x, w.kernel, w.strides, pads, ones)
    if kind == "avg" and (pads == list(w.pads) or not n.bool("count_include_pad", True)):
        return windows.pool(b, "avg", x, w.kernel, w.strides, pads, ones, count_include_pad=n.bool("count_include_pad", True))
    if kind == "avg":
        return _clipped_mean(b, x, w, pads)
    power = _power(n, x) if kind == "lp" else x
    mean = windows.pool(b, "avg", power, w.kernel, w.strides, pads, ones, count_include_pad=True)
    total = b.op("multiply", mean, float(math.prod(w.kernel)))
    return _root(n, total) if kind == "lp" else total


def _beyond(size: int, kernel: int, stride: int) -> int:
    """How far the last window of `full` reaches beyond the data."""
    left = (size - kernel) % stride
    return stride - left if left else 0


def _clipped_mean(b: Builder, x: Expr, w: Window, pads: list[tuple[int, int]]) -> Expr:
    """Means whose windows count the stated padding, and no place beyond it."""
    padded = pad(b, x, [(0, 0), (0, 0), *w.pads])
    rest = [(0, q - own) for (_, q), (_, own) in zip(pads, w.pads)]
    return windows.pool(b, "avg", padded, w.kernel, w.strides, rest, [1] * len(rest), count_include_pad=False)


def adaptive_average(n: Node, x: Expr) -> Any:
    sizes = n.ints("output_size", [1])
    return n.b.op("nn.adaptive_avg_pool2d", x, output_size=sizes * 2 if len(sizes) == 1 else sizes)


RULES = (
    Rule("Pooling", pooling),
    Rule("_contrib_AdaptiveAvgPooling2D", adaptive_average),
)
