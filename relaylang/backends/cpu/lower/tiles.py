"""Windows over data with channels last: depthwise convolutions and pools.

A tile is held in registers: neighbouring results along a line, for a vector of channels. A column of the data is read
once for all windows that have it. Windows at the border have fewer rows and columns. The number of rows is known at run
time. Tiles at the ends of a line are functions of their own. So nothing is copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from relaylang.backends.cpu.kernel import Kernel, Sink
from relaylang.backends.cpu.lower.factors import Zero, takes_off, zero_of
from relaylang.backends.cpu.lower.geometry import Conv
from relaylang.backends.cpu.lower.reduce import combine, start_of
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.index import affine, digits, strides_of, variable
from relaylang.kernels.nest import Bounds, Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import Size, sizes_in, surely_less

#: The most channels of a tile's results that are held before they are passed on.
_CHUNK = 256
_CHUNKS = (16, 32, 64, 128, 256, 512)
#: The most neighbouring results of a tile, and the most taps of a line that its code may have.
_TILE, _TAPS = 14, 16
#: The most different tiles of a line, each of which is a function.
_SHAPES = 6

Finish = Callable[[Sink, Nest, Sequence[Index], Scalar], None]


def plain(sink: Sink, nest: Nest, index: Sequence[Index], value: Scalar) -> None:
    """Store a result as it is."""
    sink.store(nest, index, value)


@dataclass(frozen=True)
class Tile:
    """Neighbouring results of a line: how many, and the columns, relative to the first one's window, with data."""

    count: int
    columns: range


@dataclass
class Form:
    """How a tile's code is written: its types, and where the next row and column are."""

    dtype: str
    source: str  # the data's type
    weight: str  # the weights'
    lanes: int  # of a vector; 1 for plain numbers
    rows: list[int]  # the data's steps along the outer axes of the kernel
    weights: list[int]  # the weights' steps along them, in taps
    column: int  # the data's step along the line
    channels: int
    taps: int  # along the line
    stride: int
    dilation: int
    to: int  # the results' step along the line
    how: str  # "dot", "sum" or "peak"
    pairs: bool  # two rows at once, as 16-bit numbers
    zero: bool  # whether the data have a zero point
    even: bool  # every chunk of channels is whole vectors

    @property
    def vector(self) -> str:
        return ir.vector(self.dtype, self.lanes)

    def at(self, place: ir.Expr) -> ir.Expr:
        """The data at a place of `x`, in the accumulator's type and without their zero point."""
        value = self.loaded("x", self.source, place)
        return value - ir.Var("z", self.vector) if self.zero else value

    def loaded(self, pointer: str, dtype: str, place: ir.Expr) -> ir.Expr:
        """The numbers of a type at a place, in the accumulator's type."""
        return ir.cast(ir.load(ir.Var(pointer, f"const {dtype}*"), place, lanes=self.lanes), self.vector)

    @property
    def sizes(self) -> list[str]:
        """The sizes that the code reads."""
        return sizes_in(*self.rows, *self.weights, self.column, self.channels, self.to)

    @property
    def start(self) -> ir.Expr:
        """What a result begins with."""
        return ir.splat(ir.Const(start_of("peak", self.dtype) if self.how == "peak" else 0, self.dtype), self.lanes)

    def add(self, x: ir.Expr, w: ir.Expr, total: ir.Expr) -> ir.Expr:
        if self.how != "dot":
            return ir.op(combine(self.how, self.dtype), total, x)
        if self.pairs:
            return ir.Intrinsic("madd", (x, w, total), total.type)
        return ir.fma(x, w, total) if self.lanes > 1 or self.dtype == "float32" else x * w + total


