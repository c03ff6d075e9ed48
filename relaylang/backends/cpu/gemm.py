"""The kernel of contractions: a block of results held in registers while a part of the sum runs.

Several results times `vectors` vectors of columns are accumulated at once. Each step of the sum loads one row of packed
weights. It broadcasts each result's input value straight from the data.

The addresses of the input values are constant offsets. So the same kernel serves products and convolutions. The rows
are those of a matrix, or neighbouring pixels at any stride. No im2col is written to memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from relaylang.backends.cpu.arith import Arith
from relaylang.backends.cpu.isa import Isa
from relaylang.kernels import ir
from relaylang.kernels.dtypes import SIZES

#: Bytes of a line of the cache.
LINE = 64


def _squares(
    arith: Arith, vectors: int, rows: int, data: ir.Var, apart: ir.Expr | int, taps: int, tap: int, begin: ir.Param | None
) -> tuple[ir.Local, ir.Body, ir.Stmt, Callable[[ir.Expr, int, ir.Expr], ir.Expr]]:
    """The parts of a kernel whose registers hold squares of two rows and two columns.

    They are its registers, the statements that begin, those of all taps, and a row's sums of four columns. A pair of rows
    has two registers for a vector of columns.
    """
    even, left = divmod(rows, 2)
    vec, half = ir.vector(arith.total, 4), ir.vector(arith.weight, 16)
    c = ir.Local("c", vec, (2 * (even + left), vectors), ir.REGISTERS, zero=begin is None)
    b = ir.Local("b", half, (2 * vectors,), ir.REGISTERS)
    i, h, v, k = ir.Var("i"), ir.Var("h"), ir.Var("v"), ir.Var("k")

    def columns(body: ir.Stmt) -> ir.Stmt:
        return ir.loop("v", 0, vectors, [ir.loop("h", 0, 2, [body], ir.UNROLLED)], ir.UNROLLED)

    def pair(number: ir.Expr, other: ir.Expr | int) -> ir.Body:
        first = k * tap + number * (2 * apart)
        a = ir.Let(
            "a", ir.Intrinsic(arith.splat, (ir.address(data, first), ir.address(data, first + other)), ir.vector(arith.data, 16))
        )
        product = ir.Intrinsic(arith.fma, (a.var, ir.load(b, v * 2 + h), ir.load(c, number * 2 + h, v)), vec)
        return [a, columns(ir.store(c, product, number * 2 + h, v))]

    every: ir.Body = [ir.loop("i", 0, even, pair(i, apart), ir.UNROLLED)] if even else []
    every += [ir.Block(pair(ir.number(even), 0))] if left else []
    row = ir.load(ir.Var("q", f"const {arith.weight}*"), k * (vectors * 32) + v * 32 + h * 16, lanes=16, aligned=True)
    step = ir.loop("k", 0, taps, [b, columns(ir.store(b, row, v * 2 + h)), *every], ir.UNROLLED)
    start: ir.Body = []
    if begin is not None:
        for n in range(2):
            four = ir.load(begin, v * 4, lanes=4, aligned=True)
            two = ir.mix(four, four, [2 * n, 2 * n + 1] * 2)
            held = ir.store(c, two, i * 2 + n, v)
            start.append(ir.loop("i", 0, even + left, [ir.loop("v", 0, vectors, [held], ir.UNROLLED)], ir.UNROLLED))

    def sums(number: ir.Expr, odd: int, v: ir.Expr) -> ir.Expr:
        return ir.mix(ir.load(c, number * 2, v), ir.load(c, number * 2 + 1, v), [2, 3, 6, 7] if odd else [0, 1, 4, 5])

    return c, start, step, sums


def _stored(
    sums: Callable[[ir.Expr, int, ir.Expr], ir.Expr], rows: int, vectors: int, t: ir.Param, step: ir.Expr, parts: bool
) -> ir.Body:
    """Store the rows of squares of sums; where sums are taken in parts, add those that are not `first`."""
    i, v = ir.Var("i"), ir.Var("v")

    def put(number: ir.Expr, odd: int, added: bool) -> ir.Stmt:
        to = ir.Let("to", ir.address(t, (number * 2 + odd) * step, written=True))
        value = sums(number, odd, v)
        if added:
            value = ir.load(to.var, v * 4, lanes=4) + value
        return ir.Block([to, ir.loop("v", 0, vectors, [ir.store(to.var, value, v * 4)], ir.UNROLLED)])

    def all_rows(added: bool) -> ir.Body:
        even, left = divmod(rows, 2)
        pairs: ir.Body = [ir.loop("i", 0, even, [put(i, 0, added), put(i, 1, added)], ir.UNROLLED)] if even else []
        return [*pairs, put(ir.number(even), 0, added)] if left else pairs

    return [ir.If(ir.Var("first"), all_rows(False), all_rows(True))] if parts else all_rows(False)


@lru_cache(maxsize=256)
def block_kernel(
    name: str,
    isa: Isa,
    arith: Arith,
    vectors: int,
    rows: int,
    apart: int | None,
    depth: int,
    taps: int,
    tap: int,
    start: bool,
    ahead: int = 0,
    parts: bool = True,
) -> ir.Function:
    """`name(x, w[, ahead], t, step[, apart][, first][, begin][, shift], n0, s0, ...)`: it makes a block of sums.

    `t[r * step + c] = sum over loops and taps of x[r * apart + offsets] * w[...][c]`. Where sums are taken in `parts`, it is
    added to the value there unless `first`. There are `depth` loops around the taps; loop `i` makes `n<i>` steps of `s<i>`
    elements in x. The `taps` are the innermost, unrolled steps, each `tap` elements from the last. `w` is packed as
    [loops...][taps][vectors * lanes][steps], aligned to 64 bytes. With `start`, sums begin with the columns' values at
    `begin`. Without `apart`, it is an argument. Sums that are held in another type are shifted by `shift` bits before they
    are added. Each round of the taps asks the memory for `ahead` lines of the cache, from the pointer `ahead` on.
    """
    lanes, width = isa.lanes, isa.lanes * arith.steps
    vec = ir.vector(arith.registers, lanes)
    x, w, t = ir.Param("x", f"const {arith.data}*"), ir.Param("w", f"const {arith.weight}*"), ir.Param("t", f"{arith.total}*")
    begin = ir.Param("begin", f"const {arith.total}*")
    sizes = [ir.Param(f"{letter}{n}", ir.INDEX) for n in range(depth) for letter in "ns"]
    c = ir.Local("c", vec, (rows, vectors), ir.REGISTERS, zero=not start)
    b = ir.Local("b", ir.vector(arith.loaded, width), (vectors,), ir.REGISTERS)
    data, weights = [ir.Var(f"x{n}", x.type) for n in range(depth)], ir.Var("q", w.type)
    r, v, k, step = ir.Var("r"), ir.Var("v"), ir.Var("k"), ir.Var("step")

    def every(body: ir.Stmt, *before: ir.Stmt) -> ir.Body:
        """A statement for each register of results, and statements before each row of them."""
        return [ir.loop("r", 0, rows, [*before, ir.loop("v", 0, vectors, [body], ir.UNROLLED)], ir.UNROLLED)]

    distance: ir.Expr | int = ir.Var("apart") if apart is None else apart
    square = _squares(arith, vectors, rows, data[-1], distance, taps, tap, begin if start else None) if arith.square else None
    at = k * tap + r * distance
    value = ir.load(data[-1], at) if arith.steps == 1 else ir.address(data[-1], at)
    a = ir.Let("a", ir.Intrinsic(arith.splat, (value,), ir.vector(arith.data if arith.steps > 1 else arith.registers, width)))
    product = ir.Intrinsic(arith.fma, (a.var, ir.load(b, v), ir.load(c, r, v)), vec)
    at_row = k * (vectors * width) + v * width
    row: ir.Expr = ir.load(weights, at_row, lanes=width, aligned=True)
    if arith.loaded != arith.weight:
        row = ir.Cast(ir.load(weights, at_row, lanes=width), b.type)
    body: ir.Body = [
        square[2]
        if square
        else ir.loop(
            "k",
            0,
            taps,
            [
                b,
                ir.loop("v", 0, vectors, [ir.store(b, row, v)], ir.UNROLLED),
                *every(ir.store(c, product, r, v), a),
            ],
            ir.UNROLLED,
        ),
        ir.Assign("q", ir.address(weights, taps * vectors * width)),
    ]
    far, line = ir.Var("far", w.type), LINE // SIZES[arith.weight]
    if ahead:
        body += [ir.Call("__builtin_prefetch", (ir.address(far, n * line),)) for n in range(ahead)]
        body.append(ir.Assign("far", ir.address(far, ahead * line)))
    for n in reversed(range(depth)):
        forward = ir.Assign(data[n].name, ir.address(data[n], ir.Var(f"s{n}")))
        body = [
            ir.Let(data[n].name, ir.address(data[n - 1] if n else x, 0), mutable=True),
            ir.loop(f"l{n}", 0, f"n{n}", [*body, forward]),
        ]
    held, to = ir.load(c, r, v), ir.Let("to", ir.address(t, r * step, written=True))
    added = ir.load(to.var, v * lanes, lanes=lanes) + held
    later = ir.Param("ahead", w.type)
    named = {"step": True, "apart": apart is None, "first": parts}
    steps = [ir.Param(name, ir.INDEX) for name, is_wanted in named.items() if is_wanted]
    params = [x, w, *([later] if ahead else []), t, *steps, *([begin] if start else []), *sizes]
    end = every(ir.store(to.var, held, v * lanes), to)
    if parts:
        end = [ir.If(ir.Var("first"), end, every(ir.store(to.var, added, v * lanes), to))]
    if arith.held:
        params.insert(len(params) - len(sizes), ir.Param("shift", ir.INDEX))
        place = ir.address(to.var, v * lanes, written=True)
        wide = ir.Call("r_add_wide", (place, held, ir.Var("first") if parts else ir.number(1), ir.Var("shift")))
        end = [ir.Block(every(wide, to))]
    body = [
        ir.Let("q", ir.address(w, 0), mutable=True),
        *([ir.Let("far", ir.address(later, 0), mutable=True)] if ahead else []),
        *body,
    ]
    if square:
        return ir.Function(name, params, [square[0], *square[1], *body, *_stored(square[3], rows, vectors, t, step, parts)])
    before = every(ir.store(c, ir.load(begin, v * lanes, lanes=lanes, aligned=True), r, v)) if start else []
    return ir.Function(name, params, [c, *before, *body, *end])
