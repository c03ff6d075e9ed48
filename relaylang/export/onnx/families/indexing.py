"""Operators that look elements up, put them in places, sort, reduce and sum along axes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import axes_of, of_nothing, result, shape_of
from relaylang.export.onnx.emitter import Emitter
from relaylang.export.walk import Value
from relaylang.ir import Call, TensorType

_LEAST = np.iinfo(np.int64).min


def _index(e: Emitter, x: Value) -> Value:
    return x if x.dtype in ("int32", "int64") else e.cast(x, "int64")


def take(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    attrs: Any = call.attrs
    if attrs.batch_dims:
        raise Unsupported("it has batch_dims")
    if attrs.axis is None:
        x, axis = e.reshape(x, [-1]), 0
        extent: Any = int(np.prod(x.shape)) if x.data is not None else None
    else:
        axis = attrs.axis % x.rank
        extent = x.shape[axis]
    places = indices if indices.dtype == "uint64" else _index(e, indices)
    inside = places.data is not None and isinstance(extent, int) and np.all((places.data >= 0) & (places.data < extent))
    if not inside and attrs.mode in ("clip", "wrap"):
        last = _extent(e, x, axis, places.dtype)
        if attrs.mode == "wrap":
            places = e.op("Mod", places, last)
        else:
            places = e.op("Max", e.op("Min", places, e.op("Sub", last, e.scalar(1, places.dtype))), e.scalar(0, places.dtype))
    return e.op("Gather", x, _index(e, places), axis=axis)


def _extent(e: Emitter, x: Value, axis: int, dtype: str) -> Value:
    if isinstance(x.shape[axis], int) and x.shape[axis] >= 0:
        return e.scalar(x.shape[axis], dtype)
    return e.cast(e.op("Squeeze", e.op("Shape", x, start=axis, end=axis + 1)), dtype, "int64")


def gather(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    attrs: Any = call.attrs
    axis = attrs.axis % x.rank
    same = all(n == m for i, (n, m) in enumerate(zip(x.shape, indices.shape)) if i != axis)
    if not same:  # ONNX takes the extents of the indices, as Relay does, but wants none beyond the data's
        raise Unsupported("the indices have other extents than the data")
    return e.op("GatherElements", x, _index(e, indices), axis=axis)


def gather_nd(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    attrs: Any = call.attrs
    last = e.transpose(indices, [*range(1, indices.rank), 0])
    return e.op("GatherND", x, e.cast(last, "int64", indices.dtype), batch_dims=int(attrs.batch_dims or 0))


def scatter_elements(e: Emitter, call: Call, x: Value, indices: Value, updates: Value) -> Value:
    attrs: Any = call.attrs
    reduction = {"update": "none"}.get(attrs.reduction, attrs.reduction)
    if reduction == "mean":
        raise Unsupported("ONNX has no mean of updates")
    return e.op("ScatterElements", x, _index(e, indices), updates, axis=attrs.axis, reduction=reduction)


def scatter_nd(e: Emitter, call: Call, x: Value, indices: Value, updates: Value) -> Value:
    attrs: Any = call.attrs
    last = e.transpose(indices, [*range(1, indices.rank), 0])
    mode = {"update": "none"}.get(attrs.mode, attrs.mode)
    return e.op("ScatterND", x, e.cast(last, "int64", indices.dtype), updates, reduction=mode)


def strided_set(e: Emitter, call: Call, x: Value, v: Value, begin: Value, end: Value, strides: Value) -> Value:
    """ScatterND, whose indices are the same slice of all indices. Trailing axes that are replaced whole have none."""
    count = begin.extent(0)
    if end.extent(0) != count or v.rank != x.rank:
        raise Unsupported("its begin and end have two lengths, or the new entries another rank than the data")
    steps = [1] * x.rank
    for a in range(min(strides.extent(0), x.rank)):
        steps[a] = 0 if strides.data is None else int(strides.data[a])  # 0: known at run time
    same = [isinstance(n, int) and n == m for n, m in zip(x.shape, v.shape)]
    partial = [a for a in range(min(count, x.rank)) if steps[a] != 1 or not same[a]]
    if not partial:
        return v
    axes = range(partial[-1] + 1)
    indices = e.array(_indices(tuple(x.extent(a) for a in axes)), "indices")
    first, last, by = [_leading(e, bound, len(axes)) for bound in (begin, end, strides)]
    return e.op("ScatterND", x, e.op("Slice", indices, first, last, e.ints(axes, "axes"), by), v)


def _leading(e: Emitter, x: Value, count: int) -> Value:
    """The first elements of a vector as int64, with ones behind a shorter one."""
    x, extent = e.cast(x, "int64"), x.extent(0)
    if extent > count:
        return e.op("Slice", x, e.ints([0]), e.ints([count]))
    return e.op("Concat", x, e.ints([1] * (count - extent)), axis=0) if extent < count else x


@lru_cache(maxsize=16)
def _indices(extents: tuple[int, ...]) -> np.ndarray:
    """The indices of each element of a shape, along a last axis. Calls for one shape share the array."""
    return np.ascontiguousarray(np.moveaxis(np.indices(extents, np.int64), 0, -1))


def argwhere(e: Emitter, call: Call, x: Value) -> Value:
    if not x.rank:  # NonZero gives places along an axis that a scalar does not have
        count = e.reshape(e.cast(e.cast(x, "bool"), "int64", "bool"), [1])
        row = e.array(np.zeros((1, 0), np.dtype(result(call).dtype)), "none")
        return e.op("Expand", row, e.op("Concat", count, e.ints([0]), axis=0))
    return e.cast(e.op("Transpose", e.op("NonZero", x), perm=[1, 0]), result(call).dtype, "int64")


def topk(e: Emitter, call: Call, x: Value, *k: Value) -> Any:
    attrs: Any = call.attrs
    axis = attrs.axis % x.rank
    if k:
        count = e.reshape(e.cast(k[0], "int64"), [1])
    else:
        count = e.ints([attrs.k if attrs.k and attrs.k > 0 else x.extent(axis)], "k")
    values, indices = _best(e, x, count, axis, attrs.is_ascend)
    indices = e.cast(indices, attrs.dtype, "int64")
    return {"both": [values, indices], "values": values, "indices": indices}[attrs.ret_type]


def _best(e: Emitter, x: Value, count: Value, axis: int, ascending: bool) -> list[Value]:
    """The elements in order with their places. onnxruntime has no TopK of uint64; numbers with the same order stand for these."""
    ordered = _ordered(e, x) if x.dtype == "uint64" else x
    values, indices = e.op("TopK", ordered, count, outputs=2, axis=axis, largest=int(not ascending))
    if x.dtype == "uint64":
        values = e.op("Cast", e.op("Add", values, e.scalar(_LEAST, "int64")), to=e.kind("uint64"))
    return [values, indices]


def _sorted(which: int) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        attrs: Any = call.attrs
        axis = attrs.axis % x.rank
        best = _best(e, x, e.ints([x.extent(axis)], "k"), axis, attrs.is_ascend)
        return e.cast(best[1], result(call).dtype, "int64") if which else best[0]

    return rule


def cumsum(e: Emitter, call: Call, x: Value) -> Value:
    attrs: Any = call.attrs
    dtype = result(call).dtype
    if attrs.axis is None:
        x = e.reshape(x, [-1])
    axis = 0 if attrs.axis is None else attrs.axis
    place, exclusive = e.scalar(axis, "int64", "axis"), int(bool(attrs.exclusive))
    return narrow(e, e.cast(x, dtype), lambda wide: e.op("CumSum", wide, place, exclusive=exclusive))


def trilu(e: Emitter, call: Call, x: Value, k: Value) -> Value:
    attrs: Any = call.attrs
    return e.op("Trilu", x, e.cast(k, "int64"), upper=int(attrs.upper))


def einsum(e: Emitter, call: Call, parts: list[Value]) -> Value:
    attrs: Any = call.attrs
    return e.op("Einsum", *parts, equation=attrs.equation)


# ---- reductions


def _reduce(kind: str, name: str) -> Any:
    """A reduction; `name` is Relay's."""

    def rule(e: Emitter, call: Call, x: Value) -> Value:
        attrs: Any = call.attrs
        axes = axes_of(call, x.rank)
        if 0 in [x.shape[a] for a in axes]:
            return e.op("Expand", e.scalar(of_nothing(name, x.dtype), x.dtype), e.ints(shape_of(call)))
        if not axes:
            return e.op("Identity", x)
        keep, places = int(bool(attrs.keepdims)), e.ints(axes, "axes")
        if x.dtype == "bool":
            kinds = {"ReduceSum": "ReduceMax", "ReduceProd": "ReduceMin"}
            return e.op("Cast", e.op(kinds.get(kind, kind), e.cast(x, "int32"), places, keepdims=keep), to=e.kind("bool"))
        if x.dtype == "uint64" and kind in ("ReduceMax", "ReduceMin"):
            total = e.op("Add", e.op(kind, _ordered(e, x), places, keepdims=keep), e.scalar(_LEAST, "int64"))
            return e.op("Cast", total, to=e.kind("uint64"))
        return narrow(e, x, lambda wide: e.op(kind, wide, places, keepdims=keep))

    return rule


