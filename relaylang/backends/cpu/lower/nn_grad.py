"""Gradients of pools and of convolutions' weights. Data come as (n, c, h, w): `blocks.plain` brings other layouts there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.lower.geometry import pads_of, spread
from relaylang.backends.cpu.lower.nn_pool import lowest
from relaylang.backends.cpu.lower.sampling import alone, inside
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.dtypes import is_float
from relaylang.kernels.nest import Buf


def _pool(greatest: bool) -> Any:
    """What each element gets of its windows' gradients: all where it is the first of the greatest, else its part."""

    def write(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
        grad, data = bufs
        attrs = call.attrs
        (batch, channels, rows, columns), (h, w) = grad.shape, data.shape[2:]
        (kh, kw), (sh, sw) = spread(attrs.pool_size, 2), spread(attrs.strides, 2)
        dh, dw = spread(getattr(attrs, "dilation", ()) or 1, 2)  # a builder of TVM gives none
        (top, bottom), (left, right) = pads_of(attrs.padding, 2)
        dtype = out.dtype
        b = Builder()

        @contextmanager
        def taps(before: Sequence[int] = (0, 0), after: Sequence[int] = (0, 0)) -> Iterator[tuple[ir.Expr, ir.Expr]]:
            """The taps of a window in order; of a mean, those of rows that count. Each has its offset, and whether it is
            on the data or on some padding."""
            with b.loop("a", kh) as a:
                y = b.let("y", i * sh + a * dh - top)
                row = b.let("row", inside([y + before[0]], [h + before[0] + after[0]]))
                with nullcontext() if greatest else b.when(row), b.loop("b", kw) as column:
                    x = b.let("x", j * sw + column * dw - left)
                    test = inside([x + before[1]], [w + before[1] + after[1]])
                    yield y * w + x, row & test if greatest else test

        def value(at: ir.Expr, test: ir.Expr) -> ir.Expr:
            return ir.select(test, ir.cast(ir.load(source, at), dtype), ir.Const(lowest(data.dtype, dtype), dtype))

        with b.loop("u", batch * channels, kind=ir.PARALLEL) as u:
            source = b.let("from", ir.address(data, u * (h * w)))
            to = b.let("to", ir.address(out, u * (h * w), written=True))
            b.fill(to, 0, h * w)
            with b.loop("i", rows) as i, b.loop("j", columns) as j:
                g = b.let("g", ir.cast(ir.load(grad, (u * rows + i) * columns + j), dtype))
                if greatest:
                    # Gradients on the padding are dropped. The first of the taps counts whatever it is.
                    first = b.let("first", inside((i * sh - top, j * sw - left), (h, w)))
                    at, nowhere = (i * sh - top) * w + j * sw - left, ir.number(-1)
                    best, most = b.var("best", ir.select(first, at, nowhere)), b.var("most", value(at, first))
                    with taps() as (at, test):
                        test = b.let("test", test)
                        v = b.let("v", value(at, test))
                        with b.when((v <= most).eq(0) & most.eq(most)):
                            b.assign(best, ir.select(test, at, nowhere))
                            b.assign(most, v)
                    with b.when(best >= 0):
                        b.store(to, ir.load(to, best) + g, best)
                else:
                    n = b.var("n", 0)
                    with taps(*(((top, left), (bottom, right)) if attrs.count_include_pad else ())) as (_, counted):
                        b.assign(n, n + ir.cast(counted, ir.INDEX))
                    kind = dtype if is_float(dtype) or dtype == "uint64" else "int64"
                    part = b.let("part", ir.cast(ir.cast(g, kind) / ir.cast(ir.maximum(n, 1), kind), dtype))
                    with taps() as (at, test), b.when(test):
                        b.store(to, ir.load(to, at) + part, at)
        kernel.stage(body=b.body)

    return alone(write, sums=True)


def _backward_weight(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The sum of the data under a weight times the gradient."""
    grad, data = bufs
    attrs = call.attrs
    (batch, outputs, rows, columns), (h, w) = grad.shape, data.shape[2:]
    _, depth, kh, kw = out.shape
    (sh, sw), (dh, dw) = spread(attrs.strides, 2), spread(attrs.dilation, 2)
    (top, _), (left, _) = pads_of(attrs.padding, 2)
    each = max(outputs // attrs.groups, 1)
    acc = "float64" if is_float(out.dtype) else "int64"
    b = Builder()
    with b.loop("u", outputs * depth, kind=ir.PARALLEL) as u:
        o = b.let("o", u // max(depth, 1))
        c = b.let("c", o // each * depth + u % max(depth, 1))
        with b.loop("a", kh) as a, b.loop("b", kw) as column:
            total = b.var("sum", ir.Const(0, acc))
            with b.loop("n", batch) as n, b.loop("i", rows) as i, b.loop("j", columns) as j:
                y, x = b.let("y", i * sh + a * dh - top), b.let("x", j * sw + column * dw - left)
                with b.when(inside((y, x), (h, w))):
                    factors = ir.cast(ir.load(grad, n, o, i, j), acc), ir.cast(ir.load(data, n, c, y, x), acc)
                    b.assign(total, total + factors[0] * factors[1])
            b.store(out, total, (u * kh + a) * kw + column)
    kernel.stage(body=b.body)


#: Written by stages of their own: never fused.
ANCHORS: dict[str, Any] = {
    "nn.max_pool2d_grad": _pool(True),
    "nn.avg_pool2d_grad": _pool(False),
    "nn.conv2d_backward_weight": alone(_backward_weight, sums=True),
}
