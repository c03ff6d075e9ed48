"""Depthwise convolutions: each channel of the result is made of one channel of the data.

With channels last, tiles are held in registers (`tiles`). With channels first, one plane at a time is padded and filtered.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.arith import keeps_narrow
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import ROW, BufTensor, Kernel, Recipe, Sink
from relaylang.backends.cpu.lower.factors import Zero, less, short_of, takes_off, zero_text
from relaylang.backends.cpu.lower.geometry import Conv, weight_strides
from relaylang.backends.cpu.lower.tiles import lower_tiles
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.index import strides_of
from relaylang.kernels.nest import Bounds, Buf, Index, Nest, Scalar
from relaylang.kernels.ops import SHORT
from relaylang.kernels.render import WIDEN
from relaylang.kernels.sizes import surely_less

#: A larger plane is padded in the arena, a smaller one on the stack (elements).
_PLANE = 16_384

def lower_depthwise(kernel: Kernel, call: Call, conv: Conv, data: Buf, weight: Any, sink: Sink, dtype: str,
                    zero: Zero = 0, weight_zero: Zero = 0) -> None:  # fmt: skip
    """Emit a convolution of one input channel a group that accumulates in `dtype`.

    `zero` and `weight_zero` are subtracted from each input and each weight (quantised data).
    """
    make = _pixels if conv.last else _planes
    make(kernel, call, conv, data, weight, sink, dtype, zero, weight_zero)


# Channels last


def _pack(kernel: Kernel, call: Call, conv: Conv, weight: Any, dtype: str, weight_zero: Zero, pairs: bool) -> Buf:
    """Weights as [tap][channel]; as [tap][2][channel] in pairs: with the next line's weight as upper half, and alone."""
    step, _, spatial = weight_strides(call.attrs.kernel_layout, weight.shape, 1)
    letters = [call.attrs.data_layout[d] for d in conv.axes]
    channels = conv.groups * conv.outputs
    narrow = keeps_narrow(kernel.isa) and dtype in WIDEN
    held = (short_of(weight.dtype, weight_zero) if narrow else None) or dtype

    def body(source: Buf, target: Buf) -> ir.Body:
        steps = [spatial[letter] for letter in letters]
        taps, c = [ir.Var(f"k{n}") for n in range(len(steps))], ir.Var("c")
        at = sum((k * s for k, s in zip(taps, steps)), c * step)
        tap = ir.offset(conv.kernel, taps)

        def value(at: ir.Expr) -> ir.Expr:
            found: ir.Expr = ir.load(source, at)
            if takes_off(weight_zero):
                found = less(ir.cast(found, dtype), weight_zero)
            return ir.cast(found, held)

        if pairs:
            low = ir.Cast(value(at), "uint16")
            more = taps[-2] < conv.kernel[-2] - 1
            high = ir.select(more, value(at + steps[-2]), ir.Const(0, dtype))
            both = ir.Cast(low, dtype) | high << 16
            to = tap * (2 * channels) + c
            made = [ir.store(target, both, to), ir.store(target, low, to + channels)]
        else:
            made = [ir.store(target, value(at), tap * channels + c)]
        loops: ir.Body = [ir.loop("c", 0, channels, made)]
        for k, extent in zip(reversed(taps), reversed(conv.kernel)):
            loops = [ir.loop(k.name, 0, extent, loops)]
        return loops

    return kernel.packed(weight, conv.taps * channels * (2 if pairs else 1), held, body)


def _as_pairs(form_isa: Isa, conv: Conv, data: Buf, weight: Any, dtype: str, zeros: Sequence[Zero]) -> bool:
    """Whether two rows go through one instruction that multiplies 16-bit numbers and adds neighbours."""
    bytes_ = ("int8", "uint8")
    small = all(isinstance(z, int) and -128 <= z <= 255 for z in zeros)
    there = form_isa.name in ("avx2", "avx512") and dtype == "int32"
    return there and small and data.dtype in bytes_ and weight.dtype in bytes_ and len(conv.kernel) > 1 and conv.kernel[-2] > 1


def _readable(kernel: Kernel, conv: Conv, data: Buf, dtype: str) -> Buf:
    """The data in a type that tiles read, each channel as often as it makes results."""
    wide = WIDEN if keeps_narrow(kernel.isa) else ("int32",)
    own = data.dtype if dtype in wide and data.dtype in SHORT else dtype
    if conv.outputs == 1 and data.dtype == own:
        return data
    source = BufTensor(data)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        channel = index[-1] if conv.outputs == 1 else nest.unravel(index[-1], [conv.groups, conv.outputs])[0]
        return source.at(nest, [*index[:-1], channel]).cast(own)

    return kernel.in_memory(Recipe([*data.shape[:-1], conv.groups * conv.outputs], own, at))


def _pixels(kernel: Kernel, call: Call, conv: Conv, data: Buf, weight: Any, sink: Sink, dtype: str,
            zero: Zero, weight_zero: Zero) -> None:  # fmt: skip
    """Channels last: by tiles."""
    data = _readable(kernel, conv, data, dtype)
    pairs = _as_pairs(kernel.isa, conv, data, weight, dtype, (zero, weight_zero))
    lower_tiles(kernel, conv, data, sink, dtype, "dot", pairs, zero_text(zero),
                lambda pairs: _pack(kernel, call, conv, weight, dtype, weight_zero, pairs))  # fmt: skip


# Channels first


def _planes(kernel: Kernel, call: Call, conv: Conv, data: Buf, weight: Any, sink: Sink, dtype: str,
            zero: Zero, weight_zero: Zero) -> None:  # fmt: skip
    """Channels first: planes are padded one by one, in the cache."""
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
    less_text, weight_less = zero_text(zero), zero_text(weight_zero)
    copy = padded != size or data.dtype != dtype or bool(less_text)
    steps = strides_of(padded)
    # At stride 1 short lines are computed through the border between them: one long loop instead of many short ones.
    through = conv.stride[-1] == 1 and surely_less(out[-1], 32) and len(out) > 1 and conv.stride[-2] == 1
    through = through and surely_less((out[-2] - 1) * padded[-1] + out[-1], ROW + 1)
    room = (out[-2] - 1) * padded[-1] + out[-1] if through else out[-1]
    wide = not surely_less(room, ROW + 1)
    outer = out[:-2] if through else out[:-1]
    stage = kernel.stage(conv.batch * channels)
    put = stage.put
    put("for (long u = lo; u < hi; u++) {")
    put(f"  const long n = u / {channels}, c = u % {channels};")
    plane_at = f"(n * {conv.groups} + c / {conv.outputs})" if conv.outputs > 1 else "u"
    put(f"  const {CTYPES[data.dtype]}* p = {data.name} + {plane_at} * {source};")
    if copy:
        if not surely_less(plane, _PLANE + 1):
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
        value = f"({ctype})p[{at}]" + (f" - {less_text}" if less_text else "")
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
        value = f"({ctype}){weights.name}[{' + '.join(at_weight)}]" + (f" - {weight_less}" if weight_less else "")
        put(f"  const {ctype} w{number} = {value};")
        taps.append((f"w{number}", shift))
    pad = "  "
    put(f"  {ctype} r[{ROW if wide else room}] __attribute__((aligned(64)));")
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
    bounds: Bounds = {0: ("n", "n + 1"), conv.channel: ("c", "c + 1")}
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