def _ordered(e: Emitter, x: Value) -> Value:
    """Numbers of uint64 as those of int64 that have their order: from the least one."""
    return e.op("Add", e.cast(x, "int64"), e.scalar(_LEAST, "int64"), ty=TensorType(x.type.shape, "int64"))


def mean(e: Emitter, call: Call, x: Value) -> Value:
    """Integers are summed, and the sum is divided towards zero."""
    if x.dtype == "bool":
        raise Unsupported("ONNX has no mean of truth values")
    axes = axes_of(call, x.rank)
    if not axes or 0 in [x.shape[a] for a in axes] or "int" not in x.dtype:
        return _reduce("ReduceMean", "mean")(e, call, x)
    total = e.op("ReduceSum", e.cast(x, "int64"), e.ints(axes, "axes"), keepdims=int(bool(call.attrs.keepdims)))  # type: ignore[union-attr]
    count = e.op("ReduceProd", e.op("Gather", e.op("Shape", x), e.ints(axes, "axes"), axis=0), keepdims=0)
    return e.op("Cast", e.op("Div", total, count), to=e.kind(x.dtype))


def truth(kind: str, name: str) -> Any:
    """Whether all or any elements are not zero, in the data's element type."""

    def rule(e: Emitter, call: Call, x: Value) -> Value:
        reduced = _reduce(kind, name)(e, call, e.cast(x, "bool"))
        return e.cast(reduced, x.dtype, "bool")

    return rule


