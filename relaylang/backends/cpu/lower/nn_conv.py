"""Convolutions over one, two or three spatial axes.

A convolution is a contraction (`contraction`). Its rows are results, its columns are output channels, and it sums over
input channels and taps. The data are read in place; padding, or a type other than the accumulator's, takes a padded copy
first. Depthwise convolutions have kernels of their own (`nn_depthwise`).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from relaylang.backends.cpu.arith import BFLOATS
from relaylang.backends.cpu.kernel import Anchored, BufTensor, Kernel, Recipe, Sink, Tensor
from relaylang.backends.cpu.lower.contraction import lower_contraction
from relaylang.backends.cpu.lower.factors import Factors, Zero, factors_of, less, plain_factors, takes_off
from relaylang.backends.cpu.lower.geometry import Conv, read_conv, weight_strides
from relaylang.backends.cpu.lower.nn_dense import accumulator, changed, factors, finish, through_buffer
from relaylang.backends.cpu.lower.nn_depthwise import lower_depthwise
from relaylang.backends.cpu.lower.reduce import reduce_over
from relaylang.backends.cpu.lower.sums import Contraction, Rows, Sum
from relaylang.backends.cpu.lower.winograd import fits, lower_winograd, numbers_of, tile_of
from relaylang.ir import Call, TensorType
from relaylang.kernels import ir, ops
from relaylang.kernels.build import Builder
from relaylang.kernels.dtypes import SIZES, is_float
from relaylang.kernels.index import digits
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import has_sizes
from relaylang.rules.decompositions.common import shape_of


def lower_conv(
    kernel: Kernel, call: Call, data: Tensor, weight: Tensor, sink: Sink, dtype: str, zero: Zero = 0, weight_zero: Zero = 0
) -> None:
    """Emit a convolution that accumulates in `dtype`, of data and weights less their zero points."""
    conv = read_conv(call, data.shape, weight.shape, sink.anchor.shape)
    if conv.inputs == 1 and conv.groups > 1:
        lower_depthwise(kernel, call, conv, kernel.in_memory(data), weight, sink, dtype, zero, weight_zero)
        return
    if has_sizes((conv.inputs, conv.outputs, *conv.kernel)):
        data, weight = (changed(x, plain_factors(dtype, z)) for x, z in ((data, zero), (weight, weight_zero)))
        _of_sizes(kernel, call, conv, data, weight, sink)
        return
    factors = _factors(kernel, conv, data.dtype, weight.dtype, dtype, zero, weight_zero)
    numbers = numbers_of(conv, data.dtype, weight.dtype, factors)
    m = tile_of(kernel, conv, numbers.exact) if numbers is not None else 0
    if m and numbers is not None:
        row, inner, spatial = weight_strides(call.attrs.kernel_layout, weight.shape, conv.inputs)
        held = kernel.strided(data, lambda buf: buf.strides[conv.channel] == 1)
        lower_winograd(kernel, conv, held, weight, (row, inner, spatial["H"], spatial["W"]), sink, m, numbers)
        return
    apart = factors.arith.steps > 1 and (conv.inputs % factors.arith.steps or not conv.last)
    # Blocks know how far the channels are apart.
    apart = apart or (not conv.last and has_sizes(conv.size))
    copy = any(conv.before) or any(conv.behind) or factors.converts(data.dtype) or apart
    axes, last = conv.axes, conv.channel
    if copy:
        held, axes, last = _padded(kernel, conv, kernel.strided(data), factors), list(range(1, len(axes) + 1)), len(axes) + 1
    else:
        held = kernel.strided(data, _neighbours(factors, conv))
    letters = [call.attrs.data_layout[d] for d in conv.axes]
    row, inner, spatial = weight_strides(call.attrs.kernel_layout, weight.shape, conv.inputs)
    pixel, channel = [held.strides[d] for d in axes], held.strides[last]
    rows = [Rows(conv.batch, held.strides[0], 0, 0)]
    rows += [Rows(o, s * p, d, d) for o, s, p, d in zip(conv.out, conv.stride, pixel, conv.axes)]
    contraction = Contraction(
        rows=joined(rows, sink),
        columns=conv.outputs,
        column=conv.channel,
        column_step=row,
        sums=factors.sums(
            [
                *(Sum(k, d * p, spatial[letter]) for k, d, p, letter in zip(conv.kernel, conv.dilation, pixel, letters)),
                Sum(conv.inputs, channel, inner),
            ]
        ),
        groups=conv.groups,
        group_data=conv.inputs * channel,
        group_weight=conv.outputs * row,
    )
    lower_contraction(kernel, contraction, held, factors.weights(weight), sink, factors.arith)


def _of_sizes(kernel: Kernel, call: Call, conv: Conv, data: Tensor, weight: Tensor, sink: Sink) -> None:
    """A convolution whose channels or taps are sizes, as a sum of products. The innermost loop runs over neighbours."""
    layout = call.attrs.kernel_layout
    channel, groups = conv.channel, conv.groups
    bordered = kernel.in_memory(_bordered(conv, data))
    held = BufTensor(_parted(bordered, channel, groups))
    weights = BufTensor(_parted(kernel.in_memory(weight), layout.index("O"), groups))
    letters = layout.replace("O", "GO")
    total = _parted(sink.out, channel, groups) if sink.direct is not None else None
    inner = sink if total is not None else through_buffer(kernel, sink)
    total = _parted(inner.out, channel, groups) if total is None else total
    rank = len(total.shape)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        place, (i, *taps) = [*index[: rank - 1], index[-1]], index[rank - 1 : -1]
        names = {"G": place[channel], "O": place[channel + 1], "I": i}
        place[channel + 1] = i
        for n, d in enumerate(conv.axes):
            own = d + (d > channel)
            place[own] = place[own] * conv.stride[n] + taps[n] * conv.dilation[n]
            names[call.attrs.data_layout[d]] = taps[n]
        values = [held.at(nest, place), weights.at(nest, [names[c] for c in letters])]
        return values[0] * values[1]

    shape = (*total.shape[:-1], conv.inputs, *conv.kernel, total.shape[-1])
    axes = list(range(rank - 1, len(shape) - 1))
    anchor = Anchored(total.shape, data.dtype)
    reduce_over(kernel, Recipe(shape, data.dtype, at), "sum", axes, False, Sink(kernel, anchor, anchor, total), None)
    finish(kernel, sink, inner)


def _parted(buf: Buf, axis: int, groups: int) -> Buf:
    """A contiguous buffer with an axis of groups in front of one of channels."""
    shape = (*buf.shape[:axis], groups, buf.shape[axis] // groups, *buf.shape[axis + 1 :])
    return Buf(buf.name, shape, buf.dtype)


def _bordered(conv: Conv, data: Tensor) -> Tensor:
    """The data with their border of zeros."""
    shape = list(data.shape)
    for d, extent in zip(conv.axes, conv.padded):
        shape[d] = extent

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        place, tests = list(index), []
        for d, before, extent in zip(conv.axes, conv.before, conv.size):
            test, place[d] = nest.inside(nest.add(index[d], -before), 0, extent)
            tests += [] if test is None else [test]
        value = data.at(nest, place)
        for test in tests:
            value = test.select(value, 0)
        return value

    return Recipe(shape, data.dtype, at) if any(conv.before) or any(conv.behind) else data


def halo(call: Call) -> list[tuple[int, int]] | None:
    """The border that a convolution of floats wants around its data. It pads other data itself, as it converts them.

    Convolutions by tiles need none, and an odd number of bfloat16 channels wants another one."""
    types = [x.checked_type for x in (call.args[0], call.args[1], call)]
    shapes = [shape_of(x) for x in (call.args[0], call.args[1], call)]
    dtypes = [t.dtype if isinstance(t, TensorType) else "" for t in types]
    pairs = dtypes[:2] == [BFLOATS.data] * 2
    if None in shapes or (not pairs and not set(dtypes) <= {"float32", "float64"}):
        return None
    conv = read_conv(call, *shapes)  # type: ignore[arg-type]
    if (conv.inputs == 1 and conv.groups > 1) or not (any(conv.before) or any(conv.behind)):
        return None
    if conv.inputs % 2 if pairs else fits(conv):
        return None
    widths = [(0, 0)] * len(shapes[0])  # type: ignore[arg-type]
    for axis, before, behind in zip(conv.axes, conv.before, conv.behind):
        widths[axis] = (before, behind)
    return widths


def has_pairs(call: Call) -> bool:
    """Whether neighbours of a convolution's sum make pairs. Data of one group and odd channels get a zero more.

    A single channel with a zero is no pair: the sum runs along the taps of a row then, and those are not neighbours.
    """
    shape, layout, groups = shape_of(call.args[0]), call.attrs.data_layout, call.attrs.groups
    if shape is None or len(layout) != len(shape) or "C" not in layout:
        return False
    channels = shape[layout.index("C")] // groups
    return channels % 2 == 0 or (groups == 1 and channels > 1)


def _factors(kernel: Kernel, conv: Conv, data: str, weight: str, dtype: str, zero: Zero, weight_zero: Zero) -> Factors:
    """How a convolution reads its operands.

    Several steps at once take neighbours in data with channels last: channels, or taps of a row. Others are taken one by one.
    """
    factors = factors_of(kernel.isa, data, weight, dtype, zero, weight_zero)
    last = max((n for n, taps in enumerate(conv.kernel) if taps > 1), default=None)
    in_a_row = conv.inputs > 1 or last is None or (last == len(conv.kernel) - 1 and conv.dilation[last] == 1)
    if in_a_row or factors.arith.steps == 1:
        return factors
    return plain_factors(dtype, zero, weight_zero)


def _neighbours(factors: Factors, conv: Conv) -> Callable[[Buf], bool]:
    """Tells whether a product can read a tensor as it lies: several steps at once are neighbouring channels."""
    return lambda buf: factors.arith.steps == 1 or buf.strides[conv.channel] == 1


def joined(rows: Sequence[Rows], sink: Sink) -> list[Rows]:
    """Axes of rows. The innermost takes in those before it, as far as the data and the result run through them as one.

    Other axes stay apart: a block's results have a place on each.
    """
    out = [rows[-1]]
    contiguous = True
    for axis in reversed(rows[:-1]):
        inner = out[0]
        if axis.extent == 1 or inner.extent == 1:
            longer = inner if axis.extent == 1 else axis
            if longer.first == longer.last or sink.mergeable(longer.first, longer.last):
                out[0] = longer
            else:
                out.insert(0, axis)
        elif contiguous and axis.step == inner.step * inner.extent and sink.mergeable(axis.first, inner.last):
            out[0] = Rows(axis.extent * inner.extent, inner.step, axis.first, inner.last)
        else:
            contiguous = False
            out.insert(0, axis)
    return out


def _padded(kernel: Kernel, conv: Conv, data: Buf, factors: Factors) -> Buf:
    """A copy of the data, channels last, with its border, as the product reads it."""
    inner = conv.inputs * conv.groups
    padded = conv.padded
    arith = factors.arith
    # The number behind a sum's last float is multiplied by zero. It might be a nan, so it is zero, too.
    wide = inner + inner % arith.steps if is_float(arith.total) else inner
    shape = [conv.batch, *padded, wide]
    # Several steps at once may read beyond the last value; the weights there are zero.
    memory = kernel.buffer((math.prod(shape) + (64 if arith.steps > 1 else 0),), arith.data)
    target = Buf(memory.name, shape, arith.data)
    if not factors.converts(data.dtype):
        kernel.copies.append((data.name, target.size * SIZES[arith.data]))
    line, before, behind = padded[-1] * wide, conv.before[-1] * wide, conv.behind[-1] * wide
    b = Builder()

    def filled(first: int, count: int) -> None:
        with b.loop("i", count, kind=ir.VECTOR) as i:
            b.store(q, factors.fill, i + first)

    def value(at: ir.Expr) -> ir.Expr:
        element: ir.Expr = ir.load(p, at)
        if takes_off(factors.less):
            element = less(ir.cast(element, "int32" if data.dtype in ops.SHORT else arith.total), factors.less)
        return element

    with b.loop("u", conv.batch * math.prod(padded[:-1]), kind=ir.PARALLEL) as u:
        n, *ys = (b.let(f"y{d}", digit) for d, digit in enumerate(digits(u, [conv.batch, *padded[:-1]])))
        q = b.let("q", ir.address(target, u * line, written=True))
        outside = [
            (y < before) | (y >= before + extent)
            for y, before, extent, padded_extent in zip(ys, conv.before, conv.size, padded)
            if extent < padded_extent
        ]
        if outside:
            with b.when(functools.reduce(operator.or_, outside)):
                filled(0, line)
        with b.otherwise() if outside else nullcontext():
            steps = data.strides
            at = sum(((y - first) * steps[d] for y, first, d in zip(ys, conv.before, conv.axes)), n * steps[0])
            pixel, channel = steps[conv.axes[-1]], steps[conv.channel]
            p = b.let("p", ir.address(data, at))
            if before:
                filled(0, before)
            if behind:
                filled(before + conv.size[-1] * wide, behind)
            if channel != 1 or pixel != wide:
                with b.loop("w", conv.size[-1]) as w:
                    with b.loop("c", inner) as c:
                        b.store(q, value(w * pixel + c * channel), w * wide + c + before)
                    if wide > inner:
                        b.store(q, factors.fill, w * wide + inner + before)
            else:
                with b.loop("i", conv.size[-1] * wide, kind=ir.VECTOR) as i:
                    b.store(q, value(i), i + before)
    kernel.stage(body=b.body)
    return target


def _conv(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    out = sink.anchor.dtype
    data, weight = factors(kernel, args, out)
    dtype = accumulator(out)
    inner = sink if dtype == sink.anchor.dtype else through_buffer(kernel, sink, dtype)
    lower_conv(kernel, call, data, weight, inner, dtype)
    finish(kernel, sink, inner)


HALOS: dict[str, Any] = {f"nn.conv{n}d": halo for n in (1, 2, 3)}
ANCHORS: dict[str, Any] = {"nn.conv1d": _conv, "nn.conv2d": _conv, "nn.conv3d": _conv}
