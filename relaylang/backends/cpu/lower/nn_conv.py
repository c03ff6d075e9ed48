"""Convolutions over one, two or three spatial axes, channels first or last.

The general kernel is an implicit matrix product (`gemm.block_kernel`). Its rows are neighbouring results along a line,
its columns are output channels, and its weights are packed once. The data are read in place; padding, or a type other
than the accumulator's, takes a padded copy first. Depthwise convolutions have a kernel of their own, one channel at a
time.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relaylang.backends.cpu.dtypes import CTYPES
from relaylang.backends.cpu.gemm import block_kernel, turn_kernel, vector_types
from relaylang.backends.cpu.index import strides_of
from relaylang.backends.cpu.kernel import ROW, Kernel, Sink, unsupported
from relaylang.backends.cpu.lower.nn_dense import accumulator, factors, finish, through_buffer
from relaylang.backends.cpu.lower.nn_pool import pads_of, spatial_axes, spread
from relaylang.backends.cpu.scalar import Buf
from relaylang.ir import Call

#: With more bytes of weights than this, each panel of them stays in the cache while all rows pass.
_WEIGHTS_IN_CACHE = 600_000
#: A larger plane of a depthwise convolution is padded in the arena, a smaller one on the stack (elements).
_PLANE = 16_384
#: A longer last axis of the kernel is a loop.
_UNROLLED = 16


@dataclass
class Conv:
    """A convolution with its axes in one order: batch, channel, and the spatial axes from outside in."""

    batch: int
    groups: int
    inputs: int  # channels a group
    outputs: int  # channels a group
    size: list[int]  # of the data
    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    before: list[int]
    behind: list[int]
    out: list[int]
    axes: list[int]  # where the spatial axes are in the shapes
    channel: int  # where the channels are
    last: bool  # whether the channels are last

    @property
    def padded(self) -> list[int]:
        return [s + a + b for s, a, b in zip(self.size, self.before, self.behind)]

    @property
    def taps(self) -> int:
        total = 1
        for k in self.kernel:
            total *= k
        return total


def read_conv(call: Call, data: tuple[int, ...], weight: tuple[int, ...], out: tuple[int, ...]) -> Conv:
    """The convolution that a call's attributes describe."""
    attrs = call.attrs
    axes, channel = spatial_axes(attrs.data_layout, call)
    if attrs.out_layout not in ("", attrs.data_layout):
        raise unsupported(f"the output layout {attrs.out_layout} cannot be compiled", call)
    if attrs.data_layout[0] != "N":
        raise unsupported(f"the layout {attrs.data_layout} cannot be compiled", call)
    count = len(axes)
    layout = attrs.kernel_layout
    if not layout.isalpha() or not layout.isupper():
        raise unsupported(f"the kernel layout {layout} cannot be compiled", call)
    pads = pads_of(attrs.padding, count)
    size = [data[d] for d in axes]
    kernel = [weight[layout.index(attrs.data_layout[d])] for d in axes]
    stride, dilation = spread(attrs.strides, count), spread(attrs.dilation, count)
    results = [out[d] for d in axes]
    before = [a for a, _ in pads]
    # Only what the windows reach is padded behind: strides may leave the end unread.
    behind = [
        max(0, (o - 1) * s + (k - 1) * d + 1 - n - a)
        for o, s, k, d, n, a in zip(results, stride, kernel, dilation, size, before)
    ]
    groups = attrs.groups
    return Conv(data[0], groups, data[channel] // groups, out[channel] // groups, size, kernel, stride, dilation,
                before, behind, results, axes, channel, channel == len(data) - 1)  # fmt: skip


def weight_strides(layout: str, shape: tuple[int, ...], inputs: int) -> tuple[int, int, dict[str, int]]:
    """The strides of a weight's output channel and input channel, and of its spatial axes by letter.

    In a depthwise HWOI or HWIO weight, the output channels are both channel axes together.
    """
    steps = strides_of(shape)
    spatial = {letter: steps[layout.index(letter)] for letter in layout if letter in "DHW"}
    if inputs == 1:
        channels = sorted((layout.index("O"), layout.index("I")))
        return steps[channels[1]], 0, spatial
    return steps[layout.index("O")], steps[layout.index("I")], spatial


