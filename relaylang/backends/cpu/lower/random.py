"""Random numbers from explicit keys: Threefry-4x64, as in `interpreter.kernels.random`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Value
from relaylang.backends.cpu.lower.common import result_types
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.nest import Buf

#: The number of blocks of four words in a unit of work.
_BLOCKS = 256
#: By how many bits each round of the cipher turns the second word of both pairs.
_TURNS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
#: What the key's words are combined with to make one more word.
_PARITY = 0x1BD11BDAA9FC1A22


def _word(value: int) -> ir.Const:
    return ir.Const(value, "uint64")


def _cipher() -> ir.Function:
    """A block of the cipher Threefry-4x64 with 20 rounds, under a key of four words.

    Each word of the counter has the block's number added to it. The rounds are those of TVM, which reads the sum for the second word.
    """
    words, block = "const uint64*", ir.Param("block", "uint64")
    key, counter, to = ir.Param("key", words), ir.Param("counter", words), ir.Param("to", "uint64*")
    b = Builder()
    k = [b.let(f"k{n}", ir.load(key, n)) for n in range(4)]
    k.append(b.let("k4", k[0] ^ k[1] ^ k[2] ^ k[3] ^ _word(_PARITY)))
    x = [b.var(f"x{n}", ir.load(counter, n) + ir.Var(block.name, block.type)) for n in range(4)]
    for step in range(20):
        if step % 4 == 0:
            for n, word in enumerate(x):
                b.assign(word, word + k[(n + step // 4) % 5] + (step // 4 if n == 3 else 0))
        for one, two, turn in zip(x[::2], x[1::2], _TURNS[step % 8]):
            b.assign(one, one + two)
            b.assign(two, (one + two) ^ ((two << turn) | (two >> 64 - turn)))
        x[1], x[3] = x[3], x[1]
    for n, word in enumerate(x):
        b.store(to, word, n)
    return ir.Function("threefry", [key, counter, block, to], b.body, "a block of the cipher Threefry-4x64")


_CIPHER = _cipher()


def _threefry(b: Builder, key: Buf, counter: ir.Expr, block: ir.Expr, to: Buf | ir.Local) -> None:
    """Four random words from a key and a counter, by the kernel's function."""
    b.call(_CIPHER.name, ir.address(key), counter, block, ir.address(to, written=True))


def _copied(b: Builder, source: Buf, to: Buf) -> None:
    with b.loop("i", 10) as i:
        b.store(to, ir.load(source, i), i)


def _fresh(b: Builder, key: Buf, counter: ir.Expr, path: int, to: Buf) -> None:
    """A key of random words, whose path has its next bit at a place of the first word."""
    _threefry(b, key, counter, _word(0), to)
    with b.loop("i", 4, 10) as i:
        b.store(to, ir.select(i.eq(8), _word(1 << path), _word(0)), i)


def _right(b: Builder, key: Buf) -> None:
    """Set the next bit of a key's path, of two words."""
    for n in (4, 5):
        b.store(key, ir.load(key, n) | ir.load(key, n + 4), n)


def _step(b: Builder, key: Buf) -> None:
    """Move the place of a path's next bit by one, from the first word on to the second."""
    first, second = ir.load(key, 8), ir.load(key, 9)
    b.store(key, ir.select(first.eq(1), _word(1 << 63), ir.select(first.ne(0), _word(0), second >> 1)), 9)
    b.store(key, first >> 1, 8)


