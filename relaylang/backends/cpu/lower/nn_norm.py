"""Activations, biases, softmax and other small parts of networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.kernel import ROW, BufTensor, Kernel, Recipe, Sink, Tensor, Value
from relaylang.backends.cpu.lower.common import axis_of, elements, result_type
from relaylang.backends.cpu.lower.tensor import binary, elementwise
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.index import ZERO, affine, digits, strides_of, variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import has_sizes, surely_less


def _along(axis: int, vector: Tensor) -> Any:
    """An access to a vector that lies along an axis."""
    return lambda nest, index: vector.at(nest, [ZERO if vector.shape[0] == 1 else index[axis]])


@elements
def _bias_add(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, bias = args
    shape, _ = result_type(call)
    bias_at = _along(axis_of(call.attrs.axis, len(shape)), bias)
    return binary("add", nest, data.at(nest, index), bias_at(nest, index))


def _leaky_relu(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    alpha = call.attrs.alpha

    def make(nest: Nest, xs: list[Scalar]) -> Scalar:
        return (xs[0] > 0).select(xs[0], xs[0] * nest.const(alpha, dtype))

    return elementwise(shape, dtype, args, make)


@elements
def _prelu(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, alpha = args
    shape, _ = result_type(call)
    alpha_at = _along(axis_of(call.attrs.axis, len(shape)), alpha)
    return (data.at(nest, index) > 0).select(data.at(nest, index), data.at(nest, index) * alpha_at(nest, index))


def _batch_norm(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Normalisation with fixed statistics whose result is used as a tuple (else SimplifyInference took it apart)."""
    data, gamma, beta, mean, var = args
    attrs = call.attrs
    dtype = data.dtype
    axis = axis_of(attrs.axis, len(data.shape))

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        g, b, m, v = (_along(axis, t)(nest, index) for t in (gamma, beta, mean, var))
        scale = (v + attrs.epsilon).op("rsqrt")
        if attrs.scale:
            scale = scale * g
        shift = -m * scale
        if attrs.center:
            shift = shift + b
        return data.at(nest, index) * scale + shift

    return [Recipe(data.shape, dtype, at), mean, var]


#: The vectors of a row that softmax takes side by side, as a schedule may choose.
_SIDES = (1, 2, 4)


def _rotations(lanes: int) -> list[list[int]]:
    """The lanes of a vector turned by half of them, by a quarter, and so on. These combine all with all."""
    return [[(lane + (lanes >> n)) % lanes for lane in range(lanes)] for n in range(1, lanes.bit_length())]


def _softmax_of_rows(kernel: Kernel, data: Buf, axis: int, sink: Sink, log: bool) -> None:
    """Softmax of float32 along the last axis, or its logarithm. Each row passes through the cache once."""
    shape, lanes = data.shape, kernel.isa.lanes
    length, rows = shape[axis], math.prod(shape[:axis])
    side = kernel.space.pick("vectors", _SIDES, 2)
    bulk, groups = length // lanes * lanes, length // (side * lanes) * (side * lanes)
    outer = [d for d in range(axis) if shape[d] != 1]
    low = ir.Const(float("-inf"), "float32")
    b = Builder()
    with b.loop("o", rows, kind=ir.PARALLEL) as o:
        for d, digit in zip(outer, digits(o, [shape[d] for d in outer])):
            b.let(f"y{d}", digit)
        x = b.let("x", ir.address(data, o * length))
        room = bulk + lanes
        e: ir.Local | ir.Var | None = None
        if not log:
            on_stack = surely_less(length, ROW + 1)
            e = (
                b.local("e", "float32", [room])
                if on_stack
                else b.let("e", ir.address(kernel.buffer((rows, room), "float32"), o * room, written=True))
            )
        peaks = [b.var(name, ir.splat(low, lanes)) for name in ("m", "n", "m2", "n2")[:side]]
        sums = [b.var(name, ir.splat(ir.Const(0.0, "float32"), lanes)) for name in ("s", "t", "s2", "t2")[:side]]
        m, s = peaks[0], sums[0]

        def part(at: ir.Expr) -> ir.Expr:
            return ir.load(x, at, lanes=lanes)

        with b.loop("a", 0, groups, step=side * lanes) as a:
            for number, peak in enumerate(peaks):
                b.assign(peak, ir.op("peak", peak, part(a + number * lanes)))
        with b.loop("a", groups, bulk, step=lanes) as a:
            b.assign(m, ir.op("peak", m, part(a)))
        for peak in peaks[1:]:
            b.assign(m, ir.op("peak", peak, m))
        for turn in _rotations(lanes):
            b.assign(m, ir.op("peak", m, ir.mix(m, m, turn)))
        most = b.var("most", ir.lane(m, 0))
        with b.loop("a", bulk, length) as a:
            b.assign(most, ir.op("max", most, ir.load(x, a)))
        all_most = b.let("all_most", ir.splat(most, lanes))

        def exponentials(value: ir.Expr, total: ir.Var, at: ir.Expr, name: str) -> None:
            power = b.let(name, ir.op("exp", value - all_most))
            b.assign(total, total + power)
            if e is not None:
                b.store(e, power, at)

        with b.loop("a", 0, groups, step=side * lanes) as a:
            for number, name in enumerate(("v", "w", "v2", "w2")[:side]):
                exponentials(part(a + number * lanes), sums[number], a + number * lanes, name)
        with b.loop("a", groups, bulk, step=lanes) as a:
            exponentials(part(a), s, a, "v")
        if bulk != length:
            rest = b.local("rest", "float32", [lanes])
            with b.loop("l", lanes) as lane:
                b.store(rest, ir.select(lane < length - bulk, ir.load(x, lane + bulk), low), lane)
            exponentials(ir.load(rest, 0, lanes=lanes), s, ir.expr(bulk), "v")
        for other in sums[1:]:
            b.assign(s, s + other)
        for turn in _rotations(lanes):
            b.assign(s, s + ir.mix(s, s, turn))
        total = ir.lane(s, 0)
        nest = Nest(shape, {d: (ir.Var(f"y{d}"), ir.Var(f"y{d}") + 1) for d in outer})
        index = [variable(d) for d in range(len(shape))]
        scale = nest.variable("scale", "float32", 0)
        if log:
            b.let("scale", ir.op("log", total))
            value = BufTensor(data).at(nest, index) - nest.variable("most", "float32", 0) - scale
        else:
            b.let("scale", ir.Const(1.0, "float32") / total)
            value = nest.load(Buf("e", (length,), "float32"), variable(axis)) * scale
        sink.store(nest, index, value)
        b.add(*kernel.statements(nest))
    kernel.stage(body=b.body)


