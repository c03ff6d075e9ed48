"""Windows over data with channels last: depthwise convolutions and pools.

A tile is held in registers: neighbouring results along a line, for a vector of channels. A column of the data is read
once for all windows that have it. Windows at the border have fewer rows and columns. The number of rows is known at run
time. Tiles at the ends of a line are functions of their own. So nothing is copied.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import Kernel, Sink
from relaylang.backends.cpu.lower.geometry import Conv, digits
from relaylang.backends.cpu.lower.reduce import combined_text, start_text
from relaylang.kernels import render
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.index import Affine, strides_of, variable
from relaylang.kernels.nest import Bounds, Buf, Nest, Scalar
from relaylang.kernels.render import VECTORS, WIDEN
from relaylang.kernels.sizes import Size, sizes_in, surely_less
from relaylang.kernels.vectors import written_out

#: The most channels of a tile's results that are held before they are passed on.
_CHUNK = 256
#: The most neighbouring results of a tile, and the most taps of a line that its code may have.
_TILE, _TAPS = 14, 16
#: The most different tiles of a line, each of which is a function.
_SHAPES = 6

Finish = Callable[[Sink, Nest, Sequence[Affine], Scalar], None]


def plain(sink: Sink, nest: Nest, index: Sequence[Affine], value: Scalar) -> None:
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

    isa: Isa
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
    zero: str
    even: bool  # every chunk of channels is whole vectors

    @property
    def vector(self) -> str:
        return VECTORS[self.dtype][0] if self.lanes > 1 else CTYPES[self.dtype]

    def at(self, address: str) -> str:
        """The data at an address, in the accumulator's type and without their zero point."""
        value = self.loaded(address, self.source)
        return f"({value} - z)" if self.zero else value

    def loaded(self, address: str, dtype: str) -> str:
        """The numbers of a type at an address, in the accumulator's type."""
        if self.lanes == 1:
            return f"({self.vector})*({address})"
        return f"*(const {self.vector}u*)({address})" if dtype == self.dtype else f"{WIDEN[self.dtype][dtype]}({address})"

    @property
    def sizes(self) -> list[str]:
        """The sizes that the code reads."""
        return sizes_in(f"{self.rows} {self.weights} {self.column} {self.channels} {self.to}")

    @property
    def start(self) -> str:
        """What a result begins with."""
        if self.how != "peak":
            return "{0}"
        lowest = start_text("peak", self.dtype)
        return f"r_splat_{VECTORS[self.dtype][1]}({lowest})" if self.lanes > 1 else lowest

    def add(self, x: str, w: str, total: str) -> str:
        if self.how == "sum":
            return f"{total} + {x}"
        suffix = VECTORS[self.dtype][1]
        if self.how == "peak":
            return combined_text("peak", self.dtype, total, x) if self.lanes == 1 else f"r_peak_{suffix}({x}, {total})"
        if self.lanes == 1:
            return f"r_fma_f32({x}, {w}, {total})" if self.dtype == "float32" else f"{x} * {w} + {total}"
        return f"r_{'madd' if self.pairs else 'fma'}_{suffix}({x}, {w}, {total})"


def _tile_function(name: str, form: Form, tile: Tile) -> str:
    """C of `name(x, w, t, cn, n0, n1..., z, sizes...)`: a tile's results for `cn` channels; outer axis `i` has `n<i>` taps."""
    ctype = CTYPES[form.dtype]
    vec, lanes = form.vector, form.lanes
    depth = len(form.rows)
    limits = "".join(f", long n{d}" for d in range(depth)) + (", int32_t zero" if form.zero else "")
    limits += "".join(f", long {size}" for size in form.sizes)
    out = [
        f"static __attribute__((noinline)) void {name}(const {CTYPES[form.source]}* restrict x, "
        f"const {CTYPES[form.weight]}* restrict w, {ctype}* restrict t, long cn{limits}) {{"
    ]
    if form.zero:
        out.append(f"  const {vec} z = {f'r_splat_{VECTORS[form.dtype][1]}(({ctype})zero)' if lanes > 1 else 'zero'};")
    out.append(f"  for (long c = 0; c < cn; c += {lanes}) {{")
    # The last vector reaches back where the channels are not whole vectors.
    out.append("    const long e = c;" if form.even or lanes == 1 else f"    const long e = c < cn - {lanes} ? c : cn - {lanes};")
    out.append(f"    {vec} " + ", ".join(f"a{p} = {form.start}" for p in range(tile.count)) + ";")
    pad, x, w = "    ", "x + e", "w + e"
    step = form.channels * (2 if form.pairs else 1)  # between the weights of neighbouring taps
    for d in range(depth):
        next_row, next_weight = form.rows[d], form.weights[d] * step
        out.append(f"{pad}const {CTYPES[form.source]}* x{d} = {x};\n{pad}const {CTYPES[form.weight]}* w{d} = {w};")
        x, w = f"x{d}", f"w{d}"
        if form.pairs and d == depth - 1:
            out.append(f"{pad}long l{d} = 0;")
            out.append(f"{pad}for (; l{d} + 1 < n{d}; l{d} += 2, x{d} += {2 * next_row}, w{d} += {2 * next_weight}) {{")
            out += _sums(f"{pad}  ", form, tile, x, w, step, pair=next_row)
            out.append(f"{pad}}}\n{pad}if (l{d} < n{d}) {{")
            w = f"{w} + {form.channels}"
        else:
            out.append(f"{pad}for (long l{d} = 0; l{d} < n{d}; l{d}++, x{d} += {next_row}, w{d} += {next_weight}) {{")
        pad += "  "
    out += _sums(pad, form, tile, x, w, step)
    for _ in range(depth):
        pad = pad[:-2]
        out.append(f"{pad}}}")
    store = f"*({vec}u*)(t + " if lanes > 1 else "*(t + "
    for p in range(tile.count):
        out.append(f"    {store}{p * form.to} + e) = a{p};")
    out.append("  }\n}")
    return "\n".join(out)