def narrow(e: Emitter, x: Value, compute: Any) -> Value:
    """A function of integers of 8 and 16 bits, which ONNX has for 32 bits; values beyond their range wrap in both."""
    if x.dtype in ("int8", "int16", "uint8", "uint16"):
        return e.op("Cast", compute(e.cast(x, "int32")), to=e.kind(x.dtype))
    if x.dtype in ("uint32", "uint64"):
        return e.op("Cast", compute(e.cast(x, "int64")), to=e.kind(x.dtype))
    if x.dtype == "bfloat16":
        return e.op("Cast", compute(e.cast(x, "float32")), to=e.kind(x.dtype))
    return compute(x)


def _arg(kind: str) -> Any:
    """The place of the extreme; along several axes, that in these axes as one."""

    def rule(e: Emitter, call: Call, x: Value) -> Value:
        attrs: Any = call.attrs
        axes, dtype = axes_of(call, x.rank), result(call).dtype
        if not axes or 0 in x.shape:
            return e.op("Expand", e.scalar(0, dtype), e.ints(shape_of(call)))
        last = int(bool(attrs.select_last_index))
        wide = {
            "int8": "int32",
            "int16": "int32",
            "uint8": "int32",
            "uint16": "int32",
            "uint32": "int64",
            "bfloat16": "float32",
            "bool": "int32",
        }.get(x.dtype, x.dtype)
        x = _ordered(e, x) if x.dtype == "uint64" else e.cast(x, wide)
        if len(axes) == 1:
            index = e.op(kind, x, axis=axes[0], keepdims=int(bool(attrs.keepdims)), select_last_index=last)
            return e.cast(index, dtype, "int64")
        kept = [i for i in range(x.rank) if i not in axes]
        flat = e.reshape(e.transpose(x, [*kept, *axes]), [x.extent(i) for i in kept] + [-1])
        index = e.op(kind, flat, axis=len(kept), keepdims=0, select_last_index=last)
        return e.cast(e.reshape(index, shape_of(call)) if attrs.keepdims else index, dtype, "int64")

    return rule


def variance(e: Emitter, call: Call, x: Value, mean: Value) -> Value:
    attrs: Any = call.attrs
    axes = axes_of(call, x.rank)
    if not axes or 0 in [x.shape[a] for a in axes] or "int" in x.dtype:
        raise Unsupported("it is of integers, or of no elements")
    apart = e.op("Sub", x, mean)
    keep = int(bool(attrs.keepdims))
    mean_square = e.op("ReduceMean", e.op("Mul", apart, apart), e.ints(axes, "axes"), keepdims=keep)
    if not attrs.unbiased:
        return mean_square
    count = int(np.prod([x.static()[a] for a in axes]))
    return e.op("Mul", mean_square, e.scalar(count / max(count - 1, 1), x.dtype))


RULES = {
    "take": take,
    "gather": gather,
    "gather_nd": gather_nd,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "strided_set": strided_set,
    "argwhere": argwhere,
    "topk": topk,
    "dyn.topk": topk,
    "sort": _sorted(0),
    "argsort": _sorted(1),
    "cumsum": cumsum,
    "trilu": trilu,
    "einsum": einsum,
    "sum": _reduce("ReduceSum", "sum"),
    "mean": mean,
    "max": _reduce("ReduceMax", "max"),
    "min": _reduce("ReduceMin", "min"),
    "prod": _reduce("ReduceProd", "prod"),
    "all": truth("ReduceMin", "all"),
    "any": truth("ReduceMax", "any"),
    "argmax": _arg("ArgMax"),
    "argmin": _arg("ArgMin"),
    "variance": variance,
}

__all__ = ["RULES"]
