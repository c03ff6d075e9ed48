"""Writing to places, running sums, and operators on coordinates.

An index outside its tensor is an error. Operators that write rows look at all their indices first, and fail as the
interpreter does; others leave the write out, and a read comes from the nearest element. Compiled code never touches memory
that is not its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Number, Recipe, Sink, Tensor, Value, unsupported
from relaylang.backends.cpu.lower.common import axis_of, broadcast_at, elements, result_type, result_types
from relaylang.backends.cpu.lower.reduce import combine, start_of
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.dtypes import is_float
from relaylang.kernels.index import ZERO, strides_of, variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.ops import SHORT
from relaylang.kernels.sizes import has_sizes, largest, must_equal, smallest


def pass_on(kernel: Kernel, sink: Sink, found: Buf) -> None:
    """Hand a finished buffer, which may be of a wider element type, to what follows."""
    if sink.direct is found:
        return
    nest = Nest(sink.anchor.shape)
    index = [variable(d) for d in range(len(sink.anchor.shape))]
    sink.store(nest, index, BufTensor(found).at(nest, index).cast(sink.anchor.dtype))
    kernel.loops(nest)


def target_of(kernel: Kernel, sink: Sink) -> Buf:
    """Where a result is put together: the kernel's output, or a buffer where something follows."""
    return sink.direct or kernel.buffer(sink.anchor.shape, sink.anchor.dtype)


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The extents before an axis, of it, and behind it."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _running(kind: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = kernel.in_memory(args[0])
        attrs = call.attrs
        if attrs.axis is None:
            outer, length, inner = 1, math.prod(data.shape), 1
        else:
            outer, length, inner = around(data.shape, axis_of(attrs.axis, len(data.shape)))
        out = target_of(kernel, sink)
        # Minus zero is what leaves the first number as it is.
        plain = is_float(out.dtype) and kind == "sum" and not attrs.exclusive
        b = Builder()
        with b.loop("u", outer * inner, kind=ir.PARALLEL) as u:
            s = b.var("s", ir.Const(-0.0 if plain else start_of(kind, out.dtype), out.dtype))
            first = b.let("first", u // max(inner, 1) * (length * inner) + u % max(inner, 1))
            with b.loop("a", length) as a:
                element = ir.load(data, first + a * inner)
                value = element.ne(0) if out.dtype == "bool" else ir.cast(element, out.dtype)
                if attrs.exclusive:
                    b.store(out, s, first + a * inner)
                b.assign(s, ir.op(combine(kind, out.dtype), s, value))
                if not attrs.exclusive:
                    b.store(out, s, first + a * inner)
        kernel.stage(body=b.body)
        pass_on(kernel, sink, out)

    return lower


def filled(kernel: Kernel, out: Buf, value: Tensor) -> None:
    """Write a tensor's elements, or the only one, to all of a contiguous buffer."""
    nest = Nest(out.shape)
    index = [variable(d) for d in range(len(out.shape))]
    nest.store(out, nest.offset(index, out.shape), broadcast_at(value, nest, index, out.shape).cast(out.dtype))
    kernel.loops(nest)


def within(place: ir.Expr, extent: int) -> ir.Expr:
    """Whether a place lies in an axis."""
    return (place >= 0) & (place < extent)


def outside(place: ir.Expr, extent: int) -> ir.Expr:
    """Whether a place lies behind either end of an axis."""
    return (place < 0) | (place >= extent)


def counted(b: Builder, name: str, place: ir.Expr, extent: int) -> ir.Var:
    """A place of an axis; a negative one counts from the end."""
    k = b.var(name, ir.cast(place, ir.INDEX))
    b.assign(k, k + ir.select(k < 0, ir.expr(extent), ir.number(0)))
    return k


def _update(b: Builder, how: str, out: Buf, value: ir.Expr, *index: ir.Expr) -> None:
    """Bring one value into its place."""
    if how == "update":
        b.store(out, value, *index)
    elif how == "mean":
        # The sum of short integers does not wrap.
        wide = "int32" if out.dtype in SHORT or out.dtype == "bool" else out.dtype
        total = ir.cast(ir.load(out, *index), wide) + ir.cast(value, wide)
        b.store(out, total / 2 if is_float(wide) else total // 2, *index)
    else:
        name = combine({"add": "sum", "mul": "prod"}.get(how, how), out.dtype)
        b.add(ir.Reduce(name, out.name, ir.offset(out.shape, index), b.let("v", ir.cast(value, out.dtype))))


def _scatter_elements(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, indices, updates = (kernel.in_memory(a) for a in args)
    axis = axis_of(call.attrs.axis, len(data.shape))
    out = target_of(kernel, sink)
    kernel.copy(data, out)
    extent = data.shape[axis]
    b = Builder()
    with b.loops("i", indices.shape) as index:
        k = counted(b, "k", ir.load(indices, *index), extent)
        kernel.fails(b, call, "index", outside(k, extent), k, extent)
    with b.when(kernel.sound), b.loops("i", indices.shape) as index:
        k = counted(b, "k", ir.load(indices, *index), extent)
        _update(b, call.attrs.reduction, out, ir.load(updates, *index), *index[:axis], k, *index[axis + 1 :])
    kernel.stage(body=b.body)
    pass_on(kernel, sink, out)


def _offset_of(b: Builder, places: Sequence[ir.Expr], shape: Sequence[int]) -> tuple[ir.Expr, ir.Expr]:
    """The offset of the part of an array at leading places, and whether all of these lie in it."""
    ks = [counted(b, f"k{d}", place, shape[d]) for d, place in enumerate(places)]
    inside: ir.Expr = ir.Const(True, "bool")
    for d, k in enumerate(ks):
        inside = inside & within(k, shape[d]) if d else within(k, shape[d])
    return sum((k * step for k, step in zip(ks, strides_of(shape))), ir.number(0)), inside


def _scatter_nd(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, indices, updates = (kernel.in_memory(a) for a in args)
    out = target_of(kernel, sink)
    kernel.copy(data, out)
    depth, count = indices.shape[0], math.prod(indices.shape[1:])
    row = math.prod(data.shape[depth:])
    b = Builder()
    for d, extent in enumerate(data.shape[:depth]):
        with b.loop("p", count) as p:
            k = b.let("k", ir.cast(ir.load(indices, p + d * count), ir.INDEX))
            kernel.fails(b, call, "index", outside(k, extent), k, extent)
    with b.when(kernel.sound), b.loop("p", count) as p:
        places = [b.let(f"k{d}", ir.cast(ir.load(indices, p + d * count), ir.INDEX)) for d in range(depth)]
        at = sum((k * step for k, step in zip(places, strides_of(data.shape))), ir.number(0))
        with b.loop("i", row) as i:
            _update(b, call.attrs.mode, out, ir.load(updates, p * row + i), at + i)
    kernel.stage(body=b.body)
    pass_on(kernel, sink, out)


def _sparse_to_dense(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    indices, values = (kernel.in_memory(a) for a in args[:2])
    out = target_of(kernel, sink)
    filled(kernel, out, args[2])
    count, depth = (*indices.shape, 1, 1)[:2]
    b = Builder()
    with b.loop("p", count) as p:
        places = [ir.load(indices, p * depth + d) for d in range(min(depth, len(out.shape)))]
        at, inside = _offset_of(b, places, out.shape)
        with b.when(inside):
            b.store(out, ir.load(values, p if values.shape else 0), at)
    kernel.stage(body=b.body)
    pass_on(kernel, sink, out)


def _strided_set(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, v, begin, end, strides = (kernel.in_memory(a) for a in args)
    out = target_of(kernel, sink)
    kernel.copy(data, out)
    if len(v.shape) != len(data.shape):
        raise unsupported("strided_set of a tensor of another rank cannot be compiled", call)
    b = Builder()
    steps = []
    for d in range(len(data.shape)):
        steps.append(b.let(f"s{d}", ir.cast(ir.load(strides, d), ir.INDEX) if d < strides.size else 1))
        if d < strides.size:
            kernel.fails(b, call, "stride", steps[d].eq(0))
    firsts = []
    for d, (n, step) in enumerate(zip(data.shape, steps)):
        # Python's slices: a negative place counts from the end; then the place is clamped to the axis. A slice that
        # goes backwards begins at the last element at most. It ends before the first one at least.
        back = ir.cast(step < 0, ir.INDEX)
        ends = []
        for name, source, limits in (("b", begin, (0, n - 1)), ("e", end, (n, -1))):
            if d < source.size:
                ends.append(counted(b, f"{name}{d}", ir.load(source, d), n))
                b.assign(ends[-1], ir.op("clamp", ends[-1], -back, n - back))
            else:
                ends.append(b.let(f"{name}{d}", ir.select(step < 0, ir.expr(limits[1]), ir.expr(limits[0]))))
        way = b.let(f"way{d}", ir.select(step < 0, ends[0] - ends[1], ends[1] - ends[0]))
        some = (way > 0) & step.ne(0)
        count = b.let(f"n{d}", ir.select(some, (way - 1) // ir.select(step < 0, -step, step) + 1, ir.number(0)))
        first = ir.cast(ir.load(begin, d), ir.INDEX) if d < begin.size else ends[0]
        kernel.fails(b, call, "slice", count.ne(v.shape[d]), first, n, count, v.shape[d])
        firsts.append(ends[0])
    with b.when(kernel.sound), b.loops("i", v.shape) as index:
        b.store(out, ir.load(v, *index), *(first + i * step for i, first, step in zip(index, firsts, steps)))
    kernel.stage(body=b.body)
    pass_on(kernel, sink, out)


def _invert_permutation(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data = kernel.in_memory(args[0])
    out = target_of(kernel, sink)
    filled(kernel, out, Number(0, out.dtype))
    b = Builder()
    with b.loop("i", data.size) as i:
        k = counted(b, "k", ir.load(data, i), data.size)
        with b.when(within(k, data.size)):
            b.store(out, i, k)
    kernel.stage(body=b.body)
    pass_on(kernel, sink, out)


def _unravel_index(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The digits of each index, from the last axis on."""
    indices, extents = (kernel.in_memory(a) for a in args)
    out = kernel.buffer(*result_type(call))
    rank, count = extents.size, indices.size
    b = Builder()
    total = b.var("total", ir.Const(1, "int64"))
    with b.loop("d", rank) as d:
        b.assign(total, total * ir.cast(ir.load(extents, d), "int64"))
    with b.loop("i", count) as i:
        k = b.let("k", ir.cast(ir.load(indices, i), "int64"))
        kernel.fails(b, call, "index", (k < 0) | (k >= total), k, total)
    with b.when(kernel.sound), b.loop("i", count) as i:
        left = b.var("left", ir.cast(ir.load(indices, i), "int64"))
        with b.loop("k", rank) as k:
            d = b.let("d", rank - 1 - k)
            extent = b.let("extent", ir.cast(ir.load(extents, d), "int64"))
            b.store(out, ir.select(d.eq(0), left, left % extent), d * count + i)
            b.assign(left, left / extent)
    kernel.stage(body=b.body)
    return BufTensor(out)


@elements
def _adv_index(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, *indices = args[0]
    shape, _ = result_type(call)
    width = len(shape) - (len(data.shape) - len(indices))
    where: list[Index] = []
    for part, extent in zip(indices, data.shape):
        k = broadcast_at(part, nest, index[:width], shape[:width]).cast("int64")
        k = (k < 0).select(k + extent, k)
        where.append(k.op("clamp", 0, extent - 1))
    return data.at(nest, [*where, *index[width:]])


@elements
def _trilu(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, k = args
    _, dtype = result_type(call)
    row, column = (nest.as_scalar(i) for i in index[-2:])
    first = k.at(nest, [ZERO for _ in k.shape]).cast("int64")
    test = column - row >= first if call.attrs.upper else column - row <= first
    return test.select(data.at(nest, index), nest.const(0, dtype))


def _matrix_set_diag(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The rows of `diagonals` hold them from the highest down. Each is aligned at the left or the right end of its
    row."""
    data, diagonals = args
    attrs = call.attrs
    shape, dtype = result_type(call)
    rows, columns = shape[-2:]
    several, width = attrs.k1 != attrs.k2, diagonals.shape[-1]
    longest = smallest(rows + min(attrs.k2, 0), columns - max(attrs.k1, 0))
    if not must_equal(width, longest):
        raise unsupported(f"the longest diagonal has {longest} elements, not {width}", call)

    def begin(nest: Nest, k: Scalar) -> Scalar:
        """Where a diagonal begins in its row."""
        zero = nest.const(0, "int64")
        length = (k.op("min", 0) + rows).op("min", zero - k.op("max", 0) + columns)
        sides = [zero - length + width if right else zero for right in (attrs.super_diag_right_align, attrs.sub_diag_right_align)]
        return (k >= 0).select(*sides)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        row, column = (nest.as_scalar(i) for i in index[-2:])
        k = column - row
        test = (k >= attrs.k1) & (k <= attrs.k2)
        place = row.op("min", column)
        if several:
            place = place + begin(nest, k)
        place = place.op("clamp", 0, largest(width - 1, 0))
        where: list[Index] = [*index[:-2], place]
        if several:
            where.insert(-1, attrs.k2 - attrs.k1 - (k - attrs.k1).op("clamp", 0, attrs.k2 - attrs.k1))
        return test.select(diagonals.at(nest, where), data.at(nest, index))

    return Recipe(shape, dtype, at)


def _sparse_reshape(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Each place's number in the old shape, converted to a place in the new shape. One extent of the new shape may be
    -1."""
    indices, old, new = (kernel.in_memory(a) for a in args)
    places, extents = (kernel.buffer(shape, dtype) for shape, dtype in result_types(call))
    had, has, count = old.size, new.size, indices.shape[0]
    b = Builder()
    ranks = ir.number(had).eq(has) if has_sizes((had, has)) else ir.Const(had == has, "bool")
    total, known, same = b.var("total", 1), b.var("known", 1), b.var("same", ranks)

    def old_at(d: ir.Expr) -> ir.Expr:
        return ir.cast(ir.load(old, d), ir.INDEX)

    def new_at(d: ir.Expr) -> ir.Expr:
        return ir.cast(ir.load(new, d), ir.INDEX)

    with b.loop("d", had) as d:
        b.assign(total, total * old_at(d))
    with b.loop("d", has) as d:
        b.assign(known, known * ir.select(new_at(d).eq(-1), ir.number(1), new_at(d)))
    with b.loop("d", has) as d:
        extent = b.let("extent", ir.select(new_at(d).eq(-1), total / known, new_at(d)))
        b.store(extents, extent, d)
        if had == has or has_sizes((had, has)):
            with b.when(same):
                b.assign(same, extent.eq(old_at(d)))
    with b.loop("i", count) as i:
        at, left = b.var("at", 0), b.var("left", total)
        with b.loop("d", had) as d:
            b.assign(at, at * old_at(d) + ir.cast(ir.load(indices, i * had + d), ir.INDEX))
        with b.loop("d", has) as d:
            extent = b.let("extent", ir.cast(ir.load(extents, d), ir.INDEX))
            b.assign(left, left / extent)
            k = b.let("k", ir.select(left.ne(0), ir.op("floor_div", at, left), ir.number(0)))
            digit = ir.cast(ir.select(d > 0, ir.op("floor_mod", k, extent), k), places.dtype)
            own = ir.cast(ir.load(indices, i * had + d), places.dtype)
            b.store(places, ir.select(same, own, digit), i * has + d)
    kernel.stage(body=b.body)
    return [BufTensor(places), BufTensor(extents)]


def _einsum(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """Loops over the result's letters with those that are summed in front of the last of them."""
    parts = args[0]
    text = call.attrs.equation.replace(" ", "")
    if "." in text:
        raise unsupported("einsum with an ellipsis cannot be compiled", call)
    inputs, _, result = text.partition("->")
    terms = inputs.split(",")
    if "->" not in text:
        result = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
    extents: dict[str, int] = {}
    for term, part in zip(terms, parts):
        for letter, extent in zip(term, part.shape):
            extents[letter] = max(extent, extents.get(letter, 1))
    summed = [c for c in extents if c not in result]
    out = target_of(kernel, sink)
    filled(kernel, out, Number(0, out.dtype))
    order = [*result[:-1], *summed, *result[-1:]]
    nest = Nest([extents[c] for c in order])
    where = {c: variable(n) for n, c in enumerate(order)}
    value: Scalar | None = None
    for term, part in zip(terms, parts):
        factor = part.at(nest, [ZERO if n == 1 else where[c] for c, n in zip(term, part.shape)])
        factor = factor.cast(out.dtype)
        value = factor if value is None else value * factor
    assert value is not None
    nest.reduce(out, nest.offset([where[c] for c in result], out.shape), combine("sum", out.dtype), value)
    kernel.loops(nest)
    pass_on(kernel, sink, out)


RECIPES: dict[str, Any] = {
    "adv_index": _adv_index,
    "trilu": _trilu,
    "matrix_set_diag": _matrix_set_diag,
}
#: Written by stages of their own: never fused.
APART: dict[str, Any] = {"sparse_reshape": _sparse_reshape, "unravel_index": _unravel_index}
ANCHORS: dict[str, Any] = {
    "cumsum": _running("sum"),
    "cumprod": _running("prod"),
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "sparse_to_dense": _sparse_to_dense,
    "strided_set": _strided_set,
    "invert_permutation": _invert_permutation,
    "einsum": _einsum,
}
