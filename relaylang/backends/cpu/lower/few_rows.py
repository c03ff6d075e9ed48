"""Products of a few rows: each weight is read once, where it lies, and used for all rows.

Where the sum runs along the weights' last axis, a result is a dot product. Else rows of the weights are scaled and added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.backends.cpu.kernel import Kernel, Sink
from relaylang.backends.cpu.tiling import SECOND_CACHE
from relaylang.kernels import ir, visit
from relaylang.kernels.index import digits
from relaylang.kernels.nest import Bounds, Buf
from relaylang.kernels.sizes import surely_less

#: Up to this many rows, a product reads its weights in place.
FEW_ROWS = 3
#: The columns of a unit of dot products, and the choices of a schedule.
DOTS, UNITS = 32, (8, 16, 32, 64, 128)
#: Weights of more bytes come from memory, but for those of a loop's turns.
_FAR = 1_000_000
#: The sums that are in registers at a time, and the choices of a schedule.
_SUMS, _HELD = 8, (4, 8, 16)
#: In a unit of work: the data, the weights and the results.
_X, _W, R = ir.Var("x", "const float32*"), ir.Var("w", "const float32*"), ir.Var("r", "float32*")


@dataclass
class Product:
    """`out[b][m][n] = sum_k left[b][m][k] * right[b][n][k]`, each operand with its strides (a batch stride may be 0)."""

    batch: int
    rows: int
    columns: int
    depth: int
    left: tuple[int, int, int]  # strides: batch, row, depth
    right: tuple[int, int, int]  # strides: batch, column, depth


def reads_few_rows(product: Product) -> bool:
    """Whether `lower_few_rows` is the way to compute a product."""
    along = product.right[2] == 1 and product.left[2] == 1
    return surely_less(product.rows, FEW_ROWS + 1) and product.depth > 0 and (along or product.right[1] == 1)


def lower_few_rows(kernel: Kernel, product: Product, data: Buf, weights: Buf, sink: Sink) -> None:
    """Emit a product of float32, of operands at the product's strides."""
    kernel.aligned.add(weights.name)
    if product.right[2] == 1 and product.left[2] == 1:
        _dot_products(kernel, product, data, weights, sink)
    else:
        _scaled_rows(kernel, product, data, weights, sink)


def units(kernel: Kernel, product: Product, parts: int, unit: ir.Body) -> None:
    """A stage of units: parts of the columns of each batch.

    A loop over time multiplies by the same weights again and again. Where these do not fit the second cache, every other
    run goes through them backwards. The cache still holds the last ones.
    """
    u = ir.Var("u")
    before: ir.Body = []
    names: ir.Body = []
    if 4 * product.batch * product.columns * product.depth > SECOND_CACHE:
        back = ir.Let("back", ir.Op("alternate", (), "int32"))
        before = [back]
        turned = ir.Let("unit", ir.select(back.var.ne(0), ir.Var("lo") + ir.Var("hi") - 1 - u, u))
        names, u = [turned], turned.var
    n, p = digits(u, [product.batch, parts])
    names += [ir.Let("n", n), ir.Let("p", p)]
    kernel.stage(body=[*before, ir.loop("u", 0, product.batch * parts, visit.folded([*names, *unit]), ir.PARALLEL)])


def pass_on(sink: Sink, product: Product, step: int) -> ir.Body:
    """Store all rows of columns `c0..c0 + cn` of batch `n`, which lie in `r`, `step` apart."""
    shape = sink.anchor.shape
    rank = len(shape)
    n, c0 = ir.Var("n"), ir.Var("c0")
    bounds: Bounds = {rank - 1: (c0, c0 + ir.Var("cn"))}
    strides = [0] * rank
    strides[-1] = 1
    first = 1 if product.batch > 1 or (rank == 3 and shape[1] == product.rows) else 0
    if first:
        bounds[0] = (n, n + 1)
    total = step
    for d in range(rank - 2, first - 1, -1):
        strides[d] = total
        total *= shape[d]
    return [ir.Let("v", ir.address(ir.Var("r", "float32*"), c0 * -1)), *sink.block("v", strides, bounds)]


def _pointers(product: Product, data: Buf, weights: Buf) -> ir.Body:
    """Where the data and the unit's weights begin."""
    n, c0 = ir.Var("n"), ir.Var("c0")
    return [
        ir.Let(_X.name, ir.address(data, n * product.left[0])),
        ir.Let(_W.name, ir.address(weights, n * product.right[0] + c0 * product.right[1])),
    ]


def written_out(var: str, extent: int, *body: ir.Stmt) -> ir.Stmt:
    """A loop written out."""
    return ir.loop(var, 0, extent, body, ir.UNROLLED)