def _words(kernel: Kernel, key: Buf, shape: tuple[int, ...]) -> tuple[Buf, Buf]:
    """The key to go on with, and random words."""
    size = math.prod(shape)
    kernel.functions.append(_CIPHER)
    start, following, words = kernel.buffer((10,), "uint64"), kernel.buffer((10,), "uint64"), kernel.buffer(shape, "uint64")
    b = Builder()
    _copied(b, key, start)
    need = ir.cast(ir.expr(size), "uint64")
    # Where too few counts are left, the path goes on; of the path TVM tests the first word only.
    with b.when(ir.load(key, 7) >= _word(2**64 - 1) - need):
        with b.when(ir.load(key, 8).eq(0)):
            ones = b.local("ones", "uint64", [4])
            with b.loop("i", 4) as i:
                b.store(ones, _word(2**64 - 1), i)
            _fresh(b, key, ir.address(ones), 63, start)
        with b.otherwise():
            _right(b, start)
            _step(b, start)
            for n in (6, 7):
                b.store(start, 0, n)
    _copied(b, start, following)
    b.store(following, 0, 6)
    b.store(following, ir.load(following, 7) + ir.cast(ir.expr((size + 3) // 4 * 4), "uint64"), 7)
    kernel.stage(body=b.body)
    blocks = -(-size // 4)
    b = Builder()
    with b.loop("u", -(-blocks // _BLOCKS), kind=ir.PARALLEL) as u:
        counter, block = b.local("counter", "uint64", [4]), b.local("block", "uint64", [4])
        with b.loop("i", u * _BLOCKS, ir.minimum((u + 1) * _BLOCKS, blocks)) as i:
            # The words behind the last whole block come from the counter moved on, not from a block's number.
            has_four = b.let("whole", i < size // 4)
            for n in range(4):
                moved = ir.select(has_four, ir.number(0), i * 4) if n == 3 else ir.number(0)
                b.store(counter, ir.load(start, n + 4) + ir.cast(moved, "uint64"), n)
            _threefry(b, start, ir.address(counter), ir.cast(ir.select(has_four, i, ir.number(0)), "uint64"), block)
            with b.loop("j", ir.select(has_four, ir.number(4), ir.expr(size % 4))) as j:
                b.store(words, ir.load(block, j), i * 4 + j)
    kernel.stage(body=b.body)
    return following, words


def _unit(word: ir.Expr, dtype: str) -> ir.Expr:
    """A number from 0 to below 1 from the leading bits of as many as the type has."""
    info = np.finfo(dtype)
    leading = ir.cast(word, f"uint{info.bits}") >> (info.bits - info.nmant)
    return ir.cast(leading, dtype) * 2.0**-info.nmant


def _split(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    key = kernel.in_memory(args[0])
    left, right = kernel.buffer((10,), "uint64"), kernel.buffer((10,), "uint64")
    kernel.functions.append(_CIPHER)
    b = Builder()
    # Of the path TVM tests the first word only.
    with b.when(ir.load(key, 8).eq(0)):
        _fresh(b, key, ir.address(key, 4), 62, left)
        _copied(b, left, right)
        b.store(right, _word(1 << 63), 4)
    with b.otherwise():
        _copied(b, key, left)
        _copied(b, key, right)
        _right(b, right)
        _step(b, left)
        _step(b, right)
    kernel.stage(body=b.body)
    return [BufTensor(left), BufTensor(right)]


def _distribution(normal: bool) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        key, low, high = (kernel.in_memory(x) for x in args)
        _, (shape, dtype) = result_types(call)
        size = math.prod(shape)
        following, words = _words(kernel, key, (2, *shape) if normal else shape)
        out = kernel.buffer(shape, dtype)
        b = Builder()
        with b.loop("i", size, kind=ir.PARALLEL) as i:
            value = _unit(ir.load(words, i), dtype)
            one, two = (ir.cast(ir.load(buf, 0), dtype) for buf in (low, high))
            if normal:  # Box and Muller's transform
                turn = ir.op("sin", ir.Const(2 * np.pi, dtype) * _unit(ir.load(words, i + size), dtype))
                value = ir.op("sqrt", ir.op("libm_log", 1 - value) * -2) * turn * two + one
            else:
                value = value * (two - one) + one
            b.store(out, value, i)
        kernel.stage(body=b.body)
        return [BufTensor(following), BufTensor(out)]

    return lower


def _multinomial(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Where uniform numbers fall on the running sum of the probabilities: the nearest place above."""
    key, probs = (kernel.in_memory(a) for a in args)
    _, (shape, dtype) = result_types(call)
    following, words = _words(kernel, key, shape)
    out, sums = kernel.buffer(shape, dtype), kernel.buffer(probs.shape, "float32")
    classes, samples = probs.shape[-1], shape[-1]
    zero, one = ir.Const(0, "float32"), ir.Const(1, "float32")
    b = Builder()

    def above(c: ir.Expr, at: ir.Expr) -> ir.Expr:
        return ir.select(c - at > 0, c - at, one)

    with b.loop("u", math.prod(shape[:-1]), kind=ir.PARALLEL) as u:
        c = b.let("c", ir.address(sums, u * classes, written=True))
        every, total = b.var("every", zero), b.var("total", zero)

        def share(i: ir.Expr) -> ir.Expr:
            p = ir.load(probs, u * classes + i)
            return ir.select(p > 0, ir.cast(p, "float32"), zero)

        with b.loop("i", classes) as i:
            b.assign(every, every + share(i))
        with b.loop("i", classes) as i:
            b.assign(total, total + share(i) / every)
            b.store(c, total, i)
        with b.loop("s", samples) as s:
            at = b.let("at", _unit(ir.load(words, u * samples + s), "float32"))
            least, best = b.var("least", above(ir.load(c, 0), at)), b.var("best", 0)
            with b.loop("i", 1, classes) as i:
                distance = b.let("distance", above(ir.load(c, i), at))
                with b.when(distance < least):
                    b.assign(least, distance)
                    b.assign(best, i)
            b.store(out, best, u * samples + s)
    kernel.stage(body=b.body)
    return [BufTensor(following), BufTensor(out)]


#: Written by stages of their own: never fused.
RECIPES: dict[str, Any] = {
    "random.threefry_generate": lambda kernel, call, args: [
        BufTensor(b) for b in _words(kernel, kernel.in_memory(args[0]), result_types(call)[1][0])
    ],
    "random.threefry_split": _split,
    "random.uniform": _distribution(normal=False),
    "random.normal": _distribution(normal=True),
    "random.multinomial": _multinomial,
}
