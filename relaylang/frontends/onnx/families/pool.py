"""Pools over windows and over whole images."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, windows
from relaylang.frontends.common.nn import check_window
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.windows import Pairs, ones, padding
from relaylang.ir import Expr


class Window:
    """The geometry that a pooling layer states."""

    def __init__(self, n: Node, x: Expr) -> None:
        self.sizes = n.b.shape(x)[2:]
        self.kernel = n.ints("kernel_shape")
        count = windows.spatial(n.b, x)
        if len(self.kernel) != count:
            raise Unsupported(f"kernel_shape={self.kernel} must have {count} numbers")
        self.strides = ones(n, "strides", count)
        self.dilations = ones(n, "dilations", count)
        check_window(self.kernel, self.strides, self.dilations)
        self.pads = padding(n, self.sizes, self.kernel, self.strides, self.dilations)
        self.ceil = bool(n.int("ceil_mode", 0)) and not n.string("auto_pad", "NOTSET").startswith("SAME")

    def results(self) -> list[int] | None:
        """The extents of the result; None where they are not known. A window that begins in the padding behind is none."""
        extents = []
        for size, k, s, d, (before, after) in zip(self.sizes, self.kernel, self.strides, self.dilations, self.pads):
            if not isinstance(size, int):
                return None
            room = size + before + after - (k - 1) * d - 1
            count = (-(-room // s) if self.ceil else room // s) + 1
            extents.append(count - (self.ceil and (count - 1) * s >= size + before))
        return extents

    def exact_pads(self) -> Pairs | None:
        """The padding with which the result has its extents without rounding up; None where they are not known."""
        results = self.results()
        if results is None:
            return None
        pairs = []
        for size, k, s, d, pad, out in zip(self.sizes, self.kernel, self.strides, self.dilations, self.pads, results):
            assert isinstance(size, int)
            behind = (out - 1) * s + (k - 1) * d + 1 - size - pad[0]
            pairs.append((pad[0], max(behind, pad[1])))
        return pairs

    def pool(self, b: Builder, kind: str, x: Expr, **attrs: Any) -> Expr:
        results = self.results()
        ceil = self.ceil and (results is None or results != _floor(self))
        pooled = windows.pool(b, kind, x, self.kernel, self.strides, self.pads, self.dilations, **attrs, ceil_mode=ceil)
        if results is None or list(b.shape(pooled)[2:]) == results:
            return pooled
        axes = list(range(2, 2 + len(results)))
        return b.slice(pooled, [0] * len(results), results, axes)


def _floor(w: Window) -> list[int]:
    return [
        (int(size) + sum(pad) - (k - 1) * d - 1) // s + 1
        for size, k, s, d, pad in zip(w.sizes, w.kernel, w.strides, w.dilations, w.pads)
        if isinstance(size, int)
    ]


def average_pool(n: Node, x: Expr) -> Any:
    return Window(n, x).pool(n.b, "avg", x, count_include_pad=bool(n.int("count_include_pad", 0)))


def max_pool(n: Node, x: Expr) -> Any:
    w = Window(n, x)
    pooled = w.pool(n.b, "max", x)
    return [pooled, _places(n, w, x)] if n.has_output(1) else [pooled]


def _places(n: Node, w: Window, x: Expr) -> Expr:
    """Where in the whole tensor the largest element of each window stands.

    The data is cut into a tensor per place of the kernel. The largest of these along a new axis gives the place.
    """
    b = n.b
    shape = b.static_shape(x, "the data of a pool with indices")
    pads, results = w.exact_pads(), w.results()
    assert pads is not None and results is not None
    count = len(results)
    low = -math.inf if "float" in b.dtype(x) else int(np.iinfo(b.dtype(x)).min)
    padded = b.op("nn.pad", x, b.const(low, b.dtype(x)), pad_width=[(0, 0), (0, 0), *pads])
    parts = []
    for at in itertools.product(*map(range, w.kernel)):
        begin = [a * d for a, d in zip(at, w.dilations)]
        end = [f + (r - 1) * s + 1 for f, r, s in zip(begin, results, w.strides)]
        parts.append(b.slice(padded, begin, end, list(range(2, 2 + count)), w.strides))
    best = b.cast(b.op("argmax", b.op("stack", b.tuple(parts), axis=0), axis=[0]), "int64")
    order = range(count) if n.int("storage_order", 0) else reversed(range(count))
    scale, kernel = 1, math.prod(w.kernel)
    images = (b.arrays.arange(shape[0] * shape[1]) * math.prod(shape[2:])).reshape(*shape[:2], *[1] * count)
    place: Any = b.const(images, "int64")
    weights = {}
    for axis in order:
        weights[axis] = scale
        scale *= shape[2 + axis]
    for axis in range(count):
        kernel //= w.kernel[axis]
        own = b.op("floor_mod", b.op("floor_divide", best, kernel), w.kernel[axis])
        starts = (b.arrays.arange(results[axis]) * w.strides[axis] - w.pads[axis][0]).reshape([-1] + [1] * (count - 1 - axis))
        own = b.op("add", b.op("multiply", own, w.dilations[axis]), b.const(starts, "int64"))
        place = b.op("add", b.op("multiply", own, weights[axis]), place)
    return place


def lp_pool(n: Node, x: Expr) -> Any:
    """The root of the sum of powers: the mean over the whole window, padding included, times its size."""
    b, w, p = n.b, Window(n, x), n.int("p", 2)
    power = _power(b, x, p)
    pads = w.exact_pads()
    if pads is None or not w.ceil:
        pooled = w.pool(b, "avg", power, count_include_pad=True)
    else:
        padded = b.op("nn.pad", power, b.const(0, b.dtype(x)), pad_width=[(0, 0), (0, 0), *pads])
        none = [(0, 0)] * len(pads)
        pooled = windows.pool(b, "avg", padded, w.kernel, w.strides, none, w.dilations, count_include_pad=True)
    return _root(b, b.op("multiply", pooled, float(math.prod(w.kernel))), p)


def _power(b: Builder, x: Expr, p: int) -> Expr:
    if p == 2:
        return b.op("multiply", x, x)
    return b.op("abs", x) if p == 1 else b.op("power", b.op("abs", x), float(p))


def _root(b: Builder, x: Expr, p: int) -> Expr:
    if p == 2:
        return b.op("sqrt", x)
    return x if p == 1 else b.op("power", x, 1.0 / p)


def global_average_pool(n: Node, x: Expr) -> Any:
    return windows.global_pool(n.b, "avg", x)


def global_max_pool(n: Node, x: Expr) -> Any:
    return windows.global_pool(n.b, "max", x)


def global_lp_pool(n: Node, x: Expr) -> Any:
    b, p = n.b, n.int("p", 2)
    total = b.op("sum", _power(b, x, p), axis=list(range(2, b.rank(x))), keepdims=True)
    return _root(b, total, p)


def max_unpool(n: Node, x: Expr, places: Expr, shape: Expr | None = None) -> Any:
    """Zeros with the data at its places, which count the elements of a result without padding."""
    b = n.b
    before = b.static_shape(x)
    kernel = n.ints("kernel_shape")
    strides = ones(n, "strides", len(kernel))
    pads = padding(n, before[2:], kernel, strides, [1] * len(kernel))
    sizes = [(d - 1) * s + k - sum(p) for d, s, k, p in zip(before[2:], strides, kernel, pads)]
    own = [*before[:2], *sizes]
    wanted = b.need_ints(shape, "the output shape of MaxUnpool") if shape is not None else own
    zeros = b.op("zeros", shape=[math.prod(own)], dtype=b.dtype(x))
    flat = b.op("reshape", places, newshape=[-1])
    unpooled = b.op("scatter_elements", zeros, flat, b.op("reshape", x, newshape=[-1]), axis=0, reduction="update")
    unpooled = b.reshape_exactly(unpooled, own)
    widths = [(0, w - o) for w, o in zip(wanted, own)]
    return unpooled if wanted == own else b.op("nn.pad", unpooled, b.const(0, b.dtype(x)), pad_width=widths)


RULES = (
    Rule("AveragePool", average_pool),
    Rule("MaxPool", max_pool),
    Rule("LpPool", lp_pool),
    Rule("GlobalAveragePool", global_average_pool),
    Rule("GlobalMaxPool", global_max_pool),
    Rule("GlobalLpPool", global_lp_pool),
    Rule("MaxUnpool", max_unpool),
)
