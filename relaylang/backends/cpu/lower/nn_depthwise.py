"""Depthwise convolutions: each channel of the result is made of one channel of the data.

With channels last, tiles are held in registers (`tiles`). With channels first, one plane at a time is padded and filtered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from relaylang.backends.cpu.arith import keeps_narrow
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import ROW, BufTensor, Kernel, Recipe, Sink
from relaylang.backends.cpu.lower.factors import Zero, less, short_of, takes_off
from relaylang.backends.cpu.lower.geometry import Conv, weight_strides
from relaylang.backends.cpu.lower.tiles import lower_tiles
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.index import digits, strides_of
from relaylang.kernels.nest import Bounds, Buf, Index, Nest, Scalar
from relaylang.kernels.ops import SHORT
from relaylang.kernels.render import WIDEN
from relaylang.kernels.sizes import surely_less

#: A larger plane is padded in the arena, a smaller one on the stack (elements).
_PLANE = 16_384


def lower_depthwise(
    kernel: Kernel, call: Call, conv: Conv, data: Buf, weight: Any, sink: Sink, dtype: str, zero: Zero = 0, weight_zero: Zero = 0
) -> None:
    """Emit a convolution of one input channel a group that accumulates in `dtype`.

    `zero` and `weight_zero` are subtracted from each input and each weight (quantised data).
    """
    make = _pixels if conv.last else _planes
    make(kernel, call, conv, data, weight, sink, dtype, zero, weight_zero)


# Channels last


def _pack(kernel: Kernel, call: Call, conv: Conv, weight: Any, dtype: str, weight_zero: Zero, pairs: bool) -> Buf:
    """Weights as [tap][channel]; as [tap][2][channel] in pairs: with the next line's weight as upper half, and alone."""
    step, _, spatial = weight_strides(call.attrs.kernel_layout, weight.shape, 1)
    letters = [call.attrs.data_layout[d] for d in conv.axes]
    channels = conv.groups * conv.outputs
    narrow = keeps_narrow(kernel.isa) and dtype in WIDEN
    held = (short_of(weight.dtype, weight_zero) if narrow else None) or dtype

    def body(source: Buf, target: Buf) -> ir.Body:
        steps = [spatial[letter] for letter in letters]
        taps, c = [ir.Var(f"k{n}") for n in range(len(steps))], ir.Var("c")
        at = sum((k * s for k, s in zip(taps, steps)), c * step)
        tap = ir.offset(conv.kernel, taps)

        def value(at: ir.Expr) -> ir.Expr:
            element: ir.Expr = ir.load(source, at)
            if takes_off(weight_zero):
                element = less(ir.cast(element, dtype), weight_zero)
            return ir.cast(element, held)

        if pairs:
            low = ir.Cast(value(at), "uint16")
            more = taps[-2] < conv.kernel[-2] - 1
            high = ir.select(more, value(at + steps[-2]), ir.Const(0, dtype))
            both = ir.Cast(low, dtype) | high << 16
            to = tap * (2 * channels) + c
            stores = [ir.store(target, both, to), ir.store(target, low, to + channels)]
        else:
            stores = [ir.store(target, value(at), tap * channels + c)]
        loops: ir.Body = [ir.loop("c", 0, channels, stores)]
        for k, extent in zip(reversed(taps), reversed(conv.kernel)):
            loops = [ir.loop(k.name, 0, extent, loops)]
        return loops

    return kernel.packed(weight, conv.taps * channels * (2 if pairs else 1), held, body)


def _as_pairs(form_isa: Isa, conv: Conv, data: Buf, weight: Any, dtype: str, zeros: Sequence[Zero]) -> bool:
    """Whether two rows go through one instruction that multiplies 16-bit numbers and adds neighbours."""
    bytes_ = ("int8", "uint8")
    small = all(isinstance(z, int) and -128 <= z <= 255 for z in zeros)
    there = form_isa.name in ("avx2", "avx512") and dtype == "int32"
    return there and small and data.dtype in bytes_ and weight.dtype in bytes_ and len(conv.kernel) > 1 and conv.kernel[-2] > 1


def _readable(kernel: Kernel, conv: Conv, data: Buf, dtype: str) -> Buf:
    """The data in a type that tiles read, each channel as often as it makes results."""
    wide = WIDEN if keeps_narrow(kernel.isa) else ("int32",)
    own = data.dtype if dtype in wide and data.dtype in SHORT else dtype
    if conv.outputs == 1 and data.dtype == own:
        return data
    source = BufTensor(data)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        channel = index[-1] if conv.outputs == 1 else nest.unravel(index[-1], [conv.groups, conv.outputs])[0]
        return source.at(nest, [*index[:-1], channel]).cast(own)

    return kernel.in_memory(Recipe([*data.shape[:-1], conv.groups * conv.outputs], own, at))


def _pixels(
    kernel: Kernel, call: Call, conv: Conv, data: Buf, weight: Any, sink: Sink, dtype: str, zero: Zero, weight_zero: Zero
) -> None:
    """Channels last: by tiles."""
    data = _readable(kernel, conv, data, dtype)
    pairs = _as_pairs(kernel.isa, conv, data, weight, dtype, (zero, weight_zero))
    lower_tiles(
        kernel, conv, data, sink, dtype, "dot", pairs, zero, lambda pairs: _pack(kernel, call, conv, weight, dtype, weight_zero, pairs)
    )


