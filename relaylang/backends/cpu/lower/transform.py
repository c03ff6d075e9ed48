"""Operators that only move elements: each says which element of which operand stands at an index of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Number, Recipe, Tensor, Value
from relaylang.backends.cpu.lower import gather
from relaylang.backends.cpu.lower.common import axis_of, broadcast_at, elements, result_type, result_types
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.index import ZERO, span
from relaylang.kernels.nest import Index, Nest, Scalar
from relaylang.kernels.sizes import Size, has_sizes
from relaylang.ops.indexing import slice_bound, slice_entries

Source = Callable[[Nest, list[Index]], Sequence[Index]]


def moved(call: Call, data: Tensor, source: Source) -> Recipe:
    """The result whose element at an index is the operand's at `source(nest, index)`."""
    shape, dtype = result_type(call)
    return Recipe(shape, dtype, lambda nest, index: data.at(nest, list(source(nest, list(index)))))


def _reshape(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = args[0]
    shape, _ = result_type(call)
    seen = data.buf.reshaped(shape) if isinstance(data, BufTensor) else None
    if seen is not None:
        return BufTensor(seen)
    if isinstance(data, BufTensor):
        # Each element's place takes divisions: as dear as a copy.
        kernel.copies.append((data.buf.name, 0))
    return moved(call, data, lambda nest, index: nest.unravel(nest.offset(index, shape), data.shape))


def _transpose(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    rank = len(args[0].shape)
    axes = call.attrs.axes
    order = [axis_of(a, rank) for a in axes] if axes else list(range(rank))[::-1]
    place = {a: i for i, a in enumerate(order)}
    return moved(call, args[0], lambda nest, index: [index[place[d]] for d in range(rank)])


def _broadcast(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    data = args[0]
    return Recipe(shape, dtype, lambda nest, index: broadcast_at(data, nest, index, shape))


def _strided_slice(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = args[0]
    rank = len(data.shape)
    start, step = [0] * rank, [1] * rank
    for axis, begin, _, stride in slice_entries(call.attrs, rank):
        # One of an unknown direction has its bounds in the data.
        start[axis] = begin if isinstance(stride, Size) else slice_bound(begin, data.shape[axis], stride)
        step[axis] = stride

    def source(nest: Nest, index: list[Index]) -> list[Index]:
        return [nest.add(nest.scale(i, by), first) for i, by, first in zip(index, step, start)]

    return moved(call, data, source)


class Joined(Recipe):
    """Operands laid side by side along an axis. Alone it is written part by part; inside others it selects."""

    def __init__(self, shape: Sequence[int], dtype: str, axis: int, items: Sequence[Tensor]) -> None:
        super().__init__(shape, dtype, self._select)
        self.axis = axis
        self.items = list(items)

    def parts(self) -> Iterator[tuple[tuple[int, ...], list[int], Tensor]]:
        shift = 0
        for item in self.items:
            where = [0] * len(self.shape)
            where[self.axis] = shift
            shift += item.shape[self.axis]
            yield item.shape, where, item

    def _select(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        where = index[self.axis]
        shift = self.shape[self.axis]
        out: Scalar | None = None
        for item in reversed(self.items):
            extent = item.shape[self.axis]
            shift -= extent
            if extent == 0:
                continue
            _, inner = nest.inside(nest.add(where, -shift), 0, extent)
            value = item.at(nest, [*index[: self.axis], inner, *index[self.axis + 1 :]])
            if out is None:
                out = value
            else:
                test = nest.as_scalar(where) < shift + extent
                out = test.select(value, out)
        assert out is not None
        return out


def _concatenate(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    return Joined(shape, dtype, axis_of(call.attrs.axis, len(shape)), args[0])


def _stack(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    axis = axis_of(call.attrs.axis, len(shape))

    def widened(item: Tensor) -> Recipe:
        one = (*item.shape[:axis], 1, *item.shape[axis:])
        return Recipe(one, dtype, lambda nest, index: item.at(nest, [*index[:axis], *index[axis + 1 :]]))

    return Joined(shape, dtype, axis, [widened(item) for item in args[0]])


def _split(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = args[0]
    axis = axis_of(call.attrs.axis, len(data.shape))
    out: list[Tensor] = []
    shift = 0

    def part(shape: tuple[int, ...], dtype: str, first: int) -> Recipe:
        def at(nest: Nest, index: Sequence[Index]) -> Scalar:
            return data.at(nest, [*index[:axis], nest.add(index[axis], first), *index[axis + 1 :]])

        return Recipe(shape, dtype, at)

    for shape, dtype in result_types(call):
        out.append(part(shape, dtype, shift))
        shift += shape[axis]
    return out


@elements
def _tile(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data = args[0]
    shape, _ = result_type(call)
    own = index[len(index) - len(data.shape) :] if data.shape else ()
    where: list[Index] = []
    for i, extent, full in zip(own, data.shape, shape[len(shape) - len(data.shape) :]):
        if extent == full:
            where.append(i)
        elif extent == 1:
            where.append(ZERO)
        else:
            where.append(nest.as_scalar(i) % extent)
    return data.at(nest, where)


def _repeat(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = args[0]
    times = call.attrs.repeats
    axis = axis_of(0 if call.attrs.axis is None else call.attrs.axis, len(data.shape))

    def source(nest: Nest, index: list[Index]) -> list[Index]:
        where, _ = nest.unravel(index[axis], (data.shape[axis], times))
        return [*index[:axis], where, *index[axis + 1 :]]

    return moved(call, data, source)


def _reverse(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = args[0]
    axis = axis_of(0 if call.attrs.axis is None else call.attrs.axis, len(data.shape))
    last = data.shape[axis] - 1
    return moved(call, data, lambda nest, index: [*index[:axis], nest.add(nest.scale(index[axis], -1), last), *index[axis + 1 :]])


class Padded(Recipe):
    """An operand with a border of one value. Alone it is written part by part; inside others it selects."""

    def __init__(self, shape: Sequence[int], dtype: str, data: Tensor, before: Sequence[int], border: Tensor) -> None:
        super().__init__(shape, dtype, self._select)
        self.data = data
        self.before = list(before)
        self.border = border

    def parts(self) -> Iterator[tuple[tuple[int, ...], list[int], Tensor]]:
        border = self.border
        # The rest of the whole; each axis cuts its two ends off.
        shape, first = list(self.shape), [0] * len(self.shape)
        for d, (before, extent) in enumerate(zip(self.before, self.data.shape)):
            for low, high in ((0, before), (before + extent, self.shape[d])):
                if low < high:
                    slab = (*shape[:d], high - low, *shape[d + 1 :])
                    fill = Recipe(slab, self.dtype, lambda nest, index: border.at(nest, []).cast(self.dtype))
                    yield slab, [*first[:d], low, *first[d + 1 :]], fill
            shape[d], first[d] = extent, before
        yield self.data.shape, self.before, self.data

    def _select(self, nest: Nest, index: Sequence[Index]) -> Scalar:
        tests: list[Scalar] = []
        where: list[Index] = []
        for i, first, extent in zip(index, self.before, self.data.shape):
            test, inner = nest.inside(nest.add(i, -first), 0, extent)
            where.append(inner)
            if test is not None:
                tests.append(test)
        value = self.data.at(nest, where)
        for test in tests:
            border = self.border.at(nest, []).cast(self.dtype)
            value = test.select(value, border)
        return value


def _pad(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = args[0]
    shape, dtype = result_type(call)
    width = [tuple(w) for w in call.attrs.pad_width]
    mode = call.attrs.pad_mode
    if mode == "constant":
        border = args[1] if len(args) > 1 else Number(0, dtype)
        if any(a < 0 or b < 0 for a, b in width):
            # Negative widths cut.
            cut, held = [max(-a, 0) for a, _ in width], data
            kept = [min(n, n + b) - c for n, c, (_, b) in zip(held.shape, cut, width)]
            if min(kept) <= 0:
                return Recipe(shape, dtype, lambda nest, index: border.at(nest, []).cast(dtype))
            data = Recipe(kept, dtype, lambda nest, index: held.at(nest, [nest.add(i, c) for i, c in zip(index, cut)]))
            width = [(max(a, 0), max(b, 0)) for a, b in width]
        return Padded(shape, dtype, data, [a for a, _ in width], border)

    def source(nest: Nest, index: list[Index]) -> list[Index]:
        where: list[Index] = []
        for i, (first, last), extent in zip(index, width, data.shape):
            if first == last == 0:
                where.append(i)
            elif mode == "edge":
                where.append(nest.inside(nest.add(i, -first), 0, extent)[1])
            else:
                where.append(_mirror(nest, nest.add(i, -first), extent, 0))
        return where

    return moved(call, data, source)


def _mirror(nest: Nest, index: Index, extent: int, edge: int) -> Index:
    """An index beyond the ends, reflected as often as it takes; `edge` is 1 where the border element is repeated."""
    last = 2 * extent - 2 + edge  # what an index beyond the end and its image add up to
    once = False
    if index.type == ir.INDEX:
        low, high = span(index, nest.extents)
        if low >= 0 and high < extent:
            return index
        once = low + extent > 0 - edge and high <= last
    if extent + edge < 2:
        return ZERO
    value = nest.as_scalar(index)
    if not once:
        around = last + edge
        value = (value % around + around) % around
    else:
        value = (value < 0).select(-value - edge, value)
    return (value >= extent).select(last - value, value)


def _mirror_pad(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = args[0]
    edge = 1 if call.attrs.mode == "SYMMETRIC" else 0
    width = [tuple(w) for w in call.attrs.pad_width]

    def source(nest: Nest, index: list[Index]) -> list[Index]:
        axes = zip(index, width, data.shape)
        return [_mirror(nest, nest.add(i, -w[0]), extent, edge) if any(w) else i for i, w, extent in axes]

    return moved(call, data, source)


@elements
def _arange(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    start, _, step = args
    _, dtype = result_type(call)
    n = nest.as_scalar(index[0]).cast(dtype)
    values = [v.at(nest, []).cast(dtype) for v in (start, step)]
    return (values[0] + values[1] * n).cast(dtype)


@elements
def _space_to_depth(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data = args[0]
    b, nchw = call.attrs.block_size, call.attrs.layout == "NCHW"
    channels = data.shape[1 if nchw else 3]
    n, c, h, w = index if nchw else (index[0], index[3], index[1], index[2])
    by, bx, inner = nest.unravel(c, [b, b, channels])
    y, x = nest.add(nest.scale(h, b), by), nest.add(nest.scale(w, b), bx)
    return data.at(nest, [n, inner, y, x] if nchw else [n, y, x, inner])


@elements
def _depth_to_space(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data = args[0]
    b, nchw = call.attrs.block_size, call.attrs.layout == "NCHW"
    shape, _ = result_type(call)
    channels = shape[1 if nchw else 3]
    height, width = (shape[2], shape[3]) if nchw else (shape[1], shape[2])
    n, c, h, w = index if nchw else (index[0], index[3], index[1], index[2])
    y, by = nest.unravel(h, [height // b, b])
    x, bx = nest.unravel(w, [width // b, b])
    if call.attrs.mode != "DCR":
        deep = nest.add(nest.add(nest.scale(c, b * b), nest.scale(by, b)), bx)
    else:
        deep = nest.add(nest.scale(nest.add(nest.scale(by, b), bx), channels), c)
    return data.at(nest, [n, deep, y, x] if nchw else [n, y, x, deep])


def _sliding_window(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = args[0]
    attrs = call.attrs
    axis, count = axis_of(attrs.axis, len(data.shape)), len(attrs.window_shape)
    strides = list(attrs.strides) * (count if len(attrs.strides) == 1 else 1)

    def source(nest: Nest, index: list[Index]) -> list[Index]:
        first, inside = index[axis : axis + count], index[axis + count :]
        return [*index[:axis], *[nest.add(nest.scale(i, s), w) for i, s, w in zip(first, strides, inside)]]

    return moved(call, data, source)


@elements
def _dilate(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data = args[0]
    _, dtype = result_type(call)
    strides = list(call.attrs.strides)
    value = call.attrs.dilation_value
    fill = nest.const(value, dtype)
    tests: list[Scalar] = []
    where: list[Index] = []
    for i, step in zip(index, strides):
        if step == 1:
            where.append(i)
            continue
        place = nest.as_scalar(i)
        tests.append((place % step).eq(0))
        where.append(place // step)
    out = data.at(nest, where)
    for test in tests:
        out = test.select(out, fill)
    return out


def _shape_of(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    extents = args[0].shape
    if not has_sizes(extents):
        return BufTensor(kernel.constant(np.array(extents or 0, dtype), dtype))

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        selected = nest.const(extents[-1], dtype)
        for d, extent in enumerate(extents[:-1]):
            test = nest.as_scalar(index[0]).eq(d)
            selected = test.select(nest.const(extent, dtype), selected)
        return selected

    return Recipe(shape, dtype, at)


#: Operators that lay their operands out in a result.
ASSEMBLIES = frozenset({"concatenate", "stack", "nn.pad"})
#: Operators whose results are their operand with another shape.
RESHAPES = frozenset({"reshape", "squeeze", "expand_dims", "nn.batch_flatten"})
#: Operators whose results are parts of their operand, or it with another shape or other order of its axes.
SELECTIONS = RESHAPES | {"split", "strided_slice", "transpose"}

RECIPES: dict[str, Any] = {
    **gather.RECIPES,
    "debug": lambda kernel, call, args: args[0],
    "reshape": _reshape,
    "reshape_like": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "nn.batch_flatten": _reshape,
    "contrib_reverse_reshape": _reshape,
    "transpose": _transpose,
    "broadcast_to": _broadcast,
    "broadcast_to_like": _broadcast,
    "strided_slice": _strided_slice,
    "slice_like": lambda kernel, call, args: moved(call, args[0], lambda nest, index: index),
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "tile": _tile,
    "repeat": _repeat,
    "reverse": _reverse,
    "nn.pad": _pad,
    "nn.mirror_pad": _mirror_pad,
    "arange": _arange,
    "nn.space_to_depth": _space_to_depth,
    "nn.depth_to_space": _depth_to_space,
    "sliding_window": _sliding_window,
    "nn.dilate": _dilate,
    "shape_of": _shape_of,
    "ndarray_size": lambda kernel, call, args: Recipe(
        *result_type(call), lambda nest, index: nest.const(math.prod(args[0].shape), result_type(call)[1])
    ),
}
