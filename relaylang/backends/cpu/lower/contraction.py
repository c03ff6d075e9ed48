"""Contractions (`sums`) in loops. Convolutions and matrix products are such.

The weights are packed once, in panels as wide as a block of results. A unit of work is a panel by a segment of a line, or
by several lines. The choice of blocks is `tiling.picked`'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from relaylang.backends.cpu.arith import BYTES, Arith, has_tiles
from relaylang.backends.cpu.gemm import LINE, block_kernel
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import Kernel, Sink
from relaylang.backends.cpu.lower import amx
from relaylang.backends.cpu.lower.panels import Panels, pack_panels
from relaylang.backends.cpu.lower.sums import Contraction, Rows, Steps, Weights, counts_of, steps_of
from relaylang.backends.cpu.tiling import SECOND_CACHE, WIDTHS, Tiling, picked, weights_first
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.index import digits
from relaylang.kernels.nest import Bounds, Buf
from relaylang.kernels.sizes import has_sizes, surely_less, usual

#: With more rows than this, the way of weights from the far caches takes no time beside the products.
_FEW_ROWS = 1024
#: Contractions of no more products share blocks. These take the distance of rows as an argument, and write out no steps.
#: So programs of many small products compile soon.
_SMALL = 1 << 16


def lower_contraction(kernel: Kernel, c: Contraction, data: Buf, weights: Weights, sink: Sink, arith: Arith) -> None:
    """Emit a contraction of `data`, which is of `arith.data`."""
    isa = kernel.isa.of(arith.registers)
    if arith.square:  # which takes twice the registers for weights, and an even number of rows
        isa = replace(isa, registers=isa.registers * 3 // 4)
    depth = usual(math.prod(counts_of(c.runs, arith.steps)))
    tiling = picked(
        kernel.space,
        isa,
        c.columns,
        c.rows[-1].extent,
        c.rows[-2].extent if len(c.rows) > 1 else 1,
        depth,
        (amx.COLUMNS // isa.lanes,) if arith is BYTES and has_tiles(isa) else WIDTHS,
    )
    panels = pack_panels(kernel, c, weights, arith, tiling.vectors * isa.lanes)
    # A kernel may take half as many steps again.
    part = min(tiling.part, arith.limit * 2 // 3) if arith.limit else tiling.part
    small = surely_less(math.prod([axis.extent for axis in c.rows], start=c.columns * c.depth), _SMALL + 1)
    steps = steps_of(c.runs, arith.steps, part, c.limbs, not small)
    unit = _Unit(kernel, c, data, panels, sink, arith, isa, tiling, steps, small)
    unit.declare()
    order = unit.order()
    kernel.stage(body=[ir.loop("u", 0, math.prod(extent for _, extent in order), unit.body(order), ir.PARALLEL)])


@dataclass
class _Target:
    """Where blocks of results go: a pointer to the unit's first result, and the steps of rows and of lines.

    The statements `made` make these. `direct` is the result's buffer, if whole blocks are written there.
    """

    to: ir.Var
    step: ir.Expr
    line: ir.Expr
    made: ir.Body
    direct: Buf | None


@dataclass
class _Unit:
    """The unit of work of a contraction."""

    kernel: Kernel
    c: Contraction
    data: Buf
    panels: Panels
    sink: Sink
    arith: Arith
    isa: Isa
    tiling: Tiling
    steps: Steps
    small: bool

    @property
    def row(self) -> Rows:
        return self.c.rows[-1]

    @property
    def outer(self) -> list[Rows]:
        return list(self.c.rows[:-1])

    @cached_property
    def width(self) -> int:
        """The columns of a block."""
        return self.tiling.vectors * self.isa.lanes

    @cached_property
    def partial(self) -> bool:
        """Whether the last panel has fewer columns."""
        return self.c.columns % self.width != 0

    @cached_property
    def positions(self) -> dict[str, int]:
        """The axes of lines, by the names of their numbers; units take several lines of the last."""
        extents = [axis.extent for axis in self.outer]
        if self.tiling.lines > 1:
            extents[-1] = -(-extents[-1] // self.tiling.lines)
        return {f"y{n}": extent for n, extent in enumerate(extents)}

    def at(self, name: str) -> ir.Expr:
        """The number of a unit along an axis."""
        return ir.Var(name) if self.extents.get(name, 1) != 1 else ir.number(0)

    @cached_property
    def extents(self) -> dict[str, int]:
        """The axes of units: groups, panels, lines, segments of a line."""
        return {"g": self.c.groups, "b": self.panels.count, **self.positions, "s": self.tiling.segments}

    # -- the order of units

    def order(self) -> list[tuple[str, int]]:
        """The axes of units from outside in: neighbouring units share their data, or a panel of weights."""
        places = math.prod(self.positions.values())
        heavy = weights_first(
            usual(self.panels.size * self.panels.count) * SIZES[self.arith.weight],
            min(usual(self.c.depth), 4096) * usual(self.row.extent * places) * SIZES[self.arith.data],
            usual(self.tiling.segments * places),
            usual(self.panels.count),
        )
        first = self.kernel.space.pick("order", ("data", "weights"), "weights" if heavy else "data")
        names = [*self.positions, "s"]
        names = ["g", "b", *names] if first == "weights" else ["g", *names, "b"]
        return [(name, self.extents[name]) for name in names]

    # -- blocks of results

    def name(self, rows: int) -> str:
        return f"{self.kernel.name}_block{rows}"

    @cached_property
    def apart(self) -> int | None:
        """How far apart rows lie, where blocks know it."""
        return None if self.small or has_sizes([self.row.step]) else self.row.step

    def declare(self) -> None:
        """Add the functions that make blocks."""
        # A kernel that writes one step out needs no distance, which may be a size.
        steps, step = self.steps, self.steps.strides[-1] if self.steps.unroll > 1 else 0
        for rows in self.tiling.sizes:
            block = block_kernel(
                self.name(rows),
                self.isa,
                self.arith,
                self.tiling.vectors,
                rows,
                self.apart,
                len(steps.counts) - steps.inside,
                steps.unroll,
                step,
                self.panels.head > 0,
                self.ahead,
                bool(steps.parts),
            )
            self.kernel.functions.append(block)

    def start(self, block: ir.Expr) -> ir.Expr:
        """The row of a line where a block begins."""
        rows, less, full = self.tiling.rows, self.tiling.less, self.tiling.full
        if self.tiling.blocks is not None:
            return ir.minimum(block * rows, self.row.extent)
        return block * rows if full == self.tiling.tiles else block * less + ir.minimum(block, full) * (rows - less)

    @property
    def segment(self) -> tuple[ir.Expr, ir.Expr]:
        """The blocks of a unit."""
        tiles, segments, s = self.tiling.tiles, self.tiling.segments, self.at("s")
        if self.tiling.blocks is None and tiles % segments == 0:
            return s * (tiles // segments), (s + 1) * (tiles // segments)
        return s * tiles // segments, (s + 1) * tiles // segments

    # -- the statements

    def body(self, order: list[tuple[str, int]]) -> ir.Body:
        """A unit of work."""
        target = self.target()
        return [*self.begin(order), *target.made, *self.summed(target), *self.handed_on(target)]

    def begin(self, order: list[tuple[str, int]]) -> ir.Body:
        """Where a unit begins: its numbers, its data, its panel, its columns and rows."""
        tiling = self.tiling
        numbers = zip(order, digits(ir.Var("u"), [extent for _, extent in order]))
        body: ir.Body = [ir.Let(name, digit) for (name, extent), digit in numbers if extent != 1]
        shift = self.at("g") * self.c.group_data
        for n, axis in enumerate(self.outer):
            shift = shift + self.at(f"y{n}") * (axis.step * self.lines(n))
        group = self.at("g") * self.panels.count if self.c.group_weight != 0 else ir.number(0)
        panel = (group + self.at("b")) * self.panels.size
        body += [ir.Let("x", ir.address(self.data, shift)), ir.Let("w", ir.address(self.panels.buf, panel + self.panels.head))]
        if self.panels.head:
            body.append(ir.Let("start", ir.Cast(ir.address(self.panels.buf, panel), f"const {self.arith.total}*")))
            if self.steps.parts:
                body.append(ir.Local("none", self.arith.total, (self.width,), zero=True))
        if self.panels.several:
            body.append(ir.Let("c0", self.at("b") * self.width))
            if self.partial:
                body.append(ir.Let("cn", ir.minimum(self.c.columns - self.column, self.width)))
        if tiling.segments != 1:
            low, high = self.segment
            body += [
                ir.Let("q0", low),
                ir.Let("q1", high),
                ir.Let("m0", self.start(ir.Var("q0"))),
                ir.Let("m1", self.start(ir.Var("q1"))),
            ]
        if tiling.lines > 1:
            last, end = len(self.outer) - 1, self.outer[-1].extent
            left = end - self.at(f"y{last}") * tiling.lines if end % tiling.lines != 0 else tiling.lines
            body.append(ir.Let("many", ir.minimum(left, tiling.lines)))
        return body

    def lines(self, axis: int) -> int:
        """The lines that a unit takes along an axis."""
        return self.tiling.lines if axis == len(self.outer) - 1 else 1

    @property
    def rows(self) -> tuple[ir.Expr, ir.Expr]:
        """The rows of a line that a unit has."""
        if self.tiling.segments != 1:
            return ir.Var("m0"), ir.Var("m1")
        return ir.number(0), ir.number(self.row.extent)

    @property
    def column(self) -> ir.Expr:
        """The first of a unit's columns in its group."""
        return ir.Var("c0") if self.panels.several else ir.number(0)

    @property
    def columns(self) -> ir.Expr:
        """How many columns a unit has."""
        return ir.Var("cn") if self.partial and self.panels.several else ir.number(min(self.width, self.c.columns))

    @property
    def channel(self) -> ir.Expr:
        """The first of a unit's columns, along the result's axis of columns."""
        return self.at("g") * self.c.columns + self.column if self.c.group is None else self.column

    def target(self) -> _Target:
        """Where the blocks go: straight to the result where that is plain, else to a block of memory."""
        c, width, total = self.c, self.width, self.arith.total
        area = self.tiling.most if self.tiling.lines == 1 else self.row.extent * self.tiling.lines
        block = ir.Local("t", total, (area * width,))
        t = ir.Var("t", f"{total}*")
        step, line = ir.number(width), ir.number(width * self.row.extent)
        direct = self.sink.plain
        if direct is None or direct.dtype != total or (direct.strides[c.column] != 1 and self.sink.anchor.shape[c.column] != 1):
            return _Target(t, step, line, [block], None)
        strides = direct.strides
        own_step, own_line = strides[self.row.last], strides[self.outer[-1].last] if self.outer else 0
        at = self.rows[0] * own_step + self.channel
        if c.group is not None:
            at = at + self.at("g") * strides[c.group]
        for n, axis in enumerate(self.outer):
            at = at + self.at(f"y{n}") * (strides[axis.last] * self.lines(n))
        to = ir.Let("to", ir.address(direct, at, written=True))
        if not self.partial:
            return _Target(to.var, ir.number(own_step), ir.number(own_line), [to], direct)
        # A block of fewer columns is copied when it is done.
        if not self.panels.several:
            return _Target(t, step, line, [to, block], direct)
        if self.isa.lanes == 1:  # no pointer leads to both memories of a device
            return _Target(t, step, line, [block], None)
        is_full = self.columns.eq(width)
        lets = [ir.Let("r", ir.select(is_full, to.var, t)), ir.Let("step", ir.select(is_full, ir.number(own_step), step))]
        if self.tiling.lines > 1:
            lets.append(ir.Let("line", ir.select(is_full, ir.number(own_line), line)))
        return _Target(lets[0].var, lets[1].var, lets[-1].var, [to, block, *lets], direct)

    def summed(self, target: _Target) -> ir.Body:
        """All blocks of a unit: in tiles of bytes where the system has them."""
        tiles = self.in_tiles(target)
        if tiles is None:
            return self.in_vectors(target)
        return [ir.If(ir.Op("amx", (), "int32"), [tiles], self.in_vectors(target))]

    def in_tiles(self, target: _Target) -> ir.Stmt | None:
        """All blocks of a unit by AMX; None where it is not there, or rows or runs are short."""
        length = self.steps.counts[-1] * self.steps.width
        size = min(amx.ROWS, self.shortest)
        known = not has_sizes((self.row.step, *self.steps.strides))
        possible = known and self.arith is BYTES and has_tiles(self.isa) and self.width == amx.COLUMNS
        if not possible or size < 4 or self.c.depth < amx.DEPTH or not amx.run_of(length):
            return None
        name = f"{self.kernel.name}_tiles"
        loops = list(zip(self.steps.counts[:-1], self.steps.strides[:-1]))
        self.kernel.functions.append(amx.tile_kernel(name, loops, length, self.row.step))
        low, high = self.rows
        b = Builder()
        count = b.let("rows", high - low)
        tiles = b.let("tiles", (count + (size - 1)) // size)
        every = b.let("every", tiles * ir.Var("many") if self.tiling.lines > 1 else tiles)
        start: ir.Expr = ir.Var("start", "const int32*")
        if not self.panels.head:
            start = ir.address(b.local("none", "int32", [self.width], zero=True), 0)
        b.call("r_tile_shapes", ir.number(size), ir.number(amx.run_of(length)))
        line = self.outer[-1].step if self.outer else 0
        with b.loop("t", 0, every, step=2) as t:
            # Two blocks at a time: the last one twice where it is alone.
            places = [b.let("t0", t), b.let("t1", ir.minimum(t + 1, every - 1))]
            lines = [b.let(f"h{n}", place // tiles) for n, place in enumerate(places)]
            rows = [b.let(f"p{n}", ir.minimum(place % tiles * size, count - size)) for n, place in enumerate(places)]
            data = [ir.address(ir.Var("x", "const uint8*"), h * line + (low + p) * self.row.step) for h, p in zip(lines, rows)]
            to = [ir.address(target.to, h * target.line + p * target.step, written=True) for h, p in zip(lines, rows)]
            b.call(name, *data, ir.Var("w", "const int8*"), start, *to, target.step)
        b.call("r_tile_end")
        return ir.Block(b.body)

    @property
    def shortest(self) -> int:
        """The fewest rows of a unit."""
        tiles, segments, full = self.tiling.tiles, self.tiling.segments, self.tiling.full
        if self.tiling.blocks is not None:
            return self.tiling.less

        def start(block: int) -> int:
            return block * (self.tiling.rows - 1) + min(block, full)

        return min(start((s + 1) * tiles // segments) - start(s * tiles // segments) for s in range(segments))

    def in_vectors(self, target: _Target) -> ir.Body:
        """All blocks of a unit, for each part of the sum."""
        q = ir.Var("q")
        low, high = (ir.Var("q0"), ir.Var("q1")) if self.tiling.segments != 1 else (ir.number(0), ir.number(self.tiling.tiles))
        big, *small = [self.call(rows, target) for rows in self.tiling.sizes]
        if self.tiling.blocks is not None:
            p, left = ir.Var("p"), self.rows[1] - ir.Var("p")
            pairs = zip(self.tiling.sizes[1:], small)
            small = [ir.If(left >= rows, [block, ir.Assign("p", p + rows)]) for rows, block in pairs]
        body: ir.Body = [ir.If(q < self.tiling.full, [big], small)] if small else [big]
        body = [ir.loop("q", low, high, [ir.Let("p", self.start(q), mutable=self.tiling.blocks is not None), *self.claimed(), *body])]
        if self.tiling.lines > 1:
            body = [ir.loop("h", 0, ir.Var("many"), body)]
        for name, count, _ in reversed(self.steps.parts):
            body = [ir.loop(name, 0, count, body)]
        return body

    @property
    def calls(self) -> int:
        """The blocks of a unit, about."""
        if self.tiling.blocks is not None:
            return -(-self.tiling.blocks // 2)  # the fewest of one segment among several
        return -(-self.tiling.tiles // self.tiling.segments) * self.tiling.lines

    @property
    def round(self) -> int:
        """The lines of the cache that a kernel reads of the weights in a round of its innermost loop."""
        return -(-self.steps.unroll * self.width * self.steps.width * SIZES[self.arith.weight] // LINE)

    @cached_property
    def ahead(self) -> int:
        """The lines of the cache that a round asks for.

        All blocks of a unit together ask for the next part of the weights. With many rows, and in a loop's turns, weights come
        from the nearer caches. Rows whose number is a size may be few.
        """
        parts = math.prod([count for _, count, _ in self.steps.parts], start=self.panels.count * self.c.groups)
        rows = math.prod(axis.extent for axis in self.c.rows)
        few = not self.kernel.repeated and (has_sizes((rows,)) or rows <= _FEW_ROWS)
        if not surely_less(1, parts):
            return 0
        return self.kernel.space.pick("ahead", (0, 1, 2, 4), -(-self.round // self.calls) if few else 0)

    def later(self, weight: ir.Expr, h: ir.Expr) -> ir.Expr:
        """Where the lines begin that a block asks for."""
        steps, tiling = self.steps, self.tiling
        rounds = math.prod(steps.counts[steps.inside : -1]) * (min(steps.piece, steps.counts[-1]) // steps.unroll)
        part = rounds * steps.unroll * self.width * steps.width
        low = ir.Var("q0") if tiling.segments != 1 else ir.number(0)
        turn = h * tiling.tiles + (ir.Var("q") - low)
        least = -(-self.round // self.ahead) - 1
        turn = ir.minimum(turn, least) if least < self.calls - 1 else turn
        return weight + part + turn * (rounds * self.ahead * (LINE // SIZES[self.arith.weight]))

    def claimed(self) -> ir.Body:
        """Ask for the lines of a block's results, where these are too many for the caches. Else stores wait for them."""
        out, c, size = self.sink.out, self.c, SIZES[self.sink.out.dtype]
        elsewhere = out.shape != self.sink.anchor.shape or out.strides[c.column] != 1 or c.group is not None
        parted = self.row.first < self.row.last and not out.contiguous
        # Long sums leave the stores time.
        if elsewhere or parted or self.steps.parts or usual(math.prod(out.shape)) * size <= SECOND_CACHE:
            return []
        r, s, line = ir.Var("r"), ir.Var("z"), LINE // size
        at = (ir.Var("p") + r) * out.strides[self.row.last] + self.channel + s * line
        for n, axis in enumerate(self.outer):
            inside = ir.Var("h") if self.lines(n) > 1 else 0
            at = at + (self.at(f"y{n}") * self.lines(n) + inside) * out.strides[axis.last]
        asked = ir.Call("__builtin_prefetch", (ir.address(out, at), ir.number(1)))
        return [ir.loop("r", 0, self.tiling.rows, [ir.loop("z", 0, -(-self.width // line), [asked])])]

    def call(self, rows: int, target: _Target) -> ir.Stmt:
        """Make the block `q` of a line, from row `p` on: a part of its sum."""
        steps, p, h = self.steps, ir.Var("p"), ir.Var("h") if self.tiling.lines > 1 else ir.number(0)
        data, weight = p * self.row.step, ir.number(0)
        for number, (name, _, stride) in enumerate(steps.parts):
            piece = steps.piece if name == "k" else math.prod(steps.counts[number + 1 :])
            data = data + ir.Var(name) * stride
            weight = weight + ir.Var(name) * (piece * self.width * steps.width)
        if self.outer:
            data = data + h * self.outer[-1].step
        to = (p - self.rows[0]) * target.step + h * target.line
        first = ir.number(1)
        for number, (name, _, _) in enumerate(steps.parts):
            test = ir.Var(name).eq(0)
            first = first & test if number else test
        begin: list[ir.Expr] = []
        if self.panels.head:
            start = ir.Var("start", f"const {self.arith.total}*")
            none = ir.Var("none", start.type)
            begin = [ir.select(first, start, none) if steps.parts else start]
        x, w = ir.Var("x", f"const {self.arith.data}*"), ir.Var("w", f"const {self.arith.weight}*")
        shift = [ir.Var("k0") * 8 if self.c.limbs else ir.number(0)] if self.arith.held else []
        return ir.Call(
            self.name(rows),
            (
                ir.address(x, data),
                ir.address(w, weight),
                *([ir.address(w, self.later(weight, h))] if self.ahead else []),
                ir.address(target.to, to, written=True),
                target.step,
                *([ir.number(self.row.step)] if self.apart is None else []),
                *([first] if steps.parts else []),
                *begin,
                *shift,
                *self.loops(),
            ),
        )

    def loops(self) -> list[ir.Expr]:
        """The loops of a block's kernel from outside in: a count of steps, and how far each goes."""
        steps, every = self.steps, []
        for n in range(steps.inside, len(steps.counts) - 1):
            every += [ir.number(steps.counts[n]), ir.number(steps.strides[n])]
        rest = ir.number(steps.counts[-1] // steps.unroll)
        if steps.piece < steps.counts[-1]:
            rest = ir.minimum(rest - ir.Var("k") * (steps.piece // steps.unroll), steps.piece // steps.unroll)
        return [*every, rest, ir.number(steps.strides[-1] * steps.unroll)]

    # -- handing on

    def handed_on(self, target: _Target) -> ir.Body:
        """Pass the results on: a block of fewer columns to the result's buffer, or all to the operators behind."""
        if target.direct is None:
            return self.passed_on()
        return self.copied(target.direct) if self.partial else []

    def copied(self, direct: Buf) -> ir.Body:
        """Copy a block of fewer columns to the result, row by row."""
        h, i = ir.Var("h") if self.tiling.lines > 1 else ir.number(0), ir.Var("i")
        to, t = ir.Var("to", f"{self.arith.total}*"), ir.Var("t", f"{self.arith.total}*")
        line = direct.strides[self.outer[-1].last] if self.outer else 0
        low, high = self.rows
        body: ir.Body = [
            ir.loop(
                "i",
                0,
                high - low,
                [
                    ir.Call(
                        "memcpy",
                        (
                            ir.address(to, h * line + i * direct.strides[self.row.last], written=True),
                            ir.address(t, (h * self.row.extent + i) * self.width),
                            self.columns * SIZES[self.arith.total],
                        ),
                    )
                ],
            )
        ]
        if self.tiling.lines > 1:
            body = [ir.loop("h", 0, ir.Var("many"), body)]
        return [ir.If(self.columns < self.width, body)] if self.panels.several else body

    def passed_on(self) -> ir.Body:
        """Hand the unit's block of results, in the memory `t`, on to the sink."""
        shape, c, width = self.sink.anchor.shape, self.c, self.width
        low, high = self.rows
        first = self.channel
        bounds: Bounds = {c.column: (first, first + self.columns) if self.partial else (first, first + width, width)}
        strides = [0] * len(shape)
        strides[c.column] = 1
        if c.group is not None:
            bounds[c.group] = (self.at("g"), self.at("g") + 1)
        for n, axis in enumerate(self.outer):
            bounds[axis.first] = (self.at(f"y{n}"), self.at(f"y{n}") + 1)
        shift = low * width
        if self.tiling.lines > 1:
            axis, y = self.outer[-1], self.at(f"y{len(self.outer) - 1}") * self.tiling.lines
            bounds[axis.first] = (y, y + ir.Var("many"))
            strides[axis.first] = self.row.extent * width
            shift = y * (self.row.extent * width)
        step, flat = width, None
        for d in range(self.row.last, self.row.first - 1, -1):
            strides[d] = step
            step *= shape[d]
        if self.row.first == self.row.last:
            bounds[self.row.first] = (low, high)
        elif self.row.first < self.row.last:
            flat = (self.row.first, self.row.last, low, high)
        values = ir.Let("v", ir.address(ir.Var("t", f"{self.arith.total}*"), (first + shift) * -1))
        return [values, *self.sink.block("v", strides, bounds, flat)]