def lower_conv(kernel: Kernel, call: Call, data_buf: Buf, weight: Any, sink: Sink, dtype: str,
               zero: str = "", weight_zero: str = "") -> None:  # fmt: skip
    """Emit a convolution that accumulates in `dtype` (float32 or int32).

    `zero` and `weight_zero` are C expressions subtracted from each input and each weight (quantised data).
    """
    shape = sink.anchor.shape
    conv = read_conv(call, data_buf.shape, weight.shape, shape)
    if conv.inputs == 1 and conv.groups > 1 and not conv.last:
        _depthwise(kernel, call, conv, data_buf, weight, sink, dtype, zero, weight_zero)
        return
    copy = bool(any(conv.before) or any(conv.behind) or data_buf.dtype != dtype or zero)
    data = _padded(kernel, conv, data_buf, dtype, zero) if copy else data_buf
    _implicit_gemm(kernel, call, conv, data, weight, sink, dtype, weight_zero)


def _padded(kernel: Kernel, conv: Conv, data: Buf, dtype: str, zero: str) -> Buf:
    """A copy of the data with its border, in the accumulator's type."""
    inner = conv.inputs * conv.groups if conv.last else 1
    planes = conv.batch * (1 if conv.last else conv.inputs * conv.groups)
    size, padded = list(conv.size), conv.padded
    before = list(conv.before)
    size[-1] *= inner
    before[-1] *= inner
    wide = [*padded[:-1], padded[-1] * inner]
    shape = [conv.batch, *padded, inner] if conv.last else [conv.batch, conv.inputs * conv.groups, *padded]
    target = kernel.buffer(shape, dtype)
    plane, source = 1, 1
    for extent in wide:
        plane *= extent
    for extent in size:
        source *= extent
    ctype = CTYPES[dtype]
    stage = kernel.stage(planes)
    stage.put("for (long u = lo; u < hi; u++) {")
    stage.put(f"  {ctype}* q = {target.name} + u * {plane};\n  const {CTYPES[data.dtype]}* p = {data.name} + u * {source};")
    if wide != size:
        stage.put(f"  memset(q, 0, sizeof({ctype}) * {plane});")
    to, start = strides_of(wide), 0
    for first, step in zip(before, to):
        start += first * step
    pad = "  "
    loops = [n for n in range(len(size) - 1) if size[n] != 1]
    for n in loops:
        stage.put(f"{pad}for (long y{n} = 0; y{n} < {size[n]}; y{n}++)")
        pad += "  "
    row = " + ".join([str(start), *[f"y{n} * {to[n]}" for n in loops]])
    at = " + ".join([*[f"y{n} * {s}" for n, s in zip(range(len(size) - 1), strides_of(size)) if n in loops], "w"])
    value = f"({ctype})p[{at}]" + (f" - {zero}" if zero else "")
    stage.put(f"{pad}for (long w = 0; w < {size[-1]}; w++) q[{row} + w] = {value};")
    stage.put("}")
    return target


