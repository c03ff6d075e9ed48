"""Pooling over one, two or three spatial axes, channels first or last.

With channels last, floats and the maxima of bytes are pooled by tiles in registers (`tiles`). Otherwise, a row of results,
or a part of a wide one, is kept in an accumulator array. Each tap of the window updates all of it, so
the inner loop is vector code. Which results of a row a tap reaches is known when the code is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import ROW, Kernel, Sink
from relaylang.backends.cpu.lower.geometry import Conv, pads_of, reached, spatial_axes, spread
from relaylang.backends.cpu.lower.reduce import around, combine, reduce_over, start_of
from relaylang.backends.cpu.lower.tiles import lower_tiles
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.dtypes import is_float
from relaylang.kernels.index import variable
from relaylang.kernels.nest import Bounds, Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import Size, largest, smallest, surely_less
from relaylang.kernels.vectors import written_out

BYTES = ("int8", "uint8")
#: With so few taps, only vectors of so many lanes gain from a window's sums along each axis.
_FEW_TAPS, _WIDE = 4, 16


def _reach(tap: int, out: int, extent: int, stride: int, first: int) -> tuple[int, int]:
    """The results `low <= o < high` whose position `o * stride + tap - first` lies inside the data."""
    low = max(0, -(-(first - tap) // stride))
    high = smallest(out, -(-largest(0, extent + first - tap) // stride))
    return low, largest(low, high)


@dataclass
class Window:
    """The geometry of a pool along each spatial axis."""

    size: list[int]
    stride: list[int]
    dilation: list[int]
    pads: list[tuple[int, int]]

    def counts(self, number: int, out: int, extent: int, include_pad: bool) -> np.ndarray:
        """How many taps of each result along an axis lie on the data (with `include_pad`, on it and its padding)."""
        total = np.zeros(out, np.int32)
        extent, first = self._covered(number, extent, include_pad)
        for tap in range(self.size[number]):
            low, high = _reach(tap * self.dilation[number], out, extent, self.stride[number], first)
            total[low:high] += 1
        return np.maximum(total, 1)

    def count_at(self, nest: Nest, index: Index, number: int, extent: int, include_pad: bool) -> Scalar:
        """The same for one result, worked out where it is used."""
        extent, first = self._covered(number, extent, include_pad)
        place = nest.as_scalar(index * self.stride[number] + -first)
        step, size = self.dilation[number], self.size[number]
        return ir.op("taps", place, step, size, extent, type="int32")

    def count(
        self,
        kernel: Kernel,
        nest: Nest,
        index: Sequence[Index],
        axes: Sequence[int],
        data: Sequence[int],
        out: Sequence[int],
        include_pad: bool,
    ) -> Scalar:
        """How many elements the window of a result has that count."""
        number = nest.const(1, "int32")
        for n, d in enumerate(axes):
            if not surely_less(out[d], ROW + 1):
                part = self.count_at(nest, index[d], n, data[d], include_pad)
            else:
                counts = self.counts(n, out[d], data[d], include_pad)
                if len(set(counts.tolist())) == 1:
                    part = nest.const(int(counts[0]), "int32")
                else:
                    part = nest.load(kernel.constant(counts, "int32"), index[d])
            number = number * part
        return number

    def behind(self, extents: Sequence[int], outs: Sequence[int]) -> list[int]:
        """How far windows reach behind the data, along each axis."""
        before = [first for first, _ in self.pads]
        return [largest(0, n) for n in reached(extents, outs, self.size, self.stride, self.dilation, before)]

    def _covered(self, number: int, extent: int, include_pad: bool) -> tuple[int, int]:
        """The extent of what counts along an axis, and where the first window begins before it."""
        first, behind = self.pads[number]
        return (extent + first + behind, 0) if include_pad else (extent, first)


def wide_type(dtype: str, mean: bool) -> str:
    """The type in which a pool accumulates."""
    return dtype if is_float(dtype) or not mean else "int64"


def lowest(dtype: str, acc: str) -> float:
    """The result of a window on padding alone: the least number, which is finite."""
    return float(np.finfo(dtype).min) if is_float(dtype) else start_of("max", acc)


@dataclass(frozen=True)
class _Pool:
    """A pool of a call: its data with rows along `row`, its spatial axes, and its windows. `acc` is the type of its sums."""

    kernel: Kernel
    data: Buf
    axes: list[int]
    channel: int
    row: int
    window: Window
    mean: bool
    include_pad: bool
    acc: str

    def average(self, nest: Nest, index: Sequence[Index], total: Scalar, out: Sequence[int]) -> Scalar:
        number = self.window.count(self.kernel, nest, index, self.axes, self.data.shape, out, self.include_pad)
        return total / number.cast(self.acc)

    def in_tiles(self, out: Sequence[int]) -> bool:
        """Whether tiles hold the results: channels are last, and there are vectors of floats, or of bytes for a maximum."""
        data, acc = self.data, self.acc
        vectors = data.dtype == acc == "float32" or (
            not self.mean and acc in BYTES and surely_less(self.kernel.isa.of(acc).lanes - 1, data.shape[self.channel])
        )
        return self.row == self.channel and vectors and 0 not in (*data.shape, *out)

    def tiles(self, sink: Sink) -> None:
        """Windows over channels-last data, several results at a time."""
        data, window, out = self.data, self.window, sink.anchor.shape
        extents, outs = [data.shape[d] for d in self.axes], [out[d] for d in self.axes]
        conv = Conv(
            data.shape[0],
            data.shape[self.channel],
            1,
            1,
            extents,
            window.size,
            window.stride,
            window.dilation,
            [p for p, _ in window.pads],
            window.behind(extents, outs),
            outs,
            self.axes,
            self.channel,
            True,
        )

        def finish(sink: Sink, nest: Nest, index: Sequence[Index], value: Scalar) -> None:
            sink.store(nest, index, self.average(nest, index, value, out))

        if self.mean:
            lower_tiles(self.kernel, conv, data, sink, self.acc, "sum", finish=finish)
        else:
            lower_tiles(self.kernel, conv, data, sink, self.acc, "peak")

    def rows(self, sink: Sink) -> None:
        """A row of results at a time: each tap of the window adds a row of the data."""
        data, row, acc, out = self.data, self.row, self.acc, sink.anchor.shape
        width = out[row]
        bounds: Bounds = {} if surely_less(width, ROW + 1) else {row: ("w0", "w1")}
        begin, end = (ir.Var("w0"), ir.Var("w1")) if bounds else (ir.number(0), ir.number(width))
        nest = Nest(out, bounds)
        index = [variable(d) for d in range(len(data.shape))]
        value = nest.load(Buf("acc", (width,), acc), index[row])
        if self.mean:
            value = self.average(nest, index, value, out)
        sink.store(nest, index, value.cast(data.dtype))
        start = ir.Const(0 if self.mean else lowest(data.dtype, acc), acc)
        stores = written_out(nest.build(fixed=row), self.kernel.isa.explicit_lanes)
        body = [ir.loop("w", begin, end, [ir.Store("acc", ir.Var("w"), start)]), *self._taps(width, bool(bounds)), *stores]
        held = ir.Local("held" if bounds else "acc", acc, (ROW if bounds else width,))
        if bounds:
            # A part of a wide row at a time.
            w0 = ir.Var("w0")
            part: ir.Body = [ir.Let("w1", ir.minimum(w0 + ROW, width)), ir.Let("acc", ir.address(held, w0 * -1, written=True))]
            body = [ir.Loop("w0", ir.number(0), ir.number(width), [*part, *body], step=ROW)]
        self.kernel.stage(body=around(out[:row], [held, *body]))

    def _taps(self, width: int, in_parts: bool) -> ir.Body:
        """The loops over the window that add each of its taps to a row of results.

        A schedule may choose to add up the window along all axes but the last one first, for each place of a row of the data.
        """
        data, window, row = self.data, self.window, self.row
        size, stride, dilation = window.size, window.stride, window.dilation
        first = [p for p, _ in window.pads]
        looped = [n for n, d in enumerate(self.axes) if d < row]
        places = {self.axes[n]: ir.Var(f"y{n}") for n in looped}
        base = sum((places.get(d, ir.Var(f"i{d}")) * data.strides[d] for d in range(row)), ir.number(0))
        w, x = ir.Var("w"), ir.Let("x", ir.address(data, base))

        def around_rows(body: ir.Body) -> ir.Body:
            for n in reversed(looped):
                d, y = self.axes[n], ir.Var(f"y{n}")
                place = ir.Var(f"i{d}") * stride[n] + ir.Var(f"k{n}") * dilation[n] - first[n]
                inside = (y >= 0) & (y < data.shape[d])
                body = [ir.loop(f"k{n}", 0, size[n], [ir.Let(y.name, place), ir.If(inside, body)])]
            return body

        def along(source: str, dtype: str) -> ir.Body:
            body: ir.Body = []
            for k in range(size[-1]):
                at = k * dilation[-1]
                low, high = _reach(at, width, data.shape[row], stride[-1], first[-1])
                body += self._tap(low, high, ir.Load(source, w * stride[-1] + (at - first[-1]), dtype), width, in_parts)
            return body

        if row == self.channel:
            return around_rows([x, *self._tap(0, width, ir.Load("x", w, data.dtype), width, in_parts)])
        extent = data.shape[row]
        is_short = not in_parts and surely_less(extent, ROW + 1)
        if is_short and size[-1] > 1 and any(size[n] > 1 for n in looped):
            default = "axes" if math.prod(size) > _FEW_TAPS or self.kernel.isa.lanes >= _WIDE else "taps"
            if self.kernel.space.pick("window", ("axes", "taps"), default) == "axes":
                columns = ir.Local("columns", self.acc, (extent,))
                start = ir.Store("columns", w, ir.Const(0 if self.mean else lowest(data.dtype, self.acc), self.acc))
                both = combine("sum" if self.mean else "peak", self.acc)
                add = ir.Reduce(both, "columns", w, ir.cast(ir.Load("x", w, data.dtype), self.acc))
                rows = around_rows([x, ir.loop("w", 0, extent, [add], ir.VECTOR)])
                return [columns, ir.loop("w", 0, extent, [start]), *rows, *along("columns", self.acc)]
        return around_rows([x, *along("x", data.dtype)])

    def _tap(self, low: int, high: int, value: ir.Expr, width: int, in_parts: bool) -> ir.Body:
        """Add one tap to the accumulators of results `low..high` of a row, or of its part `w0..w1`."""
        if not isinstance(high, Size) and high <= low:
            return []
        both = combine("sum" if self.mean else "peak", self.acc)
        update = ir.Reduce(both, "acc", ir.Var("w"), ir.cast(value, self.acc))
        if not in_parts:
            return [ir.loop("w", low, high, [update], ir.VECTOR)]
        w0, w1 = ir.Var("w0"), ir.Var("w1")
        begin, end = ir.maximum(w0, low) if low else w0, w1 if high == width else ir.minimum(w1, high)
        return [ir.loop("w", begin, end, [update], ir.VECTOR)]


def _pool(kind: str) -> Any:
    mean = kind == "avg"

    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        attrs = call.attrs
        axes, channel = spatial_axes(attrs.layout, call)
        count = len(axes)
        row = channel if channel == len(args[0].shape) - 1 else axes[-1]
        data = kernel.strided(args[0], lambda buf: buf.strides[row] == 1)
        window = Window(
            spread(attrs.pool_size, count), spread(attrs.strides, count), spread(attrs.dilation, count), pads_of(attrs.padding, count)
        )
        include_pad = mean and attrs.count_include_pad
        pool = _Pool(kernel, data, axes, channel, row, window, mean, include_pad, wide_type(data.dtype, mean))
        if pool.in_tiles(sink.anchor.shape):
            pool.tiles(sink)
        else:
            pool.rows(sink)

    return lower


def _adaptive(kind: str, is_global: bool) -> Any:
    mean = kind == "avg"
    reducer = "sum" if mean else "peak"

    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = args[0]
        axes, _ = spatial_axes(call.attrs.layout, call)
        out_shape = sink.anchor.shape
        if is_global or all(out_shape[d] == 1 for d in axes):
            total = 1
            for d in axes:
                total *= data.shape[d]
            reduce_over(kernel, data, reducer, axes, True, sink, max(total, 1) if mean else None)
            return
        _windows(kernel, kernel.strided(data), reducer, mean, axes, out_shape, sink)

    return lower


def _windows(kernel: Kernel, data: Buf, reducer: str, mean: bool, axes: Sequence[int], out_shape: tuple[int, ...], sink: Sink) -> None:
    """Windows of different sizes: result `o` of `O` covers `floor(o * I / O)` up to `ceil((o + 1) * I / O)`."""
    rank = len(out_shape)
    acc = wide_type(data.dtype, mean)
    steps = data.strides
    start = ir.Const(0 if mean else lowest(data.dtype, acc), acc)
    body: ir.Body = [ir.Let("acc", start, True), ir.Let("n", ir.number(1), True)]
    total, n = ir.Var("acc", acc), ir.Var("n")
    for d in axes:
        size, out, i = data.shape[d], out_shape[d], ir.Var(f"i{d}")
        body += [
            ir.Let(f"a{d}", i * size // out),
            ir.Let(f"z{d}", ((i + 1) * size + (out - 1)) // out),
            ir.Assign("n", n * (ir.Var(f"z{d}") - ir.Var(f"a{d}"))),
        ]
    body.append(ir.Assign("n", ir.maximum(n, 1)))
    at = sum((ir.Var(f"{'y' if d in axes else 'i'}{d}") * steps[d] for d in range(rank)), ir.number(0))
    window: ir.Body = [ir.Assign("acc", ir.op(combine(reducer, acc), total, ir.cast(ir.load(data, at), acc)))]
    for d in reversed(axes):
        window = [ir.loop(f"y{d}", f"a{d}", f"z{d}", window)]
    nest = Nest(out_shape)
    value = nest.variable("acc", acc, rank)
    if mean:
        value = value / nest.variable("n", "int64", rank).cast(acc)
    index = [variable(d) for d in range(rank)]
    sink.store(nest, index, value.cast(data.dtype))
    kernel.stage(body=around(out_shape, [*body, *window, *nest.build(fixed=rank)]))


ANCHORS: dict[str, Any] = {
    **{f"nn.max_pool{n}d": _pool("max") for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": _pool("avg") for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": _adaptive("avg", False) for n in (1, 2, 3)},
    **{f"nn.adaptive_max_pool{n}d": _adaptive("max", False) for n in (1, 2, 3)},
    "nn.global_avg_pool2d": _adaptive("avg", True),
    "nn.global_max_pool2d": _adaptive("max", True),
}
