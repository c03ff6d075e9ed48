"""Sorting and searching: stable merge sorts of places, and bisection.

A nan counts as greater than every number, as numpy has it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Sink, Value
from relaylang.backends.cpu.lower.common import axis_of, result_types
from relaylang.backends.cpu.lower.scatter import around, pass_on, target_of
from relaylang.ir import Call, TupleType
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.dtypes import is_float
from relaylang.kernels.index import variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar


def _before(a: ir.Expr, b: ir.Expr, ascending: bool = True, nans_last: bool = False) -> ir.Expr:
    """Whether value `a` stands before `b`, which it does not where they are equal."""
    low, high = (a, b) if ascending else (b, a)
    if not is_float(a.type):
        return low < high
    number = a if nans_last else low
    return ir.select(high <= low, ir.Const(False, "bool"), number.eq(number))


def places(kernel: Kernel, data: Buf, axis: int, ascending: bool, nans_last: bool = False) -> Buf:
    """The places of the elements along an axis, in order: int32, of shape (lines, extent)."""
    outer, length, inner = around(data.shape, axis)
    lines = outer * inner
    order, room = (kernel.buffer((lines, length), "int32") for _ in range(2))
    b = Builder()
    with b.loop("u", lines, kind=ir.PARALLEL) as u:
        x = b.let("x", ir.address(data, u // max(inner, 1) * (length * inner) + u % max(inner, 1)))
        p, q = (b.var(name, ir.address(buf, u * length, written=True)) for name, buf in (("p", order), ("q", room)))
        with b.loop("i", length) as i:
            b.store(p, i, i)
        # Two neighbours of `w` places in order become one, from `p` to `q`, which then change their names.
        w, turns = b.var("w", 1), b.var("turns", 0)
        with b.repeat(w < length):
            with b.loop("j", ir.expr(length - 1) // (w * 2) + 1) as j:
                l = b.var("l", w * 2 * j)
                m = b.let("m", ir.minimum(l + w, length))
                r, e = b.var("r", m), b.let("e", ir.minimum(m + w, length))
                left, right = ((ir.load(x, ir.cast(ir.load(p, at), ir.INDEX) * inner)) for at in (l, r))
                with b.repeat((l < m) & (r < e)):
                    with b.when(_before(right, left, ascending, nans_last)):
                        b.store(q, ir.load(p, r), l + r - m)
                        b.assign(r, r + 1)
                    with b.otherwise():
                        b.store(q, ir.load(p, l), l + r - m)
                        b.assign(l, l + 1)
                with b.loop("i", l, m) as i:
                    b.store(q, ir.load(p, i), i + e - m)
                with b.loop("i", r, e) as i:
                    b.store(q, ir.load(p, i), i)
            other = b.let("t", p)
            b.assign(p, q)
            b.assign(q, other)
            b.assign(w, w * 2)
            b.assign(turns, turns + 1)
        with b.when((turns % 2).ne(0)), b.loop("i", length) as i:
            b.store(q, ir.load(p, i), i)
    kernel.stage(body=b.body)
    return order


def _gathered(data: Buf, order: Buf, axis: int, shape: tuple[int, ...], dtype: str, values: bool) -> Recipe:
    """The first elements along an axis in order: themselves, or their places."""
    rest = [n for d, n in enumerate(data.shape) if d != axis]

    def at(nest: Nest, index: Any) -> Scalar:
        line = nest.offset([i for d, i in enumerate(index) if d != axis], rest)
        where: Index = nest.add(nest.scale(line, data.shape[axis]), index[axis])
        place = nest.load(order, where)
        if not values:
            return place.cast(dtype)
        own = place.cast("int64")
        return BufTensor(data).at(nest, [*index[:axis], own, *index[axis + 1 :]])

    return Recipe(shape, dtype, at)


def _sorted(values: bool) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = kernel.in_memory(args[0])
        axis = axis_of(call.attrs.axis, len(data.shape))
        order = places(kernel, data, axis, bool(call.attrs.is_ascend))
        out = target_of(kernel, sink)
        sorted_values = _gathered(data, order, axis, out.shape, out.dtype, values)
        nest = Nest(out.shape)
        index = [variable(d) for d in range(len(out.shape))]
        nest.store(out, nest.offset(index, out.shape), sorted_values.at(nest, index))
        kernel.loops(nest)
        pass_on(kernel, sink, out)

    return lower


def _topk(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = kernel.in_memory(args[0])
    axis = axis_of(call.attrs.axis, len(data.shape))
    order = places(kernel, data, axis, bool(call.attrs.is_ascend))
    ty = call.checked_type
    fields: Any = ty.fields if isinstance(ty, TupleType) else (ty,)
    kinds = {"both": (True, False), "values": (True,), "indices": (False,)}[call.attrs.ret_type]
    out: list[Any] = [_gathered(data, order, axis, tuple(f.shape), f.dtype, kind) for f, kind in zip(fields, kinds)]
    return out if isinstance(ty, TupleType) else out[0]


def _unique(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The different values, where each stands first, which one each element is, how many there are, how often each is."""
    data = kernel.in_memory(args[0])
    n = data.size
    order = places(kernel, data, 0, True)
    values, first, which, number, *counts = out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    named = kernel.buffer((n,), "int32")
    b = Builder()
    last = b.var("last", -1)

    def own(buf: Buf, at: ir.Expr) -> ir.Expr:
        return ir.cast(ir.load(buf, at), ir.INDEX)

    def step(buf: Buf, value: ir.Expr) -> None:
        b.assign(last, last + 1)
        b.store(buf, value, last)

    with b.loop("k", n) as k:
        place = b.let("place", own(order, k))
        x, before = ir.load(data, place), ir.load(data, own(order, k - 1))
        new = x.ne(before)
        if is_float(data.dtype):
            new &= x.eq(x) | before.eq(before)
        with b.when(ir.select(k > 0, new, ir.Const(True, "bool"))):
            step(named, place)
        b.store(which, last, place)
    if call.attrs.sorted:
        with b.loop("k", last + 1) as k:
            b.store(first, ir.load(named, k), k)
    else:
        # Numbers in the order in which the values come: each element's is that of its value's first place.
        b.assign(last, -1)
        with b.loop("i", n) as i:
            at = b.let("at", own(named, own(which, i)))
            with b.when(at.eq(i)):
                step(first, i)
            b.store(which, ir.select(at.eq(i), ir.cast(last, which.dtype), ir.load(which, at)), i)
    b.store(number, last + 1, 0)
    with b.loop("i", n) as i:
        b.store(values, ir.select(i <= last, ir.load(data, own(first, i)), ir.Const(0, data.dtype)), i)
        with b.when(i > last):
            b.store(first, ir.expr(n), i)
    for buf in counts:
        with b.loop("i", n) as i:
            b.store(buf, 0, i)
        with b.loop("i", n) as i:
            b.add(ir.Reduce("add", buf.name, own(which, i), ir.Const(1, buf.dtype)))
    kernel.stage(body=b.body)
    return [BufTensor(b) for b in out]