#: The neighbouring rows that softmax across an axis takes at once, as a schedule may choose; and the most values of a unit
#: of work that lie on the stack.
_WIDTHS, _WIDTH = (32, 64, 128, 256, 512, 1024, 2048), 256
_STACK = 16_384


def _runs_across(sink: Sink, axis: int) -> bool:
    """Whether softmax along an axis has rows side by side, which are neighbours for all that is read and written."""
    shape = sink.anchor.shape
    known = not has_sizes(shape) and 0 not in shape
    return known and math.prod(shape[axis + 1 :]) > 1 and shape[axis] <= _STACK // 16 and sink.mergeable(axis + 1, len(shape) - 1)


def _width(kernel: Kernel, length: int, inner: int) -> int:
    """The neighbouring rows of `inner` ones, each of some length, that a unit of work takes."""
    widths = [n for n in _WIDTHS if n * length <= _STACK and n < inner] or [min(inner, max(1, _STACK // length))]
    return kernel.space.pick("width", widths, max(n for n in widths if n <= max(_WIDTH, widths[0])))


def _softmax_across(kernel: Kernel, data: Buf, axis: int, sink: Sink, log: bool) -> None:
    """Softmax of float32 along an axis in front of others, or its logarithm. A unit of work has neighbouring rows."""
    shape, rank = data.shape, len(data.shape)
    outer, length, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    width = _width(kernel, length, inner)
    parts = -(-inner // width)
    low, zero = ir.Const(float("-inf"), "float32"), ir.Const(0.0, "float32")
    leading = [d for d in range(axis) if shape[d] != 1]
    b = Builder()
    with b.loop("u", outer * parts, kind=ir.PARALLEL) as u:
        o, p = (b.let(name, digit) for name, digit in zip("op", digits(u, [outer, parts])))
        for d, digit in zip(leading, digits(o, [shape[d] for d in leading])):
            b.let(f"y{d}", digit)
        first = b.let("first", p * width)
        count = b.let("count", ir.minimum(inner - first, width)) if inner % width else ir.number(width)
        x = b.let("x", ir.address(data, o * (length * inner) + first))
        e = None if log else b.local("e", "float32", [length * width])
        m, s = b.local("m", "float32", [width]), b.local("s", "float32", [width])
        with b.loop("i", count) as i:
            b.store(m, low, i)
            b.store(s, zero, i)
        with b.loop("a", length) as a, b.loop("i", count, kind=ir.VECTOR) as i:
            b.store(m, ir.op("max", ir.load(m, i), ir.load(x, a * inner + i)), i)
        with b.loop("a", length) as a, b.loop("i", count, kind=ir.VECTOR) as i:
            power = b.let("v", ir.op("exp", ir.load(x, a * inner + i) - ir.load(m, i)))
            if e is not None:
                b.store(e, power, a * width + i)
            b.store(s, ir.load(s, i) + power, i)
        with b.loop("i", count, kind=ir.VECTOR) as i:
            total = ir.load(s, i)
            b.store(s, ir.op("log", total) if log else ir.Const(1.0, "float32") / total, i)
        places = {}
        for name, local in (("peaks", m), ("factors", s), ("powers", e)):
            if local is not None:
                places[name] = Buf(name, shape, "float32")
                b.let(name, ir.address(local, first * -1))
        nest = Nest(shape, {d: (ir.Var(f"y{d}"), ir.Var(f"y{d}") + 1) for d in leading})
        index = [variable(d) for d in range(rank)]
        steps = dict(zip(range(axis + 1, rank), strides_of(shape[axis + 1 :])))
        row = affine({d: step for d, step in steps.items() if shape[d] != 1})
        if log:
            value = BufTensor(data).at(nest, index) - nest.load(places["peaks"], row) - nest.load(places["factors"], row)
        else:
            value = nest.load(places["powers"], row + variable(axis) * width) * nest.load(places["factors"], row)
        sink.store(nest, index, value)
        b.add(*kernel.statements(nest, flat=(axis + 1, rank - 1, first, first + count)))
    kernel.stage(body=b.body)


#: Partial results of a row that run side by side.
_SIDE = 16


def _across(b: Builder, values: ir.Local, name: str) -> ir.Expr:
    """All partial results as one, by halves."""
    half = _SIDE // 2
    while half:
        with b.loop("l", half) as lane:
            b.store(values, ir.op(name, ir.load(values, lane), ir.load(values, lane + half)), lane)
        half //= 2
    return ir.load(values, 0)


def _softmax(log: bool) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = kernel.in_memory(args[0])
        shape, dtype = data.shape, data.dtype
        axis = axis_of(call.attrs.axis, len(shape))
        if kernel.isa.lanes > 1 and dtype == "float32" and math.prod(shape[axis + 1 :]) == 1 and 0 not in shape:
            _softmax_of_rows(kernel, data, axis, sink, log)
            return
        if kernel.isa.lanes > 1 and dtype == "float32" and _runs_across(sink, axis):
            _softmax_across(kernel, data, axis, sink, log)
            return
        outer, length, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        acc = "float64" if dtype == "float64" else "float32"
        powers, factors, peaks = (kernel.buffer(s, acc) for s in ((outer, length, inner), (outer, inner), (outer, inner)))
        low, zero = ir.Const(float("-inf"), acc), ir.Const(0.0, acc)
        b = Builder()
        with b.loop("o", outer, kind=ir.PARALLEL) as o:
            x = b.let("x", ir.address(data, o * (length * inner)))
            e = b.let("e", ir.address(powers, o * (length * inner), written=True))
            m = b.let("m", ir.address(peaks, o * inner, written=True))
            s = b.let("s", ir.address(factors, o * inner, written=True))

            def value(at: ir.Expr) -> ir.Expr:
                return ir.cast(ir.load(x, at), acc)

            def scale(total: ir.Expr) -> ir.Expr:
                return ir.op("log", total) if log else ir.Const(1.0, acc) / total

            if inner == 1:
                bulk = length // _SIDE * _SIDE
                tops, sums = (b.local(name, acc, [_SIDE]) for name in ("tops", "sums"))
                with b.loop("l", _SIDE) as lane:
                    b.store(tops, low, lane)
                    b.store(sums, zero, lane)
                with b.loop("a", 0, bulk, step=_SIDE) as a, b.loop("l", _SIDE) as lane:
                    b.store(tops, ir.op("max", ir.load(tops, lane), value(a + lane)), lane)
                with b.loop("a", bulk, length) as a:
                    b.store(tops, ir.op("max", ir.load(tops, 0), value(a)), 0)
                most = b.let("most", _across(b, tops, "max"))
                with b.loop("a", length, kind=ir.VECTOR) as a:
                    b.store(e, ir.op("exp", value(a) - most), a)
                with b.loop("a", 0, bulk, step=_SIDE) as a, b.loop("l", _SIDE) as lane:
                    b.store(sums, ir.load(sums, lane) + ir.load(e, a + lane), lane)
                with b.loop("a", bulk, length) as a:
                    b.store(sums, ir.load(sums, 0) + ir.load(e, a), 0)
                total = _across(b, sums, "add")
                b.store(m, most, 0)
                b.store(s, scale(total), 0)
            else:
                with b.loop("i", inner) as i:
                    b.store(m, low, i)
                    b.store(s, zero, i)
                with b.loop("a", length) as a, b.loop("i", inner) as i:
                    b.store(m, ir.op("max", ir.load(m, i), value(a * inner + i)), i)
                with b.loop("a", length) as a, b.loop("i", inner, kind=ir.VECTOR) as i:
                    power = b.let("v", ir.op("exp", value(a * inner + i) - ir.load(m, i)))
                    b.store(e, power, a * inner + i)
                    b.store(s, ir.load(s, i) + power, i)
                with b.loop("i", inner) as i:
                    b.store(s, scale(ir.load(s, i)), i)
        kernel.stage(body=b.body)
        nest = Nest(shape)
        index = [variable(d) for d in range(len(shape))]
        at = nest.offset([*index[:axis], ZERO, *index[axis + 1 :]], [*shape[:axis], 1, *shape[axis + 1 :]])
        if log:
            result = BufTensor(data).at(nest, index).cast(acc) - nest.load(peaks, at) - nest.load(factors, at)
        else:
            result = nest.load(powers, nest.offset(index, shape)) * nest.load(factors, at)
        sink.store(nest, index, result.cast(dtype))
        kernel.loops(nest)

    return lower


def _lrn(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """x / (bias + alpha / size * sum of squares over `size` neighbours along an axis) ** beta."""
    data = kernel.strided(args[0])
    attrs = call.attrs
    shape = data.shape
    axis = axis_of(attrs.axis, len(shape))
    half = attrs.size // 2
    nest = Nest(shape)
    index: list[Index] = [variable(d) for d in range(len(shape))]
    total = nest.const(0, data.dtype)
    source = BufTensor(data)
    for shift in range(-half, attrs.size - half):
        test, inner = nest.inside(nest.add(index[axis], shift), 0, shape[axis])
        x = source.at(nest, [*index[:axis], inner, *index[axis + 1 :]])
        square = x * x
        if test is not None:
            square = test.select(square, 0)
        total = total + square
    numbers = [nest.const(v, data.dtype) for v in (attrs.bias, attrs.alpha / attrs.size, attrs.beta)]
    value = source.at(nest, index) / (numbers[0] + numbers[1] * total).op("pow", numbers[2])
    sink.store(nest, [variable(d) for d in range(len(shape))], value)
    kernel.loops(nest)


def _nll_loss(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """Minus each target's prediction times its class's weight; the mean is over the weights."""
    predictions, targets, weights = (kernel.in_memory(a) for a in args)
    reduction = call.attrs.reduction
    dtype = sink.anchor.dtype
    batch, classes = predictions.shape[:2]
    inner = math.prod(predictions.shape[2:])
    each = kernel.buffer(targets.shape if reduction == "none" else (1,), dtype)
    b = Builder()
    zero = ir.Const(0, dtype)
    loss, weight = b.var("loss", zero), b.var("weight", zero)
    with b.loop("i", batch * inner) as i:
        k = b.let("k", ir.cast(ir.load(targets, i), ir.INDEX))
        used = b.let("used", k.ne(call.attrs.ignore_index) & (k >= 0) & (k < classes))
        w = b.let("w", ir.select(used, ir.cast(ir.load(weights, k), dtype), zero))
        n, rest = digits(i, [batch, inner])
        at = (n * classes + k) * inner + rest
        v = b.let("v", ir.select(used, -ir.cast(ir.load(predictions, at), dtype) * w, zero))
        if reduction == "none":
            b.store(each, v, i)
        else:
            b.assign(loss, loss + v)
            b.assign(weight, weight + w)
    if reduction != "none":
        b.store(each, loss / weight if reduction == "mean" else loss, 0)
    kernel.stage(body=b.body)
    nest = Nest(sink.anchor.shape)
    index = [variable(d) for d in range(len(sink.anchor.shape))]
    sink.store(nest, index, nest.load(each, nest.offset(index, sink.anchor.shape)))
    kernel.loops(nest)


RECIPES: dict[str, Any] = {
    "nn.bias_add": _bias_add,
    "nn.leaky_relu": _leaky_relu,
    "nn.prelu": _prelu,
    "nn.batch_norm": _batch_norm,
    "nn.dropout": lambda kernel, call, args: [
        args[0],
        Recipe(args[0].shape, args[0].dtype, lambda nest, _: nest.const(1, args[0].dtype)),
    ],
}
ANCHORS: dict[str, Any] = {
    "nn.softmax": _softmax(log=False),
    "nn.fast_softmax": _softmax(log=False),
    "nn.log_softmax": _softmax(log=True),
    "nn.lrn": _lrn,
    "nn.nll_loss": _nll_loss,
}
