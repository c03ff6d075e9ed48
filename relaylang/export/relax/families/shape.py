"""Operators that move elements, look them up, sort and reduce them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import axes_of, cuts, mirrored, of_nothing, result, shape_of, slices
from relaylang.export.relax.emitter import Emitter
from relaylang.export.relax.families.elementwise import full
from relaylang.export.walk import Value
from relaylang.ir import Call, TensorType


def broadcast_to(e: Emitter, call: Call, x: Value, *_: Value) -> Value:
    extents = shape_of(call)
    return e.op(f"R.broadcast_to({x.name}, R.shape({extents}))", extents, x.dtype)


def repeat(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.op(f"R.repeat({x.name}, repeats={a.repeats}, axis={a.axis})", shape_of(call), x.dtype)


def tile(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.op(f"R.tile({x.name}, repeats={[int(n) for n in a.reps]})", shape_of(call), x.dtype)


def reverse(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.op(f"R.flip({x.name}, axis={a.axis % x.rank})", x.static(), x.dtype)


def reverse_sequence(e: Emitter, call: Call, x: Value, lengths: Value) -> Value:
    a: Any = call.attrs
    text = f"R.reverse_sequence({x.name}, {lengths.name}, seq_axis={a.seq_axis}, batch_axis={a.batch_axis})"
    return e.op(text, x.static(), x.dtype)


def zeros(value: float) -> Any:
    def rule(e: Emitter, call: Call, *_: Value) -> Value:
        ty = result(call)
        return full(e, e.scalar(value, ty.dtype), shape_of(call), ty.dtype)

    return rule


def filled(e: Emitter, call: Call, value: Value, *_: Value) -> Value:
    return full(e, e.reshape(value, []), shape_of(call), result(call).dtype)


def arange(e: Emitter, call: Call, start: Value, stop: Value, step: Value) -> Value:
    if any(v.data is None for v in (start, stop, step)):
        raise Unsupported("its limits are computed")
    dtype = result(call).dtype
    numbers = np.arange(start.data, stop.data, step.data).astype(np.dtype(dtype))
    return e.array(numbers, dtype, e.wish)


def one_hot(e: Emitter, call: Call, indices: Value, on: Value, off: Value) -> Value:
    a: Any = call.attrs
    extents, dtype = shape_of(call), result(call).dtype
    axis = a.axis % len(extents)
    at = e.op(f"R.expand_dims({indices.name}, axis=[{axis}])", [*indices.static()[:axis], 1, *indices.static()[axis:]], indices.dtype)
    places = np.arange(a.depth, dtype=np.dtype(indices.dtype)).reshape([-1 if i == axis else 1 for i in range(len(extents))])
    hot = e.compare("equal", at, e.array(places, indices.dtype, "places"))
    return e.op(f"R.where({hot.name}, {e.cast(on, dtype).name}, {e.cast(off, dtype).name})", extents, dtype)


def size(e: Emitter, call: Call, x: Value) -> Value:
    return e.scalar(math.prod(x.static()), result(call).dtype)


def constant_shape(e: Emitter, call: Call, x: Value) -> Value:
    return e.array(np.asarray(x.static(), np.dtype(result(call).dtype)), "", "shape")


def concatenate(e: Emitter, call: Call, parts: list[Value]) -> Value:
    a: Any = call.attrs
    names = ", ".join(p.name for p in parts)
    return e.op(f"R.concat(({names},), axis={a.axis % parts[0].rank})", shape_of(call), parts[0].dtype)


def stack(e: Emitter, call: Call, parts: list[Value]) -> Value:
    a: Any = call.attrs
    names = ", ".join(p.name for p in parts)
    return e.op(f"R.stack(({names},), axis={a.axis % (parts[0].rank + 1)})", shape_of(call), parts[0].dtype)


def sliced(e: Emitter, x: Value, axes: list[int], begin: list[int], end: list[int], strides: list[int], extents: Any) -> Value:
    """R.strided_slice with known places."""
    text = f"R.strided_slice({x.name}, axes={axes}, begin={begin}, end={end}, strides={strides})"
    return e.op(text, extents, x.dtype)


def split(e: Emitter, call: Call, x: Value) -> list[Value]:
    a: Any = call.attrs
    axis = a.axis % x.rank
    parts = []
    for begin, end in cuts(call, x.extent(axis)):
        extents = [end - begin if i == axis else n for i, n in enumerate(x.static())]
        parts.append(sliced(e, x, [axis], [begin], [end], [1], extents))
    return parts


def strided_slice(e: Emitter, call: Call, x: Value) -> Value:
    axes, begin, end, strides = [], [], [], []
    for axis, first, last, stride in slices(call, x.rank):
        at, to, step = slice(first, last, stride).indices(x.extent(axis))
        axes.append(axis)
        begin.append(at)
        end.append(to if to >= 0 else -x.extent(axis) - 1)
        strides.append(step)
    return sliced(e, x, axes, begin, end, strides, shape_of(call))


def slice_like(e: Emitter, call: Call, x: Value, like: Value) -> Value:
    extents = shape_of(call)
    return sliced(e, x, list(range(x.rank)), [0] * x.rank, extents, [1] * x.rank, extents)


def pad(e: Emitter, call: Call, x: Value, value: Value) -> Value:
    a: Any = call.attrs
    widths = [int(n) for pair in a.pad_width for n in pair]
    if a.pad_mode != "constant":
        return _by_index(e, call, x, a.pad_mode)
    if value.data is None:
        raise Unsupported("its value is computed")
    number = float(np.asarray(value.data).reshape(()))
    if not np.isfinite(number):
        number = float(np.clip(number, np.finfo(np.dtype(x.dtype)).min, np.finfo(np.dtype(x.dtype)).max))
    return e.op(f"R.nn.pad({x.name}, pad_width={widths}, pad_value={number!r})", shape_of(call), x.dtype)


def mirror_pad(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return _by_index(e, call, x, a.mode.lower())


def _by_index(e: Emitter, call: Call, x: Value, mode: str) -> Value:
    a: Any = call.attrs
    for axis, (p, q) in enumerate(a.pad_width):
        if p or q:
            places = mirrored(x.extent(axis), int(p), int(q), mode)
            extents = [len(places) if i == axis else n for i, n in enumerate(x.static())]
            indices = e.array(places, "int32", "places")
            x = e.op(f'R.take({x.name}, {indices.name}, axis={axis}, mode="fast")', extents, x.dtype)
    return x


def take(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    a: Any = call.attrs
    if a.batch_dims:
        raise Unsupported("it has batch_dims")
    if a.axis is None:
        x = e.reshape(x, [math.prod(x.static())])
    axis = 0 if a.axis is None else a.axis % x.rank
    return e.op(f'R.take({x.name}, {indices.name}, axis={axis}, mode="{a.mode}")', shape_of(call), x.dtype)


def gather(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    a: Any = call.attrs
    return e.op(f"R.gather_elements({x.name}, {indices.name}, axis={a.axis})", indices.static(), x.dtype)


def gather_nd(e: Emitter, call: Call, x: Value, indices: Value) -> Value:
    a: Any = call.attrs
    places = e.cast(e.transpose(indices, [*range(1, indices.rank), 0]), "int64")
    return e.op(f"R.gather_nd({x.name}, {places.name}, batch_dims={int(a.batch_dims or 0)})", shape_of(call), x.dtype)


def scatter_elements(e: Emitter, call: Call, x: Value, indices: Value, updates: Value) -> Value:
    a: Any = call.attrs
    text = f'R.scatter_elements({x.name}, {indices.name}, {updates.name}, axis={a.axis}, reduction="{a.reduction}")'
    return e.op(text, x.static(), x.dtype)


def scatter_nd(e: Emitter, call: Call, x: Value, indices: Value, updates: Value) -> Value:
    a: Any = call.attrs
    places = e.cast(e.transpose(indices, [*range(1, indices.rank), 0]), "int64")
    return e.op(f'R.scatter_nd({x.name}, {places.name}, {updates.name}, reduction="{a.mode}")', x.static(), x.dtype)


def topk(e: Emitter, call: Call, x: Value) -> Any:
    a: Any = call.attrs
    axis = a.axis % x.rank
    count = a.k if a.k and a.k > 0 else x.static()[axis]
    extents = [min(count, n) if i == axis else n for i, n in enumerate(x.static())]
    text = f'R.topk({x.name}, k={count}, axis={axis}, ret_type="both", largest={not a.is_ascend}, dtype="{a.dtype}")'
    both = e.fields("best", text, [TensorType(tuple(extents), x.dtype), TensorType(tuple(extents), a.dtype)])
    return {"both": both, "values": both[0], "indices": both[1]}[a.ret_type]


def sort(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.op(f"R.sort({x.name}, axis={a.axis}, descending={not a.is_ascend})", x.static(), x.dtype)


def argsort(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    dtype = result(call).dtype
    return e.op(f'R.argsort({x.name}, axis={a.axis}, descending={not a.is_ascend}, dtype="{dtype}")', x.static(), dtype)


def trilu(e: Emitter, call: Call, x: Value, k: Value) -> Value:
    a: Any = call.attrs
    if k.data is None:
        raise Unsupported("its diagonal is computed")
    return e.op(f"R.{'triu' if a.upper else 'tril'}({x.name}, {int(k.data)})", x.static(), x.dtype)


def einsum(e: Emitter, call: Call, parts: list[Value]) -> Value:
    a: Any = call.attrs
    names = ", ".join(p.name for p in parts)
    return e.op(f'R.einsum(({names},), subscripts="{a.equation}")', shape_of(call), parts[0].dtype)


def cumulative(name: str) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        dtype = result(call).dtype
        text = f'R.{name}({x.name}, axis={a.axis}, dtype="{dtype}", exclusive={bool(a.exclusive)})'
        return e.op(text, shape_of(call), dtype)

    return rule


# ---- reductions


def reduction(name: str) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        axes = axes_of(call, x.rank)
        if not axes:
            return x
        if 0 in [x.shape[i] for i in axes]:
            return full(e, e.scalar(of_nothing(name, x.dtype), x.dtype), shape_of(call), x.dtype)
        if name == "mean" and "float" not in x.dtype:
            raise Unsupported("the mean of integers has another type")
        if x.dtype == "bool":
            kind = {"all": "min", "any": "max"}.get(name, name)
            reduced = e.op(f"R.{kind}({e.cast(x, 'int32').name}, axis={axes}, keepdims={bool(a.keepdims)})", shape_of(call), "int32")
            return e.cast(reduced, "bool")
        return e.op(f"R.{name}({x.name}, axis={axes}, keepdims={bool(a.keepdims)})", shape_of(call), x.dtype)

    return rule


def extreme(name: str) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        axes = axes_of(call, x.rank)
        if a.select_last_index:
            raise Unsupported("it selects the last index")
        if len(axes) != 1:
            if len(axes) != x.rank:
                raise Unsupported("it reduces several axes, not all")
            x, axes = e.reshape(x, [math.prod(x.static())]), [0]
        extents = [n for i, n in enumerate(x.static()) if i != axes[0]]
        index = e.op(f"R.{name}({x.name}, axis={axes[0]}, keepdims=False)", extents, "int64")
        return e.reshape(e.cast(index, result(call).dtype), shape_of(call))

    return rule


def variance(e: Emitter, call: Call, x: Value, mean: Value) -> Value:
    a: Any = call.attrs
    axes = axes_of(call, x.rank)
    if mean.rank != x.rank:
        mean = e.reshape(mean, [1 if i in axes else n for i, n in enumerate(x.static())])
    apart = e.same("subtract", x, mean)
    square = e.same("multiply", apart, apart)
    mean_square = e.op(f"R.mean({square.name}, axis={axes}, keepdims={bool(a.keepdims)})", shape_of(call), x.dtype)
    if not a.unbiased:
        return mean_square
    count = math.prod(x.static()[i] for i in axes)
    return e.same("multiply", mean_square, e.scalar(count / max(count - 1, 1), x.dtype))


RULES = {
    **dict.fromkeys(("broadcast_to", "broadcast_to_like", "dyn.broadcast_to"), broadcast_to),
    **{name: reduction(name) for name in ("sum", "prod", "max", "min", "mean", "all", "any")},
    **{name: cumulative(name) for name in ("cumsum", "cumprod")},
    "repeat": repeat,
    "tile": tile,
    "reverse": reverse,
    "reverse_sequence": reverse_sequence,
    "zeros": zeros(0),
    "ones": zeros(1),
    "full": filled,
    "arange": arange,
    "one_hot": one_hot,
    "shape_of": constant_shape,
    "vm.shape_of": constant_shape,
    "ndarray_size": size,
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
    "sort": sort,
    "argsort": argsort,
    "trilu": trilu,
    "einsum": einsum,
    "argmax": extreme("argmax"),
    "argmin": extreme("argmin"),
    "variance": variance,
}

__all__ = ["RULES"]