def _pack(kernel: Kernel, call: Call, conv: Conv, weight: Any, dtype: str, width: int, weight_zero: str) -> Buf:
    """Weights as [group][block of `width` channels][input][tap][width]."""
    layout = call.attrs.kernel_layout
    row, inner, spatial = weight_strides(layout, weight.shape, conv.inputs)
    letters = [call.attrs.data_layout[d] for d in conv.axes]
    blocks = -(-conv.outputs // width)
    size = conv.groups * blocks * conv.inputs * conv.taps * width
    ctype = CTYPES[dtype]

    def text(source: str, target: str) -> str:
        loops = [
            f"for (long g = 0; g < {conv.groups}; g++)",
            f"for (long b = 0; b < {blocks}; b++)",
            f"for (long i = 0; i < {conv.inputs}; i++)",
        ]
        at = [f"(g * {conv.outputs} + b * {width} + r) * {row}"]
        if inner:
            at.append(f"i * {inner}")
        for n, letter in enumerate(letters):
            if conv.kernel[n] > 1:
                loops.append(f"for (long k{n} = 0; k{n} < {conv.kernel[n]}; k{n}++)")
                at.append(f"k{n} * {spatial[letter]}")
        value = f"({ctype}){source}[{' + '.join(at)}]" + (f" - {weight_zero}" if weight_zero else "")
        body = (
            f"for (long r = 0; r < {width}; r++) "
            f"*q++ = b * {width} + r < {conv.outputs} ? {value} : 0;"
        )
        pad = "  "
        lines = [f"{ctype}* q = {target};"]
        for n, loop in enumerate(loops):
            lines.append(pad * n + loop)
        lines.append(pad * len(loops) + body)
        return "\n".join(lines)

    return kernel.packed(weight, size, dtype, text)


def _implicit_gemm(kernel: Kernel, call: Call, conv: Conv, data: Buf, weight: Any, sink: Sink, dtype: str,
                   weight_zero: str) -> None:  # fmt: skip
    ctype, _, _ = vector_types(dtype)
    shape = sink.anchor.shape
    isa = kernel.isa.of(dtype)
    count = len(conv.axes)
    # 1x1 at stride 1: all pixels are one line, if what follows can run through them as one.
    size, out, kern, stride, dil = conv.padded, conv.out, conv.kernel, conv.stride, conv.dilation
    flat = all(k == 1 and s == 1 for k, s in zip(kern, stride)) and size == out
    flat = flat and sink.mergeable(conv.axes[0], conv.axes[-1])
    if flat:
        pixels = 1
        for extent in out:
            pixels *= extent
        size, out, kern, stride, dil = [pixels], [pixels], [1], [1], [1]
    channels_in, channels_out = conv.inputs * conv.groups, conv.outputs * conv.groups
    x_steps = strides_of([conv.batch, *size, channels_in] if conv.last else [conv.batch, channels_in, *size])
    o_steps = strides_of([conv.batch, *out, channels_out] if conv.last else [conv.batch, channels_out, *out])
    x_pixel, x_channel = (x_steps[1:-1], 1) if conv.last else (x_steps[2:], x_steps[1])
    o_pixel, _ = (o_steps[1:-1], 1) if conv.last else (o_steps[2:], o_steps[1])
    # The rows of a block: pixels along the last axis, or several short lines together.
    several = len(out) > 1 and not conv.last and sink.mergeable(conv.axes[-2], conv.axes[-1])
    tiling = isa.tiling(conv.outputs, out[-1], out[-2] if several else 1)
    vectors, rows, lines = tiling.vectors, tiling.rows, tiling.lines
    width = vectors * isa.lanes
    blocks = -(-conv.outputs // width)
    packed = _pack(kernel, call, conv, weight, dtype, width, weight_zero)
    panel = conv.inputs * conv.taps * width

    # The sum: input channels, then the outer kernel axes; the last kernel axis is unrolled.
    loops = [(conv.inputs, x_channel)]
    unrolled = len(kern) - (kern[-1] <= _UNROLLED)
    loops += [(k, d * s) for k, d, s in zip(kern[:unrolled], dil, x_pixel) if k > 1]
    taps = [n * dil[-1] * x_pixel[-1] for n in range(kern[-1] if unrolled < len(kern) else 1)]
    arguments = "".join(f", {count}, {step}" for count, step in loops)

    length = out[-1]
    segments, tiles = tiling.segments, tiling.tiles
    segment = min(length, tiles * rows)
    step = stride[-1] * x_pixel[-1]
    heights = out[:-1]
    positions = list(heights)
    if lines > 1:
        positions[-1] = -(-heights[-1] // lines)
    outer = 1
    for extent in positions:
        outer *= extent
    block = f"{kernel.name}_block"
    offsets = [h * (stride[-2] * x_pixel[-2] if lines > 1 else 0) + i * step for h in range(lines) for i in range(rows)]
    kernel.functions.append(block_kernel(block, isa, dtype, vectors, offsets, len(loops), taps))
    lanes = isa.lanes
    if not conv.last:
        turn = f"{kernel.name}_turn"
        kernel.functions.append(turn_kernel(turn, isa, dtype))

    # The order: where the weights are many, each panel of them is kept in the cache while all rows pass.
    order = [("s", segments), ("y", outer), ("b", blocks), ("g", conv.groups), ("n", conv.batch)]
    if conv.outputs * conv.inputs * conv.taps * 4 <= _WEIGHTS_IN_CACHE:
        order = [("b", blocks), ("g", conv.groups), ("s", segments), ("y", outer), ("n", conv.batch)]
    stage = kernel.stage(conv.batch * conv.groups * blocks * outer * segments)
    put = stage.put
    put("for (long u = lo; u < hi; u++) {")
    put(f"  const long {', '.join(_digits('u', order))};")
    names = [(f"y{n}", extent) for n, extent in enumerate(positions)]
    if names:
        put(f"  {'' if lines > 1 else 'const '}long {', '.join(reversed(_digits('y', names[::-1])))};")
    # The last lines and the last segment reach back over those before. Each stores only its own results: another thread
    # may be storing the rest.
    own_lines = f"y{len(heights) - 1}"
    if lines > 1:
        last, own_lines = own_lines, "own"
        put(f"  const long own = {last} * {lines};")
        put(f"  {last} = own < {heights[-1] - lines} ? own : {heights[-1] - lines};")
    start = own_start = "0"
    if segments > 1:
        start, own_start = "p0", "p1"
        put(f"  const long p1 = s * {segment}, p0 = p1 < {length - segment} ? p1 : {length - segment};")
    x_at = [f"n * {x_steps[0]}", f"g * {conv.inputs * x_channel}"]
    x_at += [f"y{n} * {stride[n] * x_pixel[n]}" for n in range(len(heights))]
    put(f"  const {ctype}* x = {data.name} + {' + '.join(x_at)}" + (f" + p0 * {step};" if segments > 1 else ";"))
    put(f"  const {ctype}* w = {packed.name} + (g * {blocks} + b) * {panel}L;")
    put(f"  const long c0 = b * {width}, cn = {conv.outputs} - c0 < {width} ? {conv.outputs} - c0 : {width};")
    area = segment * lines
    held = -(-area // lanes) * lanes
    direct = sink.direct if conv.last else None
    put(f"  {ctype} t[{held * width}] __attribute__((aligned(64)));")
    if tiles > 1:
        put(f"  for (long q = 0; q < {tiles}; q++) {{\n    const long p = q < {tiles - 1} ? q * {rows} : {segment - rows};\n"
            f"    {block}(x + p * {step}, w, t + p * {width}{arguments});\n  }}")  # fmt: skip
    else:
        put(f"  {block}(x, w, t{arguments});")
    source, row_step, channel_step = "t", width, 1
    if direct is not None:
        o_at = [f"n * {o_steps[0]}", f"g * {conv.outputs} + c0", *[f"y{n} * {o_pixel[n]}" for n in range(len(heights))]]
        put(f"  {ctype}* r = {direct.name} + {' + '.join(o_at)}" + (f" + p0 * {o_pixel[-1]};" if segments > 1 else ";"))
        first = f"{own_start} - {start}" if segments > 1 else "0"
        put(f"  for (long i = {first}; i < {area}; i++) for (long c = 0; c < cn; c++) r[i * {o_pixel[-1]} + c] = t[i * {width} + c];")
    elif not conv.last:
        # With channels first, a square of numbers is transposed at a time. The odd step keeps addresses from meeting in
        # the cache.
        source, row_step, channel_step = "r", 1, held + lanes
        put(f"  {ctype} r[{channel_step * width}] __attribute__((aligned(64)));")
        put(f"  for (long i = 0; i < {area}; i += {lanes}) for (long c = 0; c < cn; c += {lanes})"
            f" {turn}(t + i * {width} + c, {width}, r + c * {channel_step} + i, {channel_step});")  # fmt: skip
    if direct is None:
        channel = f"g * {conv.outputs} + c0"
        bounds = {0: ("n", "n + 1"), conv.channel: (channel, f"{channel} + cn")}
        strides = [0] * len(shape)
        strides[conv.channel] = channel_step
        flat_bounds: tuple[int, int, str, str] | None = None
        end = f"{start} + {segment}" if segments > 1 else str(segment)
        shift = f"{start} * {row_step}"
        if flat:
            flat_bounds = (conv.axes[0], conv.axes[-1], own_start, end)
            for d, extent in zip(conv.axes, strides_of(conv.out)):
                strides[d] = extent * row_step
        else:
            for n in range(count - 1):
                bounds[conv.axes[n]] = (f"y{n}", f"y{n} + 1")
            strides[conv.axes[-1]] = row_step
            if lines > 1:
                bounds[conv.axes[-2]] = (own_lines, f"y{count - 2} + {lines}")
                strides[conv.axes[-2]] = length * row_step
                shift = f"y{count - 2} * {length * row_step}"
            if segments > 1:
                bounds[conv.axes[-1]] = (own_start, end)
        put(f"  const {ctype}* v = {source} - (({channel}) * {channel_step} + {shift});")
        stage.lines += sink.store_block("v", strides, bounds, flat_bounds)
    put("}")


def _digits(number: str, parts: list[tuple[str, int]]) -> list[str]:
    """C that splits a number into digits: `name = number % extent`, and the quotient goes on."""
    out = []
    for name, extent in parts:
        if extent == 1:
            out.append(f"{name} = 0")
        else:
            out.append(f"{name} = {number} % {extent}")
            number = f"({number} / {extent})"
    return out


def _depthwise(kernel: Kernel, call: Call, conv: Conv, data: Buf, weight: Any, sink: Sink, dtype: str,
               zero: str, weight_zero: str) -> None:  # fmt: skip
    """One input channel makes each output channel; planes are padded one by one, in the cache."""
    shape = sink.anchor.shape
    layout = call.attrs.kernel_layout
    row, _, spatial = weight_strides(layout, weight.shape, 1)
    letters = [call.attrs.data_layout[d] for d in conv.axes]
    weights = kernel.in_memory(weight)
    ctype = CTYPES[dtype]
    size, padded, out = conv.size, conv.padded, conv.out
    source, plane = 1, 1
    for extent in size:
        source *= extent
    for extent in padded:
        plane *= extent
    channels = conv.groups * conv.outputs
    copy = padded != size or data.dtype != dtype or bool(zero)
    steps = strides_of(padded)
    # At stride 1 short lines are computed through the border between them: one long loop instead of many short ones.
    through = conv.stride[-1] == 1 and out[-1] < 32 and len(out) > 1 and conv.stride[-2] == 1
    through = through and (out[-2] - 1) * padded[-1] + out[-1] <= ROW
    room = (out[-2] - 1) * padded[-1] + out[-1] if through else out[-1]
    wide = room > ROW
    outer = out[:-2] if through else out[:-1]
    stage = kernel.stage(conv.batch * channels)
    put = stage.put
    put("for (long u = lo; u < hi; u++) {")
    put(f"  const long n = u / {channels}, c = u % {channels};")
    plane_at = f"(n * {conv.groups} + c / {conv.outputs})" if conv.outputs > 1 else "u"
    put(f"  const {CTYPES[data.dtype]}* p = {data.name} + {plane_at} * {source};")
    if copy:
        if plane > _PLANE:
            scratch = kernel.buffer((conv.batch * channels, plane), dtype)
            put(f"  {ctype}* x = {scratch.name} + u * {plane};")
        else:
            put(f"  {ctype} x[{plane}] __attribute__((aligned(64)));")
        if padded != size:
            put(f"  memset(x, 0, sizeof({ctype}) * {plane});")
        pad = "  "
        loops = [d for d in range(len(size) - 1)]
        for d in loops:
            put(f"{pad}for (long y{d} = 0; y{d} < {size[d]}; y{d}++)")
            pad += "  "
        start = sum(b * s for b, s in zip(conv.before, steps))
        to = " + ".join([str(start), *[f"y{d} * {steps[d]}" for d in loops], "w"])
        at = " + ".join([*[f"y{d} * {s}" for d, s in zip(loops, strides_of(size))], "w"])
        value = f"({ctype})p[{at}]" + (f" - {zero}" if zero else "")
        put(f"{pad}for (long w = 0; w < {size[-1]}; w++) x[{to}] = {value};")
    else:
        put(f"  const {ctype}* x = p;")
    taps: list[tuple[str, int]] = []
    for number in range(conv.taps):
        left, shift, at_weight = number, 0, [f"c * {row}"]
        for d in range(len(size) - 1, -1, -1):
            k = left % conv.kernel[d]
            left //= conv.kernel[d]
            shift += k * conv.dilation[d] * steps[d]
            if k:
                at_weight.append(str(k * spatial[letters[d]]))
        value = f"({ctype}){weights.name}[{' + '.join(at_weight)}]" + (f" - {weight_zero}" if weight_zero else "")
        put(f"  const {ctype} w{number} = {value};")
        taps.append((f"w{number}", shift))
    pad = "  "
    put(f"  {ctype} r[{min(room, ROW)}] __attribute__((aligned(64)));")
    opened = [(f"y{d}", extent, 1) for d, extent in enumerate(outer)] + ([("e0", room, ROW)] if wide else [])
    for name, extent, by in opened:
        put(f"{pad}for (long {name} = 0; {name} < {extent}; {name} += {by}) {{")
        pad += "  "
    base = " + ".join(["x", *[f"y{d} * {conv.stride[d] * steps[d]}" for d in range(len(outer))]])
    if wide:
        base += f" + e0 * {conv.stride[-1]}"
        put(f"{pad}const long e1 = e0 + {ROW} < {room} ? e0 + {ROW} : {room};")
    put(f"{pad}const {ctype}* q = {base};")
    put(pad + "R_IVDEP")
    put(f"{pad}for (long i = 0; i < {'e1 - e0' if wide else room}; i++) {{")
    put(f"{pad}  {ctype} a = {taps[0][0]} * q[i * {conv.stride[-1]} + {taps[0][1]}];")
    for name, shift in taps[1:]:
        term = f"q[i * {conv.stride[-1]} + {shift}]"
        put(f"{pad}  a = r_fma_f32({name}, {term}, a);" if dtype == "float32" else f"{pad}  a += {name} * {term};")
    put(f"{pad}  r[i] = a;\n{pad}}}")
    bounds = {0: ("n", "n + 1"), conv.channel: ("c", "c + 1")}
    strides = [0] * len(shape)
    strides[conv.axes[-1]] = 1
    for d in range(len(outer)):
        bounds[conv.axes[d]] = (f"y{d}", f"y{d} + 1")
    if through:
        strides[conv.axes[-2]] = padded[-1]
    if wide:
        bounds[conv.axes[-1]] = ("e0", "e1")
        put(f"{pad}const {ctype}* v = r - e0;")
    stage.lines += sink.store_block("v" if wide else "r", strides, bounds, indent="  " + pad)
    for _ in opened:
        pad = pad[:-2]
        put(pad + "}")
    put("}")


def _conv(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    out = sink.anchor.dtype
    data, weight = factors(kernel, args, out)
    dtype = accumulator(out)
    inner = sink if dtype == sink.anchor.dtype else through_buffer(kernel, sink, dtype)
    lower_conv(kernel, call, kernel.in_memory(data), weight, inner, dtype)
    finish(kernel, sink, inner)


ANCHORS: dict[str, Any] = {"nn.conv1d": _conv, "nn.conv2d": _conv, "nn.conv3d": _conv}