def _tile_function(name: str, form: Form, tile: Tile) -> ir.Function:
    """`name(x0, w0, t, cn, n0, n1..., zero, sizes...)`: a tile's results for `cn` channels; outer axis `i` has `n<i>` taps."""
    depth = len(form.rows)
    x, w = ir.Param("x0", f"const {form.source}*"), ir.Param("w0", f"const {form.weight}*")
    t, cn = ir.Param("t", f"{form.dtype}*"), ir.Param("cn", ir.INDEX)
    params = [x, w, t, cn, *(ir.Param(f"n{d}", ir.INDEX) for d in range(depth))]
    params += [ir.Param("zero", "int32")] if form.zero else []
    b = Builder()
    if form.zero:
        b.let("z", ir.splat(ir.cast(ir.Var("zero", "int32"), form.dtype), form.lanes))
    with b.loop("c", 0, ir.Var("cn"), step=form.lanes) as c:
        # The last vector reaches back where the channels are not whole vectors.
        e = b.let("e", c if form.even or form.lanes == 1 else ir.minimum(c, ir.Var("cn") - form.lanes))
        totals = [b.var(f"a{p}", form.start) for p in range(tile.count)]
        b.var("x", ir.address(x, e))
        b.var("w", ir.address(w, e))
        _rows(b, form, tile, totals, 0)
        for p, total in enumerate(totals):
            b.store(t, total, e + p * form.to)
    return ir.Function(name, [*params, *(ir.Param(size, ir.INDEX) for size in form.sizes)], b.body)