# Channels first


def _plane(kernel: Kernel, b: Builder, conv: Conv, data: Buf, dtype: str, zero: Zero, u: ir.Expr) -> ir.Expr:
    """One channel's data with their border, in a type of their own: where they lie, or a copy."""
    size, padded = conv.size, conv.padded
    source, plane = math.prod(size), math.prod(padded)
    n, c = digits(u, [conv.batch, conv.groups * conv.outputs])
    p = b.let("p", ir.address(data, (n * conv.groups + c // conv.outputs if conv.outputs > 1 else u) * source))
    if padded == size and data.dtype == dtype and not takes_off(zero):
        return p
    if surely_less(plane, _PLANE + 1):
        x: ir.Local | ir.Var = b.local("x", dtype, [plane])
    else:
        scratch = kernel.buffer((conv.batch * conv.groups * conv.outputs, plane), dtype)
        x = b.let("x", ir.address(scratch, u * plane, written=True))
    if padded != size:
        with b.loop("i", plane, kind=ir.VECTOR) as i:
            b.store(x, 0, i)
    with ExitStack() as nest:
        index = [nest.enter_context(b.loop(f"y{d}", extent)) for d, extent in enumerate(size)]
        to = [i + first for i, first in zip(index, conv.before)]
        b.store(x, less(ir.cast(ir.load(p, ir.offset(size, index)), dtype), zero), ir.offset(padded, to))
    return ir.address(x, 0)


def _through_borders(conv: Conv) -> bool:
    """Whether lines are computed through the border between them: at stride 1, one long loop instead of many short ones."""
    out = conv.out
    short = conv.stride[-1] == 1 and surely_less(out[-1], 32) and len(out) > 1 and conv.stride[-2] == 1
    return short and surely_less((out[-2] - 1) * conv.padded[-1] + out[-1], ROW + 1)


def _planes(
    kernel: Kernel, call: Call, conv: Conv, data: Buf, weight: Any, sink: Sink, dtype: str, zero: Zero, weight_zero: Zero
) -> None:
    """Channels first: planes are padded one by one, in the cache."""
    shape, padded, out = sink.anchor.shape, conv.padded, conv.out
    row, _, spatial = weight_strides(call.attrs.kernel_layout, weight.shape, 1)
    weights = kernel.in_memory(weight)
    steps = strides_of(padded)
    through = _through_borders(conv)
    room = (out[-2] - 1) * padded[-1] + out[-1] if through else out[-1]
    wide = not surely_less(room, ROW + 1)
    outer = out[:-2] if through else out[:-1]
    b = Builder()
    with b.loop("u", conv.batch * conv.groups * conv.outputs, kind=ir.PARALLEL) as u, ExitStack() as nest:
        n, c = (b.let(name, digit) for name, digit in zip("nc", digits(u, [conv.batch, conv.groups * conv.outputs])))
        x = b.let("plane", _plane(kernel, b, conv, data, dtype, zero, u))
        taps: list[tuple[ir.Expr, int]] = []
        by_axis = [spatial[call.attrs.data_layout[d]] for d in conv.axes]
        for number, place in enumerate(np.ndindex(*conv.kernel)):
            own = sum((k * step for k, step in zip(place, by_axis)), c * row)
            tap = b.let(f"w{number}", less(ir.cast(ir.load(weights, own), dtype), weight_zero))
            taps.append((tap, sum(k * d * s for k, d, s in zip(place, conv.dilation, steps))))
        r = b.local("r", dtype, [ROW if wide else room])
        lines = [nest.enter_context(b.loop(f"y{d}", extent)) for d, extent in enumerate(outer)]
        first: ir.Expr = ir.number(0)
        count: ir.Expr = ir.expr(room)
        if wide:
            first = nest.enter_context(b.loop("e0", 0, room, step=ROW))
            count = b.let("count", ir.minimum(room - first, ROW))
        begin = sum((y * (s * step) for y, s, step in zip(lines, conv.stride, steps)), first * conv.stride[-1])
        q = b.let("q", ir.address(x, begin))
        with b.loop("i", 0, count, kind=ir.VECTOR) as i:
            products = [(tap, ir.load(q, i * conv.stride[-1] + shift)) for tap, shift in taps]
            total = b.var("a", products[0][0] * products[0][1])
            for factor, value in products[1:]:
                b.assign(total, ir.fma(factor, value, total) if dtype == "float32" else total + factor * value)
            b.store(r, total, i)
        bounds: Bounds = {0: (n, n + 1), conv.channel: (c, c + 1)}
        strides = [0] * len(shape)
        strides[conv.axes[-1]] = 1
        for d, y in enumerate(lines):
            bounds[conv.axes[d]] = (y, y + 1)
        if through:
            strides[conv.axes[-2]] = padded[-1]
        if wide:
            bounds[conv.axes[-1]] = (first, first + count)
        b.let("v", ir.address(r, first * -1))
        b.add(*sink.block("v", strides, bounds))
    kernel.stage(body=b.body)
