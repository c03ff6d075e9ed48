"""Pooling over one, two or three spatial axes, channels first or last.

A row of results, or a part of a wide one, is kept in an accumulator array. Each tap of the window updates all of it, so
the inner loop is vector code. Which results of a row a tap reaches is known when the code is written.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.backends.cpu.dtypes import CTYPES, is_float, literal
from relaylang.backends.cpu.index import Affine, strides_of, variable
from relaylang.backends.cpu.kernel import ROW, Kernel, Sink, unsupported
from relaylang.backends.cpu.lower.common import convert
from relaylang.backends.cpu.lower.reduce import _reduce, _start, close_loops, combine, open_loops
from relaylang.backends.cpu.scalar import Buf, Nest, Scalar
from relaylang.ir import Call


def spatial_axes(layout: str, call: Call) -> tuple[list[int], int]:
    """The spatial axes and the channel axis of a layout such as NCHW or NDHWC."""
    if not layout.isalpha() or not layout.isupper() or "C" not in layout:
        raise unsupported(f"the layout {layout} cannot be compiled", call)
    return [d for d, letter in enumerate(layout) if letter in "DHW"], layout.index("C")


def spread(values: Any, count: int) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return values * count if len(values) == 1 else values


def pads_of(padding: Any, count: int) -> list[tuple[int, int]]:
    """Padding before and behind each of `count` axes, from 1, `count` or twice `count` numbers."""
    values = spread(padding, count)
    if len(values) == count:
        values = values * 2
    return list(zip(values[:count], values[count:]))


def _reach(tap: int, out: int, extent: int, stride: int, first: int) -> tuple[int, int]:
    """The results `low <= o < high` whose position `o * stride + tap - first` lies inside the data."""
    low = max(0, -(-(first - tap) // stride))
    high = min(out, (extent - 1 + first - tap) // stride + 1)
    return low, max(low, high)


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

    def count_at(self, nest: Nest, index: Affine, number: int, extent: int, include_pad: bool) -> Scalar:
        """The same for one result, worked out where it is used."""
        extent, first = self._covered(number, extent, include_pad)
        place = nest.as_scalar(index * self.stride[number] + -first)
        step, size = self.dilation[number], self.size[number]
        return nest.op(f"(int32_t)r_taps({{0}}, {step}, {size}, {extent})", [place], "int32")

    def _covered(self, number: int, extent: int, include_pad: bool) -> tuple[int, int]:
        """The extent of what counts along an axis, and where the first window begins before it."""
        first, behind = self.pads[number]
        return (extent + first + behind, 0) if include_pad else (extent, first)


def wide_type(dtype: str, mean: bool) -> str:
    """The type in which a pool accumulates."""
    if dtype == "float16":
        return "float32"
    return dtype if is_float(dtype) or not mean else "int64"


def _lowest(dtype: str, acc: str) -> str:
    """The result of a window on padding alone: the least number, which is finite."""
    return literal(float(np.finfo(dtype).min), acc) if is_float(dtype) else _start("max", acc)


def _pool(kind: str) -> Any:
    mean = kind == "avg"

    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        attrs = call.attrs
        data = kernel.in_memory(args[0])
        axes, channel = spatial_axes(attrs.layout, call)
        rank, count = len(data.shape), len(axes)
        window = Window(spread(attrs.pool_size, count), spread(attrs.strides, count), spread(attrs.dilation, count),
                        pads_of(attrs.padding, count))  # fmt: skip
        size, stride, dilation = window.size, window.stride, window.dilation
        first = [p for p, _ in window.pads]
        out_shape = sink.anchor.shape
        acc = wide_type(data.dtype, mean)
        update = combine("sum" if mean else "peak", acc)
        steps = strides_of(data.shape)
        row = channel if channel == rank - 1 else axes[-1]
        width = out_shape[row]
        lines, pad, units = open_loops(out_shape[:row])
        bounds: dict[int, tuple[str, str]] = {}
        lines.append(f"{pad}{CTYPES[acc]} {'acc' if width <= ROW else 'held'}[{min(width, ROW)}];")
        if width > ROW:
            bounds[row] = ("w0", "w1")
            lines.append(f"{pad}for (long w0 = 0; w0 < {width}; w0 += {ROW}) {{")
            pad += "  "
            lines.append(f"{pad}const long w1 = w0 + {ROW} < {width} ? w0 + {ROW} : {width};")
            lines.append(f"{pad}{CTYPES[acc]}* const acc = held - w0;")
        first_w, end_w = bounds.get(row, ("0", str(width)))
        start = _start("sum", acc) if mean else _lowest(data.dtype, acc)
        lines.append(f"{pad}for (long w = {first_w}; w < {end_w}; w++) acc[w] = {start};")
        base = " + ".join([f"i{d}*{steps[d]}" for d in range(row) if d not in axes] or ["0"])
        looped = [n for n, d in enumerate(axes) if d < row]
        for n in looped:
            d = axes[n]
            lines.append(f"{pad}for (long k{n} = 0; k{n} < {size[n]}; k{n}++) {{")
            pad += "  "
            lines.append(f"{pad}const long y{n} = i{d}*{stride[n]} + k{n}*{dilation[n]} - {first[n]};")
            lines.append(f"{pad}if (y{n} < 0 || y{n} >= {data.shape[d]}) continue;")
        where = " + ".join([base, *[f"y{n}*{steps[axes[n]]}" for n in looped]])
        lines.append(f"{pad}const {CTYPES[data.dtype]}* x = {data.name} + {where};")
        if row == channel:
            lines += _tap(pad, 0, width, width, update, "x[w]")
        else:
            for tap in range(size[-1]):
                low, high = _reach(tap * dilation[-1], width, data.shape[row], stride[-1], first[-1])
                at = f"w*{stride[-1]} + {tap * dilation[-1] - first[-1]}".replace("+ -", "- ")
                lines += _tap(pad, low, high, width, update, f"x[{at}]")
        for _ in looped:
            pad = pad[:-2]
            lines.append(pad + "}")
        nest = Nest(out_shape, bounds)
        index = [variable(d) for d in range(rank)]
        value = nest.load(Buf("acc", (width,), acc), index[row])
        if mean:
            number = nest.const(1, "int32")
            for n, d in enumerate(axes):
                if out_shape[d] > ROW:
                    part = window.count_at(nest, index[d], n, data.shape[d], attrs.count_include_pad)
                    number = nest.op("({0} * {1})", [number, part], "int32")
                    continue
                counts = window.counts(n, out_shape[d], data.shape[d], attrs.count_include_pad)
                if len(set(counts.tolist())) == 1:
                    part = nest.const(int(counts[0]), "int32")
                else:
                    part = nest.load(kernel.constant(counts, "int32"), index[d])
                number = nest.op("({0} * {1})", [number, part], "int32")
            value = nest.op("({0} / {1})", [value, convert(nest, number, acc)], acc)
        sink.store(nest, index, convert(nest, value, data.dtype))
        lines += nest.emit(split=False, indent=pad, fixed=row)[0]
        if bounds:
            lines.append(pad[:-2] + "}")
        kernel.stage(units).lines = lines + close_loops(row)

    return lower


def _tap(pad: str, low: int, high: int, width: int, both: str, value: str) -> list[str]:
    """One tap's update of the accumulators of a row, or of its part `w0..w1` where the row is wide."""
    if high <= low:
        return []
    first, end = str(low), str(high)
    if width > ROW:
        first = f"w0 > {low} ? w0 : {low}" if low else "w0"
        end = f"(w1 < {high} ? w1 : {high})" if high < width else "w1"
    update = both.format("acc[w]", value)
    return [f"{pad}R_IVDEP", f"{pad}for (long w = {first}; w < {end}; w++) acc[w] = {update};"]


