"""Diagonals and products of matrices, and values that run along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, nn
from relaylang.frontends.common.runs import bincount
from relaylang.frontends.common.slices import pad as padded
from relaylang.frontends.paddle.families.shape import diagonal_
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.ir import Expr

#: The default of an attribute that names no axis.
_NO_AXIS = 9

# ---- diagonals


def cross(n: Node, x: Expr, y: Expr) -> Any:
    """The cross product along an axis of three elements, by default the first such one."""
    b, axis, shape = n.b, n.int("axis", _NO_AXIS), n.b.shape(x)
    if axis == _NO_AXIS:
        axis = next((i for i, d in enumerate(shape) if d == 3), -1)
    axis %= b.rank(x)
    if not shape or shape[axis] != 3 or shape != b.shape(y):
        raise Malformed(f"it needs two operands of one shape with three elements along an axis, not {tuple(shape)}")
    turned = [[b.op("take", v, b.const(np.roll(np.arange(3), -by)), axis=axis) for by in (1, 2)] for v in (x, y)]
    left, right = (b.op("multiply", turned[0][i], turned[1][1 - i]) for i in (0, 1))
    return b.op("subtract", left, right)


def _embedded(n: Node, x: Expr, offset: int, padding: float = 0.0) -> Expr:
    """Vectors along the last axis as diagonals of matrices, on two axes behind."""
    b, count = n.b, n.b.extent(x, -1)
    size = count + abs(offset)
    b.arrays.reserve((size, size), size=1)
    wide = padded(b, x, [*[(0, 0)] * (b.rank(x) - 1), (max(offset, 0), max(-offset, 0))])
    here = b.const(b.arrays.eye(size, k=offset, dtype=np.dtype(bool)))
    return b.op("where", here, b.unsqueeze(wide, [b.rank(x) - 1]), b.const(np.array(padding).astype(b.dtype(x))))


def diag(n: Node, x: Expr) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    offset = n.int("offset", 0)
    if n.b.rank(x) < 2:
        return _embedded(n, n.b.of_rank(x, 1), offset, n.float("padding_value", 0.0))
    return diagonal_(n, n.b.of_rank(x, 2))


def diag_embed(n: Node, x: Expr) -> Any:
    b, rank = n.b, n.b.rank(x) + 1
    axes = [n.int(name, default) % rank for name, default in (("dim1", -2), ("dim2", -1))]
    if axes[0] == axes[1]:
        raise Malformed(f"both of its axes are {axes[0]}")
    rest = iter(range(rank - 2))
    order = [rank - 2 if i == axes[0] else rank - 1 if i == axes[1] else next(rest) for i in range(rank)]
    return b.transpose(_embedded(n, x, n.int("offset", 0)), order)


def trace(n: Node, x: Expr) -> Any:
    return n.b.op("sum", diagonal_(n, x), axis=[n.b.rank(x) - 2])


def _indices(upper: bool) -> Callable[[Node], Any]:
    """The rows and columns of a triangle, one after the other."""

    def convert(n: Node) -> Any:
        b, sizes = n.b, [n.int("row" if upper else "rows"), n.int("col" if upper else "cols")]
        if min(sizes) < 0:
            raise Malformed(f"its matrix has the shape {sizes}")
        b.arrays.reserve(sizes, size=8)
        triangle = (np.triu_indices if upper else np.tril_indices)(sizes[0], n.int("offset", 0), sizes[1])
        return b.const(np.stack(triangle).astype(n.dtype("dtype", "int64")))

    return convert


# ---- products


def multi_dot(n: Node, xs: Tensors) -> Any:
    parts = n.list(xs)
    product = parts[0]
    for part in parts[1:]:
        product = nn.matmul(n.b, product, part)
    return product


def bilinear(n: Node, x: Expr, y: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    """Rows of two operands times a matrix for each column of the result."""
    b = n.b
    left = nn.matmul(b, b.unsqueeze(b.of_rank(x, 2), [0]), b.of_rank(weight, 3))
    product = b.transpose(b.op("sum", b.op("multiply", left, b.unsqueeze(b.of_rank(y, 2), [0])), axis=[2]), [1, 0])
    return product if bias is None else b.op("add", product, bias)


def renorm(n: Node, x: Expr) -> Any:
    """Parts along an axis, those of a norm above the largest made so large."""
    b, axis, power, most = n.b, n.axis(x), n.float("p"), n.float("max_norm")
    if power <= 0:
        raise Malformed(f"its norm has the power {power}")
    axes = [i for i in range(b.rank(x)) if i != axis]
    norm = b.op("power", b.op("sum", b.op("power", b.op("abs", x), power), axis=axes, keepdims=True), 1 / power)
    factor = b.op("divide", b.const(most, b.dtype(x)), b.op("add", norm, 1e-7))
    return b.op("multiply", x, b.op("where", b.op("greater", norm, most), factor, b.const(1.0, b.dtype(x))))


# ---- along an axis


def _before(b: Builder, x: Expr, axis: int, step: int, first: Any) -> Expr:
    """Each element from `step` places before; the first ones are `first`."""
    pairs = [(step, 0) if i == axis else (0, 0) for i in range(b.rank(x))]
    kept = b.slice(x, [0], [b.extent(x, axis) - step], [axis])
    return padded(b, kept, pairs, value=b.const(np.array(first).astype(b.dtype(x))))


def _steps(extent: int) -> list[int]:
    """1, 2, 4 ... below the extent: after so many joins, an element has met all before it."""
    return [1 << i for i in range(max(extent - 1, 0).bit_length())]


def _running(largest: bool) -> Callable[[Node, Expr], Any]:
    """The largest or smallest element so far, and the place of the last such one."""

    def convert(n: Node, x: Expr) -> Any:
        b, axis = n.b, n.axis(x, "axis", -1)
        extent, dtype = b.extent(x, axis), b.dtype(x)
        sign = -1 if largest else 1
        least = sign * math.inf if "float" in dtype else getattr(np.iinfo(dtype), "min" if largest else "max")
        along = b.arrays.arange(extent).reshape([-1 if i == axis else 1 for i in range(b.rank(x))])
        places = b.op("add", b.cast(b.op("zeros_like", x), "int64"), b.const(along))
        for step in _steps(extent):
            other, place = _before(b, x, axis, step, least), _before(b, places, axis, step, 0)
            better = b.op("greater" if largest else "less", other, x)
            if "float" in dtype:  # a NaN stays
                better = b.op("logical_or", better, b.op("logical_and", b.op("isnan", other), b.op("logical_not", b.op("isnan", x))))
            x, places = b.op("where", better, other, x), b.op("where", better, place, places)
        return [x, b.cast(places, n.dtype("dtype", "int64"))]

    return convert


def logcumsumexp(n: Node, x: Expr) -> Any:
    b = n.b
    if n.bool("flatten", False):
        x = b.op("reshape", x, newshape=[-1])
    axis = n.axis(x, "axis", -1)
    back, skip = n.bool("reverse", False), n.bool("exclusive", False)
    total = b.op("reverse", x, axis=axis) if back else x
    total = _before(b, total, axis, 1, -math.inf) if skip else total
    for step in _steps(b.extent(x, axis)):
        other = _before(b, total, axis, step, -math.inf)
        most, least = b.op("maximum", total, other), b.op("minimum", total, other)
        sum_ = b.op("add", most, nn.log1p(b, b.op("exp", b.op("subtract", least, most))))
        total = b.op("where", b.op("equal", least, b.const(-math.inf, b.dtype(x))), most, sum_)
    return b.op("reverse", total, axis=axis) if back else total


def searchsorted(n: Node, ordered: Expr, values: Expr) -> Any:
    b = n.b
    dtype = "int32" if n.bool("out_int32", False) else "int64"
    return b.op("searchsorted", ordered, b.cast(values, b.dtype(ordered)), right=n.bool("right", False), dtype=dtype)


def median(n: Node, x: Expr) -> Any:
    """The element in the middle and its place; of an even number, the lower one, or the mean of both."""
    b, axes = n.b, n.ints("axis", [])
    if len(axes) != 1:
        if axes and len(axes) != b.rank(x):
            raise Malformed(f"it has the axes {axes[:8]}")
        x, axes = b.op("reshape", x, newshape=[-1]), [0]
    axis, keep = axes[0] % b.rank(x), n.bool("keepdim", False)
    middle = (b.extent(x, axis) - 1) // 2
    ordered, places = b.op("sort", x, axis=axis), b.op("argsort", x, axis=axis, dtype="int64")

    def part(v: Expr, at: int) -> Expr:
        element = b.slice(v, [at], [at + 1], [axis])
        return element if keep else b.squeeze(element, [axis])

    value = part(ordered, middle)
    if n.text("mode", "avg") == "avg" and b.extent(x, axis) % 2 == 0:
        value = b.op("divide", b.op("add", value, part(ordered, middle + 1)), 2.0)
    if "float" in b.dtype(x):
        wrong = b.op("any", b.op("isnan", x), axis=[axis], keepdims=keep)
        value = b.op("where", wrong, b.const(math.nan, b.dtype(x)), value)
    return [value, part(places, middle)]


# ---- others


def copysign(n: Node, x: Expr, y: Expr) -> Any:
    """The size of one number with the sign of another, which a zero has, too."""
    b = n.b
    size, one = b.op("abs", x), b.const(1.0, b.dtype(y))
    below = b.op("less", b.op("where", b.op("equal", y, b.const(0.0, b.dtype(y))), b.op("divide", one, y), y), 0.0)
    return b.op("where", below, b.op("negative", size), size)


def logspace(n: Node, start: Expr, stop: Expr, count: Any, base: Expr) -> Any:
    b, dtype = n.b, n.dtype("dtype", "float32")
    first, last, power = (float(b.need(v, "its ends").reshape(-1)[0]) for v in (start, stop, base))
    number = n.number(count, "its number of elements")
    if number < 1 or not all(map(math.isfinite, (first, last, power))) or power <= 0:
        raise Malformed(f"it has {number} powers of {power} from {first} to {last}")
    return b.const((power ** b.arrays.linspace(first, last, number)).astype(np.dtype(dtype)))


def sequence_mask(n: Node, x: Expr, most: Expr | None = None) -> Any:
    """Which places are below each length."""
    b, count = n.b, n.number(most, "its largest length", n.int("maxlen", -1))
    if count < 1:
        count = int(b.need(x, "its largest length").max(initial=0))
    places = b.const(b.arrays.arange(count), "int64")
    return b.cast(b.op("less", places, b.unsqueeze(b.cast(x, "int64"), [b.rank(x)])), n.dtype("out_dtype", "int64"))


def multiplex(n: Node, xs: Tensors, index: Expr) -> Any:
    """Each row from the tensor that a number names."""
    b, parts = n.b, n.list(xs)
    number = b.reshape(index, [-1, *[1] * (b.rank(parts[0]) - 1)])
    selected = parts[0]
    for at, part in enumerate(parts[1:], 1):
        selected = b.op("where", b.op("equal", number, at), part, selected)
    return selected


def counts(n: Node, x: Expr, weights: Expr | None = None, least: Any = None) -> Any:
    return bincount(n.b, x, weights, n.number(least, "its least length", n.int("minlength", 0)))


def unpool(n: Node, x: Expr, places: Expr, size: Any = None) -> Any:
    """The elements at their places in each picture, and zeros."""
    b = n.b
    batch, channels, *_ = b.static_shape(x, "its operand", 4)
    extents = n.numbers(size, "the extents of its result") if size is not None else n.ints("output_size")
    if len(extents) < 2 or min(extents) < 0:
        raise Malformed(f"its result has the extents {extents[:8]}")
    rows, columns = extents[-2:]
    start = b.const(b.arrays.zeros((batch, channels, rows * columns), np.dtype(b.dtype(x))))
    flat, at = (b.op("reshape", v, newshape=[batch, channels, -1]) for v in (x, places))
    return b.reshape_exactly(b.op("scatter_elements", start, b.cast(at, "int64"), flat, axis=2), [batch, channels, rows, columns])


RULES = (
    Rule("bilinear", bilinear),
    Rule("bincount", counts),
    Rule("bitwise_left_shift", lambda n, x, y: n.b.op("left_shift", x, y)),
    Rule("bitwise_right_shift", lambda n, x, y: n.b.op("right_shift", x, y)),
    Rule("conj", lambda n, x: x),
    Rule("copysign", copysign),
    Rule("cross", cross),
    Rule("cummax", _running(True)),
    Rule("cummin", _running(False)),
    Rule("diag", diag),
    Rule("diag_embed", diag_embed),
    Rule("logcumsumexp", logcumsumexp),
    Rule("logspace", logspace),
    Rule("masked_fill", lambda n, x, mask, value: n.b.op("where", mask, n.b.cast(value, n.b.dtype(x)), x)),
    Rule("median", median),
    Rule("multi_dot", multi_dot),
    Rule("multiplex", multiplex),
    Rule("renorm", renorm),
    Rule("searchsorted", searchsorted),
    Rule("sequence_mask", sequence_mask),
    Rule("trace", trace),
    Rule("tril_indices", _indices(False)),
    Rule("triu_indices", _indices(True)),
    Rule("unpool", unpool),
)
