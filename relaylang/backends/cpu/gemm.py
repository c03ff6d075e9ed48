"""The kernel of contractions: a block of results held in registers while a part of the sum runs.

Several results times `vectors` vectors of columns are accumulated at once. Each step of the sum loads one row of packed
weights. It broadcasts each result's input value straight from the data.

The addresses of the input values are constant offsets. So the same kernel serves products and convolutions. The rows
are those of a matrix, or neighbouring pixels at any stride. No im2col is written to memory.
"""
from __future__ import annotations

from functools import lru_cache

from relaylang.backends.cpu.arith import PLAIN, Arith
from relaylang.backends.cpu.dtypes import CTYPES, SIZES
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.loops import ir, render

#: Bytes of a line of the cache.
LINE = 64


def vector_types(dtype: str) -> tuple[str, str, str]:
    """The element type, the vector type, and the suffix of its macros."""
    total = dtype if dtype in PLAIN else "float32"
    return CTYPES[total], *render.VECTORS[total]


@lru_cache(maxsize=256)
def block_kernel(name: str, isa: Isa, arith: Arith, vectors: int, rows: int, apart: int, depth: int, taps: int, tap: int,
                 start: bool, ahead: int = 0) -> ir.Function:  # fmt: skip
    """`name(x, w[, ahead], t, step, first[, begin][, shift], n0, s0, ...)`, which adds a part of a sum to a block of results.

    `t[r * step + c] = sum over loops and taps of x[r * apart + offsets] * w[...][c]`, added to the value there unless
    `first`. There are `depth` loops around the taps; loop `i` makes `n<i>` steps of `s<i>` elements in x. The `taps` are
    the innermost, unrolled steps, each `tap` elements from the last. `w` is packed as
    [loops...][taps][vectors * lanes][steps], aligned to 64 bytes. With `start`, sums begin with the columns' values at
    `begin`. Sums that are held in another type are shifted by `shift` bits before they are added. Each round of the taps asks
    the memory for `ahead` lines of the cache, from the pointer `ahead` on.
    """
    lanes, width = isa.lanes, isa.lanes * arith.steps
    vec = ir.vector(arith.registers, lanes)
    x, w, t = ir.Param("x", f"const {arith.data}*"), ir.Param("w", f"const {arith.weight}*"), ir.Param("t", f"{arith.total}*")
    begin = ir.Param("begin", f"const {arith.total}*")
    sizes = [ir.Param(f"{letter}{n}", ir.INDEX) for n in range(depth) for letter in "ns"]
    c = ir.Local("c", vec, (rows, vectors), ir.REGISTERS, zero=not start)
    b = ir.Local("b", ir.vector(arith.weight, width), (vectors,), ir.REGISTERS)
    data, weights = [ir.Var(f"x{n}", x.type) for n in range(depth)], ir.Var("q", w.type)
    r, v, k, step = ir.Var("r"), ir.Var("v"), ir.Var("k"), ir.Var("step")

    def every(body: ir.Stmt, *before: ir.Stmt) -> ir.Body:
        """A statement for each register of results, and statements before each row of them."""
        return [ir.loop("r", 0, rows, [*before, ir.loop("v", 0, vectors, [body], ir.UNROLLED)], ir.UNROLLED)]

    at = k * tap + r * apart
    value = ir.load(data[-1], at) if arith.steps == 1 else ir.address(data[-1], at)
    a = ir.Let("a", ir.Intrinsic(arith.splat, (value,), ir.vector(arith.data, width)))
    product = ir.Intrinsic(arith.fma, (a.var, ir.load(b, v), ir.load(c, r, v)), vec)
    row = ir.load(weights, k * (vectors * width) + v * width, lanes=width, aligned=True)
    body: ir.Body = [
        ir.loop("k", 0, taps, [
            b,
            ir.loop("v", 0, vectors, [ir.store(b, row, v)], ir.UNROLLED),
            *every(ir.store(c, product, r, v), a),
        ], ir.UNROLLED),
        ir.Assign("q", ir.address(weights, taps * vectors * width)),
    ]  # fmt: skip
    far, line = ir.Var("far", w.type), LINE // SIZES[arith.weight]
    if ahead:
        body += [ir.Call("__builtin_prefetch", (ir.address(far, n * line),)) for n in range(ahead)]
        body.append(ir.Assign("far", ir.address(far, ahead * line)))
    for n in reversed(range(depth)):
        forward = ir.Assign(data[n].name, ir.address(data[n], ir.Var(f"s{n}")))
        body = [ir.Let(data[n].name, ir.address(data[n - 1] if n else x, 0), mutable=True),
                ir.loop(f"l{n}", 0, f"n{n}", [*body, forward])]  # fmt: skip
    held, to = ir.load(c, r, v), ir.Let("to", ir.address(t, r * step, written=True))
    added = ir.Binary("+", ir.load(to.var, v * lanes, lanes=lanes), held, vec)
    later = ir.Param("ahead", w.type)
    steps = [ir.Param("step", ir.INDEX), ir.Param("first", ir.INDEX)]
    params = [x, w, *([later] if ahead else []), t, *steps, *([begin] if start else []), *sizes]
    end: ir.Stmt = ir.If(ir.Var("first"), every(ir.store(to.var, held, v * lanes), to), every(ir.store(to.var, added, v * lanes), to))
    if arith.held:
        params.insert(len(params) - len(sizes), ir.Param("shift", ir.INDEX))
        place = ir.address(to.var, v * lanes, written=True)
        wide = ir.Statement("r_add_wide({0}, {1}, {2}, {3});", (place, held, ir.Var("first"), ir.Var("shift")))
        end = ir.Block(every(wide, to))
    return ir.Function(name, params, [
        c,
        *(every(ir.store(c, ir.load(begin, v * lanes, lanes=lanes, aligned=True), r, v)) if start else []),
        ir.Let("q", ir.address(w, 0), mutable=True),
        *([ir.Let("far", ir.address(later, 0), mutable=True)] if ahead else []),
        *body,
        end,
    ])  # fmt: skip
