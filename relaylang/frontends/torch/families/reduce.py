"""Reductions, extreme elements, sorting, running sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.torch.node import Node, on_axes
from relaylang.ir import Expr


def _axes(n: Node) -> tuple[int, ...] | None:
    """The axes; None for all of them."""
    dims = n.get("dim")
    return None if dims is None or dims == [] else tuple(n.ints("dim"))


def reduce_(op: str) -> Any:
    """A reduction in the element type of the result."""

    def convert(n: Node) -> Any:
        b, x = n.b, n.x()
        x = b.cast(x, "bool" if op in ("all", "any") else n.dtype() or n.result_dtype())
        if op == "mean":
            return _mean(b, x, _axes(n), bool(n.get("keepdim", False)))
        return b.op(op, x, axis=_axes(n), keepdims=bool(n.get("keepdim", False)))

    return convert


def _mean(b: Builder, x: Expr, axes: tuple[int, ...] | None, keep: bool) -> Expr:
    """The mean, which is NaN of no elements."""
    mean: Expr = b.op("mean", x, axis=axes, keepdims=keep)
    empty = 0 in (b.shape(x) if axes is None else [b.shape(x)[a] for a in axes])
    return b.op("full_like", mean, b.const(np.nan, b.dtype(x))) if empty else mean


def variance(n: Node) -> Any:
    """With the correction of the count; 1 by default."""
    b, x, axes, keep = n.b, n.x(), _axes(n), bool(n.get("keepdim", False))
    correction = n.get("correction", 1 if n.get("unbiased", True) else 0)
    axes = axes if axes is not None else tuple(range(b.rank(x)))
    mean = b.op("mean", x, axis=axes, keepdims=True)
    off = b.op("subtract", x, mean)
    total = b.op("sum", b.op("multiply", off, off), axis=axes, keepdims=keep)
    spread = b.op("divide", total, _less(b, _count(b, x, axes), float(1 if correction is None else correction)))
    if "std" in n.call.target:
        spread = b.op("sqrt", spread)
    if "mean" in n.call.target:
        return [spread, _mean(b, x, axes, keep)]
    return spread


def _count(b: Builder, x: Expr, axes: tuple[int, ...]) -> Expr:
    """How many elements lie along the axes, in the tensor's element type."""
    extents = [b.shape(x)[a] for a in axes]
    known = [int(d) for d in extents if isinstance(d, int)]
    if len(known) == len(extents):
        return b.const(math.prod(known), b.dtype(x))
    sizes = b.op("take", b.shape_of(x), b.const(np.array([a % b.rank(x) for a in axes])), axis=0)
    return b.cast(b.op("prod", sizes), b.dtype(x))


def _less(b: Builder, count: Expr, correction: float) -> Expr:
    """The count less the correction, and not below 0."""
    left = b.op("subtract", count, correction) if correction else count
    return b.op("maximum", left, 0.0)


def place_of_nan(b: Builder, x: Expr, axes: tuple[int, ...] | None, keep: bool) -> tuple[Expr, Expr]:
    """Whether there is a NaN along the axes, and the place of the first as int64."""
    wrong = b.op("isnan", x)
    first = b.op("argmax", b.cast(wrong, "int32"), axis=axes, keepdims=keep)
    return b.op("any", wrong, axis=axes, keepdims=keep), b.cast(first, "int64")


def _place(b: Builder, op: str, x: Expr, axes: tuple[int, ...] | None, keep: bool) -> Expr:
    """The place of an extreme as int64. A NaN is both the greatest and the smallest element."""
    index = b.cast(b.op(op, x, axis=axes, keepdims=keep), "int64")
    if "float" not in b.dtype(x):
        return index
    some, first = place_of_nan(b, x, axes, keep)
    return b.op("where", some, first, index)


def arg(op: str) -> Any:
    def convert(n: Node) -> Any:
        b, x = n.b, n.x()
        if not b.rank(x):
            return b.op("zeros_like", b.cast(x, "int64"))
        return _place(b, op, x, _axes(n), bool(n.get("keepdim", False)))

    return convert


def extreme(op: str) -> Any:
    """max and min: of two tensors, of all elements, or along an axis with the positions."""

    def convert(n: Node) -> Any:
        b, x = n.b, n.x()
        if n.overload == "other":
            return b.op("maximum" if op == "max" else "minimum", x, n.x("other"))
        if n.overload == "default":
            return b.op(op, x)
        axis, keep = (n.int("dim"),), bool(n.get("keepdim", False))
        return [b.op(op, x, axis=axis, keepdims=keep), _place(b, f"arg{op}", x, axis, keep)]

    return convert


def top_k(n: Node) -> Any:
    """The number of elements may be computed."""
    b, count = n.b, n.get("k")
    how = {"axis": n.int("dim", -1), "ret_type": "both", "is_ascend": not n.get("largest", True), "dtype": "int64"}
    if isinstance(count, Expr) and b.value(count) is None:
        return b.fields(b.op("dyn.topk", n.x(), b.scalar(b.cast(count, "int64")), **how))
    return b.fields(b.op("topk", n.x(), k=n.int("k"), **how))


def sort(n: Node) -> Any:
    b, x = n.b, n.x()
    axis, ascend = n.int("dim", -1), not n.get("descending", False)
    order = b.op("argsort", x, axis=axis, is_ascend=ascend, dtype="int64")
    return [b.op("sort", x, axis=axis, is_ascend=ascend), order]


