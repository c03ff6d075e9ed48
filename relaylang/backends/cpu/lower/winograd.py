"""Convolutions of 3 x 3 taps at stride 1 with fewer products: Winograd's minimal filtering.

F(m x m, 3 x 3) makes a tile of m x m results. It reads a tile of the data with 2 more rows and columns. Data and weights
are transformed and multiplied place by place, and the products are transformed back. Each place is a matrix product over
channels. F(2 x 2, 3 x 3) has 16 products where the sums have 36. F(4 x 4, 3 x 3) has 36 where the sums have 144, at less
accuracy.

Products of 8-bit integers are exact for tiles of 2. The weights are transformed times 4, pairs of 16 bits are multiplied,
and results divided by 4. Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from relaylang.backends.cpu.arith import PAIRS, PLAIN, Arith
from relaylang.backends.cpu.gemm import block_kernel
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import Kernel, Sink
from relaylang.backends.cpu.lower.factors import Factors, Zero, less, takes_off
from relaylang.backends.cpu.lower.geometry import Conv
from relaylang.backends.cpu.tiling import SECOND_CACHE, block, choose, cut, powers
from relaylang.kernels import ir, visit
from relaylang.kernels.dtypes import SIZES, int_range, is_float
from relaylang.kernels.index import digits
from relaylang.kernels.nest import Bounds, Buf, End
from relaylang.kernels.sizes import Size, has_sizes, largest, sizes_in, usual

Matrix = Sequence[Sequence[Fraction | int]]
_H, _S, _T, _Q = Fraction(1, 2), Fraction(1, 6), Fraction(1, 12), Fraction(1, 24)


@dataclass(frozen=True)
class Transforms:
    """The matrices of F(m x m, 3 x 3), applied from both sides: to data, to weights, to products."""

    data: Matrix
    weight: Matrix
    result: Matrix


#: By the extent m of a tile of results.
TRANSFORMS = {
    2: Transforms(
        data=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        weight=((1, 0, 0), (_H, _H, _H), (_H, -_H, _H), (0, 0, 1)),
        result=((1, 1, 1, 0), (0, 1, -1, -1)),
    ),
    4: Transforms(
        data=(
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        weight=((Fraction(1, 4), 0, 0), (-_S, -_S, -_S), (-_S, _S, -_S), (_Q, _T, _S), (_Q, -_T, _S), (0, 0, 1)),
        result=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    ),
}
#: Integer weights are transformed by twice the matrix, from both sides.
_TWICE: Matrix = ((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2))


@dataclass(frozen=True)
class Numbers:
    """The types of a convolution's data and factors, and the zero points taken off them."""

    arith: Arith = PLAIN["float32"]
    data: str = "float32"
    zero: int = 0
    weight_zero: Zero = 0

    @property
    def exact(self) -> bool:
        return self.arith is not PLAIN["float32"]


#: The most bytes of transformed data: of a unit of work on the stack, and of all units in memory.
_STACK, _MEMORY = 65_536, 16_000_000
#: With fewer channels, the transforms take too long.
_CHANNELS = 16
#: The most tiles of a unit of work.
_TILES = 28
#: Bytes of weights that a core reads in a cycle, beyond its second cache.
_STREAM = 16
#: An extent that is a size counts as one in the middle of a network at least.
_MIDDLE = 14


def numbers_of(conv: Conv, data: str, weight: str, factors: Factors) -> Numbers | None:
    """The types of a convolution by tiles; None where there is none of theirs, or sums might leave their type."""
    if factors.arith is PLAIN["float32"]:
        return Numbers() if data == weight == "float32" else None
    if factors.arith is not PAIRS or not isinstance(factors.zero, int) or not ("int8" in data and "int8" in weight) or conv.inputs % 2:
        return None
    if not int_range(data)[0] <= factors.zero <= int_range(data)[1]:
        return None  # a border has no such value
    # Four times a sum of 9 products for each input channel stays in int32.
    return Numbers(PAIRS, data, factors.zero, factors.weight_less) if 36 * conv.inputs * 255 * 255 < 1 << 31 else None


