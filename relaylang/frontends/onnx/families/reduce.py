"""Reductions along axes, and the largest, the sorted and the distinct elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr

#: A reduction: the data, its axes, and whether these stay with extent 1.
Reduce = Callable[[Builder, Expr, list[int], bool], Expr]


def _reduced(n: Node, x: Expr, axes: list[int], convert: Reduce) -> Any:
    rank = n.b.rank(x)
    if not axes and n.int("noop_with_empty_axes", 0):
        return convert(n.b, x, [], True)
    taken = sorted({a % rank for a in axes}) if axes else list(range(rank))
    if not taken:
        return convert(n.b, x, [], True)
    return convert(n.b, x, taken, bool(n.int("keepdims", 1)))


def simple(op: str, empty: float) -> Reduce:
    """A reduction that Relay has. `empty` is its result where there are no elements."""

    def convert(b: Builder, x: Expr, axes: list[int], keepdims: bool) -> Expr:
        if not axes:
            return x
        shape = b.shape(x)
        if any(shape[a] == 0 for a in axes) and all(isinstance(d, int) for d in shape):
            return _full(b, _left(b.static_shape(x), axes, keepdims), _nearest(empty, b.dtype(x)), b.dtype(x))
        return b.op(op, x, axis=axes, keepdims=keepdims)

    return convert


def _left(shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> list[int]:
    return [1 if i in axes else d for i, d in enumerate(shape) if keepdims or i not in axes]


def _full(b: Builder, shape: list[int], value: Any, dtype: str) -> Expr:
    return b.const(b.arrays.full(shape, value, np.dtype(dtype)))


def _nearest(value: float, dtype: str) -> Any:
    """The value, or the number of a whole type that is nearest to it."""
    if "float" in dtype:
        return value
    if dtype == "bool":
        return value > 0
    info = ml_dtypes.iinfo(np.dtype(dtype))
    return int(min(max(value, info.min), info.max)) if math.isfinite(value) else (info.max if value > 0 else info.min)


def _extreme(op: str, of_bool: str, empty: float) -> Reduce:
    """Bool has its own reductions."""

    def convert(b: Builder, x: Expr, axes: list[int], keepdims: bool) -> Expr:
        return simple(of_bool if b.dtype(x) == "bool" else op, empty)(b, x, axes, keepdims)

    return convert


total = simple("sum", 0)
average = simple("mean", math.nan)
largest = _extreme("max", "any", -math.inf)


def square_sum(b: Builder, x: Expr, axes: list[int], keepdims: bool) -> Expr:
    return total(b, b.op("multiply", x, x), axes, keepdims)


def log_sum(b: Builder, x: Expr, axes: list[int], keepdims: bool) -> Expr:
    return _of_float(b, total(b, x, axes, keepdims), "log")


def log_sum_exp(b: Builder, x: Expr, axes: list[int], keepdims: bool) -> Expr:
    if not axes:
        return x
    if any(b.shape(x)[a] == 0 for a in axes):
        return log_sum(b, x, axes, keepdims)
    wide = b.cast(x, "float64") if "float" not in b.dtype(x) else x
    return b.cast(nn.log_sum_exp(b, wide, axes, keepdims), b.dtype(x))


def _of_float(b: Builder, x: Expr, op: str) -> Expr:
    """A function of real numbers, also for whole ones."""
    dtype = b.dtype(x)
    return b.op(op, x) if "float" in dtype else b.cast(b.op(op, b.cast(x, "float64")), dtype)


def arg(op: str) -> Callable[..., Any]:
    """The place of the largest or smallest element."""

    def convert(n: Node, x: Expr) -> Any:
        b = n.b
        axis, last = n.int("axis", 0) % max(b.rank(x), 1), bool(n.int("select_last_index", 0))
        index = b.op(op, x, axis=[axis], keepdims=bool(n.int("keepdims", 1)), select_last_index=last)
        return b.cast(index, "int64")

    return convert


def top_k(n: Node, x: Expr, k: Expr) -> Any:
    count = n.b.known(k)
    largest_first = bool(n.int("largest", 1))
    if count and count[0] is not None:
        return _top_k(n, x, count[0], largest_first)
    top = n.b.op("dyn.topk", x, n.b.scalar(k), axis=n.int("axis", -1), ret_type="both", is_ascend=not largest_first, dtype="int64")
    return n.b.fields(top)


def _top_k(n: Node, x: Expr, k: int, largest_first: bool) -> Any:
    b, axis = n.b, n.int("axis", -1)
    if k == 0:
        none = b.slice(x, [0], [0], [axis % b.rank(x)])
        return [none, b.cast(none, "int64")]
    return b.fields(b.op("topk", x, k=k, axis=axis, ret_type="both", is_ascend=not largest_first, dtype="int64"))


def unique(n: Node, x: Expr) -> Any:
    """The distinct elements; Relay puts them in front of a vector as long as the data, which is cut here."""
    b = n.b
    sorted_ = bool(n.int("sorted", 1))
    if n.has("axis") and b.rank(x) > 1:
        return _unique_slices(n, x, n.int("axis") % b.rank(x), sorted_)
    flat = b.op("reshape", x, newshape=[-1]) if b.rank(x) != 1 else x
    values, first, inverse, count, counts = b.fields(b.op("unique", flat, sorted=sorted_, return_counts=True))
    cut = b.cast(count, "int64")

    def front(v: Expr) -> Expr:
        zero, one = b.const(np.array([0])), b.const(np.array([1]))
        return b.op("dyn.strided_slice", v, zero, cut, one, begin=None, end=None, strides=None, axes=None)

    return [front(values), *[b.cast(v, "int64") for v in (front(first), inverse, front(counts))]]


def _unique_slices(n: Node, x: Expr, axis: int, sorted_: bool) -> list[Expr]:
    """Slices along an axis are compared pair by pair; the first of equal slices stands for them."""
    b = n.b
    order = [axis, *[i for i in range(b.rank(x)) if i != axis]]
    shape = b.static_shape(x, "the data of Unique with an axis")
    count, size = shape[axis], math.prod(shape) // max(shape[axis], 1)
    if count > 256 or size == 0:
        raise Unsupported(f"Unique with an axis compares up to 256 slices, not {count}")
    rows = b.reshape_exactly(b.transpose(x, order), [count, size])
    left, right = b.unsqueeze(rows, [1]), b.unsqueeze(rows, [0])
    differ = b.op("not_equal", left, right)
    equal = b.op("logical_not", b.op("any", differ, axis=[2]))
    first = b.op("argmax", b.cast(equal, "int32"), axis=[1])
    is_first = b.op("equal", first, b.const(b.arrays.arange(count), "int32"))
    kept = b.cast(b.squeeze(b.op("argwhere", is_first), [1]), "int64")
    if sorted_:
        # A slice's rank is the number of first slices that are less where they first differ.
        at = b.op("argmax", b.cast(differ, "int32"), axis=[2], keepdims=True)
        less = b.squeeze(b.op("gather", b.cast(b.op("less", right, left), "int32"), at, axis=2), [2])
        rank = b.op("sum", b.op("multiply", less, b.unsqueeze(b.cast(is_first, "int32"), [0])), axis=[1])
        kept = b.op("take", kept, b.op("argsort", b.op("take", rank, kept, axis=0), dtype="int32"), axis=0)
    else:
        before = b.op("cumsum", b.cast(is_first, "int32"), axis=0, exclusive=True, dtype="int32")
        rank = b.op("take", before, first, axis=0)
    counts = b.op("take", b.op("sum", b.cast(equal, "int64"), axis=[1]), kept, axis=0)
    return [b.op("take", x, kept, axis=axis), kept, b.cast(rank, "int64"), counts]


def both(name: str, convert: Reduce, since: int = 18) -> tuple[Rule, Rule]:
    """The two forms of a reduction: axes are an operand from version `since` on."""

    def with_operand(n: Node, x: Expr, axes: Expr | None = None) -> Any:
        return _reduced(n, x, [] if axes is None else n.b.need_ints(axes, "the axes"), convert)

    with_attribute = Rule(name, lambda n, x: _reduced(n, x, n.ints("axes", []), convert), until=since - 1)
    return with_attribute, Rule(name, with_operand, since=since)


RULES = (
    *both("ReduceL1", lambda b, x, axes, keepdims: total(b, b.op("abs", x), axes, keepdims)),
    *both("ReduceL2", lambda b, x, axes, keepdims: _of_float(b, square_sum(b, x, axes, keepdims), "sqrt")),
    *both("ReduceLogSum", log_sum),
    *both("ReduceLogSumExp", log_sum_exp),
    *both("ReduceMax", largest),
    *both("ReduceMean", average),
    *both("ReduceMin", _extreme("min", "all", math.inf)),
    *both("ReduceProd", simple("prod", 1)),
    *both("ReduceSum", total, since=13),
    *both("ReduceSumSquare", square_sum),
    Rule("ArgMax", arg("argmax")),
    Rule("ArgMin", arg("argmin")),
    Rule("TopK", lambda n, x: _top_k(n, x, n.int("k"), True), until=9),
    Rule("TopK", top_k, since=10),
    Rule("Unique", unique),
)
