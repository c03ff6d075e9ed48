"""The loops of attention, `softmax(change(q k^T)) v`: a block of rows keeps its scores in the cache.

Vectors run along the rows of queries. Each step of a product repeats a key's element, or a value's, in all lanes, so keys and
values are read where they lie. A long row comes in parts of its keys. The sums so far are scaled where a part has a greater
score (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).

Keys at both ends that are masked for all rows of a block are not read (Dao, Fu, Ermon, Rudra and Ré, "FlashAttention", 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relaylang.backends.cpu.arith import PLAIN
from relaylang.backends.cpu.gemm import block_kernel
from relaylang.backends.cpu.kernel import ROW, Anchored, Kernel, Recipe, Sink, Tensor
from relaylang.backends.cpu.lower.attention_form import Attention, mask_bound, repeats_of, reshaped
from relaylang.backends.cpu.transposes import turn_kernel
from relaylang.kernels import ir, visit
from relaylang.kernels.build import Builder
from relaylang.kernels.index import ZERO, affine, const_of, digits, strides_of, terms_of, variable
from relaylang.kernels.nest import Bounds, Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import has_sizes, surely_less

#: Two vectors of rows gain with up to so many times the lanes of one.
_IDLE = 1.06
#: The neighbouring keys that are masked or not as one.
_SPAN = 32
#: The least score, which a masked one (-inf) is below: the difference of two is a number.
_LOW = ir.Const(-3.4028234663852886e38, "float32")


@dataclass
class Values:
    """What the nodes of attention are in a kernel: `scores` in terms of `product`, and `weights` in terms of `shares`."""

    product: Anchored
    scores: Tensor
    shares: Anchored
    weights: Tensor


def lower_attention(kernel: Kernel, form: Attention, operands: Sequence[Tensor], values: Values, sink: Sink) -> None:
    """Emit attention of queries, keys and values."""
    _Unit(kernel, form, operands, values, sink).stage()


class _Unit:
    """A unit of work: a block of rows of one head."""

    def __init__(self, kernel: Kernel, form: Attention, operands: Sequence[Tensor], values: Values, sink: Sink) -> None:
        self.kernel, self.values, self.sink = kernel, values, sink
        #: Scores up to this are masked; None where no key is left out.
        self.bound = None if surely_less(values.product.shape[2], 2 * _SPAN) else mask_bound(form)
        self.changes, self.guards = reshaped(form.scores) is not form.first, reshaped(form.weights) is not form.softmax
        _, group_rows, self.keys = values.product.shape
        self.depth, self.width = operands[0].shape[2], sink.anchor.shape[2]
        *outer, own = values.scores.shape[:-1]
        repeats = repeats_of(form, outer[-1], {})
        #: Whether rows are neighbouring heads with the same keys; and whether each of them is a group of its own.
        self.across = own == 1 and (group_rows != 1 or repeats != 1)
        self.alone = self.across and group_rows == 1
        self.rows = (repeats if self.alone else group_rows) if self.across else own
        self.outer: list[int] = [*outer[:-1], outer[-1] // self.rows] if self.across else outer
        #: The axes of heads, with those of the same keys apart.
        self.heads = [*outer[:-1], outer[-1] // repeats, repeats] if not self.across and repeats != 1 else self.outer
        turned = (False, not form.first.attrs.transpose_b, form.last.attrs.transpose_b)
        #: Of queries, keys and values: the buffers, the first elements of heads, and the strides of rows and elements.
        self.lying = [self._lying(tensor, n == 0, turn) for n, (tensor, turn) in enumerate(zip(operands, turned))]
        self.lanes = kernel.isa.lanes
        # Two vectors share each element that is repeated. One has fewer idle lanes.
        lanes = [-(-self.rows // block) * block for block in (self.lanes, 2 * self.lanes)]
        two = not has_sizes((self.rows,)) and lanes[1] <= _IDLE * lanes[0]
        self.vectors = kernel.space.pick("vectors", (1, 2), 2 if two else 1)
        self.block = self.vectors * self.lanes
        most = ROW // self.block
        parts = 1 if has_sizes((self.keys,)) else -(-self.keys // most)
        #: The keys of a part, and whether that is all.
        self.part = most if has_sizes((self.keys,)) else -(-self.keys // parts)
        self.once = not has_sizes((self.keys,)) and parts == 1 and self.bound is None
        #: The rows of the products' results in registers.
        self.held = min(16, (kernel.isa.registers - self.vectors - 1) // self.vectors)

    def _place(self, head: ir.Expr, row: ir.Expr) -> list[ir.Expr]:
        """The group and the row in it of a head's row."""
        return [head * self.rows + row, ZERO] if self.alone else [head, row]

    def _lying(self, tensor: Tensor, queries: bool, turned: bool) -> tuple[Buf, ir.Expr, int, int]:
        """Where an operand lies: its buffer, the first element of a head, and the strides of rows and elements."""
        axes = len(self.heads)
        nest = Nest([*self.heads, self.rows if queries else self.keys, tensor.shape[1 if turned else 2]])
        head, row, element = affine(dict(enumerate(strides_of(self.heads)))), variable(axes), variable(axes + 1)
        group, row = self._place(head, row) if queries else (self._place(head, ZERO)[0], row)
        index = [group, element, row] if turned else [group, row, element]
        value = tensor.at(nest, index)
        if isinstance(value, ir.Load) and value.index.type == ir.INDEX:
            buf, place = Buf(value.buffer, tensor.shape, "float32"), value.index
        else:
            buf = self.kernel.in_memory(tensor)
            place = nest.place(buf, index)
        self.kernel.any_order.add(buf.name)
        factors = terms_of(place)
        first = ir.number(const_of(place))
        for axis, number in enumerate(digits(ir.Var("n"), self.heads)):
            first = first + number * factors.get(axis, 0)
        return buf, first, factors.get(axes, 0), factors.get(axes + 1, 0)

    def _function(self, rows: int, apart: int, taps: int, tap: int) -> tuple[str, list[ir.Expr]]:
        """The name of a function that adds to a block of results, and its argument for the distance of rows."""
        name = f"{self.kernel.name}_block{len(self.kernel.functions)}"
        distance = None if has_sizes((apart,)) else apart
        function = block_kernel(name, self.kernel.isa, PLAIN["float32"], self.vectors, rows, distance, 1, taps, tap, False)
        self.kernel.functions.append(function)
        return name, [ir.number(apart)] if distance is None else []

    @cached_property
    def turn(self) -> str:
        """The name of the function that turns squares."""
        name = f"{self.kernel.name}_turn{len(self.kernel.functions)}"
        self.kernel.functions.append(turn_kernel(name, self.kernel.isa, "float32"))
        return name

    def stage(self) -> None:
        """The stage of all units."""
        b = Builder()
        count = -(-self.rows // self.block)
        heads = math.prod(self.heads)
        with b.loop("u", heads * count, kind=ir.PARALLEL) as u:
            n, p = (b.let(name, digit) for name, digit in zip("np", digits(u, [heads, count])))
            r0 = b.let("r0", p * self.block)
            rn = b.let("rn", ir.minimum(ir.number(self.rows) - r0, self.block))
            queries = b.local("queries", "float32", [self.depth * self.block])
            scores = b.local("scores", "float32", [self.part * self.block])
            sums = b.local("sums", "float32", [self.width * self.block])
            peaks, totals = (b.local(name, "float32", [self.block]) for name in ("peaks", "totals"))
            self._turn_queries(b, r0, rn, queries)

            def products(first: ir.Expr, count: ir.Expr, parts: ir.Expr | int) -> None:
                """The sums of keys from `first` on."""
                for v in range(self.vectors):
                    b.store(peaks, ir.splat(_LOW, self.lanes), v * self.lanes)
                    b.store(totals, ir.splat(ir.Const(0.0, "float32"), self.lanes), v * self.lanes)
                with b.loop("part", parts) as part:
                    c0 = b.let("c0", part * self.part + first)
                    cn = b.let("cn", ir.number(self.part) if self.once else ir.minimum(count - part * self.part, self.part))
                    self._scores(b, c0, cn, queries, scores)
                    self._changed(b, n, r0, rn, c0, cn, scores)
                    self._powers(b, part, cn, scores, sums, peaks, totals)
                    self._sums(b, part, c0, cn, scores, sums)

            keys = ir.number(self.keys)
            if self.bound is None:
                products(ZERO, keys, 1 if self.once else -(-self.keys // self.part))
            else:
                begin, end = self._open_keys(b, n, r0, rn)
                again = b.var("again", 1)
                with b.repeat(again.ne(0)):
                    b.assign(again, 0)
                    products(begin, end - begin, (end - begin + (self.part - 1)) // self.part)
                    # A row without open keys is the mean of all.
                    with b.when((end - begin).ne(keys)):
                        with b.loop("r", rn) as r, b.when(ir.load(peaks, r) <= ir.Const(self.bound / 2, "float32")):
                            b.assign(again, 1)
                        b.assign(begin, ir.select(again.ne(0), ZERO, begin))
                        b.assign(end, ir.select(again.ne(0), keys, end))
            self._handed_on(b, n, r0, rn, sums, totals)
        self.kernel.stage(body=b.body)

    def _open_keys(self, b: Builder, n: ir.Expr, r0: ir.Expr, rn: ir.Expr) -> tuple[ir.Var, ir.Var]:
        """The keys that are not masked for all rows of a block: the first, and that behind the last."""
        keys = ir.number(self.keys)
        begin, end = b.var("begin", 0), b.var("end", keys)
        held = b.local("held", "int32", [_SPAN])
        for name, edge in (("upper", end), ("lower", begin)):
            masked = b.var(name, 1)
            with b.repeat((masked.ne(0)) & (begin < end)):
                low = ir.maximum(end - _SPAN, begin) if edge is end else begin
                c0 = b.let("c0", low)
                cn = b.let("cn", ir.minimum(end - c0, _SPAN))
                b.fill(held, 0, _SPAN)
                b.add(*self._marked(n, r0, rn, c0, cn, held))
                with b.loop("c", _SPAN) as c, b.when(ir.load(held, c).ne(0)):
                    b.assign(masked, 0)
                with b.when(masked.ne(0)):
                    b.assign(edge, c0 if edge is end else c0 + cn)
        with b.when(end <= begin):
            b.assign(begin, 0)
            b.assign(end, keys)
        return begin, end

    def _turn_queries(self, b: Builder, r0: ir.Expr, rn: ir.Expr, queries: ir.Local) -> None:
        """Write the rows of queries as columns; those behind the last row are 0."""
        buf, head, apart, step = self.lying[0]
        q = b.let("q", ir.address(buf, head + r0 * apart))
        squares = step == 1 and self.depth % self.lanes == 0
        for v in range(self.vectors):
            low = v * self.lanes
            plain = Builder()
            with plain.loop("d", self.depth) as d, plain.loop("r", self.lanes) as r:
                x = ir.load(q, ir.minimum(r + low, rn - 1) * apart + d * step)
                plain.store(queries, ir.select(r + low < rn, x, ir.Const(0.0, "float32")), d * self.block + r + low)
            if not squares:
                b.add(*plain.body)
                continue
            with b.when(rn >= low + self.lanes), b.loop("d", 0, self.depth, step=self.lanes) as d:
                to = ir.address(queries, d * self.block + low, written=True)
                b.call(self.turn, ir.address(q, d + low * apart), ir.number(apart), to, ir.number(self.block))
            with b.otherwise():
                b.add(*plain.body)

    def _scores(self, b: Builder, c0: ir.Expr, cn: ir.Expr, queries: ir.Local, scores: ir.Local) -> None:
        """The products of all rows with the keys of a part. The last block of keys reaches back over those before."""
        buf, head, apart, step = self.lying[1]
        k = b.let("k", ir.address(buf, head + c0 * apart))
        taps = 1 if has_sizes((step,)) else next(n for n in (8, 4, 2, 1) if self.depth % n == 0)
        tap = step if taps > 1 else 0

        def rows(count: int) -> None:
            name, distance = self._function(count, apart, taps, tap)
            with b.loop("c", 0, cn, step=count) as c:
                at = b.let("at", ir.minimum(c, cn - count) if count > 1 else c)
                b.call(
                    name,
                    ir.address(k, at * apart),
                    ir.address(queries, 0),
                    ir.address(scores, at * self.block, written=True),
                    ir.number(self.block),
                    *distance,
                    ir.number(1),
                    ir.number(self.depth // taps),
                    ir.number(step * taps),
                )

        if self.once:
            rows(-(-self.keys // -(-self.keys // self.held)))
            return
        with b.when(cn >= self.held):
            rows(self.held)
        with b.otherwise():
            rows(1)

    def _changed(self, b: Builder, n: ir.Expr, r0: ir.Expr, rn: ir.Expr, c0: ir.Expr, cn: ir.Expr, scores: ir.Local) -> None:
        """Scale and mask the scores, as the nodes between the product and softmax do."""
        if not self.changes:
            return
        row, base = len(self.outer) - self.across, b.let("base", self._base(n, r0))
        b.let("v", ir.address(scores, c0 * -self.block - base, written=True))

        def nest(row: int, key: int, first: ir.Expr, end: ir.Expr, count: Sequence[int], square: ir.Load | None = None) -> Nest:
            """The loops of keys from `first` to `end`, of which those of rows and keys have these numbers."""
            buf, form = Buf("v", self.values.scores.shape, "float32"), affine({key: self.block, row: 1})
            bounds: Bounds = {row: (base, base + (count[0] if count else rn), *count[:1]), key: (first, end, *count[1:])}
            made = self._nest(n, bounds, row < key)
            if square is not None:
                made.replaced[square.buffer] = ir.Load("mask", form, "float32")
            made.store(buf, form, self._score(made, row, key, lambda nest, _: nest.load(buf, form)))
            return made

        def emit(*count: int) -> ir.Body:
            made = nest(row + 1, row, c0, c0 + cn, count)
            loads = [n for n in made.reachable() if isinstance(n, ir.Load) and n.buffer != "v" and n.index.type == ir.INDEX]
            # Masks that lie in lines of keys are read along these.
            across = [n for n in loads if terms_of(n.index).get(row + 1, 0) not in (0, 1)]
            if not across:
                return self.kernel.statements(made)
            alone = sum(n.buffer == across[0].buffer for n in loads) == len(across) == 1
            if (
                not count
                or count[0] % self.lanes
                or not alone
                or across[0].type != "float32"
                or terms_of(across[0].index).get(row) != 1
            ):
                return self.kernel.statements(nest(row, row + 1, c0, c0 + cn, count))
            b = Builder()
            full = b.let("full", cn // self.lanes * self.lanes)
            with b.loop("k", 0, full, step=self.lanes) as k:
                first = b.let("k0", c0 + k)
                self._turn_mask(b, across[0], n, base, first)
                b.add(*self.kernel.statements(nest(row + 1, row, first, first + self.lanes, (*count, self.lanes), across[0])))
            b.add(*self.kernel.statements(nest(row, row + 1, c0 + full, c0 + cn, count)))
            return b.body

        b.add(*self._for_rows(rn, emit))

    def _turn_mask(self, b: Builder, mask: ir.Load, n: ir.Expr, base: ir.Expr, first: ir.Expr) -> None:
        """Let `mask` have the mask of a block of rows and of so many keys from `first` on as vectors have lanes."""
        row = len(self.outer) - self.across
        factors, place = terms_of(mask.index), first + const_of(mask.index)
        for d, number in enumerate((*digits(n, self.outer)[:row], None, base)):
            place = place if number is None else place + number * factors.get(d, 0)
        apart = ir.number(factors[row + 1])
        square = b.local("square", "float32", [self.lanes * self.block])
        source = b.let("source", ir.Address(mask.buffer, place, "const float32*"))
        for v in range(self.vectors):
            low = v * self.lanes
            b.call(self.turn, ir.address(source, apart * low), apart, ir.address(square, low, written=True), ir.number(self.block))
        b.let("mask", ir.address(square, first * -self.block - base))

    def _base(self, n: ir.Expr, r0: ir.Expr) -> ir.Expr:
        """The number of a unit's first row in the scores."""
        return digits(n, self.outer)[-1] * self.rows + r0 if self.across else r0

    def _nest(self, n: ir.Expr, bounds: Bounds, rows_first: bool) -> Nest:
        """The loops over the scores of a unit, those of rows and keys with these bounds, the others with one turn."""
        shape, last = self.values.scores.shape, len(self.outer) - self.across
        outer: Bounds = {d: (at, at + 1) for d, at in enumerate(digits(n, self.outer)[:last]) if shape[d] != 1}
        return Nest([*shape[:last], *((shape[last], self.keys) if rows_first else (self.keys, shape[last]))], outer | bounds)

    def _score(self, nest: Nest, row: int, key: int, product: Callable[[Nest, Sequence[Index]], Scalar]) -> Scalar:
        """The score in the loops `row` and `key` of a product."""
        own = [variable(row), ZERO] if self.across else [variable(row)]
        self.values.product.impl = Recipe(self.values.product.shape, "float32", product)
        value = self.values.scores.at(nest, [*map(variable, range(min(row, key))), *own, variable(key)])
        self.values.product.impl = None
        return value

    def _marked(self, n: ir.Expr, r0: ir.Expr, rn: ir.Expr, c0: ir.Expr, cn: ir.Expr, held: ir.Local) -> ir.Body:
        """Let the numbers of keys not be 0 that are not masked for some row."""
        assert self.bound is not None
        row, base, bound = len(self.outer) - self.across, self._base(n, r0), ir.Const(self.bound, "float32")
        made = self._nest(n, {row: (base, base + rn), row + 1: (c0, c0 + cn)}, True)
        masked = self._score(made, row, row + 1, lambda nest, _: nest.const(0.0, "float32")) <= bound
        made.reduce(Buf("marks", [self.keys], "int32"), variable(row + 1), "peak", masked.select(ir.Const(0, "int32"), 1))
        if not any(terms_of(i).get(row) for node in made.reachable() for i in visit.parts(node) if i.type == ir.INDEX):
            made.bounds[row] = (base, base + 1)
        return [ir.Let("marks", ir.address(held, c0 * -1, written=True)), *self.kernel.statements(made)]

    def _for_rows(self, rn: ir.Expr, emit: Any) -> ir.Body:
        """Statements for all rows of a block: compilers make better ones where their count is known."""
        if not has_sizes((self.rows,)) and self.rows % self.block == 0:
            return emit(self.block)
        if surely_less(self.rows, self.block):
            return emit(self.rows)
        return [ir.If(rn.eq(self.block), emit(self.block), emit())]

    def _powers(
        self, b: Builder, part: ir.Expr, cn: ir.Expr, scores: ir.Local, sums: ir.Local, peaks: ir.Local, totals: ir.Local
    ) -> None:
        """The exponentials of scores less the greatest so far, and their sums."""
        lanes, every = self.lanes, range(self.vectors)
        before = [b.let(f"before{v}", ir.load(peaks, v * lanes, lanes=lanes)) for v in every]
        peak = [b.var(f"peak{v}", before[v]) for v in every]
        with b.loop("c", cn) as c:
            for v in every:
                b.assign(peak[v], ir.op("peak", peak[v], ir.load(scores, c * self.block + v * lanes, lanes=lanes)))
        total = [b.var(f"total{v}", ir.load(totals, v * lanes, lanes=lanes)) for v in every]
        if not self.once:
            with b.when(part > 0):
                for v in every:
                    scale = b.let(f"scale{v}", ir.op("exp", before[v] - peak[v]))
                    b.assign(total[v], total[v] * scale)
                    with b.loop("d", self.width) as d:
                        at = d * self.block + v * lanes
                        b.store(sums, ir.load(sums, at, lanes=lanes) * scale, at)
        with b.loop("c", cn) as c:
            for v in every:
                at = c * self.block + v * lanes
                power = b.let(f"power{v}", ir.op("exp", ir.load(scores, at, lanes=lanes) - peak[v]))
                b.assign(total[v], total[v] + power)
                b.store(scores, power, at)
        for v in every:
            b.store(peaks, peak[v], v * lanes)
            b.store(totals, total[v], v * lanes)

    def _sums(self, b: Builder, part: ir.Expr, c0: ir.Expr, cn: ir.Expr, scores: ir.Local, sums: ir.Local) -> None:
        """Add the values of a part's keys times the exponentials."""
        buf, head, step, apart = self.lying[2]
        x = b.let("x", ir.address(buf, head + c0 * step))
        many = -(-self.width // self.held)
        less, full = self.width // many, self.width % many
        first = ir.number(1) if self.once else part.eq(0)

        def columns(rows: int, low: int, high: int) -> None:
            """The results of a head's elements from `low` up to `high`."""
            taps = 1 if has_sizes((step,)) else 4
            for number, width in enumerate((taps, 1)[: 1 + (taps > 1)]):
                steps = cn // width if number == 0 else cn % taps
                if number and self.once and self.keys % taps == 0:
                    break
                name, distance = self._function(rows, apart, width, step if width > 1 else 0)
                with b.loop("d", low, high, step=rows) as d:
                    b.call(
                        name,
                        ir.address(x, d * apart) if number == 0 else ir.address(x, d * apart + cn // taps * taps * step),
                        ir.address(scores, 0) if number == 0 else ir.address(scores, cn // taps * (taps * self.block)),
                        ir.address(sums, d * self.block, written=True),
                        ir.number(self.block),
                        *distance,
                        first if number == 0 else ir.number(0),
                        steps,
                        ir.number(step * width),
                    )

        if full:
            columns(less + 1, 0, full * (less + 1))
        columns(less, full * (less + 1), self.width)

    def _handed_on(self, b: Builder, n: ir.Expr, r0: ir.Expr, rn: ir.Expr, sums: ir.Local, totals: ir.Local) -> None:
        """Divide the sums by those of the exponentials, and pass the rows on."""
        lanes, block = self.lanes, self.block
        for v in range(self.vectors):
            total = ir.load(totals, v * lanes, lanes=lanes)
            b.store(totals, ir.splat(ir.Const(1.0, "float32"), lanes) / total, v * lanes)
        b.add(*self._guarded(n, r0, rn))
        results = b.local("results", "float32", [self.width * block])
        for v in range(self.vectors):
            scale = b.let(f"share{v}", ir.load(totals, v * lanes, lanes=lanes))
            with b.loop("d", self.width) as d:
                at = d * block + v * lanes
                b.store(sums, ir.load(sums, at, lanes=lanes) * scale, at)
            if self.width % lanes == 0:
                with b.loop("d", 0, self.width, step=lanes) as d:
                    to = ir.address(results, d + v * lanes * self.width, written=True)
                    b.call(self.turn, ir.address(sums, d * block + v * lanes), ir.number(block), to, ir.number(self.width))
            else:
                with b.loop("d", self.width) as d, b.loop("r", lanes) as r:
                    b.store(results, ir.load(sums, d * block + r + v * lanes), (r + v * lanes) * self.width + d)
        first = b.let("m0", self._first(n, r0))
        b.let("y", ir.address(results, first * -self.width))

        def emit(*count: int) -> ir.Body:
            strides = [self.width, 0, 1] if self.alone else [0, self.width, 1]
            return self.sink.block("y", strides, self._bounds(n, first, count[0] if count else rn, *count))

        b.add(*self._for_rows(rn, emit))

    def _first(self, n: ir.Expr, r0: ir.Expr) -> ir.Expr:
        """The number of a unit's first row, along the product's axis of rows: that of groups where rows are `alone`."""
        return n * self.rows + r0 if self.alone else r0

    def _bounds(self, n: ir.Expr, first: ir.Expr, *count: ir.Expr | int) -> Bounds:
        """The rows of a unit in the products."""
        rows = (first, first + count[0], *count[1:])
        return {0: rows} if self.alone else {0: (n, n + 1), 1: rows}

    def _guarded(self, n: ir.Expr, r0: ir.Expr, rn: ir.Expr) -> ir.Body:
        """Let the rows be 0 that the nodes behind softmax say."""
        values = self.values
        if not self.guards:
            return []
        shape = (*values.product.shape[:2], 1)
        first = self._first(n, r0)
        nest = Nest(shape, self._bounds(n, first, rn))
        buf, row = Buf("shares", shape, "float32"), variable(0 if self.alone else 1)
        values.shares.impl = Recipe(values.shares.shape, "float32", lambda nest, _: nest.load(buf, row))
        nest.store(buf, row, values.weights.at(nest, [variable(0), variable(1), ZERO]))
        values.shares.impl = None
        return [ir.Let("shares", ir.address(ir.Var("totals", "float32*"), first * -1, written=True)), *self.kernel.statements(nest)]