def tile_of(kernel: Kernel, conv: Conv, exact: bool) -> int:
    """The extent of tiles of results; 0 where the sums are computed. Only tiles of 2 are `exact`."""
    if not fits(conv):
        return 0
    wanted = min(kernel.space.winograd, 2) if exact else kernel.space.winograd
    default = wanted if wanted and _gains(kernel.isa, conv, wanted) else 0
    return kernel.space.pick("winograd", [0, 2] if exact else [0, *TRANSFORMS], default)


def fits(conv: Conv) -> bool:
    """Whether a convolution can be computed by tiles, and has the channels for it."""
    if has_sizes((conv.inputs, conv.outputs, *conv.kernel)):
        return False
    plain = conv.kernel == [3, 3] and conv.stride == conv.dilation == [1, 1] and conv.groups == 1 and conv.last
    return plain and conv.inputs >= _CHANNELS and conv.outputs >= _CHANNELS


def _gains(isa: Isa, conv: Conv, m: int) -> bool:
    """Whether F(m x m, 3 x 3) takes clearly less time than the sums."""
    n, batch = m + 2, usual(conv.batch)
    height, wide = (max(usual(extent), _MIDDLE) if isinstance(extent, Size) else extent for extent in conv.out)
    tiles = batch * _count(height, m) * _count(wide, m)
    pairs = conv.inputs * conv.outputs
    rate = 2 * isa.lanes

    def cycles(products: float, weights: int) -> float:
        return products * pairs / rate + (weights * pairs * 4 / _STREAM if weights * pairs * 4 > SECOND_CACHE else 0)

    plain = cycles(9.0 * batch * height * wide, 9)
    ends = tiles * (2.5 * n * n * conv.inputs + 2.0 * n * n * conv.outputs) / isa.lanes
    fits_memory = has_sizes((conv.batch, *conv.out)) or n * n * tiles * conv.inputs * 4 <= _MEMORY
    return fits_memory and 1.2 * (cycles(n * n * tiles, n * n) + ends) < plain


