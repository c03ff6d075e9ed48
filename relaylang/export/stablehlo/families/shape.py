"""Operators that move elements: shapes, slices, joins, look-ups, sorting, reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import (
    axes_of,
    cuts,
    mirrored,
    name_of,
    of_nothing,
    result,
    shape_of,
    slices,
)
from relaylang.export.stablehlo.emitter import Emitter, is_real, limits, written
from relaylang.export.walk import Value
from relaylang.ir import Call, TensorType


def broadcast_to(e: Emitter, call: Call, x: Value, *_: Value) -> Value:
    return e.broadcast(x, shape_of(call))


def repeat(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    if a.axis is None:
        x, axis = e.reshape(x, [math.prod(x.static())]), 0
    else:
        axis = a.axis % x.rank
    shape = list(x.static())
    wide = [*shape[: axis + 1], a.repeats, *shape[axis + 1 :]]
    repeated = e.broadcast(x, wide, [i if i <= axis else i + 1 for i in range(x.rank)])
    return e.reshape(repeated, shape_of(call))


def tile(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    reps = [int(n) for n in a.reps]
    rank = max(len(reps), x.rank)
    shape = [1] * (rank - x.rank) + list(x.static())
    reps = [1] * (rank - len(reps)) + reps
    wide = [m for n, r in zip(shape, reps) for m in (r, n)]
    x = e.reshape(x, shape)
    return e.reshape(e.broadcast(x, wide, [2 * i + 1 for i in range(rank)]), shape_of(call))


def reverse(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return reversed_along(e, x, [a.axis % x.rank])


def reversed_along(e: Emitter, x: Value, axes: Sequence[int]) -> Value:
    value = e.new(x.static(), x.dtype)
    e.line(f"%{value.name} = stablehlo.reverse %{x.name}, dims = {list(axes)} : {written(x.type)}")
    return value


def zeros(value: float) -> Any:
    def rule(e: Emitter, call: Call, *_: Value) -> Value:
        return e.broadcast(e.scalar(value, result(call).dtype), shape_of(call))

    return rule


def full(e: Emitter, call: Call, value: Value, *_: Value) -> Value:
    return e.broadcast(e.reshape(e.cast(value, result(call).dtype), []), shape_of(call))


def arange(e: Emitter, call: Call, start: Value, stop: Value, step: Value) -> Value:
    (count,), dtype = shape_of(call), result(call).dtype
    steps = e.two("multiply", e.iota([count], 0, dtype), e.reshape(e.cast(step, dtype), []))
    return e.two("add", steps, e.reshape(e.cast(start, dtype), []))


def one_hot(e: Emitter, call: Call, indices: Value, on: Value, off: Value) -> Value:
    a: Any = call.attrs
    shape, dtype = shape_of(call), result(call).dtype
    axis = a.axis % len(shape)
    at = e.broadcast(indices, shape, [i if i < axis else i + 1 for i in range(indices.rank)])
    return e.select(
        e.compare("EQ", at, e.iota(shape, axis, indices.dtype)), e.reshape(e.cast(on, dtype), []), e.reshape(e.cast(off, dtype), [])
    )


def shape(e: Emitter, call: Call, x: Value) -> Value:
    return e.array(np.asarray(x.static(), np.dtype(result(call).dtype)))


def ndarray_size(e: Emitter, call: Call, x: Value) -> Value:
    return e.array(np.asarray(math.prod(x.static()), np.dtype(result(call).dtype)))


def concatenate(e: Emitter, call: Call, parts: list[Value]) -> Value:
    a: Any = call.attrs
    return e.concatenate(parts, a.axis % parts[0].rank)


def stack(e: Emitter, call: Call, parts: list[Value]) -> Value:
    a: Any = call.attrs
    axis = a.axis % (parts[0].rank + 1)
    rows = []
    for p in parts:
        extents = list(p.static())
        extents.insert(axis, 1)
        rows.append(e.reshape(p, extents))
    return e.concatenate(rows, axis)


def split(e: Emitter, call: Call, x: Value) -> list[Value]:
    a: Any = call.attrs
    axis = a.axis % x.rank
    parts = []
    for begin, end in cuts(call, x.extent(axis)):
        first = [begin if i == axis else 0 for i in range(x.rank)]
        last = [end if i == axis else n for i, n in enumerate(x.static())]
        parts.append(e.slice(x, first, last, [1] * x.rank))
    return parts


def strided_slice(e: Emitter, call: Call, x: Value) -> Value:
    shape = list(x.static())
    first, last, by, turned = [0] * x.rank, list(shape), [1] * x.rank, []
    for axis, start, stop, stride in slices(call, x.rank):
        at, to, step = slice(start, stop, stride).indices(shape[axis])
        if step < 0:
            count = max(-(-(at - to) // -step), 0)
            low = at - (count - 1) * -step if count else 0
            first[axis], last[axis], by[axis] = low, (at + 1 if count else low), -step
            turned.append(axis)
        else:
            first[axis], last[axis], by[axis] = at, max(to, at), step
    sliced = e.slice(x, first, last, by)
    return reversed_along(e, sliced, turned) if turned else sliced


def slice_like(e: Emitter, call: Call, x: Value, like: Value) -> Value:
    return e.slice(x, [0] * x.rank, shape_of(call), [1] * x.rank)


def pad(e: Emitter, call: Call, x: Value, value: Value) -> Value:
    a: Any = call.attrs
    pairs = [(int(p), int(q)) for p, q in a.pad_width]
    if a.pad_mode == "constant":
        return e.pad(x, e.reshape(e.cast(value, x.dtype), []), [p for p, _ in pairs], [q for _, q in pairs])
    return _padded_by_index(e, x, pairs, a.pad_mode)


def mirror_pad(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    pairs = [(int(p), int(q)) for p, q in a.pad_width]
    return _padded_by_index(e, x, pairs, "symmetric" if a.mode == "SYMMETRIC" else "reflect")


def _padded_by_index(e: Emitter, x: Value, pairs: list[tuple[int, int]], mode: str) -> Value:
    for axis, (p, q) in enumerate(pairs):
        if p or q:
            x = taken(e, x, e.array(mirrored(x.extent(axis), p, q, mode)), axis)
    return x


def taken(e: Emitter, x: Value, indices: Value, axis: int) -> Value:
    """Slices along an axis at known places."""
    rank, count = x.rank, indices.rank
    shape = [*x.static()[:axis], *indices.static(), *x.static()[axis + 1 :]]
    offset = [i for i in range(len(shape)) if not axis <= i < axis + count]
    sizes = [1 if i == axis else n for i, n in enumerate(x.static())]
    text = (
        f'"stablehlo.gather"(%{x.name}, %{indices.name}) <{{dimension_numbers = #stablehlo.gather<offset_dims = {offset}, '
        f"collapsed_slice_dims = [{axis}], start_index_map = [{axis}], index_vector_dim = {count}>, "
        f"indices_are_sorted = false, slice_sizes = array<i64: {', '.join(map(str, sizes))}>}}>"
    )
    assert rank
    return e.op(text, [x, indices], shape, x.dtype)


def take(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    a: Any = call.attrs
    if a.batch_dims:
        raise Unsupported("it has batch_dims")
    if a.axis is None:
        x, axis = e.reshape(x, [math.prod(x.static())]), 0
    else:
        axis = a.axis % x.rank
    extent = x.static()[axis]
    if indices.dtype.startswith("u"):
        indices = e.cast(indices, "int64")
    if a.mode == "wrap":
        rest = e.two("remainder", indices, e.scalar(extent, indices.dtype))
        low = e.compare("LT", rest, e.splat(0, rest))
        indices = e.select(low, e.two("add", rest, e.scalar(extent, rest.dtype)), rest)
    elif a.mode == "fast":
        low = e.compare("LT", indices, e.splat(0, indices))
        indices = e.select(low, e.two("add", indices, e.scalar(extent, indices.dtype)), indices)
    return taken(e, x, indices, axis)  # stablehlo.gather clamps indices that are outside


def _points(e: Emitter, indices: Value, axes: Sequence[int], shape: Sequence[int], axis: int) -> Value:
    """The places of all elements, with `indices` along one axis: (*shape, rank) int32."""
    columns = [e.cast(indices, "int32") if i == axis else e.iota(shape, i, "int32") for i in axes]
    return e.concatenate([e.reshape(c, [*shape, 1]) for c in columns], len(shape))


def gather(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    a: Any = call.attrs
    axis = a.axis % x.rank
    places = _points(e, _wrapped(e, indices, x.static()[axis]), range(x.rank), indices.static(), axis)
    return _at_points(e, x, places, x.rank)


def _wrapped(e: Emitter, indices: Value, extent: int) -> Value:
    if indices.dtype.startswith("u"):
        return indices
    low = e.compare("LT", indices, e.splat(0, indices))
    return e.select(low, e.two("add", indices, e.scalar(extent, indices.dtype)), indices)


def _at_points(e: Emitter, x: Value, places: Value, count: int) -> Value:
    """Slices at places (..., count), which name the first axes."""
    outer = places.static()[:-1]
    rest = x.static()[count:]
    shape = [*outer, *rest]
    offset = list(range(len(outer), len(shape)))
    sizes = [1] * count + list(rest)
    text = (
        f'"stablehlo.gather"(%{x.name}, %{places.name}) <{{dimension_numbers = #stablehlo.gather<offset_dims = {offset}, '
        f"collapsed_slice_dims = {list(range(count))}, start_index_map = {list(range(count))}, "
        f"index_vector_dim = {len(outer)}>, indices_are_sorted = false, slice_sizes = array<i64: {', '.join(map(str, sizes))}>}}>"
    )
    return e.op(text, [x, places], shape, x.dtype)


def gather_nd(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    a: Any = call.attrs
    if a.batch_dims:
        raise Unsupported("it has batch_dims")
    places = e.transpose(indices, [*range(1, indices.rank), 0])
    return _at_points(e, x, e.cast(places, "int64"), indices.static()[0])


_REGIONS = {"update": "", "add": "add", "mul": "multiply", "min": "minimum", "max": "maximum"}


def _scatter(e: Emitter, x: Value, places: Value, updates: Value, how: str) -> Value:
    if how not in _REGIONS:
        raise Unsupported(f"StableHLO has no {how} of updates")
    count, outer = places.static()[-1], places.rank - 1
    windows = list(range(outer, updates.rank))
    value = e.new(x.static(), x.dtype)
    one = written(TensorType((), x.dtype))
    old, new, both = (e.unique(n) for n in ("old", "new", "both"))
    e.line(
        f'%{value.name} = "stablehlo.scatter"(%{x.name}, %{places.name}, %{updates.name}) <{{scatter_dimension_numbers = '
        f"#stablehlo.scatter<update_window_dims = {windows}, inserted_window_dims = {list(range(count))}, "
        f"scatter_dims_to_operand_dims = {list(range(count))}, index_vector_dim = {outer}>, "
        "indices_are_sorted = false, unique_indices = false}> ({"
    )
    e.line(f"^bb0(%{old}: {one}, %{new}: {one}):")
    if _REGIONS[how]:
        e.line(f"  %{both} = stablehlo.{_REGIONS[how]} %{old}, %{new} : {one}")
    e.line(f"  stablehlo.return %{both if _REGIONS[how] else new} : {one}")
    e.line(f"}}) : ({written(x.type)}, {written(places.type)}, {written(updates.type)}) -> {written(x.type)}")
    return value


def scatter_elements(e: Emitter, call: Call, x: Value, indices: Value, updates: Value) -> Value:
    a: Any = call.attrs
    axis = a.axis % x.rank
    places = _points(e, _wrapped(e, indices, x.static()[axis]), range(x.rank), indices.static(), axis)
    return _scatter(e, x, places, updates, a.reduction)


def scatter_nd(e: Emitter, call: Call, x: Value, indices: Value, updates: Value) -> Value:
    a: Any = call.attrs
    return _scatter(e, x, e.cast(e.transpose(indices, [*range(1, indices.rank), 0]), "int64"), updates, a.mode)


def _sorted(e: Emitter, x: Value, axis: int, ascending: bool, dtype: str) -> tuple[Value, Value]:
    """Values in order, and their places. Equal values keep their order, also where a tool does not sort stably."""
    places = e.iota(x.static(), axis, dtype)
    value = e.new(x.static(), x.dtype)
    one, at = written(TensorType((), x.dtype)), written(TensorType((), dtype))
    names = [e.unique(n) for n in ("a", "b", "p", "q", "before", "same", "first", "tie", "less")]
    kind = "FLOAT" if is_real(x.dtype) else "UNSIGNED" if x.dtype.startswith(("u", "b")) else "SIGNED"
    e.line(f'%{value.name}:2 = "stablehlo.sort"(%{x.name}, %{places.name}) <{{dimension = {axis} : i64, is_stable = true}}> ({{')
    e.line(f"^bb0(%{names[0]}: {one}, %{names[1]}: {one}, %{names[2]}: {at}, %{names[3]}: {at}):")
    way = "LT" if ascending else "GT"
    before, same, first, tie, less = names[4:]
    e.line(f"  %{before} = stablehlo.compare {way}, %{names[0]}, %{names[1]}, {kind} : ({one}, {one}) -> tensor<i1>")
    e.line(f"  %{same} = stablehlo.compare EQ, %{names[0]}, %{names[1]}, {kind} : ({one}, {one}) -> tensor<i1>")
    e.line(f"  %{first} = stablehlo.compare LT, %{names[2]}, %{names[3]}, SIGNED : ({at}, {at}) -> tensor<i1>")
    e.line(f"  %{tie} = stablehlo.and %{same}, %{first} : tensor<i1>")
    e.line(f"  %{less} = stablehlo.or %{before}, %{tie} : tensor<i1>")
    e.line(f"  stablehlo.return %{less} : tensor<i1>")
    both = f"{written(x.type)}, {written(places.type)}"
    e.line(f"}}) : ({both}) -> ({both})")
    return Value(f"{value.name}#0", x.type), Value(f"{value.name}#1", places.type)


def topk(e: Emitter, call: Call, x: Value) -> Any:
    a: Any = call.attrs
    axis = a.axis % x.rank
    count = a.k if a.k and a.k > 0 else x.static()[axis]
    both = []
    for value in _sorted(e, x, axis, bool(a.is_ascend), "int32"):
        last = [min(count, n) if i == axis else n for i, n in enumerate(x.static())]
        both.append(e.slice(value, [0] * x.rank, last, [1] * x.rank))
    both[1] = e.cast(both[1], a.dtype)
    return {"both": both, "values": both[0], "indices": both[1]}[a.ret_type]


def sorting(which: int) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        sorted_values = _sorted(e, x, a.axis % x.rank, bool(a.is_ascend), "int32")[which]
        return e.cast(sorted_values, result(call).dtype)

    return rule


# ---- reductions


def _reduction(how: str, initial: Any) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        if x.dtype == "bool":
            names = {"maximum": "or", "minimum": "and", "add": "xor", "multiply": "and"}
            start = {"or": False, "xor": False, "and": True}[names.get(how, how)]
            reduced = e.reduce(x, axes_of(call, x.rank), names.get(how, how), start)
        else:
            axes = axes_of(call, x.rank)
            start = limits(x.dtype)[initial] if how in ("maximum", "minimum") else initial
            if 0 in [x.shape[i] for i in axes]:
                start = of_nothing(name_of(call), x.dtype)
            reduced = e.reduce(x, axes, how, start)
        return e.reshape(reduced, shape_of(call))

    return rule


def mean(e: Emitter, call: Call, x: Value) -> Value:
    axes = axes_of(call, x.rank)
    total = e.reduce(x, axes, "add", 0)
    count = math.prod(x.static()[i] for i in axes)
    return e.reshape(e.two("divide", total, e.scalar(count, x.dtype)), shape_of(call))


def variance(e: Emitter, call: Call, x: Value, mean: Value) -> Value:
    a: Any = call.attrs
    axes = axes_of(call, x.rank)
    apart = e.two("subtract", x, mean if mean.rank == x.rank else e.keep(mean, axes, x.rank))
    total = e.reduce(e.same("multiply", apart, apart), axes, "add", 0)
    count = math.prod(x.static()[i] for i in axes) - (1 if a.unbiased else 0)
    return e.reshape(e.two("divide", total, e.scalar(max(count, 1), x.dtype)), shape_of(call))


def _extreme(ascending: bool) -> Any:
    """The first place of the greatest or the least element."""

    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        axes = axes_of(call, x.rank)
        if len(axes) != 1:
            if len(axes) != x.rank:
                raise Unsupported("it reduces several axes, not all")
            x, axes = e.reshape(x, [math.prod(x.static())]), [0]
        low, high = limits(x.dtype)
        best = e.reduce(x, axes, "minimum" if ascending else "maximum", high if ascending else low)
        same = e.compare("EQ", x, e.keep(best, axes, x.rank))
        places = e.iota(x.static(), axes[0], "int32")
        last = bool(a.select_last_index)
        held = e.select(same, places, e.splat(-1 if last else np.iinfo(np.int32).max, places))
        index = e.reduce(held, axes, "maximum" if last else "minimum", -1 if last else np.iinfo(np.int32).max)
        return e.reshape(e.cast(index, result(call).dtype), shape_of(call))

    return rule


def cumulative(how: str, initial: float) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        x = e.cast(x, result(call).dtype)
        if a.axis is None:
            x = e.reshape(x, [math.prod(x.static())])
        axis = 0 if a.axis is None else a.axis % x.rank
        extent = x.static()[axis]
        sizes = [extent if i == axis else 1 for i in range(x.rank)]
        pads = [(extent - 1, 0) if i == axis else (0, 0) for i in range(x.rank)]
        if a.exclusive:
            pads[axis] = (extent, -1)
        ones = [1] * x.rank
        return e.window(x, initial, how, sizes, ones, ones, pads)

    return rule


def trilu(e: Emitter, call: Call, x: Value, k: Value) -> Value:
    a: Any = call.attrs
    shape = x.static()
    row, column = e.iota(shape, x.rank - 2, "int64"), e.iota(shape, x.rank - 1, "int64")
    moved = e.two("add", row, e.reshape(e.cast(k, "int64"), []))
    return e.select(e.compare("GE" if a.upper else "LE", column, moved), x, e.splat(0, x))


RULES = {
    **dict.fromkeys(("broadcast_to", "broadcast_to_like", "dyn.broadcast_to"), broadcast_to),
    "repeat": repeat,
    "tile": tile,
    "reverse": reverse,
    "zeros": zeros(0),
    "ones": zeros(1),
    "full": full,
    "arange": arange,
    "one_hot": one_hot,
    "shape_of": shape,
    "vm.shape_of": shape,
    "ndarray_size": ndarray_size,
    "concatenate": concatenate,
    "stack": stack,
    "split": split,
    "strided_slice": strided_slice,
    "slice_like": slice_like,
    "nn.pad": pad,
    "nn.mirror_pad": mirror_pad,
    "take": take,
    "gather": gather,
    "gather_nd": gather_nd,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "topk": topk,
    "sort": sorting(0),
    "argsort": sorting(1),
    "sum": _reduction("add", 0),
    "prod": _reduction("multiply", 1),
    "max": _reduction("maximum", 0),
    "min": _reduction("minimum", 1),
    "all": _reduction("and", True),
    "any": _reduction("or", False),
    "mean": mean,
    "variance": variance,
    "argmax": _extreme(False),
    "argmin": _extreme(True),
    "cumsum": cumulative("add", 0),
    "cumprod": cumulative("multiply", 1),
    "trilu": trilu,
}

__all__ = ["RULES", "reversed_along", "taken"]
