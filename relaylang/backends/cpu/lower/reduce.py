"""Reductions along axes.

Over trailing axes, each result has partial accumulators that run side by side, in groups as wide as a vector. This gives
vector code without asking the compiler to reorder sums. Over other axes, a buffer of results is updated row by row, so the
inner loop is contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Sink, Tensor, unsupported
from relaylang.backends.cpu.lower.common import axis_of, broadcast_at
from relaylang.ir import Call, TensorType
from relaylang.kernels import ir
from relaylang.kernels.dtypes import int_range, is_float
from relaylang.kernels.index import ZERO, affine, variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import Size

#: The partial results of a row in one group. Several groups have a vector each: how many, and the choices of a schedule.
LANES, _SIDE_BY_SIDE, _GROUPS = 16, 4, (1, 2, 4, 8)
_COMBINE = {"sum": "add", "prod": "mul", "max": "peak", "min": "trough", "peak": "peak", "all": "and", "any": "or"}
#: Of truth values: a sum is modulo 2.
_COMBINE_BOOL = {**_COMBINE, "sum": "xor", "prod": "and"}


def combine(kind: str, dtype: str) -> str:
    """The operation that makes one of two values of a type."""
    return (_COMBINE_BOOL if dtype == "bool" else _COMBINE)[kind]


def start_of(kind: str, dtype: str) -> float:
    """The value that a reduction begins with. A peak is a maximum that begins with the least finite number, as in
    pools."""
    if kind in ("sum", "any"):
        return 0
    if kind in ("prod", "all"):
        return 1
    if is_float(dtype):
        return float(np.finfo(dtype).min) if kind == "peak" else float("-inf") if kind == "max" else float("inf")
    low, high = int_range(dtype)
    return high if kind == "min" else low


def reduce_axes(rank: int, attrs: Any) -> list[int]:
    if not attrs.axis:
        return list(range(rank))
    named = {axis_of(a, rank) for a in attrs.axis}
    return [d for d in range(rank) if (d in named) != attrs.exclude]


def _result_index(rank: int, axes: Sequence[int], keepdims: bool, kept: Sequence[Index]) -> list[Index]:
    """The result's index from those of the dimensions that are kept."""
    if not keepdims:
        return list(kept)
    left = iter(kept)
    return [ZERO if d in axes else next(left) for d in range(rank)]


def around(extents: Sequence[int], body: ir.Body) -> ir.Body:
    """A stage: loops `i0`, `i1` ... around statements, the first that is longer than 1 cut into units."""
    longer = [d for d, extent in enumerate(extents) if extent != 1]
    for d in reversed(longer):
        body = [ir.loop(f"i{d}", 0, extents[d], body, ir.PARALLEL if d == longer[0] else ir.SERIAL)]
    return [*(ir.Let(f"i{d}", ir.number(0)) for d, extent in enumerate(extents) if extent == 1), *body]


def _groups(kernel: Kernel, dtype: str, length: int) -> tuple[int, int]:
    """How many groups of partial results a row of some length has, and how many results are in each."""
    several = [] if isinstance(length, Size) else [n for n in _GROUPS if n * LANES <= length]
    if len(several) < 2 or dtype not in ("float32", "float64") or kernel.isa.lanes == 1:
        return 1, LANES
    vector = kernel.isa.of(dtype).lanes
    # A single vector would wait for each of its sums.
    groups = kernel.space.pick("groups", several, min(several[-1], _SIDE_BY_SIDE) if vector == LANES else 1)
    return groups, LANES if groups == 1 else vector


