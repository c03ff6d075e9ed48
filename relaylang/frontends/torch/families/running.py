"""Running and ranked values along an axis: cumulative extremes and sums, medians, quantiles, differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.torch.families.elementwise import floating, log_add
from relaylang.frontends.torch.families.reduce import place_of_nan
from relaylang.frontends.torch.families.shape import computed_slice
from relaylang.frontends.torch.node import Node, on_axes
from relaylang.ir import Expr


def _shifted(b: Builder, x: Expr, axis: int, step: int, first: Any) -> Expr:
    """Each element from `step` places before; the first ones are `first`."""
    extent = b.extent(x, axis)
    front = b.op("full_like", b.slice(x, [0], [step], [axis]), b.const(first, b.dtype(x)))
    return b.concat([front, b.slice(x, [0], [extent - step], [axis])], axis)


def _steps(extent: int) -> list[int]:
    """1, 2, 4 ... below the extent: after so many joins, an element has met all before it."""
    return [1 << i for i in range(max(extent - 1, 0).bit_length())]


def _least(dtype: str, sign: int) -> Any:
    if "float" in dtype:
        return -sign * math.inf
    info = np.iinfo(dtype)
    return info.min if sign > 0 else info.max


def running_extreme(sign: int) -> Callable[[Node], Any]:
    """The largest or smallest element so far and its place, the last one of equal ones."""

    def convert(n: Node) -> Any:
        b, x = n.b, n.x()
        if not b.rank(x):
            return [x, b.const(0, "int64")]
        if b.dtype(x) == "bool":
            most, places = convert(n.replaced({"self": b.cast(x, "int8")}))
            return [b.cast(most, "bool"), places]
        axis = n.int("dim") % b.rank(x)
        extent = b.extent(x, axis)
        shape = [-1 if i == axis else 1 for i in range(b.rank(x))]
        places = b.op("add", b.cast(b.op("zeros_like", x), "int64"), b.const(b.arrays.arange(extent).reshape(shape)))
        for step in _steps(extent):
            before = _shifted(b, x, axis, step, _least(b.dtype(x), sign))
            place = _shifted(b, places, axis, step, 0)
            if "float" in b.dtype(x):  # the last NaN stays
                behind = b.op("less_equal" if sign > 0 else "greater_equal", before, x)
                better = b.op("logical_not", b.op("logical_or", b.op("isnan", x), behind))
            else:
                better = b.op("greater" if sign > 0 else "less", before, x)
            x, places = b.op("where", better, before, x), b.op("where", better, place, places)
        return [x, places]

    return convert


def log_cum_sum_exp(n: Node) -> Any:
    b, x = n.b, n.x()
    axis = n.int("dim") % b.rank(x)
    for step in _steps(b.extent(x, axis)):
        x = log_add(b, x, _shifted(b, x, axis, step, -math.inf))
    return x


def _ranked(n: Node, x: Expr, place: int, axis: int, keep: bool) -> list[Expr]:
    """The element that has this place in order, and its index."""
    b = n.b
    order = b.slice(b.op("argsort", x, axis=axis, dtype="int64"), [place], [place + 1], [axis])
    ranked = b.slice(b.op("sort", x, axis=axis), [place], [place + 1], [axis])
    return [ranked, order] if keep else [b.squeeze(v, [axis]) for v in (ranked, order)]


def median(n: Node) -> Any:
    """Of an even number, the lower of the two in the middle. A NaN is the median."""
    b, x, keep = n.b, n.x(), bool(n.get("keepdim", False))
    if not n.has("dim"):
        x, axis, keep = b.op("reshape", x, newshape=[-1]), 0, False
    else:
        axis = n.int("dim") % b.rank(x)
    lower = _ranked(n, x, (b.extent(x, axis) - 1) // 2, axis, keep)
    if "float" in b.dtype(x):
        some, first = place_of_nan(b, x, (axis,), keep)
        lower = [b.op("where", some, b.const(np.nan, b.dtype(x)), lower[0]), b.op("where", some, first, lower[1])]
    return lower if n.has("dim") else lower[0]


def quantile(n: Node) -> Any:
    """Between two ranked elements, by the method that `interpolation` names."""
    b, x = n.b, n.x()
    asked = n.get("q")
    parts = b.need(asked, "the quantiles").astype(np.float64) if isinstance(asked, Expr) else np.float64(asked)
    if not n.has("dim"):
        x, axis, keep = b.op("reshape", x, newshape=[-1]), 0, False
        if n.get("keepdim"):
            raise Unsupported("it keeps axes that are flattened")
    else:
        axis, keep = n.int("dim") % b.rank(x), bool(n.get("keepdim", False))
    last = b.extent(x, axis) - 1
    at = np.atleast_1d(parts) * last
    method = n.get("interpolation", "linear")
    if method == "midpoint":
        at = np.floor(at) + 0.5 * (at % 1 != 0)
    elif method != "linear":
        at = n.choice("interpolation", "linear", {"lower": np.floor, "higher": np.ceil, "nearest": np.rint})(at)
    ordered = b.op("sort", x, axis=axis)
    low, high = (b.op("take", ordered, b.const(f(at).astype(np.int64)), axis=axis) for f in (np.floor, np.ceil))
    weights = b.const((at - np.floor(at)).reshape([-1 if i == axis else 1 for i in range(b.rank(x))]), b.dtype(x))
    quantiles = b.op("add", low, b.op("multiply", b.op("subtract", high, low), weights))
    rank = b.rank(x)
    if parts.ndim:
        quantiles = b.transpose(quantiles, [axis, *[i for i in range(rank) if i != axis]])
        return b.unsqueeze(quantiles, [axis + 1]) if keep else quantiles
    return quantiles if keep else b.squeeze(quantiles, [axis])


def diff(n: Node) -> Any:
    """Differences of neighbours, `n` times."""
    b, x = n.b, n.x()
    if n.int("n", 1) == 0:
        return x
    axis = n.int("dim", -1) % b.rank(x)
    parts = [n.get("prepend"), x, n.get("append")]
    x = b.concat([p for p in parts if p is not None], axis)
    for _ in range(n.int("n", 1)):
        extent = b.extent(x, axis)
        after, before = b.slice(x, [1], [extent], [axis]), b.slice(x, [0], [extent - 1], [axis])
        x = b.op("not_equal" if b.dtype(x) == "bool" else "subtract", after, before)
    return x


def count_nonzero(n: Node) -> Any:
    b, x = n.b, n.x()
    dims = n.get("dim")
    axes = None if dims is None or dims == [] else n.ints("dim")
    return b.op("sum", b.cast(b.op("not_equal", x, b.const(0, b.dtype(x))), "int64"), axis=axes)


def _axes(n: Node) -> list[int] | None:
    dims = n.get("dim")
    return None if dims is None or dims == [] else n.ints("dim")


def without_nan(mean: bool) -> Callable[[Node], Any]:
    """The sum or the mean of the elements that are numbers."""

    def convert(n: Node) -> Any:
        b, x, axes, keep = n.b, floating(n), _axes(n), bool(n.get("keepdim", False))
        wrong = b.op("isnan", x)
        total = b.op("sum", b.op("where", wrong, b.op("zeros_like", x), x), axis=axes, keepdims=keep)
        if not mean:
            return total
        good = b.cast(b.op("logical_not", wrong), b.dtype(x))
        return b.op("divide", total, b.op("sum", good, axis=axes, keepdims=keep))

    return convert


def trapezoid(n: Node) -> Any:
    """The area under a line through points; `x` or `dx` gives their distances."""
    b, y = n.b, floating(n, "y")
    axis = n.int("dim", -1) % b.rank(y)
    extent = b.extent(y, axis)
    both = b.op("add", b.slice(y, [1], [extent], [axis]), b.slice(y, [0], [extent - 1], [axis]))
    if n.has("x"):
        at = floating(n, "x")
        own = axis if b.rank(at) == b.rank(y) else 0
        step = b.op("subtract", b.slice(at, [1], [extent], [own]), b.slice(at, [0], [extent - 1], [own]))
        if b.rank(at) == 1:
            step = b.unsqueeze(step, [i for i in range(b.rank(y)) if i != axis])
        both = b.op("multiply", both, step)
    else:
        both = b.op("multiply", both, float(n.get("dx", 1)))
    return b.op("multiply", b.op("sum", both, axis=[axis]), 0.5)


def unique(n: Node) -> Any:
    """The distinct elements in order, the place of each element among them, and their counts. Unasked results are empty."""
    b, x = n.b, n.x()
    flat = b.reshape(x, [-1])
    logical = b.dtype(x) == "bool"
    distinct = b.op("unique", b.cast(flat, "int8") if logical else flat, sorted=True, return_counts=True)
    values, _, inverse, count, counts = b.fields(distinct)
    values, counts = (computed_slice(n, v, 0, 0, b.scalar(b.cast(count, "int64")), 1) for v in (values, b.cast(counts, "int64")))
    none = b.const(np.zeros(0, np.int64))
    inverse = b.reshape_to(b.cast(inverse, "int64"), b.shape_of(x)) if n.get("return_inverse") else none
    return [b.cast(values, "bool") if logical else values, inverse, counts if n.get("return_counts") else none]


RULES = (
    Rule("aten._unique2", unique),
    Rule(
        "aten.aminmax",
        on_axes(lambda n: [n.b.op(op, n.x(), axis=_axes(n), keepdims=bool(n.get("keepdim", False))) for op in ("min", "max")]),
    ),
    Rule(
        "aten.argsort",
        on_axes(
            lambda n: n.b.op("argsort", n.x(), axis=n.int("dim", -1), is_ascend=not n.get("descending", False), dtype="int64"), -1
        ),
    ),
    Rule("aten.count_nonzero", on_axes(count_nonzero)),
    Rule("aten.cummax", on_axes(running_extreme(1))),
    Rule("aten.cummin", on_axes(running_extreme(-1))),
    Rule("aten.diff", diff),
    Rule(
        "aten.kthvalue",
        on_axes(lambda n: _ranked(n, n.x(), n.int("k") - 1, n.int("dim", -1) % n.b.rank(n.x()), bool(n.get("keepdim", False))), -1),
    ),
    Rule("aten.logcumsumexp", on_axes(log_cum_sum_exp)),
    Rule("aten.median", on_axes(median)),
    Rule("aten.msort", lambda n: n.b.op("sort", n.x(), axis=0, is_ascend=True)),
    Rule("aten.nanmean", on_axes(without_nan(True))),
    Rule("aten.nansum", on_axes(without_nan(False))),
    Rule("aten.quantile", on_axes(quantile)),
    Rule("aten.trapezoid", trapezoid),
)