def _adaptive(kind: str, whole: bool) -> Any:
    mean = kind == "avg"
    reducer = "sum" if mean else "peak"

    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = args[0]
        axes, _ = spatial_axes(call.attrs.layout, call)
        out_shape = sink.anchor.shape
        if whole or all(out_shape[d] == 1 for d in axes):
            total = 1
            for d in axes:
                total *= data.shape[d]
            _reduce(kernel, data, reducer, axes, True, sink, float(max(total, 1)) if mean else None)
            return
        _windows(kernel, kernel.in_memory(data), reducer, mean, axes, out_shape, sink)

    return lower


def _windows(kernel: Kernel, data: Buf, reducer: str, mean: bool, axes: Sequence[int], out_shape: tuple[int, ...],
             sink: Sink) -> None:  # fmt: skip
    """Windows of different sizes: result `o` of `O` covers `floor(o * I / O)` up to `ceil((o + 1) * I / O)`."""
    rank = len(out_shape)
    acc = wide_type(data.dtype, mean)
    lines, pad, units = open_loops(out_shape)
    steps = strides_of(data.shape)
    start = _start(reducer, acc) if mean else _lowest(data.dtype, acc)
    lines.append(f"{pad}{CTYPES[acc]} acc = {start}; long n = 1;")
    for d in axes:
        size, out = data.shape[d], out_shape[d]
        lines.append(f"{pad}const long a{d} = i{d}*{size}/{out}, z{d} = ((i{d} + 1)*{size} + {out - 1})/{out};")
        lines.append(f"{pad}n *= z{d} - a{d};")
    lines.append(f"{pad}n += !n;")
    for d in axes:
        lines.append(f"{pad}for (long y{d} = a{d}; y{d} < z{d}; y{d}++)")
    at = " + ".join(f"{'y' if d in axes else 'i'}{d}*{steps[d]}" for d in range(rank))
    lines.append(f"{pad}  acc = {combine(reducer, acc).format('acc', f'{data.name}[{at}]')};")
    nest = Nest(out_shape)
    value = nest.variable("acc", acc, rank)
    if mean:
        value = nest.op("({0} / {1})", [value, convert(nest, nest.variable("n", "int64", rank), acc)], acc)
    index = [variable(d) for d in range(rank)]
    sink.store(nest, index, convert(nest, value, data.dtype))
    lines += nest.emit(split=False, indent=pad, fixed=rank)[0]
    kernel.stage(units).lines = lines + close_loops(rank)


ANCHORS: dict[str, Any] = {
    **{f"nn.max_pool{n}d": _pool("max") for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": _pool("avg") for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": _adaptive("avg", False) for n in (1, 2, 3)},
    **{f"nn.adaptive_max_pool{n}d": _adaptive("max", False) for n in (1, 2, 3)},
    "nn.global_avg_pool2d": _adaptive("avg", True),
    "nn.global_max_pool2d": _adaptive("max", True),
}
