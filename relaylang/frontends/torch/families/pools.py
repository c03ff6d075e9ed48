"""Pools: of windows and to given sizes, with the places of the largest elements, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def of_rank(values: Sequence[int], count: int) -> list[int]:
    """A number for each axis; one number is for all."""
    return list(values) * count if len(values) == 1 else list(values)


def _single(n: Node, x: Expr, count: int) -> tuple[Expr, bool]:
    """Data with a batch, and whether it had none."""
    single = n.b.rank(x) == count + 1
    return (n.b.unsqueeze(x, [0]) if single else x), single


def _window(n: Node, count: int) -> tuple[list[int], ...]:
    """Kernel, strides, padding, dilation."""
    size = of_rank(n.ints("kernel_size"), count)
    strides = of_rank(n.ints("stride", size) or size, count)
    return size, strides, of_rank(n.ints("padding", [0]), count), of_rank(n.ints("dilation", [1]), count)


def pool(kind: str, count: int) -> Any:
    def convert(n: Node) -> Any:
        b = n.b
        x, single = _single(n, n.x(), count)
        size, strides, padding, dilation = _window(n, count)
        attrs: dict[str, Any] = {
            "pool_size": size, "strides": strides, "padding": padding * 2, "ceil_mode": bool(n.get("ceil_mode", False)),
        }  # fmt: skip
        if kind == "max":
            attrs["dilation"] = dilation
        else:
            attrs["count_include_pad"] = bool(n.get("count_include_pad", True))
            if n.has("divisor_override"):
                attrs["count_include_pad"] = True
        made = b.op(f"nn.{kind}_pool{count}d", x, **attrs)
        if kind == "avg" and n.has("divisor_override"):
            if attrs["ceil_mode"]:
                raise Unsupported("its divisor is overridden where windows end behind the data")
            made = b.op("multiply", made, math.prod(size) / n.int("divisor_override"))
        return b.squeeze(made, [0]) if single else made

    return convert


def _places(n: Node, extents: Sequence[int], count: int) -> list[list[list[int]]]:
    """For each axis, the positions in each window; those in the padding are left out."""
    found = []
    for axis, (extent, k, s, p, d) in enumerate(zip(extents, *_window(n, count))):
        reach = extent + 2 * p - d * (k - 1) - 1
        out = (-(-reach // s) if n.get("ceil_mode") else reach // s) + 1
        if n.get("ceil_mode") and (out - 1) * s >= extent + p:
            out -= 1
        starts = [i * s - p for i in range(out)]
        found.append([[q for q in range(first, first + d * k, d) if 0 <= q < extent] for first in starts])
        if not all(found[axis]):
            raise Unsupported("a window lies in the padding alone")
    return found


def largest_places(b: Builder, x: Expr, windows: list[list[list[int]]]) -> Expr:
    """The places of the largest elements of windows in the flat spatial axes of (n, c, d...)."""
    count = len(windows)
    extents = [b.extent(x, 2 + i, "an axis of a pool with places") for i in range(count)]
    rows = []
    for cell in itertools.product(*windows):
        rows.append([int(np.ravel_multi_index(at, extents)) for at in itertools.product(*cell)])
    most = max(map(len, rows))
    table = np.array([row + row[:1] * (most - len(row)) for row in rows], np.int64)
    flat = b.op("reshape", x, newshape=[0, 0, math.prod(extents)])
    best = b.cast(b.op("argmax", b.op("take", flat, b.const(table), axis=2), axis=[3]), "int64")
    at = b.op("add", best, b.const(np.arange(len(rows), dtype=np.int64) * most))
    made = b.op("take", b.const(table.reshape(-1)), at, axis=0)
    return b.op("reshape", made, newshape=[0, 0, *[len(w) for w in windows]])


def _with_places(n: Node, values: Expr, x: Expr, windows: list[list[list[int]]], single: bool) -> list[Expr]:
    places = largest_places(n.b, x, windows)
    return [values, n.b.squeeze(places, [0]) if single else places]


def max_pool_with_indices(count: int) -> Any:
    """Where an extent is not known, the places are left out."""

    def convert(n: Node) -> Any:
        values = pool("max", count)(n)
        x, single = _single(n, n.x(), count)
        extents = n.b.shape(x)[2:]
        known = [int(d) for d in extents if isinstance(d, int)]
        if len(known) < count or not n.used(1):
            return [values]
        return _with_places(n, values, x, _places(n, known, count), single)

    return convert


def adaptive_pool(kind: str, count: int) -> Any:
    def convert(n: Node) -> Any:
        b = n.b
        x, single = _single(n, n.x(), count)
        sizes = of_rank(n.ints("output_size"), count)
        if kind == "avg" and all(s == 1 for s in sizes):
            made = b.op("mean", x, axis=tuple(range(2, 2 + count)), keepdims=True)
        else:
            made = b.op(f"nn.adaptive_{kind}_pool{count}d", x, output_size=sizes)
        made = b.squeeze(made, [0]) if single else made
        if kind == "avg":
            return made
        extents = b.shape(x)[2:]
        known = [int(d) for d in extents if isinstance(d, int)]
        if len(known) < count or not n.used(1):
            return [made]
        windows = [[list(range(i * e // s, -(-(i + 1) * e // s))) for i in range(s)] for e, s in zip(known, sizes)]
        return _with_places(n, made, x, windows, single)

    return convert


def max_unpool(n: Node) -> Any:
    """Elements put back to their places, zeros elsewhere."""
    b, x, count = n.b, n.x(), 2 if "2d" in n.call.target else 3
    front = b.static_shape(x)[: b.rank(x) - count]
    sizes = n.ints("output_size")
    rows = b.reshape_exactly(x, [math.prod(front), -1])
    places = b.reshape_exactly(n.x("indices"), [math.prod(front), -1])
    zeros = b.const(np.zeros((math.prod(front), math.prod(sizes))), b.dtype(x))
    return b.reshape_exactly(b.op("scatter_elements", zeros, places, rows, axis=1), [*front, *sizes])


RULES = (
    *(Rule(f"aten.{kind}_pool{d}d", pool(kind, d)) for kind in ("max", "avg") for d in (1, 2, 3)),
    *(Rule(f"aten.adaptive_{kind}_pool{d}d", adaptive_pool(kind, d)) for kind in ("max", "avg") for d in (1, 2, 3)),
    *(Rule(f"aten._adaptive_avg_pool{d}d", adaptive_pool("avg", d)) for d in (2, 3)),
    *(Rule(f"aten.max_pool{d}d_with_indices", max_pool_with_indices(d)) for d in (1, 2, 3)),
    *(Rule(f"aten.max_unpool{d}d", max_unpool) for d in (2, 3)),
)