def _dot_products(kernel: Kernel, product: Product, data: Buf, weights: Buf, sink: Sink) -> None:
    """Vectors run along the sum, for eight or four columns at a time."""
    lanes, rows = kernel.isa.lanes, product.rows
    dots = kernel.space.pick("unit", UNITS, DOTS)
    # The sums of eight columns, a vector of each row, and one of the weights.
    eight = 9 * rows + 1 <= kernel.isa.registers
    most = kernel.space.pick("columns", (4, 8, 16), 8 if eight else 4)
    c0, cn = ir.Var("c0"), ir.Var("cn")
    left = ir.number(product.columns) - c0
    unit: ir.Body = [
        ir.Let("c0", ir.Var("p") * dots),
        ir.Let("cn", ir.minimum(left, dots) if product.columns % dots else ir.number(dots)),
        ir.Local("r", "float32", (rows, dots)),
        *_pointers(product, data, weights),
    ]
    far = not kernel.repeated and surely_less(_FAR, 4 * product.columns * product.depth)
    start: ir.Expr = ir.number(0)
    for count in [n for n in (16, 8, 4, 1) if n <= most]:
        end = cn // count * count
        unit.append(ir.Loop("j", start, end, _dots(product, lanes, count, dots, far), step=count))
        start = end
    units(kernel, product, -(-product.columns // dots), [*unit, *pass_on(sink, product, dots)])


def _dots(product: Product, lanes: int, count: int, apart: int, far: bool) -> ir.Body:
    """The dot products of `count` columns from `j` on with all rows, whose results are so far `apart`.

    `far` weights come from memory.
    """
    rows, depth, vec = product.rows, product.depth, ir.vector("float32", lanes)
    bulk = depth // lanes * lanes
    a, d = ir.Local("a", vec, (rows, count), ir.REGISTERS, zero=True), ir.Local("d", vec, (rows,), ir.REGISTERS)
    m, c, j, k, y = ir.Var("m"), ir.Var("c"), ir.Var("j"), ir.Var("k"), ir.Var("y", vec)
    x, w = m * product.left[1] + k, (j + c) * product.right[1] + k
    ends: ir.Body = []
    for row in range(rows):
        to = j + row * apart
        if count == 1:
            ends.append(ir.store(R, ir.Intrinsic("sum", (ir.load(a, row, 0),), "float32"), to))
        for first in range(0, count // 4 * 4, 4):
            ends.append(ir.Block(four_sums([ir.load(a, row, first + n) for n in range(4)], lanes, to + first)))
    rest = ir.Reduce("add", "r", m * apart + j + c, ir.load(_W, w) * ir.load(_X, x))
    tail = [ir.loop("k", bulk, depth, [written_out("m", rows, written_out("c", count, rest))])] if bulk < depth else []
    if far:
        return [a, written_out("c", count, *_in_turn(product, lanes, bulk // lanes, a)), *ends, *tail]
    return [
        a,
        ir.Loop(
            "k",
            ir.number(0),
            ir.number(bulk),
            [
                d,
                written_out("m", rows, ir.store(d, ir.load(_X, x, lanes=lanes), m)),
                written_out(
                    "c",
                    count,
                    ir.Let(y.name, ir.load(_W, w, lanes=lanes)),
                    written_out("m", rows, ir.store(a, ir.fma(y, ir.load(d, m), ir.load(a, m, c)), m, c)),
                ),
            ],
            step=lanes,
        ),
        *ends,
        *tail,
    ]


def _in_turn(product: Product, lanes: int, vectors: int, a: ir.Local) -> ir.Body:
    """The sums of column `c` alone, which become `a[m][c]`.

    Memory gives one run of weights twice as fast as several runs at a time. A sum has parts, which the processor adds at once.
    """
    rows, vec, parts = product.rows, ir.vector("float32", lanes), next(p for p in (4, 2, 1) if vectors % p == 0)
    b = ir.Local("b", vec, (rows, parts), ir.REGISTERS, zero=True)
    m, c, j, k, p, y = ir.Var("m"), ir.Var("c"), ir.Var("j"), ir.Var("k"), ir.Var("p"), ir.Var("y", vec)
    data = ir.load(_X, m * product.left[1] + k + p * lanes, lanes=lanes)
    add = ir.store(b, ir.fma(y, data, ir.load(b, m, p)), m, p)
    read = ir.Let(y.name, ir.load(_W, (j + c) * product.right[1] + k + p * lanes, lanes=lanes))
    total = sum([ir.load(b, m, n) for n in range(1, parts)], ir.load(b, m, 0))
    return [
        b,
        ir.Loop(
            "k",
            ir.number(0),
            ir.number(vectors * lanes),
            [written_out("p", parts, read, written_out("m", rows, add))],
            step=parts * lanes,
        ),
        written_out("m", rows, ir.store(a, total, m, c)),
    ]


def four_sums(vectors: Sequence[ir.Expr], lanes: int, to: ir.Expr) -> ir.Body:
    """Store the sums of four vectors."""
    even = [part + lane for lane in range(0, lanes, 4) for part in (0, 2, lanes, lanes + 2)]

    def paired(name: str, one: ir.Expr, two: ir.Expr) -> ir.Let:
        return ir.Let(name, ir.mix(one, two, even) + ir.mix(one, two, [n + 1 for n in even]), mutable=name == "s")

    one, two = paired("one", *vectors[:2]), paired("two", *vectors[2:])
    total = paired("s", one.var, two.var)
    body: ir.Body = [one, two, total]
    step = lanes // 2
    while step >= 4:
        turned = [(n + step) % lanes for n in range(lanes)]
        body.append(ir.Assign("s", total.var + ir.mix(total.var, total.var, turned)))
        step //= 2
    return [*body, ir.store(R, ir.Intrinsic("low", (total.var,), "float32x4"), to)]


def _scaled_rows(kernel: Kernel, product: Product, data: Buf, weights: Buf, sink: Sink) -> None:
    """Vectors run along the columns. A column's sum has several parts where there are few vectors."""
    lanes, columns, rows = kernel.isa.lanes, product.columns, product.rows
    sums = kernel.space.pick("sums", _HELD, _SUMS)
    most = sums // rows
    chunk = most * lanes
    # The last unit takes the rest, too. So it is never shorter than a vector.
    parts = max(1, columns // chunk)
    room = min(columns, 2 * chunk - 1)
    p, cn = ir.Var("p"), ir.Var("cn")
    rest = columns - p * chunk
    width = ir.select(p < parts - 1, ir.number(chunk), rest) if parts > 1 else ir.number(columns)
    unit: ir.Body = [
        ir.Let("c0", p * chunk),
        ir.Let("cn", width),
        ir.Local("r", "float32", (rows, room), zero=columns < lanes),
        *_pointers(product, data, weights),
    ]
    if columns < lanes:
        unit.append(_plain(product, room))
    else:
        start: ir.Expr = ir.number(0)
        count = most
        while count:
            if columns >= count * lanes:
                end = ir.Let(f"end{count}", start + (cn - start) // (count * lanes) * (count * lanes))
                unit += [end, ir.Loop("j", start, end.var, _vectors(product, lanes, count, room, sums), step=count * lanes)]
                start = end.var
            count //= 2
        if columns % lanes:
            # The last vector reaches back over columns that are done.
            last = [ir.Let("j", cn - lanes), *_vectors(product, lanes, 1, room, sums)]
            unit.append(ir.If(start < cn, last))
    units(kernel, product, parts, [*unit, *pass_on(sink, product, room)])


def _plain(product: Product, room: int) -> ir.Stmt:
    """The sums of less than a vector of columns."""
    k, c = ir.Var("k"), ir.Var("c")
    steps = []
    for m in range(product.rows):
        x = ir.load(_X, k * product.left[2] + m * product.left[1])
        steps.append(ir.Reduce("add", "r", c + m * room, ir.load(_W, k * product.right[2] + c) * x))
    return ir.loop("k", 0, product.depth, [ir.loop("c", 0, product.columns, steps)])


def _vectors(product: Product, lanes: int, count: int, room: int, sums: int) -> ir.Body:
    """The sums of `count` vectors of columns from `j` on, for all rows: about `sums` vectors in registers."""
    rows, depth, vec = product.rows, product.depth, ir.vector("float32", lanes)
    parts = max(1, sums // (count * rows))
    a = ir.Local("a", vec, (rows, count, parts), ir.REGISTERS, zero=True)
    d = ir.Local("d", vec, (rows,), ir.REGISTERS)
    m, c, s, j, k, y = ir.Var("m"), ir.Var("c"), ir.Var("s"), ir.Var("j"), ir.Var("k"), ir.Var("y", vec)
    x = ir.load(_X, m * product.left[1] + (k + s) * product.left[2])
    w = ir.load(_W, (k + s) * product.right[2] + j + c * lanes, lanes=lanes)

    def steps(count_of_parts: int) -> ir.Stmt:
        return written_out(
            "s",
            count_of_parts,
            d,
            written_out("m", rows, ir.store(d, ir.splat(x, lanes), m)),
            written_out(
                "c",
                count,
                ir.Let(y.name, w),
                written_out("m", rows, ir.store(a, ir.fma(y, ir.load(d, m), ir.load(a, m, c, s)), m, c, s)),
            ),
        )

    bulk = depth // parts * parts
    total: ir.Expr = ir.load(a, m, c, 0)
    for part in range(1, parts):
        total = total + ir.load(a, m, c, part)
    return [
        a,
        ir.Loop("k", ir.number(0), ir.number(bulk), [steps(parts)], step=parts),
        *([ir.loop("k", bulk, depth, [steps(1)])] if bulk < depth else []),
        written_out("m", rows, written_out("c", count, ir.store(R, total, m * room + j + c * lanes))),
    ]