def _searchsorted(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    line, values = (kernel.in_memory(a) for a in args)
    length = line.shape[-1]
    own = 0 if len(line.shape) == 1 else length
    width = max(values.shape[-1] if values.shape else 1, 1)
    out = target_of(kernel, sink)
    kind = np.promote_types(line.dtype, values.dtype).name
    b = Builder()
    with b.loop("u", math.prod(values.shape), kind=ir.PARALLEL) as u:
        s = b.let("s", ir.address(line, u // width * own))
        v = b.let("v", ir.cast(ir.load(values, u), kind))
        l, r = b.var("l", 0), b.var("r", length)
        with b.repeat(l < r):
            m = b.let("m", (l + r) // 2)
            held = ir.cast(ir.load(s, m), kind)
            with b.when(_before(v, held).eq(False) if call.attrs.right else _before(held, v)):
                b.assign(l, m + 1)
            with b.otherwise():
                b.assign(r, m)
        b.store(out, l, u)
    kernel.stage(body=b.body)
    pass_on(kernel, sink, out)


#: Written with stages of their own: never fused.
RECIPES: dict[str, Any] = {"topk": _topk, "unique": _unique}
ANCHORS: dict[str, Any] = {"sort": _sorted(True), "argsort": _sorted(False), "searchsorted": _searchsorted}
