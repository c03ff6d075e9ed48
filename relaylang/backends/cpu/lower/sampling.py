"""Pixels at places that the program computes: crops, grids, regions of interest, deformed windows.

Data come as (n, c, h, w) or (n, c, d, h, w): `blocks.plain` brings other layouts there. The interpreter refuses an
index of an image that does not exist. Here it stands for the nearest image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import reduce
from operator import and_, mul, or_
from typing import Any

from relaylang.backends.cpu.kernel import Kernel, Sink, unsupported
from relaylang.backends.cpu.lower.geometry import pads_of, spread
from relaylang.backends.cpu.lower.nn_dense import converted
from relaylang.backends.cpu.lower.reduce import combine, start_of
from relaylang.backends.cpu.lower.scatter import pass_on, target_of
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.dtypes import is_float
from relaylang.kernels.nest import Buf
from relaylang.kernels.sizes import must_equal

Writes = Callable[[Kernel, Call, list[Buf], Buf], None]


def wide(*values: Any) -> str:
    """The type in which floats, and the integers among them, are computed: of buffers or expressions."""
    return "float64" if any((v.type if isinstance(v, ir.Expr) else v.dtype) == "float64" for v in values) else "float32"


def widened(*values: ir.Expr) -> list[ir.Expr]:
    """Values in the type in which they are computed together."""
    return [ir.cast(v, wide(*values)) for v in values]


def alone(write: Writes, sums: bool = False) -> Any:
    """A lowering that writes the whole result in a wide type. With `sums`, products of integers are summed in
    integers."""

    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        bufs = [kernel.in_memory(a) for a in args]
        dtype = wide(*bufs) if not sums or is_float(sink.anchor.dtype) else sink.anchor.dtype
        out = sink.direct if sink.direct is not None and sink.anchor.dtype == dtype else kernel.buffer(sink.anchor.shape, dtype)
        write(kernel, call, bufs, out)
        pass_on(kernel, sink, out)

    return lower


def inside(places: Sequence[ir.Expr], extents: Sequence[int]) -> ir.Expr:
    """Whether an element is there: each place is from 0 to its extent, without it."""
    return reduce(and_, [test for place, extent in zip(places, extents) for test in (place >= 0, place < extent)])


def cubic(t: ir.Expr, a: float) -> list[ir.Expr]:
    """The shares of the four pixels around a place, `t` after the second of them. `a` is the parameter."""
    t2, t3, alpha = t * t, t * t * t, ir.Const(a, t.type)
    return [
        alpha * (t3 - 2 * t2 + t),
        (alpha + 2) * t3 - (3 + alpha) * t2 + 1,
        -(alpha + 2) * t3 + (3 + 2 * alpha) * t2 - alpha * t,
        -alpha * t3 + alpha * t2,
    ]


def _image(number: ir.Expr, data: Buf) -> ir.Expr:
    return ir.op("clamp", ir.cast(number, ir.INDEX), 0, max(data.shape[0] - 1, 0))


def _bilinear(b: Builder, image: ir.Expr, extents: Sequence[int], place: Sequence[ir.Expr]) -> ir.Expr:
    """The four pixels around a place, each by its share; those beyond the image count as 0."""
    axes = []
    for name, at in zip("yx", place):
        low = b.let(f"{name}_low", ir.op("floor", at))
        part = b.let(f"{name}_part", at - low)
        axes.append(((low, b.let(f"{name}_rest", 1 - part)), (low + 1, part)))
    total: ir.Expr | None = None
    for row, above in axes[0]:
        for column, left in axes[1]:
            at = ir.cast(row, ir.INDEX) * extents[1] + ir.cast(column, ir.INDEX)
            pixel, share = widened(ir.load(image, at), above * left)
            term = ir.select(inside((row, column), extents), pixel, ir.lifted(0, pixel)) * share
            total = term + 0 if total is None else total + term
    assert total is not None
    return total


def _crop_and_resize(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """Each box (top, left, bottom, right, from 0 to 1): columns are mixed first, then rows."""
    data, boxes, numbers = bufs
    attrs = call.attrs
    if attrs.method not in ("bilinear", "nearest_neighbor"):
        raise unsupported(f"{call.op.name} by {attrs.method} cannot be compiled", call)  # type: ignore[attr-defined]
    (_, channels, *space), dtype = data.shape, out.dtype
    b = Builder()
    with ExitStack() as loops:
        u = loops.enter_context(b.loop("u", boxes.shape[0], kind=ir.PARALLEL))
        x = b.let("x", ir.address(data, _image(ir.load(numbers, u), data) * math.prod(data.shape[1:])))
        index, axes, beyond = [], [], []
        for d, (old, new) in enumerate(zip(space, map(int, attrs.crop_size))):
            i = loops.enter_context(b.loop(f"i{d}", new))
            begin, end = (ir.cast(ir.load(boxes, u * 4 + n), dtype) for n in (d, d + 2))
            place: ir.Expr = ir.Const(0, dtype)
            if new > 1:
                place = begin * (old - 1) + (old - 1) * (end - begin) / (new - 1) * ir.cast(i, dtype)
            place = b.let(f"at{d}", place)
            p = b.let(f"p{d}", ir.op("number", place, 0))
            low = b.let(f"low{d}", ir.op("floor" if attrs.method == "bilinear" else "round", p))
            ends = [ir.cast(ir.op("clamp", at, 0, max(old - 1, 0)), ir.INDEX) for at in (low, low + 1)]
            axes.append((b.let(f"a{d}", ends[0]), b.let(f"b{d}", ends[1]), b.let(f"s{d}", p - low)))
            index.append(i)
            beyond += [place < 0, place > old - 1]
        outside = b.let("beyond", beyond[0] | beyond[1] | beyond[2] | beyond[3])
        (a0, b0, s0), (a1, b1, s1) = axes
        c = loops.enter_context(b.loop("c", channels))
        y = b.let("y", ir.address(x, c * math.prod(space)))

        def pixel(row: ir.Expr, column: ir.Expr) -> ir.Expr:
            return ir.cast(ir.load(y, row * space[1] + column), dtype)

        value = pixel(a0, a1)
        if attrs.method == "bilinear":
            rows = [pixel(row, a1) * (1 - s1) + pixel(row, b1) * s1 for row in (a0, b0)]
            value = rows[0] * (1 - s0) + rows[1] * s0
        b.store(out, ir.select(outside, ir.Const(attrs.extrapolation_value, dtype), value), u, c, *index)
    kernel.stage(body=b.body)


def _fold(b: Builder, p: ir.Var, size: int, corner: float) -> None:
    """Fold a place back at both ends, which are `size` apart and begin at `corner`. An infinite place becomes a nan."""
    with b.when(((p >= corner) & (p <= ir.lifted(size, p) + corner)).eq(0)):
        away, step = b.let("away", ir.op("abs", corner - p)), ir.lifted(max(size, 1), p)
        rest = b.let("rest", ir.op("mod", away, step))
        odd = ir.op("mod", ir.op("round_even", (away - rest) / step), 2).ne(0)
        b.assign(p, ir.select(odd, ir.lifted(size, p) - rest + corner, rest + corner))


def _grid_sample(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The pixels around a place, by axis, with the share that each of them has."""
    data, grid = bufs
    attrs = call.attrs
    channels, space = data.shape[1], data.shape[2:]
    count, places, dtype = len(space), math.prod(out.shape[2:]), out.dtype
    around = {"nearest": 1, "bilinear": 2, "bicubic": 4}[attrs.method]
    b = Builder()

    def keep(p: ir.Var, extent: int) -> None:
        if attrs.padding_mode == "reflection":
            _fold(b, p, *((extent - 1, 0.0) if attrs.align_corners else (extent, -0.5)))
        if attrs.padding_mode != "zeros":
            b.assign(p, ir.op("clamp", p, 0, extent - 1))

    def number(p: ir.Expr, extent: int) -> ir.Expr:
        return ir.select(inside([p], [extent]), ir.cast(p, "int64"), ir.Const(-1, "int64"))

    with b.loop("u", out.shape[0] * places, kind=ir.PARALLEL) as u:
        n, o = b.let("n", u // max(places, 1)), b.let("o", u % max(places, 1))
        axes = []
        for d, extent in enumerate(space):
            raw = ir.cast(ir.load(grid, (n * count + (count - 1 - d)) * places + o), dtype)
            place = (raw + 1) * (extent - 1) / 2 if attrs.align_corners else ir.Const(-0.5, dtype) + (raw + 1) * extent / 2
            p = b.var(f"p{d}", place)
            pixels, shares = b.local(f"q{d}", "int64", [around]), b.local(f"s{d}", dtype, [around])
            axes.append((pixels, shares))
            if attrs.method == "bicubic":
                low = b.let(f"low{d}", ir.cast(ir.op("floor", p), "float64"))
                for tap, share in enumerate(cubic(b.let(f"t{d}", ir.cast(p, "float64") - low), -0.75)):
                    b.store(shares, share, tap)
                with b.loop("k", 4) as k:
                    pixel = b.var("p", ir.cast(low + ir.cast(k - 1, "float64"), dtype))
                    keep(pixel, extent)
                    b.store(pixels, number(ir.op("trunc", pixel), extent), k)
                continue
            keep(p, extent)
            low = b.let(f"low{d}", ir.op("round_even" if attrs.method == "nearest" else "floor", p))
            parts = [ir.Const(1, dtype)] if attrs.method == "nearest" else [1 - (p - low), p - low]
            for tap, share in enumerate(parts):
                b.store(pixels, number(low + tap if tap else low, extent), tap)
                b.store(shares, share, tap)
        with b.loop("c", channels) as c:
            x = b.let("x", ir.address(data, (n * channels + c) * math.prod(space)))
            total = b.var("sum", ir.Const(0, dtype))
            with ExitStack() as loops:
                index, factors = [], []
                for d, (pixels, shares) in enumerate(axes):
                    k = loops.enter_context(b.loop(f"k{d}", around))
                    index.append(b.let(f"r{d}", ir.cast(ir.load(pixels, k), ir.INDEX)))
                    factors.append(ir.load(shares, k))
                value = ir.cast(ir.load(x, ir.offset(space, index)), dtype)
                value = ir.select(reduce(and_, [r >= 0 for r in index]), value, ir.Const(0, dtype))
                b.assign(total, total + value * reduce(mul, factors))
            b.store(out, total, (n * channels + c) * places + o)
    kernel.stage(body=b.body)


def _roi_align(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The mean (or greatest) of points on a grid in each cell."""
    data, rois = bufs
    attrs = call.attrs
    (_, channels, *space), cells = data.shape, [int(n) for n in attrs.pooled_size]
    if attrs.mode not in ("avg", "max"):
        raise unsupported(f"{call.op.name} by {attrs.mode} cannot be compiled", call)  # type: ignore[attr-defined]
    kind, dtype, p = "sum" if attrs.mode == "avg" else "max", out.dtype, wide(rois)
    b = Builder()
    with b.loop("u", rois.shape[0], kind=ir.PARALLEL) as u:
        roi = b.let("roi", ir.address(rois, u * 5))
        n = b.let("n", _image(ir.load(roi, 0), data))
        axes = []
        for name, first, count in zip("yx", (2, 1), cells):
            low, high = (ir.cast(ir.load(roi, at), p) * attrs.spatial_scale for at in (first, first + 2))
            low = b.let(f"{name}0", low)
            size = b.let(f"{name}1", ir.op("max", b.let(f"{name}e", high - low), 1) / count)
            samples = ir.select(ir.op("abs", size) < math.inf, ir.cast(ir.op("ceil", size), ir.INDEX), ir.number(0))
            axes.append((low, size, b.let(f"{name}n", attrs.sample_ratio if attrs.sample_ratio > 0 else samples)))
        points = b.let("points", ir.cast(axes[0][2] * axes[1][2], p))
        with b.loop("c", channels) as c, b.loop("i", cells[0]) as i, b.loop("j", cells[1]) as j:
            image = b.let("image", ir.address(data, (n * channels + c) * math.prod(space)))
            s = b.var("s", ir.Const(start_of(kind, dtype), dtype))
            with b.loop("a", axes[0][2]) as a, b.loop("b", axes[1][2]) as column:
                place = []
                for name, (low, size, steps), cell, point in zip("yx", axes, (i, j), (a, column)):
                    at = low + ir.cast(cell, p) * size + (ir.cast(point, p) + 0.5) * size / ir.cast(steps, p)
                    place.append(b.let(name, at))
                beyond = reduce(or_, [t for at, extent in zip(place, space) for t in (at < -1, at > extent)])
                kept = [b.let(f"{name}c", ir.op("clamp", at, 0, e - 1)) for name, at, e in zip("yx", place, space)]
                value = ir.select(beyond, ir.Const(0, dtype), _bilinear(b, image, space, kept))
                if kind == "sum":
                    b.assign(s, s + value / ir.cast(points, dtype))
                else:
                    b.assign(s, ir.op("peak", s, b.let("v", value)))
            b.store(out, s, u, c, i, j)
    kernel.stage(body=b.body)


def _roi_pool(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The greatest of the pixels that each cell touches, 0 where there are none."""
    data, rois = bufs
    attrs = call.attrs
    (_, channels, *space), cells = data.shape, [int(n) for n in attrs.pooled_size]
    dtype, p = out.dtype, wide(rois)
    b = Builder()
    with b.loop("u", rois.shape[0], kind=ir.PARALLEL) as u:
        roi = b.let("roi", ir.address(rois, u * 5))
        n = b.let("n", _image(ir.load(roi, 0), data))
        axes = []
        for name, first, count in zip("yx", (2, 1), cells):
            ends = [ir.op("round", ir.cast(ir.load(roi, at), p) * attrs.spatial_scale) for at in (first, first + 2)]
            low, high = (b.let(f"{name}{end}", ir.cast(at, ir.INDEX)) for end, at in zip("0e", ends))
            axes.append((low, b.let(f"{name}1", ir.cast(ir.maximum(high - low + 1, 1), p) / count)))
        with b.loop("c", channels) as c, b.loop("i", cells[0]) as i, b.loop("j", cells[1]) as j:
            image = b.let("image", ir.address(data, (n * channels + c) * math.prod(space)))
            spans = []
            for name, (low, size), cell, extent in zip("yx", axes, (i, j), space):
                begin = ir.op("floor", ir.cast(cell, p) * size + 1e-5)
                stop = ir.op("ceil", ir.cast(cell + 1, p) * size - 1e-5)
                spans += [
                    b.let(f"{name}{end}", ir.op("clamp", ir.cast(at, ir.INDEX) + low, 0, extent))
                    for end, at in (("a", begin), ("b", stop))
                ]
            ya, yb, xa, xb = spans
            some, least = (ya < yb) & (xa < xb), ir.Const(start_of("max", dtype), dtype)
            s = b.var("s", ir.select(some, least, ir.Const(0, dtype)))
            with b.loop("y", ya, yb) as y, b.loop("x", xa, xb) as x:
                b.assign(s, ir.op("peak", s, b.let("v", ir.cast(ir.load(image, y * space[1] + x), dtype))))
            b.store(out, s, u, c, i, j)
    kernel.stage(body=b.body)


def _deformable_conv2d(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The moved pixels of all windows, then their products with the weights."""
    data, moves, weight = bufs
    attrs = call.attrs
    (batch, channels, *space), (outputs, depth, height, width) = data.shape, weight.shape
    rows, columns = out.shape[2:]
    places, taps, groups = rows * columns, height * width, attrs.deformable_groups
    if not must_equal(channels % groups, 0):
        raise unsupported(f"{channels} channels do not divide into {groups} groups", call)
    strides, dilation = spread(attrs.strides, 2), spread(attrs.dilation, 2)
    (top, _), (left, _) = pads_of(attrs.padding, 2)
    dtype, f = out.dtype, wide(data)
    taken = kernel.buffer((batch, channels, taps, places), f)
    b = Builder()
    with b.loop("u", batch * channels, kind=ir.PARALLEL) as u:
        image = b.let("image", ir.address(data, u * math.prod(space)))
        group = b.let("group", u // channels * groups + u % channels // (channels // groups))
        with b.loop("k", taps) as k, b.loop("p", places) as p:
            m = b.let("m", ir.address(moves, (group * taps + k) * (2 * places) + p))
            starts = [
                k // width * dilation[0] + p // max(columns, 1) * strides[0] - top,
                k % width * dilation[1] + p % max(columns, 1) * strides[1] - left,
            ]
            moved = [widened(ir.cast(at, f), ir.load(m, n * places)) for n, at in enumerate(starts)]
            y, x = (b.let(name, ir.cast(start + move, f)) for name, (start, move) in zip("yx", moved))
            outside = (y < 0) | (x < 0) | (y >= space[0]) | (x >= space[1])
            value = ir.select(outside, ir.Const(0, f), _bilinear(b, image, space, (y, x)))
            b.store(taken, value, (u * taps + k) * places + p)
    kernel.stage(body=b.body)
    each = max(outputs // attrs.groups, 1)

    def factor(value: ir.Expr) -> ir.Expr:
        # Integers are made of the factors, not of their products.
        return value.ne(0) if dtype == "bool" else ir.cast(value, dtype)

    b = Builder()
    with b.loop("u", batch * outputs, kind=ir.PARALLEL) as u:
        n, o = b.let("n", u // max(outputs, 1)), b.let("o", u % max(outputs, 1))
        total = b.let("sum", ir.address(out, u * places, written=True))
        x = b.let("x", ir.address(taken, (n * channels + o // each * depth) * (taps * places)))
        b.fill(total, 0, places)
        with b.loop("k", depth * taps) as k:
            by = b.let("by", factor(ir.load(weight, o * (depth * taps) + k)))
            with b.loop("p", places, kind=ir.VECTOR) as p:
                product = ir.op(combine("prod", dtype), by, factor(ir.load(x, k * places + p)))
                b.store(total, ir.op(combine("sum", dtype), ir.load(total, p), product), p)
    kernel.stage(body=b.body)


def _correlation(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The mean product (or distance) of each patch of the first with those of the second around it."""
    attrs = call.attrs
    channels = bufs[0].shape[1]
    size, reach, step, stride = attrs.kernel_size, attrs.max_displacement, attrs.stride2, attrs.stride1
    (top, _), (left, _) = pads_of(attrs.padding, 2)
    _, around, rows, columns = out.shape
    side, radius, dtype = math.isqrt(around), reach // step, out.dtype
    b = Builder()
    with b.loop("u", out.shape[0] * around, kind=ir.PARALLEL) as u, b.loop("i", rows) as i, b.loop("j", columns) as j:
        n, moves = u // around, (u % around // side - radius, u % side - radius)
        s = b.var("s", ir.Const(0, dtype))
        with b.loop("c", channels) as c, b.loop("y", size) as y, b.loop("x", size) as x:
            first = i * stride + y + (reach - top), j * stride + x + (reach - left)
            second = [at + move * step for at, move in zip(first, moves)]
            pixels = []
            for name, buf, place in zip("ab", bufs, (first, second)):
                pixel = ir.cast(ir.load(buf, n, c, *place), dtype)
                pixels.append(b.let(name, ir.select(inside(place, buf.shape[2:]), pixel, ir.Const(0, dtype))))
            one, two = pixels
            b.assign(s, s + (one * two if attrs.is_multiply else ir.op("abs", one - two)))
        b.store(out, s / max(size * size * channels, 1), (u * rows + i) * columns + j)
    kernel.stage(body=b.body)


def _dilation2d(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """The greatest sum of a window and the weight; the padding is 0."""
    attrs = call.attrs
    dtype = sink.anchor.dtype
    data, weight = (kernel.in_memory(converted(kernel, a, dtype, None)) for a in args)
    out = target_of(kernel, sink)
    (_, channels, *space), (_, height, width) = data.shape, weight.shape
    (top, _), (left, _) = pads_of(attrs.padding, 2)
    strides, dilation = spread(attrs.strides[:2], 2), spread(attrs.dilations[:2], 2)
    rows, columns = out.shape[2:]
    b = Builder()
    with b.loop("u", out.shape[0] * channels, kind=ir.PARALLEL) as u, b.loop("i", rows) as i, b.loop("j", columns) as j:
        s = b.var("s", ir.Const(start_of("peak", dtype), dtype))
        with b.loop("a", height) as a, b.loop("b", width) as column:
            place = i * strides[0] + a * dilation[0] - top, j * strides[1] + column * dilation[1] - left
            pixel: ir.Expr = ir.load(data, (u * space[0] + place[0]) * space[1] + place[1])
            pixel = ir.select(inside(place, space), pixel, ir.Const(0, dtype))
            v = b.let("v", ir.op(combine("sum", dtype), pixel, ir.load(weight, u % channels, a, column)))
            b.assign(s, ir.op(combine("max", dtype), s, v))
        b.store(out, s, (u * rows + i) * columns + j)
    kernel.stage(body=b.body)
    pass_on(kernel, sink, out)


#: Written by stages of their own: never fused.
ANCHORS: dict[str, Any] = {
    "image.crop_and_resize": alone(_crop_and_resize),
    "image.grid_sample": alone(_grid_sample),
    "image.dilation2d": _dilation2d,
    "vision.roi_align": alone(_roi_align),
    "vision.roi_pool": alone(_roi_pool),
    "nn.deformable_conv2d": alone(_deformable_conv2d, sums=True),
    "nn.correlation": alone(_correlation),
}
