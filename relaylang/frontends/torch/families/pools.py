"""Pools: of windows and to given sizes, with the places of the largest elements, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.torch.families.shape import computed_slice
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


def _reach(kernel: int, dilation: int) -> int:
    """The elements that a window spans, with the gaps of its dilation."""
    return dilation * (kernel - 1) + 1


def _results(extent: int, kernel: int, stride: int, pad: int, dilation: int, ceil: bool) -> int:
    """The windows along an axis. With `ceil`, PyTorch drops a last one that starts in the padding behind the data."""
    room = extent + 2 * pad - _reach(kernel, dilation)
    count = (-(-room // stride) if ceil else room // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= extent + pad else count


def _ends(n: Node, x: Expr, count: int) -> list[int]:
    """The padding behind each axis with which all windows lie on the data and the padding."""
    ends = []
    for extent, k, s, p, d in zip(n.b.shape(x)[2:], *_window(n, count)):
        if not isinstance(extent, int):
            ends.append(p + s - 1)
        else:
            ends.append(max((_results(int(extent), k, s, p, d, True) - 1) * s - p + _reach(k, d) - int(extent), 0))
    return ends


def _cut(n: Node, pooled: Expr, x: Expr, count: int) -> Expr:
    """A pool's result without windows that start in the padding behind the data."""
    b = n.b
    for axis, (extent, k, s, p, d) in enumerate(zip(b.shape(x)[2:], *_window(n, count)), 2):
        if isinstance(extent, int):
            most = _results(int(extent), k, s, p, d, True)
            pooled = pooled if b.extent(pooled, axis) <= most else b.slice(pooled, [0], [most], [axis])
        elif p > _reach(k, d) - s:
            spatial = b.scalar(b.slice(b.shape_of(x), [axis], [axis + 1], [0]))
            starts = b.op("floor_divide", b.op("add", spatial, p + s - 1), s)
            pooled = computed_slice(n, pooled, axis, 0, starts, 1)
    return pooled


def pool(kind: str, count: int) -> Any:
    def convert(n: Node) -> Any:
        b = n.b
        x, single = _single(n, n.x(), count)
        size, strides, padding, dilation = _window(n, count)
        divisor = n.int("divisor_override") if n.has("divisor_override") else None
        ceil = bool(n.get("ceil_mode", False))
        ends = _ends(n, x, count) if ceil and divisor is not None else padding
        attrs: dict[str, Any] = {
            "pool_size": size,
            "strides": strides,
            "padding": [*padding, *ends],
            "ceil_mode": ceil and divisor is None,
        }
        if kind == "max":
            attrs["dilation"] = dilation
        else:
            attrs["count_include_pad"] = divisor is not None or bool(n.get("count_include_pad", True))
        dtype = b.dtype(x)
        is_integer = divisor is not None and "int" in dtype
        pooled = b.op(f"nn.{kind}_pool{count}d", b.cast(x, "float64") if is_integer else x, **attrs)
        if divisor is not None:
            pooled = b.op("multiply", pooled, math.prod(size) if is_integer else math.prod(size) / divisor)
        if is_integer:
            pooled = b.cast(b.op("trunc", b.op("divide", b.op("round", pooled), float(divisor or 1))), dtype)
        pooled = _cut(n, pooled, x, count) if ceil else pooled
        return b.squeeze(pooled, [0]) if single else pooled

    return convert


#: Positions in lists take more bytes than those in arrays.
_PLACES, _LISTED = "listing the places of windows", 64


def _places(n: Node, extents: Sequence[int], count: int) -> list[list[list[int]]]:
    """For each axis, the positions in each window; those in the padding are left out."""
    positions = []
    for axis, (extent, k, s, p, d) in enumerate(zip(extents, *_window(n, count))):
        out = _results(extent, k, s, p, d, bool(n.get("ceil_mode")))
        n.b.arrays.reserve((max(out, 0), k), _PLACES, _LISTED)
        starts = [i * s - p for i in range(out)]
        positions.append([[q for q in range(first, first + d * k, d) if 0 <= q < extent] for first in starts])
        if not all(positions[axis]):
            raise Unsupported("a window lies in the padding alone")
    return positions