def _count(extent: int, m: int) -> int:
    return -(-extent // m)


def _sum(row: Sequence[Fraction | int], terms: Sequence[ir.Expr]) -> ir.Expr:
    """A row of a matrix times `terms`."""
    convert: Callable[[Any], float] = float if is_float(ir.vector_of(terms[0].type)[0]) else int
    total: ir.Expr | None = None
    for factor, term in zip(row, terms):
        if factor:
            part = term * convert(abs(factor)) if abs(factor) != 1 else term
            if total is None:
                total = -part if factor < 0 else part
            else:
                total = total - part if factor < 0 else total + part
    assert total is not None
    return total


def _both(matrix: Matrix, source: ir.Local, target: ir.Local) -> ir.Body:
    """`target = matrix * source * transposed matrix`, of arrays in registers."""
    rows, size = len(matrix), len(matrix[0])
    half = ir.Local("h", source.type, (rows, size), ir.REGISTERS)
    i, j = ir.Var("i"), ir.Var("j")
    left = [ir.store(half, _sum(row, [ir.load(source, k, j) for k in range(size)]), n, j) for n, row in enumerate(matrix)]
    right = [ir.store(target, _sum(row, [ir.load(half, i, k) for k in range(size)]), i, n) for n, row in enumerate(matrix)]
    return [half, *(ir.loop("j", 0, size, [one], ir.UNROLLED) for one in left), target, ir.loop("i", 0, rows, right, ir.UNROLLED)]


def _every(extent: int, body: ir.Stmt) -> ir.Body:
    """A statement for each place of a tile, written out."""
    return [ir.loop("i", 0, extent, [ir.loop("j", 0, extent, [body], ir.UNROLLED)], ir.UNROLLED)]


def _along(count: int, lanes: int, body: Callable[[int], ir.Body], exact: bool) -> ir.Body:
    """Runs `body(lanes)` over `count` neighbours from `c` on: by vectors, and the rest one by one.

    Loops of integers become vectors in the C compiler.
    """
    if exact:
        return [ir.loop("c", 0, count, body(1), ir.VECTOR)]
    bulk = count // lanes * lanes
    parts = [(0, bulk, lanes), (bulk, count, 1)]
    return [ir.Loop("c", ir.number(low), ir.number(high), body(step), step=step) for low, high, step in parts if low < high]


def _packed(kernel: Kernel, conv: Conv, weight: Any, strides: tuple[int, int, int, int], m: int, width: int, numbers: Numbers) -> Buf:
    """Transformed weights as [panel][place][input / steps][width][steps]."""
    n, steps = m + 2, numbers.arith.steps
    kind = "int32" if numbers.exact else "float64"
    blocks = -(-conv.outputs // width)
    row, inner, down, along = strides

    def body(source: Buf, target: Buf) -> ir.Body:
        b, k, r, o, i, j = (ir.Var(name) for name in "bkroij")
        g, u = ir.Local("g", kind, (3, 3), ir.REGISTERS), ir.Local("u", kind, (n, n), ir.REGISTERS)
        value: ir.Expr = ir.load(source, o * row + k * inner + i * down + j * along)
        value = less(ir.cast(value, kind), numbers.weight_zero) if takes_off(numbers.weight_zero) else value
        if conv.outputs % width:
            value = ir.select(o < conv.outputs, value, ir.Const(0, value.type))
        to = b * (n * n * conv.inputs * width) + k // steps * (steps * width) + r * steps + k % steps
        moved = ir.store(target, ir.Cast(ir.load(u, i, j), numbers.arith.weight), to + (i * n + j) * (conv.inputs * width))
        matrix = _TWICE if numbers.exact else TRANSFORMS[m].weight
        one: ir.Body = [ir.Let("o", b * width + r), g, *_every(3, ir.store(g, value, i, j)), *_both(matrix, g, u), *_every(n, moved)]
        return [ir.loop("b", 0, blocks, [ir.loop("k", 0, conv.inputs, [ir.loop("r", 0, width, one)])], ir.PARALLEL)]

    return kernel.packed(weight, blocks * n * n * conv.inputs * width, numbers.arith.weight, body)


def _transform(name: str, conv: Conv, data: Buf, m: int, lanes: int, numbers: Numbers) -> ir.Function:
    """`name(x, none, v, y, x0, step, sizes...)`: the transformed data of a tile, places `step` apart.

    Its results begin at (y, x0). Pixels outside of the data are as at `none`.
    """
    n = m + 2
    _, line, pixel, _ = data.strides
    height, wide = conv.size
    kind, own = f"const {numbers.data}*", numbers.arith.data
    x, none, v = ir.Param("x", kind), ir.Param("none", kind), ir.Param("v", f"{own}*")
    y, x0, step, c, i, j = (ir.Var(name) for name in ("y", "x0", "step", "c", "i", "j"))
    body: ir.Body = []
    for a in range(n):
        for b in range(n):
            row, column = y + (a - conv.before[0]), x0 + (b - conv.before[1])
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < wide)
            body.append(ir.Let(f"p{a}_{b}", ir.select(inside, ir.address(x, row * line + column * pixel), ir.address(none, 0))))

    def pixels(lanes: int) -> ir.Body:
        ty = ir.vector(own, lanes)
        d, e = ir.Local("d", ty, (n, n), ir.REGISTERS), ir.Local("e", ty, (n, n), ir.REGISTERS)
        reads: ir.Body = []
        for a in range(n):
            for b in range(n):
                value: ir.Expr = ir.load(ir.Var(f"p{a}_{b}", kind), c, lanes=lanes)
                value = ir.cast(value, ty) - numbers.zero if numbers.zero else value
                reads.append(ir.store(d, value, a, b))
        return [d, *reads, *_both(TRANSFORMS[m].data, d, e), *_every(n, ir.store(v, ir.load(e, i, j), (i * n + j) * step + c))]

    params = [x, none, v, *(ir.Param(p, ir.INDEX) for p in ("y", "x0", "step", *sizes_in(line, pixel, height, wide)))]
    return ir.Function(name, params, [*body, *_along(conv.inputs, lanes, pixels, numbers.exact)])


def _back(name: str, m: int, width: int, lanes: int, numbers: Numbers) -> ir.Function:
    """`name(p, r, step, line)`: a tile of results from the products at `p`, whose places lie `step` apart."""
    n, total = m + 2, numbers.arith.total
    p, r = ir.Param("p", f"const {total}*"), ir.Param("r", f"{total}*")
    step, line, c, i, j = (ir.Var(name) for name in ("step", "line", "c", "i", "j"))

    def tile(lanes: int) -> ir.Body:
        ty = ir.vector(total, lanes)
        d, e = ir.Local("d", ty, (n, n), ir.REGISTERS), ir.Local("e", ty, (m, m), ir.REGISTERS)
        value: ir.Expr = ir.load(e, i, j)
        value = value >> 2 if numbers.exact else value
        reads = _every(n, ir.store(d, ir.load(p, (i * n + j) * step + c, lanes=lanes), i, j))
        return [d, *reads, *_both(TRANSFORMS[m].result, d, e), *_every(m, ir.store(r, value, i * line + j * width + c))]

    params = [p, r, ir.Param("step", ir.INDEX), ir.Param("line", ir.INDEX)]
    return ir.Function(name, params, _along(width, lanes, tile, numbers.exact))


def lower_winograd(
    kernel: Kernel, conv: Conv, data: Buf, weight: Any, strides: tuple[int, int, int, int], sink: Sink, m: int, numbers: Numbers
) -> None:
    """Emit a convolution by tiles of `m`. `strides` are those of the weights: output, input, down, along."""
    unit = _Unit(kernel, conv, data, sink, m, numbers)
    packed = _packed(kernel, conv, weight, strides, m, unit.width, numbers)
    none = kernel.constant(np.full(conv.inputs, numbers.zero), numbers.data)
    unit.declare()
    moved = None
    if not unit.inner:
        moved = kernel.buffer((unit.places, unit.every, conv.inputs), numbers.arith.data)
        kernel.stage(grain=8, body=unit.transformed(moved, none))
    kernel.stage(body=unit.body(packed, moved, none))


class _Unit:
    """The unit of work: the products and results of some tiles, and their data, if these fit the stack."""

    def __init__(self, kernel: Kernel, conv: Conv, data: Buf, sink: Sink, m: int, numbers: Numbers) -> None:
        self.kernel, self.conv, self.data, self.sink, self.m, self.numbers = kernel, conv, data, sink, m, numbers
        arith = self.arith = numbers.arith
        self.places = (m + 2) ** 2
        self.down, self.along = (_count(extent, m) for extent in conv.out)
        # Half the tiles, if then a unit transforms its own data, and else not.
        bytes_of = self.places * conv.inputs * SIZES[arith.data]
        image = _TILES if has_sizes(conv.out) else self.down * self.along
        half = bytes_of * (_TILES // 2) <= _STACK < bytes_of * min(_TILES, image)
        most = kernel.space.pick("tiles", (7, 14, 28, 56), _TILES // 2 if half else _TILES)
        #: A unit takes a part of a line of tiles, or several lines.
        self.parts = _count(self.along, most)
        self.across = _count(self.along, self.parts)
        if has_sizes(conv.out):
            self.lines, self.tiles = largest(most // self.along, 1), most
        else:
            self.lines = max(1, min(self.down, most // self.along)) if self.parts == 1 else 1
            self.tiles = self.across * self.lines
        self.every = conv.batch * self.down * self.along
        best = choose(kernel.isa, conv.outputs, self.tiles, 1, conv.inputs // arith.steps)
        self.tiling = cut(kernel.isa, self.tiles, 1, *block(kernel.space, kernel.isa, best, self.tiles), best.part)
        self.width = self.tiling.vectors * kernel.isa.lanes
        self.blocks = -(-conv.outputs // self.width)
        #: Whether the last units have fewer tiles.
        self.uneven = self.down % self.lines != 0 or self.along % self.across != 0
        rows, self.full = self.tiling.rows, self.tiling.full
        self.sizes = [rows] if self.full == self.tiling.tiles else [rows, rows - 1]
        if has_sizes(conv.out):
            self.sizes, self.full = powers(rows), self.tiling.tiles
        self.unroll = next(k for k in (4, 2, 1) if conv.inputs // arith.steps % k == 0)
        #: Whether a unit transforms its own data.
        self.inner = self.places * self.tiles * conv.inputs * SIZES[arith.data] <= _STACK

    def name(self, what: str) -> str:
        return f"{self.kernel.name}_{what}"

    def declare(self) -> None:
        """Add the functions: blocks of products, and both transforms."""
        conv, isa, steps = self.conv, self.kernel.isa, self.arith.steps
        self.kernel.functions += [
            *(
                block_kernel(
                    self.name(f"block{rows}"), isa, self.arith, self.tiling.vectors, rows, conv.inputs, 1, self.unroll, steps, False
                )
                for rows in dict.fromkeys([*self.sizes, *([1] if self.uneven else [])])
            ),
            _transform(self.name("into"), conv, self.data, self.m, isa.lanes, self.numbers),
            _back(self.name("back"), self.m, self.width, isa.lanes, self.numbers),
        ]

    def into(self, none: Buf, to: ir.Expr, batch: ir.Expr, y: ir.Expr, x: ir.Expr, apart: int) -> ir.Stmt:
        """Transform the data of the tile (y, x)."""
        image = ir.address(self.data, batch * self.data.strides[0])
        sizes = map(ir.Var, sizes_in(*self.data.strides[1:3], *self.conv.size))
        return ir.Call(self.name("into"), (image, ir.address(none, 0), to, y * self.m, x * self.m, ir.number(apart), *sizes))

    def transformed(self, moved: Buf, none: Buf) -> ir.Body:
        """Transform the data of all tiles."""
        u, inputs = ir.Var("u"), self.conv.inputs
        batch, y, x = digits(u, [self.conv.batch, self.down, self.along])
        to = ir.address(moved, u * inputs, written=True)
        return [ir.loop("u", 0, self.every, [self.into(none, to, batch, y, x, self.every * inputs)], ir.PARALLEL)]

    # -- the statements

    def body(self, packed: Buf, moved: Buf | None, none: Buf) -> ir.Body:
        """The stage: units of tiles, and of panels of weights if the data are transformed before."""
        conv, groups = self.conv, -(-self.down // self.lines)
        order = [("n", conv.batch), ("y", groups), ("s", self.parts)]
        if not self.inner:
            # Neighbouring units share the larger operand.
            heavy = self.places * conv.inputs * conv.outputs * SIZES[self.arith.data] > SECOND_CACHE
            order = [("b", self.blocks), *order] if heavy else [*order, ("b", self.blocks)]
        extents = [extent for _, extent in order]
        numbers = zip(order, digits(ir.Var("u"), extents))
        panel = self.panel(packed)
        if self.inner:
            panel = [ir.loop("b", 0, self.blocks, panel)]
        p = ir.Local("p", self.arith.total, (self.places, self.tiles, self.width))
        r = ir.Local("r", self.arith.total, (self.tiles * self.m * self.m * self.width,))
        unit = [*(ir.Let(name, digit) for (name, _), digit in numbers), *self.begin(moved, none), p, r, *panel]
        return [ir.loop("u", 0, math.prod(extents), visit.folded(unit), ir.PARALLEL)]

    def begin(self, moved: Buf | None, none: Buf) -> ir.Body:
        """A unit's tiles, `many` lines of `some` from (y0, x0) on, and their transformed data `v`."""
        n, y, s, h, w = (ir.Var(name) for name in "nyshw")
        y0, x0, many, some = (ir.Var(name) for name in ("y0", "x0", "many", "some"))
        inputs, dtype = self.conv.inputs, self.arith.data
        lines = ir.minimum(self.down - y0, self.lines) if self.down % self.lines != 0 else ir.number(self.lines)
        across = ir.minimum(self.along - x0, self.across) if self.along % self.across != 0 else ir.number(self.across)
        body: ir.Body = [
            ir.Let("y0", y * self.lines),
            ir.Let("x0", s * self.across),
            ir.Let("many", lines),
            ir.Let("some", across),
            ir.Let("count", many * some),
        ]
        if moved is not None:
            first = ((n * self.down + y0) * self.along + x0) * inputs
            return [*body, ir.Let("v", ir.address(moved, first))]
        v = ir.Local("v", dtype, (self.places, self.tiles, inputs))
        to = ir.address(v, (h * some + w) * inputs, written=True)
        tile = self.into(none, to, n, y0 + h, x0 + w, self.tiles * inputs)
        return [*body, v, *self.each_tile(tile)]

    def each_tile(self, body: ir.Stmt) -> ir.Body:
        return [ir.loop("h", 0, ir.Var("many"), [ir.loop("w", 0, ir.Var("some"), [body])])]

    def panel(self, packed: Buf) -> ir.Body:
        """The results of a unit's tiles in a panel's columns."""
        b, k, h, w, some = ir.Var("b"), ir.Var("k"), ir.Var("h"), ir.Var("w"), ir.Var("some")
        inputs, width, m, total = self.conv.inputs, self.width, self.m, self.arith.total
        p, r, v = ir.Var("p", f"{total}*"), ir.Var("r", f"{total}*"), ir.Var("v", f"const {self.arith.data}*")
        apart = (self.tiles if self.inner else self.every) * inputs
        back = ir.Call(
            self.name("back"),
            (
                ir.address(p, (h * some + w) * width),
                ir.address(r, h * (m * self.across * m * width) + w * (m * width), written=True),
                ir.number(self.tiles * width),
                ir.number(self.across * m * width),
            ),
        )
        return [
            ir.loop(
                "k",
                0,
                self.places,
                [
                    ir.Let("a", ir.address(v, k * apart)),
                    ir.Let("weights", ir.address(packed, (b * self.places + k) * (inputs * width))),
                    ir.Let("q", ir.address(p, k * (self.tiles * width), written=True)),
                    *self.products(),
                ],
            ),
            *self.each_tile(back),
            *self.handed_on(),
        ]

    def products(self) -> ir.Body:
        """The products of one place: blocks of rows, the last of which may reach back over rows that are done."""
        count, j = ir.Var("count"), ir.Var("j")
        big, *rest = self.sizes
        done: ir.Expr = ir.Var("first") * big
        first = ir.minimum(count // big, self.full)
        body: ir.Body = [ir.Let("first", first), ir.loop("j", 0, ir.Var("first"), [self.block(big, j * big)])]
        if has_sizes(self.conv.out):
            at = ir.Let("at", done, mutable=True)
            blocks = [[self.block(rows, at.var), ir.Assign("at", at.var + rows)] for rows in rest]
            return [*body, at, *(ir.If(count - at.var >= rows, block) for rows, block in zip(rest, blocks))]
        for small in rest:
            start, more = done, ir.Var("second")
            body += [ir.Let("second", (count - start) // small), ir.loop("j", 0, more, [self.block(small, start + j * small)])]
            done = start + more * small
        if not self.uneven:
            return body
        least = self.sizes[-1]
        last = ir.If(count >= least, [self.block(least, count - least)], [ir.loop("j", done, count, [self.block(1, j)])])
        return [*body, ir.If(done < count, [last])]

    def block(self, rows: int, first: ir.Expr) -> ir.Stmt:
        """The products of a block of rows."""
        inputs, steps = self.conv.inputs, self.arith.steps
        a, q = ir.Var("a", f"const {self.arith.data}*"), ir.Var("q", f"{self.arith.total}*")
        weights = ir.Var("weights", f"const {self.arith.weight}*")
        return ir.Call(
            self.name(f"block{rows}"),
            (
                ir.address(a, first * inputs),
                ir.address(weights, 0),
                ir.address(q, first * self.width, written=True),
                ir.number(self.width),
                ir.number(1),
                ir.number(inputs // steps // self.unroll),
                ir.number(self.unroll * steps),
            ),
        )

    def handed_on(self) -> ir.Body:
        """Pass the results on to the sink."""
        conv, m, width = self.conv, self.m, self.width
        y0, x0, c0 = ir.Var("y0"), ir.Var("x0"), ir.Var("c0")
        ends = [(y0 + ir.Var("many")) * m, (x0 + ir.Var("some")) * m]
        ends = [ir.minimum(end, extent) if extent % m != 0 else end for end, extent in zip(ends, conv.out)]
        channels: tuple[End, ...] = (c0, c0 + width, width)
        body: ir.Body = [ir.Let("c0", ir.Var("b") * width)]
        if conv.outputs % width:
            body.append(ir.Let("cn", ir.minimum(conv.outputs - c0, width)))
            channels = (c0, c0 + ir.Var("cn"))
        height, wide = conv.axes
        n = ir.Var("n")
        bounds: Bounds = {0: (n, n + 1), height: (y0 * m, ends[0]), wide: (x0 * m, ends[1]), conv.channel: channels}
        where = [0] * 4
        line = self.across * m * width
        where[height], where[wide], where[conv.channel] = line, width, 1
        start = y0 * (m * line) + x0 * (m * width) + c0
        t = ir.Let("t", ir.address(ir.Var("r", f"{self.arith.total}*"), start * -1))
        return [*body, t, *self.sink.block("t", where, bounds)]