def reduce_rows(kernel: Kernel, data: Tensor, kind: str, acc_dtype: str, kept: Sequence[int], length: int, finish: Any) -> None:
    """Reduce the last axis of `data` (shape `kept + [length]`); `finish(nest, index, value)` stores each result."""
    rows, lane = len(kept), ir.Var("l")
    both = combine(kind, acc_dtype)
    groups, lanes = _groups(kernel, acc_dtype, length)
    accs = [ir.Local("acc" if n == 0 else f"acc{n}", acc_dtype, (lanes,)) for n in range(groups)]
    start = ir.Const(start_of(kind, acc_dtype), acc_dtype)
    body: ir.Body = [*accs, ir.loop("l", 0, lanes, [ir.store(acc, start, lane) for acc in accs])]
    index: list[Index] = [variable(d) for d in range(rows)]

    def add(nest: Nest, acc: ir.Local, last: Index, place: Index) -> None:
        nest.reduce(Buf(acc.name, (lanes,), acc_dtype), place, both, data.at(nest, [*index, last]).cast(acc_dtype))

    def run(nest: Nest) -> None:
        loops = nest.build(fixed=rows)
        # Values that are the same along the axis have names in front of the loops, and other loops have the same names.
        body.extend([ir.Block(loops)] if any(isinstance(stmt, ir.Let) for stmt in loops) else loops)

    bulk, rest = divmod(length, groups * lanes)
    if bulk != 0:
        nest = Nest([*kept, bulk, lanes])
        for n, acc in enumerate(accs):
            add(nest, acc, affine({rows: groups * lanes, rows + 1: 1}, n * lanes), variable(rows + 1))
        run(nest)
    if groups > 1:
        body.append(ir.loop("l", 0, lanes, [ir.Reduce(both, "acc", lane, ir.load(acc, lane)) for acc in accs[1:]]))
    first = bulk * groups * lanes
    if groups > 1 and rest >= lanes:
        nest = Nest([*kept, rest // lanes, lanes])
        add(nest, accs[0], affine({rows: lanes, rows + 1: 1}, first), variable(rows + 1))
        run(nest)
        first, rest = first + rest // lanes * lanes, rest % lanes
    if rest != 0:
        nest = Nest([*kept, rest])
        add(nest, accs[0], variable(rows) + first, variable(rows))
        run(nest)
    half = lanes // 2
    while half:
        body.append(ir.loop("l", 0, half, [ir.Reduce(both, "acc", lane, ir.load(accs[0], lane + half))]))
        half //= 2
    nest = Nest(kept)
    finish(nest, [variable(d) for d in range(rows)], nest.variable("acc", acc_dtype, rows, 0))
    kernel.stage(body=around(kept, body + nest.build(fixed=rows)))


def reduce_over(kernel: Kernel, data: Tensor, kind: str, axes: list[int], keepdims: bool, sink: Sink, scale: int | None) -> None:
    """Reduce `data` over `axes`; with `scale` (a mean), the sum is divided by it. Nothing has the extreme of its type."""
    rank = len(data.shape)
    dtype = sink.anchor.dtype
    if _count(data, axes) == 0:
        _reduce_nothing(kernel, kind, sink, scale)
        return
    acc = "bool" if kind in ("all", "any") else dtype
    if scale is not None and not is_float(dtype):
        # The mean of whole numbers: summed exactly, divided towards zero.
        acc = "int64"
    kept = [d for d in range(rank) if d not in axes]

    def finish(nest: Nest, index: Sequence[Index], value: Scalar) -> None:
        if scale is not None:
            value = value / nest.const(scale, acc)
        value = value.cast(dtype)
        sink.store(nest, _result_index(rank, axes, keepdims, index), value)

    shape = [data.shape[d] for d in kept]
    if axes == list(range(len(kept), rank)):
        length = _count(data, axes)
        if len(axes) != 1:
            split_shape = (*shape, length)
            merged = kernel.strided(data, lambda buf: buf.reshaped(split_shape) is not None).reshaped(split_shape)
            assert merged is not None
            data = BufTensor(merged)
        reduce_rows(kernel, data, kind, acc, shape, length, finish)
    else:
        _reduce_in_front(kernel, data, kind, acc, axes, finish)


def _reduce_nothing(kernel: Kernel, kind: str, sink: Sink, scale: int | None) -> None:
    """The results where there are no elements."""
    shape, dtype = sink.anchor.shape, sink.anchor.dtype
    empty = np.finfo(dtype) if is_float(dtype) else None
    ends = {} if empty is None else {"max": float(empty.min), "min": float(empty.max)}
    nest = Nest(shape)
    value = nest.const(ends.get(kind, start_of(kind, dtype)), dtype)
    if scale is not None and scale <= 0 and is_float(dtype):
        value = value / nest.const(scale, dtype)
    sink.store(nest, [variable(d) for d in range(len(shape))], value)
    kernel.loops(nest)


def _reduce_in_front(kernel: Kernel, data: Tensor, kind: str, acc: str, axes: list[int], finish: Any) -> None:
    """Reduce axes in front of kept ones: the results are updated together, with the kept axes inside."""
    kept = [d for d in range(len(data.shape)) if d not in axes]
    shape = [data.shape[d] for d in kept]
    total = kernel.buffer(shape, acc)
    nest = Nest(shape)
    inner = [variable(d) for d in range(len(shape))]
    nest.store(total, nest.offset(inner, shape), nest.const(start_of(kind, acc), acc))
    kernel.loops(nest)
    lead = next((n for n, d in enumerate(kept) if d != n), 0)
    order = [*kept[:lead], *axes, *kept[lead:]]
    nest = Nest([data.shape[d] for d in order])
    place = {d: variable(n) for n, d in enumerate(order)}
    where = nest.offset([place[d] for d in kept], shape)
    value = data.at(nest, [place[d] for d in range(len(data.shape))]).cast(acc)
    nest.reduce(total, where, combine(kind, acc), value)
    kernel.loops(nest)
    nest = Nest(shape)
    finish(nest, inner, nest.load(total, nest.offset(inner, shape)))
    kernel.loops(nest)


def _count(data: Tensor, axes: Sequence[int]) -> int:
    total = 1
    for d in axes:
        total *= data.shape[d]
    return total


def _plain(kind: str, mean: bool = False) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = args[0]
        axes = reduce_axes(len(data.shape), call.attrs)
        own = "any" if data.dtype == "bool" and kind == "sum" and not mean else kind
        if own in ("all", "any"):
            data = _truths(data)
        reduce_over(kernel, data, own, axes, call.attrs.keepdims, sink, max(_count(data, axes), 1) if mean else None)

    return lower


def _truths(data: Tensor) -> Tensor:
    """Whether each element differs from zero."""
    if data.dtype == "bool":
        return data
    return Recipe(data.shape, "bool", lambda nest, index: data.at(nest, index).ne(0))


def _variance(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, mean = args
    axes = reduce_axes(len(data.shape), call.attrs)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        diff = data.at(nest, index) - broadcast_at(mean, nest, index, data.shape)
        return diff * diff

    count = _count(data, axes) - (1 if call.attrs.unbiased else 0)
    reduce_over(kernel, Recipe(data.shape, data.dtype, at), "sum", axes, call.attrs.keepdims, sink, count)


def _arg(kind: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = args[0]
        dtype = call.checked_type.dtype if isinstance(call.checked_type, TensorType) else "int32"
        rank = len(data.shape)
        axes = reduce_axes(rank, call.attrs)
        if _count(data, axes) == 0:
            raise unsupported("an axis of no elements has no extreme one", call)
        kept = [d for d in range(rank) if d not in axes]
        shape = [data.shape[d] for d in kept]
        source = BufTensor(kernel.strided(data))
        order = [*kept, *axes]
        start = ir.Const(start_of(kind, data.dtype), data.dtype)
        nest = Nest([data.shape[d] for d in order])
        place = {d: variable(n) for n, d in enumerate(order)}
        value = source.at(nest, [place[d] for d in range(rank)])
        number = nest.as_scalar(nest.offset([place[d] for d in axes], [data.shape[d] for d in axes]))
        if is_float(data.dtype):
            # A nan is never the extreme element.
            value = value.op("number", start_of(kind, data.dtype))
        best, at = nest.variable("best", data.dtype, rank), nest.variable("at", "int64", rank)
        name = ("ge" if call.attrs.select_last_index else "gt") if kind == "max" else "le" if call.attrs.select_last_index else "lt"
        nest.update((at < 0) | value.op(name, best), [("best", value), ("at", number)])
        body: ir.Body = [ir.Let("best", start, True), ir.Let("at", ir.Const(-1, "int64"), True)]
        body += nest.build(fixed=len(kept))
        nest = Nest(shape)
        index = _result_index(rank, axes, call.attrs.keepdims, [variable(d) for d in range(len(kept))])
        sink.store(nest, index, nest.variable("at", "int64", len(kept)).cast(dtype))
        kernel.stage(body=around(shape, body + nest.build(fixed=len(kept))))

    return lower


ANCHORS: dict[str, Any] = {
    "sum": _plain("sum"),
    "prod": _plain("prod"),
    "max": _plain("max"),
    "min": _plain("min"),
    "all": _plain("all"),
    "any": _plain("any"),
    "mean": _plain("sum", mean=True),
    "variance": _variance,
    "argmax": _arg("max"),
    "argmin": _arg("min"),
}