def _sums(pad: str, form: Form, tile: Tile, x: str, w: str, step: int, pair: int = 0) -> list[str]:
    """C that adds a line of taps to the tile's sums. With `pair`, it adds two lines, so far apart in the data."""
    weights = range(form.taps if form.how == "dot" else 0)
    out = [f"{pad}const {form.vector} k{k} = {form.loaded(f'{w} + {k * step}', form.weight)};" for k in weights]
    for j in tile.columns:
        uses = [(p, k) for k in range(form.taps) for p in range(tile.count) if p * form.stride + k * form.dilation == j]
        if not uses:
            continue
        value = form.at(f"{x} + {j * form.column}")
        if pair:
            value = f"r_pair_vi({value}, {form.at(f'{x} + {j * form.column + pair}')})"
        steps = " ".join(f"a{p} = {form.add('v', f'k{k}', f'a{p}')};" for p, k in uses)
        out.append(f"{pad}{{ const {form.vector} v = {value}; {steps} }}")
    return out


def tiles_of(conv: Conv, most: int) -> list[tuple[Tile, int]]:
    """The tiles of a line, equal neighbours once with their number."""
    length, stride, reach = conv.out[-1], conv.stride[-1], (conv.kernel[-1] - 1) * conv.dilation[-1]
    count = -(-length // -(-length // most))
    # From the first tile with all of its columns on, those before this one are equal.
    whole = min(length // count, (conv.size[-1] + conv.before[-1] - (count - 1) * stride - reach - 1) // (count * stride) + 1)
    out: list[tuple[Tile, int]] = []
    at, tiles = 0, -(-length // count)
    while at < tiles:
        own = min(count, length - at * count)
        start = at * count * stride - conv.before[-1]
        tile = Tile(own, range(max(0, -start), min((own - 1) * stride + reach + 1, conv.size[-1] - start)))
        equal = max(1, whole - at) if start >= 0 else 1
        at += equal
        if out and out[-1][0] == tile:
            equal += out.pop()[1]
        out.append((tile, equal))
    return out


def _chunk(channels: int, lanes: int) -> int:
    """The channels that are worked on together: none of the chunks is less than a vector."""
    if isinstance(channels, Size):
        return _CHUNK
    count = -(-channels // _CHUNK)
    size = -(-channels // (count * lanes)) * lanes
    while 0 < channels % size < lanes and size < channels:
        size += lanes
    return min(size, channels)


def lower_tiles(kernel: Kernel, conv: Conv, data: Buf, sink: Sink, dtype: str, how: str, pairs: bool = False, zero: str = "",
                pack: Callable[[bool], Buf] | None = None, finish: Finish = plain) -> None:  # fmt: skip
    """Emit windows over channels-last data: `how` is "dot" (with weights), "sum" or "peak" (the maximum).

    Result channel `c` is made of channel `c` of the data, whose last stride is 1. `pack(pairs)` gives the weights. With
    `pairs`, two rows go through one instruction, if the geometry allows. `zero` is C subtracted from each element.
    `finish(nest, index, value)` stores a result.
    """
    shape = sink.anchor.shape
    channels = conv.groups * conv.outputs
    isa = kernel.isa.of(dtype)
    lanes = isa.lanes if surely_less(isa.lanes - 1, channels) else 1
    held = min(conv.kernel[-1], 5) + 2 + (2 if pairs or zero else 0)
    tiles = [] if isinstance(conv.out[-1], Size) else tiles_of(conv, max(1, min(_TILE, isa.registers - held)))
    along = conv.kernel[-1] <= _TAPS and 0 < len({tile for tile, _ in tiles}) <= _SHAPES
    pairs = pairs and along and lanes > 1
    packed = pack(pairs) if pack is not None else None
    if not along:
        # The line is an axis like the others, and each tile one result.
        conv = replace(
            conv, kernel=[*conv.kernel, 1], stride=[*conv.stride, 1], dilation=[*conv.dilation, 1], size=[*conv.size, 1],
            out=[*conv.out, 1], before=[*conv.before, 0], behind=[*conv.behind, 0],
        )  # fmt: skip
        tiles = tiles_of(conv, 1)
    x_steps = [*data.strides[: len(conv.axes) + 1], 1]
    o_steps = strides_of([conv.batch, *conv.out, channels])
    outer = range(len(conv.kernel) - 1)
    chunk = _chunk(channels, lanes)
    direct = sink.direct if finish is plain else None
    taps = strides_of(conv.kernel)
    form = Form(
        isa, dtype, data.dtype, packed.dtype if packed is not None else dtype, lanes,
        [conv.dilation[d] * x_steps[d + 1] for d in outer], [taps[d] for d in outer],
        x_steps[len(conv.kernel)], channels, conv.kernel[-1], conv.stride[-1], conv.dilation[-1],
        channels if direct else chunk, how, pairs, zero, channels % lanes == 0,
    )  # fmt: skip
    names: dict[Tile, str] = {}
    for tile, _ in tiles:
        if tile not in names:
            names[tile] = f"{kernel.name}_tile{len(names)}"
            kernel.functions.append(_tile_function(names[tile], form, tile))
    most, line = tiles[0][0].count, sum(equal for _, equal in tiles)
    chunks = -(-channels // chunk)
    units = conv.batch * chunks
    for d in outer:
        units *= conv.out[d]
    ctype = CTYPES[dtype]
    stage = kernel.stage(units)
    put = stage.put
    put("for (long u = lo; u < hi; u++) {")
    order = [*[(f"y{d}", conv.out[d]) for d in reversed(outer)], ("k", chunks), ("n", conv.batch)]
    put(f"  const long {', '.join(digits('u', order))};")
    put(f"  const long c0 = k * {chunk}, cn = {channels} - c0 < {chunk} ? {channels} - c0 : {chunk};")
    x_at = [f"n * {x_steps[0]}", "c0"]
    w_at, counts = ["c0"], []
    for d in outer:
        size, count, step, before = conv.size[d], conv.kernel[d], conv.dilation[d], conv.before[d]
        if not before and not conv.behind[d]:
            x_at.append(f"y{d} * {conv.stride[d] * x_steps[d + 1]}")
            counts.append(str(count))
            continue
        # The rows of the window that are data: `count` of them from `first` on.
        put(f"  const long at{d} = y{d} * {conv.stride[d]} - {before}, first{d} = at{d} < 0 ? ({step - 1} - at{d}) / {step} : 0;")
        put(f"  const long end{d} = ({size} - at{d} + {step - 1}) / {step}, n{d} = (end{d} < {count} ? end{d} : {count}) - first{d};")
        x_at.append(f"(at{d} + first{d} * {step}) * {x_steps[d + 1]}")
        w_at.append(f"first{d} * {form.weights[d] * channels * (2 if pairs else 1)}")
        counts.append(f"n{d}")
    put(f"  const {CTYPES[data.dtype]}* x = {data.name} + {' + '.join(x_at)};")
    put(f"  const {CTYPES[form.weight]}* w = {packed.name + ' + ' + ' + '.join(w_at) if packed is not None else 0};")
    place = " + ".join([f"n * {o_steps[0]}", *[f"y{d} * {o_steps[d + 1]}" for d in outer], "c0"])
    if direct is None:
        put(f"  {ctype} t[{most * chunk}] __attribute__((aligned(64)));")
    pad = "  "
    if line > 1:
        put(f"  for (long q = 0; q < {line}; q++) {{")
        pad = "    "
    put(f"{pad}const long p = {f'q * {most}' if line > 1 else 0};")
    if direct is not None:
        put(f"{pad}{ctype}* t = {direct.name} + {place} + p * {channels};")
    arguments = "".join(f", {n}" for n in [*counts, *([zero] if zero else []), *form.sizes])
    start = f"x + (p * {conv.stride[-1]} - {conv.before[-1]}) * {form.column}"
    passed = 0
    for tile, equal in tiles:
        passed += equal
        test = f"if (q < {passed}) " if passed < line else ""
        put(f"{pad}{test}{names[tile]}({start}, w, t, cn{arguments});" + (" else" if test else ""))
    if direct is None:
        strides = [0] * len(shape)
        strides[conv.channel] = 1
        bounds: Bounds = {0: ("n", "n + 1"), conv.channel: ("c0", "c0 + cn")}
        for d in outer:
            bounds[conv.axes[d]] = (f"y{d}", f"y{d} + 1")
        shift = "c0"
        if along:
            bounds[conv.axes[-1]] = ("p", f"(p + {most} < {conv.out[-1]} ? p + {most} : {conv.out[-1]})")
            strides[conv.axes[-1]] = chunk
            shift = f"(c0 + p * {chunk})"
        put(f"{pad}const {ctype}* v = t - {shift};")
        nest = Nest(shape, bounds)
        index = [variable(d) for d in range(len(shape))]
        place_in = Affine({d: s for d, s in enumerate(strides) if shape[d] != 1}, 0)
        finish(sink, nest, index, nest.load(Buf("v", shape, dtype), place_in))
        stage.lines += render.lines(written_out(nest.build(), kernel.isa.explicit_lanes), len(pad) // 2 + 1)
    if line > 1:
        put("  }")
    put("}")
