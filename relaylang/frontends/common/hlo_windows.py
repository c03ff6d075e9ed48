"""StableHLO's operators on windows: convolution, reduce_window, select_and_scatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.hlo import padded
from relaylang.frontends.common.hlo_joins import Join, neutral, scanned, with_first
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.windows import conv, pool
from relaylang.ir import Expr

#: A window may have so many elements where each is a tensor.
_WIDEST = 1024


def windows(b: Builder, x: Expr, size: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> list[Expr]:
    """The elements of all windows, a tensor for each place in a window."""
    shape = b.static_shape(x)
    check_windows(size, strides, dilation, len(shape))
    counts = [(d - (s - 1) * g - 1) // t + 1 for d, s, t, g in zip(shape, size, strides, dilation)]
    if math.prod(size) > _WIDEST or min(counts, default=1) < 1:
        raise Unsupported(f"its window has the shape {tuple(size)}")
    parts = []
    for place in product(*[range(s) for s in size]):
        begin = [p * g for p, g in zip(place, dilation)]
        end = [i + (c - 1) * t + 1 for i, c, t in zip(begin, counts, strides)]
        parts.append(b.slice(x, begin, end, list(range(len(size))), strides))
    return parts


def check_windows(size: Sequence[int], strides: Sequence[int], dilation: Sequence[int], rank: int) -> None:
    """Raise `Malformed` for windows that there are not."""
    for what, values in (("size", size), ("strides", strides), ("dilation", dilation)):
        if len(values) != rank or any(v < 1 for v in values):
            raise Malformed(f"the {what} of its windows is {list(values)}; it must have {rank} numbers above 0")


def reduce_window(
    b: Builder,
    xs: Sequence[Expr],
    first: Sequence[Expr],
    size: Sequence[int],
    strides: Sequence[int],
    gaps: Sequence[int],
    inner: Sequence[int],
    pads: Sequence[tuple[int, int]],
    join: Join,
) -> list[Expr]:
    """The elements of each window joined; the first values also fill the padding and the gaps (`inner`)."""
    rank = int(b.rank(xs[0]))
    check_windows(size, strides, gaps, rank)
    if len(pads) != rank or len(inner) != rank or any(i < 1 for i in inner):
        raise Malformed(f"its padding or dilation does not fit {rank} axes")
    if join.op and len(xs) == 1:
        pooled = _pooled(b, xs[0], first[0], size, strides, gaps, inner, pads, join)
        if pooled is not None:
            return [pooled]
    if all(v == 1 for v in (*strides, *gaps, *inner)):
        axis = _scanned_axis(b.shape(xs[0]), size, pads)
        if axis is not None:
            return scanned(b, xs, first, axis, pads[axis][0] == 0, join)
    before, after = [p for p, _ in pads], [q for _, q in pads]
    filled = [padded(b, x, b.scalar(f), before, after, [i - 1 for i in inner]) for x, f in zip(xs, first)]
    parts = list(zip(*[windows(b, x, size, strides, gaps) for x in filled]))
    joined = list(parts[0])
    for part in parts[1:]:
        joined = join.apply(joined, list(part))
    return with_first(b, joined, first, join)


def _scanned_axis(shape: Sequence[Any], size: Sequence[int], pads: Sequence[tuple[int, int]]) -> int | None:
    """The axis along which windows at each place hold all elements up to it, or from it on; None for other windows."""
    wide = [a for a, extent in enumerate(size) if extent != 1]
    if len(wide) != 1 or any(any(p) for a, p in enumerate(pads) if a not in wide):
        return None
    extent = shape[wide[0]]
    return wide[0] if size[wide[0]] == extent and tuple(pads[wide[0]]) in ((extent - 1, 0), (0, extent - 1)) else None


def _pooled(
    b: Builder,
    x: Expr,
    first: Expr,
    size: Sequence[int],
    strides: Sequence[int],
    gaps: Sequence[int],
    inner: Sequence[int],
    pads: Sequence[tuple[int, int]],
    join: Join,
) -> Expr | None:
    """A pool of Relay, for the greatest element or the sum of real numbers; None for other windows."""
    if any(i != 1 for i in inner) or not _starts_a_pool(b, x, first, join):
        return None
    rank = len(size)
    moved = [a for a in range(rank) if (size[a], strides[a], tuple(pads[a])) != (1, 1, (0, 0))]
    if not 1 <= len(moved) <= 3 or any(p < 0 or q < 0 for p, q in pads):
        return None
    if any(max(pads[a]) >= (size[a] - 1) * gaps[a] + 1 for a in moved):
        return None  # a window of padding alone
    window: list[Any] = [[of[a] for a in moved] for of in (size, strides, pads, gaps)]

    def pooled(image: Expr, layout: str) -> Expr:
        if join.op == "maximum":
            return pool(b, "max", image, *window, layout=layout)
        mean = pool(b, "avg", image, *window, layout=layout, count_include_pad=True)
        return b.op("multiply", mean, float(math.prod(window[0])))

    if moved == list(range(1, rank - 1)):
        return pooled(x, {1: "NWC", 2: "NHWC", 3: "NDHWC"}[len(moved)])
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[len(moved)]
    others = [a for a in range(rank) if a not in moved]
    order = [*others, *moved]
    x = b.transpose(x, order)
    if rank == len(moved) + 2:
        result = pooled(x, layout)
    else:
        shape = b.static_shape(x)
        image = b.reshape_exactly(x, [1, math.prod(shape[: len(others)]), *shape[len(others) :]])
        result = pooled(image, layout)
        result = b.reshape_exactly(result, [*shape[: len(others)], *b.static_shape(result)[2:]])
    return b.transpose(result, [order.index(a) for a in range(rank)])


def _starts_a_pool(b: Builder, x: Expr, first: Expr, join: Join) -> bool:
    """Whether windows that begin with a value are joined as those of a pool, which begin with the neutral one."""
    known = b.value(b.scalar(first))
    if join.op not in ("maximum", "add") or "float" not in b.dtype(x) or known is None:
        return False
    least = float(known.reshape(-1)[0])
    if least == neutral(join.op, b.dtype(x)):
        return True
    return join.op == "maximum" and b.dtype(x) == "float32" and least == float(np.finfo(np.float32).min)


def select_and_scatter(
    b: Builder,
    x: Expr,
    source: Expr,
    first: Expr,
    size: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    select: Callable[[Expr, Expr], Expr],
    join: Join,
) -> Expr:
    """The elements of `source` added where each window of `x` has the element that `select` keeps."""
    if join.op not in ("add", "logical_or") or join.mode != "add":
        raise Unsupported("it joins by something else than addition")
    shape, rank = b.static_shape(x), len(size)
    check_windows(size, strides, [1] * rank, len(shape))
    least = b.const(neutral("maximum", b.dtype(x)), b.dtype(x))
    low, high = [p for p, _ in pads], [q for _, q in pads]
    parts = windows(b, padded(b, x, least, low, high, [0] * rank), size, strides, [1] * rank)
    best, at = parts[0], b.const(0, "int32")
    for place, part in enumerate(parts[1:], 1):
        kept = select(best, part)
        best, at = b.op("where", kept, best, part), b.op("where", kept, at, b.const(place, "int32"))
    zero = b.const(0, b.dtype(source))
    total: Expr | None = None
    padded_shape = [d + p + q for d, (p, q) in zip(shape, pads)]
    if b.shape(source) != b.shape(best):
        raise Malformed("its source does not have an element for each window")
    for place, offset in enumerate(product(*[range(s) for s in size])):
        here = b.op("where", b.op("equal", at, b.const(place, "int32")), source, zero)
        reach = [(c - 1) * t + 1 for c, t in zip(b.static_shape(source), strides)]
        end = [w - o - r - q for w, o, r, (_, q) in zip(padded_shape, offset, reach, pads)]
        here = padded(b, here, zero, [o - p for o, p in zip(offset, low)], end, [t - 1 for t in strides])
        total = here if total is None else b.op("add", total, here)
    assert total is not None
    known = b.value(b.scalar(first))
    return total if known is not None and not known.any() else b.op("add", total, b.scalar(first))


def convolution(
    b: Builder,
    x: Expr,
    weights: Expr,
    orders: Mapping[str, Sequence[int]],
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    inner: Sequence[int],
    gaps: Sequence[int],
    turned: Sequence[bool],
    groups: int = 1,
    batches: int = 1,
) -> Expr:
    """A convolution of any order of axes. `orders` has those of "input", "kernel" and "output": batch and feature (of a
    kernel: those of the output and of the input), then space. `inner` is the dilation of the input, `gaps` that of the kernel,
    `batches` the number of groups of the batch."""
    rank = _space_of(orders)
    x, weights = b.transpose(b.of_rank(x, rank + 2), orders["input"]), b.transpose(b.of_rank(weights, rank + 2), orders["kernel"])
    _check_space(rank, (strides, pads, inner, gaps, turned), (*strides, *inner, *gaps, groups, batches))
    for axis, back in enumerate(turned):
        weights = b.op("reverse", weights, axis=axis + 2) if back else weights
    if any(i != 1 for i in inner) or any(p < 0 or q < 0 for p, q in pads):
        low, high = [0, 0, *[p for p, _ in pads]], [0, 0, *[q for _, q in pads]]
        x = padded(b, x, b.const(0, b.dtype(x)), low, high, [0, 0, *[i - 1 for i in inner]])
        pads = [(0, 0)] * rank
    if batches > 1:
        if groups > 1:
            raise Malformed("it has groups of features and of the batch")
        x, groups = _batches_as_features(b, x, batches), batches
    flat = rank == 0
    if flat:
        x, weights, strides, pads, gaps, rank = b.unsqueeze(x, [2]), b.unsqueeze(weights, [2]), [1], [(0, 0)], [1], 1
    shape = b.static_shape(weights, "the weights")
    channels = b.shape(x)[1]
    if shape[0] % groups or (isinstance(channels, int) and channels != shape[1] * groups):
        raise Malformed(f"weights of {shape[0]} x {shape[1]} channels and {groups} groups do not fit {channels} channels")
    letters = "DHW"[3 - rank :]
    convolved = conv(b, x, weights, strides, pads, gaps, groups, data_layout=f"NC{letters}", kernel_layout=f"OI{letters}")
    convolved = b.squeeze(convolved, [2]) if flat else convolved
    return b.transpose(convolved, [list(orders["output"]).index(a) for a in range(len(orders["output"]))])


def _space_of(orders: Mapping[str, Sequence[int]]) -> int:
    """The axes of space of a convolution. Raises `Malformed` for orders that do not name each axis once."""
    rank = len(orders["input"]) - 2
    if rank < 0:
        raise Malformed(f"its input has the axes {list(orders['input'])}")
    if rank > 3:
        raise Unsupported(f"it has {rank} axes of space")
    for side, order in orders.items():
        if sorted(order) != list(range(rank + 2)):
            raise Malformed(f"the axes of its {side} are {list(order)}; they must name each of {rank + 2} once")
    return rank


def _check_space(rank: int, windows: Sequence[Sequence[Any]], numbers: Sequence[int]) -> None:
    """Raise `Malformed` for windows of another number of axes, and for numbers that are not above 0."""
    for values in windows:
        if len(values) != rank:
            raise Malformed(f"its windows have {len(values)} axes, and its space {rank}")
    if any(v < 1 for v in numbers):
        raise Malformed("its strides, dilations and groups must be above 0")


def _batches_as_features(b: Builder, x: Expr, count: int) -> Expr:
    """(groups * n, c, ...) -> (n, groups * c, ...)."""
    shape = b.static_shape(x)
    if shape[0] % count:
        raise Malformed(f"a batch of {shape[0]} has no {count} groups")
    split = b.reshape_exactly(x, [count, shape[0] // count, *shape[1:]])
    order = [1, 0, *range(2, len(shape) + 1)]
    return b.reshape_exactly(b.transpose(split, order), [shape[0] // count, count * shape[1], *shape[2:]])


__all__ = ["check_windows", "convolution", "reduce_window", "select_and_scatter", "windows"]