def largest_places(b: Builder, x: Expr, windows: list[list[list[int]]]) -> Expr:
    """The places of the largest elements of windows in the flat spatial axes of (n, c, d...)."""
    count = len(windows)
    extents = [b.extent(x, 2 + i, "an axis of a pool with places") for i in range(count)]
    b.arrays.reserve([len(w) for w in windows] + [max(map(len, w), default=0) for w in windows], _PLACES, _LISTED)
    rows = []
    for cell in itertools.product(*windows):
        rows.append([int(np.ravel_multi_index(at, extents)) for at in itertools.product(*cell)])
    most = max(map(len, rows))
    table = np.array([row + row[:1] * (most - len(row)) for row in rows], np.int64)
    flat = b.op("reshape", x, newshape=[0, 0, math.prod(extents)])
    best = b.cast(b.op("argmax", b.op("take", flat, b.const(table), axis=2), axis=[3]), "int64")
    at = b.op("add", best, b.const(b.arrays.arange(len(rows), dtype=np.int64) * most))
    places = b.op("take", b.const(table.reshape(-1)), at, axis=0)
    return b.op("reshape", places, newshape=[0, 0, *[len(w) for w in windows]])


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
            pooled = b.op("mean", x, axis=tuple(range(2, 2 + count)), keepdims=True)
        else:
            pooled = b.op(f"nn.adaptive_{kind}_pool{count}d", x, output_size=sizes)
        pooled = b.squeeze(pooled, [0]) if single else pooled
        if kind == "avg":
            return pooled
        extents = b.shape(x)[2:]
        known = [int(d) for d in extents if isinstance(d, int)]
        if len(known) < count or not n.used(1):
            return [pooled]
        b.arrays.reserve([max(e, s) for e, s in zip(known, sizes)], _PLACES, _LISTED)
        windows = [[list(range(i * e // s, -(-(i + 1) * e // s))) for i in range(s)] for e, s in zip(known, sizes)]
        return _with_places(n, pooled, x, windows, single)

    return convert


def fractional_pool(count: int) -> Any:
    """The largest elements of windows whose places follow from random samples (n, c, axes), which the program gives.

    The samples are of the axes in order for three, and in reverse for two. Places are computed in float32, as in PyTorch.
    """

    def convert(n: Node) -> Any:
        b = n.b
        x, single = _single(n, n.x(), count)
        samples = b.of_rank(n.x("random_samples"), 3)
        kernel, sizes = of_rank(n.ints("kernel_size"), count), of_rank(n.ints("output_size"), count)
        front, extents = b.static_shape(x)[:2], b.static_shape(x)[2:]
        dtype = "float64" if b.dtype(samples) == "float64" else "float32"
        flat: Expr = b.const(b.arrays.zeros([1] * (2 + 2 * count), np.int64))
        for axis, (extent, k, size) in enumerate(zip(extents, kernel, sizes)):
            if not 0 < size + k - 1 <= extent:
                raise Malformed(f"its windows of {k} elements cannot have {size} places on an axis of {int(extent)}")
            at = axis if count == 3 else count - 1 - axis
            sample = b.cast(b.slice(samples, [at], [at + 1], [2]), dtype)
            starts = _starts(b, sample, int(extent) - k, size, dtype)
            stride = math.prod(extents[axis + 1 :])
            wide = [*front, *[size if i == axis else 1 for i in range(count)], *[1] * count]
            inside = b.arrays.arange(k).reshape([k if i == 2 + count + axis else 1 for i in range(2 + 2 * count)])
            places = b.op("add", b.reshape_exactly(starts, wide), b.const(inside))
            flat = b.op("add", flat, b.op("multiply", places, b.const(stride, "int64")))
        windows = [*front, math.prod(sizes), math.prod(kernel)]
        flat = b.reshape_exactly(flat, [*front, -1])
        taken = b.op("gather", b.reshape_exactly(x, [*front, math.prod(extents)]), flat, axis=2)
        best = b.unsqueeze(b.cast(b.op("argmax", b.reshape_exactly(taken, windows), axis=[3]), "int64"), [3])
        largest = [b.op("gather", b.reshape_exactly(v, windows), best, axis=3) for v in (taken, flat)]
        largest = [b.reshape_exactly(v, [*front, *sizes]) for v in largest]
        return [b.squeeze(v, [0]) for v in largest] if single else largest

    return convert


def _starts(b: Builder, sample: Expr, most: int, size: int, dtype: str) -> Expr:
    """Where the windows of an axis start: (n, c, size). The last one starts at `most`."""
    if size == 1:
        return b.op("full_like", b.cast(sample, "int64"), b.const(most, "int64"))
    alpha = b.const(np.dtype(dtype).type(most) / np.dtype(dtype).type(size - 1), dtype)
    steps = b.const(b.arrays.arange(size - 1), dtype)
    moved = b.op("multiply", b.op("add", sample, steps), alpha)
    starts = b.op("subtract", b.cast(moved, "int64"), b.cast(b.op("multiply", sample, alpha), "int64"))
    last = b.op("full_like", b.cast(sample, "int64"), b.const(most, "int64"))
    return b.concat([starts, last], 2)


def max_unpool(n: Node) -> Any:
    """Elements put back to their places, zeros elsewhere."""
    b, x, count = n.b, n.x(), 2 if "2d" in n.call.target else 3
    front = b.static_shape(x)[: b.rank(x) - count]
    sizes = n.ints("output_size")
    rows = b.reshape_exactly(x, [math.prod(front), -1])
    places = b.reshape_exactly(n.x("indices"), [math.prod(front), -1])
    zeros = b.const(b.arrays.zeros((math.prod(front), math.prod(sizes))), b.dtype(x))
    return b.reshape_exactly(b.op("scatter_elements", zeros, places, rows, axis=1), [*front, *sizes])


RULES = (
    *(Rule(f"aten.{kind}_pool{d}d", pool(kind, d)) for kind in ("max", "avg") for d in (1, 2, 3)),
    *(Rule(f"aten.adaptive_{kind}_pool{d}d", adaptive_pool(kind, d)) for kind in ("max", "avg") for d in (1, 2, 3)),
    *(Rule(f"aten._adaptive_avg_pool{d}d", adaptive_pool("avg", d)) for d in (2, 3)),
    *(Rule(f"aten.max_pool{d}d_with_indices", max_pool_with_indices(d)) for d in (1, 2, 3)),
    *(Rule(f"aten.max_unpool{d}d", max_unpool) for d in (2, 3)),
    *(Rule(f"aten.fractional_max_pool{d}d", fractional_pool(d)) for d in (2, 3)),
)