def running(op: str) -> Any:
    def convert(n: Node) -> Any:
        dtype = n.dtype() or n.result_dtype()
        return n.b.op(op, n.b.cast(n.x(), dtype), axis=n.int("dim"), dtype=dtype)

    return convert


def _of_order(b: Builder, x: Expr, order: float, axes: tuple[int, ...] | None, keep: bool) -> Expr:
    """The vector norm along axes."""
    size: Expr = b.op("abs", x)
    if order == 0:
        return b.op("sum", b.cast(b.op("not_equal", x, 0.0), b.dtype(x)), axis=axes, keepdims=keep)
    if order == 1:
        return b.op("sum", size, axis=axes, keepdims=keep)
    if abs(order) == math.inf:
        return _extreme_size(b, "max" if order > 0 else "min", size, axes, keep)
    if order == 2:
        return b.op("sqrt", b.op("sum", b.op("multiply", x, x), axis=axes, keepdims=keep))
    total = b.op("sum", b.op("power", size, order), axis=axes, keepdims=keep)
    return b.op("power", total, 1.0 / order)


def _extreme_size(b: Builder, op: str, size: Expr, axes: tuple[int, ...] | None, keep: bool) -> Expr:
    """The largest or smallest of absolute values; PyTorch's norms have the largest 0 of no elements."""
    largest: Expr = b.op(op, size, axis=axes, keepdims=keep)
    empty = 0 in (b.shape(size) if axes is None else [b.shape(size)[a] for a in axes])
    return b.op("zeros_like", largest) if empty and op == "max" else largest


def norm(n: Node) -> Any:
    """Of vectors; of matrices only that of Frobenius, which is the same."""
    b, x = n.b, _real(n)
    ordered = n.call.target.startswith("aten.linalg_vector_norm") or "linalg" not in n.call.target
    order = n.get("ord", n.get("p", 2 if ordered else None))
    axes = _axes(n)
    if n.call.target.startswith("aten.linalg_matrix_norm") and axes is None:
        axes = (-2, -1)
    matrix = n.call.target.startswith(("aten.linalg_norm", "aten.linalg_matrix_norm"))
    if isinstance(order, str) or order is None:
        if order == "nuc":
            raise Unsupported("the nuclear norm needs singular values")
        order = 2
    elif matrix and (2 if axes is None and b.rank(x) == 2 else len(axes or (0,))) == 2:
        return _matrix_norm(n, x, float(order), axes if axes is not None else (0, 1))
    return _of_order(b, x, float(order), axes, bool(n.get("keepdim", False)))


def _matrix_norm(n: Node, x: Expr, order: float, axes: tuple[int, ...]) -> Expr:
    """The largest or smallest sum of a row or column."""
    b, keep = n.b, bool(n.get("keepdim", False))
    if abs(order) not in (1, math.inf):
        raise Unsupported("a matrix norm of this order needs singular values")
    rows, columns = (a % b.rank(x) for a in axes)
    summed, rest = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = b.op("sum", b.op("abs", x), axis=[summed], keepdims=True)
    largest = _extreme_size(b, "max" if order > 0 else "min", sums, (rest,), True)
    return largest if keep else b.squeeze(largest, [rows, columns])


def _real(n: Node) -> Expr:
    """The operand in the element type that is asked for."""
    dtype = n.dtype() or n.result_dtype()
    return n.b.cast(n.x(), dtype)


def distance(n: Node) -> Any:
    b = n.b
    apart = b.op("subtract", n.x(), n.x("other"))
    return _of_order(b, apart, float(n.get("p", 2)), None, False)


def log_sum_exp(n: Node) -> Any:
    """Without overflow, also where all elements are infinite."""
    b, x, axes, keep = n.b, _real(n), _axes(n), bool(n.get("keepdim", False))
    most = b.op("max", x, axis=axes, keepdims=True)
    most = b.op("where", b.op("isinf", most), b.op("zeros_like", most), most)
    total = b.op("log", b.op("sum", b.op("exp", b.op("subtract", x, most)), axis=axes, keepdims=True))
    logarithm = b.op("add", total, most)
    return logarithm if keep else b.squeeze(logarithm, list(axes if axes is not None else range(b.rank(x))))


RULES = (
    *(Rule(f"aten.{name}", on_axes(reduce_(name))) for name in ("sum", "mean", "prod", "all", "any")),
    *(Rule(f"aten.{name}", on_axes(variance)) for name in ("var", "std", "var_mean", "std_mean")),
    Rule("aten.amax", on_axes(reduce_("max"))),
    Rule("aten.amin", on_axes(reduce_("min"))),
    Rule("aten.argmax", on_axes(arg("argmax"))),
    Rule("aten.argmin", on_axes(arg("argmin"))),
    Rule("aten.cumprod", on_axes(running("cumprod"))),
    Rule("aten.cumsum", on_axes(running("cumsum"))),
    Rule("aten.dist", distance),
    *(Rule(f"aten.{name}", on_axes(norm)) for name in ("linalg_vector_norm", "linalg_norm", "linalg_matrix_norm", "frobenius_norm")),
    Rule("aten.logsumexp", on_axes(log_sum_exp)),
    Rule("aten.max", on_axes(extreme("max"))),
    Rule("aten.min", on_axes(extreme("min"))),
    Rule("aten.norm", on_axes(norm)),
    Rule("aten.sort", on_axes(sort, -1)),
    Rule("aten.topk", on_axes(top_k, -1)),
)