def _rows(b: Builder, form: Form, tile: Tile, totals: list[ir.Var], depth: int) -> None:
    """The loops over the outer axes of the kernel from `depth` on, and the lines inside. Pointers go on with each row."""
    if depth == len(form.rows):
        _sums(b, form, tile, totals)
        return
    step = form.channels * (2 if form.pairs else 1)  # between the weights of neighbouring taps
    row, weight, count = form.rows[depth], form.weights[depth] * step, ir.Var(f"n{depth}")
    data, taps = ir.Var("x", f"const {form.source}*"), ir.Var("w", f"const {form.weight}*")
    # Each axis begins where the one around it stands.
    outer = [b.let(f"{name.name}_{depth}", ir.address(name, 0)) for name in (data, taps)]
    twice = form.pairs and depth == len(form.rows) - 1
    with b.loop(f"l{depth}", 0, count // 2 * 2 if twice else count, step=2 if twice else 1):
        if twice:
            _sums(b, form, tile, totals, pair=row)
        else:
            _rows(b, form, tile, totals, depth + 1)
        b.assign(data, ir.address(data, row * (2 if twice else 1)))
        b.assign(taps, ir.address(taps, weight * (2 if twice else 1)))
    if twice:
        with b.when((count % 2).eq(1)):
            b.assign(taps, ir.address(taps, form.channels))
            _sums(b, form, tile, totals)
    if depth:
        for name, begin in zip((data, taps), outer):
            b.assign(name, begin)


def _sums(b: Builder, form: Form, tile: Tile, totals: list[ir.Var], pair: int = 0) -> None:
    """Add a line of taps to the tile's sums. With `pair`, add two lines, so far apart in the data."""
    step = form.channels * (2 if form.pairs else 1)
    weights = [b.let(f"k{k}", form.loaded("w", form.weight, ir.expr(k * step))) for k in range(form.taps if form.how == "dot" else 0)]
    for j in tile.columns:
        uses = [(p, k) for k in range(form.taps) for p in range(tile.count) if p * form.stride + k * form.dilation == j]
        if not uses:
            continue
        value = form.at(ir.expr(j * form.column))
        if pair:
            value = value & 65535 | form.at(ir.expr(j * form.column + pair)) << 16
        v = b.let(f"v{j}", value)
        for p, k in uses:
            b.assign(totals[p], form.add(v, weights[k] if weights else v, totals[p]))


def tiles_of(conv: Conv, most: int) -> list[tuple[Tile, int]]:
    """The tiles of a line, equal neighbours once with their number."""
    length, stride, reach = conv.out[-1], conv.stride[-1], (conv.kernel[-1] - 1) * conv.dilation[-1]
    count = -(-length // -(-length // most))
    # From the first tile with all of its columns on, those before this one are equal.
    fitting = min(length // count, (conv.size[-1] + conv.before[-1] - (count - 1) * stride - reach - 1) // (count * stride) + 1)
    out: list[tuple[Tile, int]] = []
    at, tiles = 0, -(-length // count)
    while at < tiles:
        own = min(count, length - at * count)
        start = at * count * stride - conv.before[-1]
        tile = Tile(own, range(max(0, -start), min((own - 1) * stride + reach + 1, conv.size[-1] - start)))
        equal = max(1, fitting - at) if start >= 0 else 1
        at += equal
        if out and out[-1][0] == tile:
            equal += out.pop()[1]
        out.append((tile, equal))
    return out


def _chunk(channels: int, lanes: int, most: int) -> int:
    """The channels that are worked on together, about `most`: none of the chunks is less than a vector."""
    if isinstance(channels, Size):
        return most
    count = -(-channels // most)
    size = -(-channels // (count * lanes)) * lanes
    while 0 < channels % size < lanes and size < channels:
        size += lanes
    return min(size, channels)


def lower_tiles(
    kernel: Kernel,
    conv: Conv,
    data: Buf,
    sink: Sink,
    dtype: str,
    how: str,
    pairs: bool = False,
    zero: Zero = 0,
    pack: Callable[[bool], Buf] | None = None,
    finish: Finish = plain,
) -> None:
    """Emit windows over channels-last data: `how` is "dot" (with weights), "sum" or "peak" (the maximum).

    Result channel `c` is made of channel `c` of the data, whose last stride is 1. `pack(pairs)` gives the weights. With
    `pairs`, two rows go through one instruction, if the geometry allows. `zero` is taken off each element.
    `finish(nest, index, value)` stores a result.
    """
    shape = sink.anchor.shape
    channels = conv.groups * conv.outputs
    isa = kernel.isa.of(dtype)
    lanes = isa.lanes if surely_less(isa.lanes - 1, channels) else 1
    held = min(conv.kernel[-1], 5) + 2 + (2 if pairs or takes_off(zero) else 0)
    limit = max(1, min(_TILE, isa.registers - held))
    tiles = [] if isinstance(conv.out[-1], Size) else tiles_of(conv, kernel.space.pick("tile", range(1, limit + 1), limit))
    along = conv.kernel[-1] <= _TAPS and 0 < len({tile for tile, _ in tiles}) <= _SHAPES
    pairs = pairs and along and lanes > 1
    packed = pack(pairs) if pack is not None else None
    if not along:
        # The line is an axis like the others, and each tile one result.
        conv = replace(
            conv,
            kernel=[*conv.kernel, 1],
            stride=[*conv.stride, 1],
            dilation=[*conv.dilation, 1],
            size=[*conv.size, 1],
            out=[*conv.out, 1],
            before=[*conv.before, 0],
            behind=[*conv.behind, 0],
        )
        tiles = tiles_of(conv, 1)
    x_steps = [*data.strides[: len(conv.axes) + 1], 1]
    o_steps = strides_of([conv.batch, *conv.out, channels])
    outer = range(len(conv.kernel) - 1)
    chunk = _chunk(channels, lanes, kernel.space.pick("channels", [c for c in _CHUNKS if surely_less(c, channels)], _CHUNK))
    direct = sink.direct if finish is plain else None
    taps = strides_of(conv.kernel)
    form = Form(
        dtype,
        data.dtype,
        packed.dtype if packed is not None else dtype,
        lanes,
        [dilation * step for dilation, step in zip(conv.dilation, x_steps[1 : len(conv.kernel)])],
        taps[:-1],
        x_steps[len(conv.kernel)],
        channels,
        conv.kernel[-1],
        conv.stride[-1],
        conv.dilation[-1],
        channels if direct else chunk,
        how,
        pairs,
        takes_off(zero),
        channels % lanes == 0,
    )
    names: dict[Tile, str] = {}
    for tile, _ in tiles:
        if tile not in names:
            names[tile] = f"{kernel.name}_tile{len(names)}"
            kernel.functions.append(_tile_function(names[tile], form, tile))
    most, line = tiles[0][0].count, sum(equal for _, equal in tiles)
    chunks = -(-channels // chunk)
    extents = [conv.batch, chunks, *(conv.out[d] for d in outer)]
    b = Builder()
    with b.loop("u", math.prod(extents), kind=ir.PARALLEL) as u, ExitStack() as inside:
        n, k, *ys = (b.let(name, digit) for name, digit in zip(["n", "k", *(f"y{d}" for d in outer)], digits(u, extents)))
        c0 = b.let("c0", k * chunk)
        cn = b.let("cn", ir.minimum(channels - c0, chunk))
        x_at, w_at, counts = _first_taps(b, conv, form, x_steps, n * x_steps[0] + c0, c0, ys)
        x = b.let("x", ir.address(data, x_at))
        w = ir.address(packed, w_at) if packed is not None else ir.cast(ir.number(0), f"const {form.weight}*")
        t: ir.Local | ir.Var | None = b.local("t", dtype, [most * chunk]) if direct is None else None
        q = inside.enter_context(b.loop("q", line)) if line > 1 else ir.number(0)
        p = b.let("p", q * most)
        if direct is not None:
            place = sum((y * o_steps[d + 1] for d, y in zip(outer, ys)), n * o_steps[0] + c0 + p * channels)
            t = b.let("t", ir.address(direct, place, written=True))
        zeros = [] if not form.zero else [zero_of(zero)]
        start = ir.address(x, p * (conv.stride[-1] * form.column) - conv.before[-1] * form.column)
        to = ir.address(t, 0, written=True)
        _calls(b, tiles, q, lambda tile: ir.Call(names[tile], (start, w, to, cn, *counts, *zeros, *map(ir.Var, form.sizes))))
        if direct is None:
            strides = {conv.channel: 1}
            bounds: Bounds = {0: (n, n + 1), conv.channel: (c0, c0 + cn), **{conv.axes[d]: (y, y + 1) for d, y in zip(outer, ys)}}
            shift: ir.Expr = c0
            if along:
                bounds[conv.axes[-1]] = (p, ir.minimum(p + most, conv.out[-1]))
                strides[conv.axes[-1]] = chunk
                shift = c0 + p * chunk
            b.let("v", ir.address(t, shift * -1))
            nest = Nest(shape, bounds)
            index = [variable(d) for d in range(len(shape))]
            place_in = affine({d: s for d, s in sorted(strides.items()) if shape[d] != 1})
            finish(sink, nest, index, nest.load(Buf("v", shape, dtype), place_in))
            b.add(*kernel.statements(nest))
    kernel.stage(body=b.body)


def _first_taps(
    b: Builder, conv: Conv, form: Form, x_steps: Sequence[int], x_at: ir.Expr, w_at: ir.Expr, ys: Sequence[ir.Expr]
) -> tuple[ir.Expr, ir.Expr, list[ir.Expr]]:
    """The places of a window's first tap in the data and the weights, and its taps with data along the outer axes."""
    counts: list[ir.Expr] = []
    for d, y in enumerate(ys):
        count, step = conv.kernel[d], conv.dilation[d]
        if not conv.before[d] and not conv.behind[d]:
            x_at = x_at + y * (conv.stride[d] * x_steps[d + 1])
            counts.append(ir.expr(count))
            continue
        # The rows of the window that are data: `count` of them from `first` on.
        at = b.let(f"at{d}", y * conv.stride[d] - conv.before[d])
        first = b.let(f"first{d}", ir.select(at < 0, (step - 1 - at) // step, ir.number(0)))
        end = b.let(f"end{d}", (conv.size[d] + (step - 1) - at) // step)
        counts.append(b.let(f"n{d}", ir.minimum(end, count) - first))
        x_at = x_at + (at + first * step) * x_steps[d + 1]
        w_at = w_at + first * (form.weights[d] * form.channels * (2 if form.pairs else 1))
    return x_at, w_at, counts


def _calls(b: Builder, tiles: list[tuple[Tile, int]], q: ir.Expr, call: Callable[[Tile], ir.Call]) -> None:
    """The call of the tile that number `q` is, of stretches of equal ones."""
    passed = sum(equal for _, equal in tiles)
    body: ir.Body = []
    for tile, equal in reversed(tiles):
        passed -= equal
        body = [ir.If(q < passed + equal, [call(tile)], body)] if body else [call(tile)]
    b.add(*body)
