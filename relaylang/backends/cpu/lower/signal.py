"""Fourier transforms, in float64 as the interpreter's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Sink, Value, unsupported
from relaylang.backends.cpu.lower.common import result_types
from relaylang.backends.cpu.lower.scatter import pass_on, target_of
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.nest import Buf
from relaylang.kernels.sizes import must_equal

#: A part of a stage for a line: the builder, the line's number, and its complex numbers.
Part = Callable[[Builder, ir.Var, ir.Var], None]


def _number(value: int) -> ir.Expr:
    return ir.cast(ir.expr(value), "float64")


def _fft(b: Builder, x: ir.Var, y: ir.Var, roots: Buf, n: int) -> None:
    """The transform of n complex numbers by Stockham's steps, a prime factor each.

    `roots` holds the n-th roots of one, `y` is room for n numbers. Afterwards `x` is the one of both with the result.
    """
    l, left, p = b.var("l", 1), b.var("left", n), b.var("p", 2)
    with b.repeat(left > 1):
        with b.repeat((left % p).ne(0)):
            b.assign(p, ir.select(p * p > left, left, p + 1))
        m, share = b.let("m", left // p), b.let("share", ir.expr(n) // p)
        with b.loop("k", m) as k, b.loop("r", p) as r, b.loop("q", l) as q:
            sums = [b.var(name, ir.Const(0, "float64")) for name in ("re", "im")]
            turn, item = b.var("turn", r * k * l), b.var("item", (q + l * k) * 2)
            with b.loop("t", p):
                root = b.let("root", turn * 2)
                cos, sin = (ir.load(roots, root + part) for part in range(2))
                real, imaginary = (ir.load(x, item + part) for part in range(2))
                # As a difference of products, GCC 12 would round both of them at once.
                b.assign(sums[0], sums[0] + (cos * real + -sin * imaginary))
                b.assign(sums[1], sums[1] + (cos * imaginary + sin * real))
                b.assign(turn, turn + r * share)
                b.assign(turn, turn - ir.select(turn < n, ir.number(0), ir.expr(n)))
                b.assign(item, item + l * m * 2)
            for part, total in enumerate(sums):
                b.store(y, total, (q + l * (p * k + r)) * 2 + part)
        z = b.let("z", x)
        b.assign(x, y)
        b.assign(y, z)
        b.assign(l, l * p)
        b.assign(left, m)


def _transforms(kernel: Kernel, lines: int, size: int, inverse: bool, take: Part, give: Part) -> None:
    """Transforms of lines: `take` fills the complex numbers of a line, `give` reads their transform."""
    roots, room = kernel.buffer((size, 2), "float64"), kernel.buffer((lines, 2, size, 2), "float64")
    b = Builder()
    with b.loop("i", size) as i:
        turn = b.let("turn", ir.cast(i, "float64") * (2 * math.pi if inverse else -2 * math.pi) / _number(max(size, 1)))
        for part, value in enumerate((ir.op("cos", turn), ir.op("sin", turn))):
            b.store(roots, value, i * 2 + part)
    kernel.stage(body=b.body)
    b = Builder()
    with b.loop("u", lines, kind=ir.PARALLEL) as u:
        x, y = (b.var(name, ir.address(room, (u * 2 + n) * (size * 2), written=True)) for n, name in enumerate("xy"))
        take(b, u, x)
        _fft(b, x, y, roots, size)
        give(b, u, x)
    kernel.stage(body=b.body)


def _dft(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Along the last axis."""
    parts = [kernel.in_memory(a) for a in args]
    size, lines = parts[0].shape[-1], math.prod(parts[0].shape[:-1])
    out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]

    def take(b: Builder, u: ir.Var, x: ir.Var) -> None:
        with b.loop("i", size) as i:
            for part, buf in enumerate(parts):
                b.store(x, ir.load(buf, u * size + i), i * 2 + part)

    def give(b: Builder, u: ir.Var, x: ir.Var) -> None:
        with b.loop("i", size) as i:
            for part, buf in enumerate(out):
                value = ir.load(x, i * 2 + part)
                b.store(buf, value / _number(max(size, 1)) if call.attrs.inverse else value, u * size + i)

    _transforms(kernel, lines, size, bool(call.attrs.inverse), take, give)
    return [BufTensor(buf) for buf in out]


def _stft(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """Windows of the signal; a bin beyond a window's length is that of the same place in the next turn."""
    signal, window = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    size, length = attrs.win_length, signal.shape[-1]
    if not must_equal(window.shape[0], size):
        raise unsupported(f"win_length is {size}, but the window has {window.shape[0]} entries", call)
    out = target_of(kernel, sink)
    *_, bins, frames, _ = out.shape

    def take(b: Builder, u: ir.Var, x: ir.Var) -> None:
        first = b.let("first", u // max(frames, 1) * length + u % max(frames, 1) * attrs.hop_length)
        with b.loop("i", size) as i:
            value, factor = (ir.cast(ir.load(*place), "float64") for place in ((signal, first + i), (window, i)))
            b.store(x, value * factor, i * 2)
            b.store(x, 0, i * 2 + 1)

    def give(b: Builder, u: ir.Var, x: ir.Var) -> None:
        with b.loop("k", bins) as k:
            to = b.let("to", ((u // max(frames, 1) * bins + k) * frames + u % max(frames, 1)) * 2)
            for part in range(2):
                value = ir.load(x, k % max(size, 1) * 2 + part)
                b.store(out, value / math.sqrt(attrs.n_fft) if attrs.normalized else value, to + part)

    _transforms(kernel, math.prod(signal.shape[:-1]) * frames, size, False, take, give)
    pass_on(kernel, sink, out)


#: Written by stages of their own: never fused.
RECIPES: dict[str, Any] = {"dft": _dft}
ANCHORS: dict[str, Any] = {"stft": _stft}
