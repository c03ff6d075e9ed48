"""Activations, biases, softmax and other small parts of networks."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.kernel import ROW, BufTensor, Kernel, Recipe, Sink, Tensor, Value
from relaylang.backends.cpu.lower.common import axis_of, result_type
from relaylang.backends.cpu.lower.geometry import digits
from relaylang.backends.cpu.lower.tensor import binary, elementwise
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.index import ZERO, variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import surely_less


def _along(axis: int, vector: Tensor) -> Any:
    """An access to a vector that lies along an axis."""
    return lambda nest, index: vector.at(nest, [ZERO if vector.shape[0] == 1 else index[axis]])


def _bias_add(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data, bias = args
    shape, dtype = result_type(call)
    bias_at = _along(axis_of(call.attrs.axis, len(shape)), bias)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        return binary("add", nest, data.at(nest, index), bias_at(nest, index))

    return Recipe(shape, dtype, at)


def _leaky_relu(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    alpha = call.attrs.alpha

    def make(nest: Nest, xs: list[Scalar]) -> Scalar:
        return (xs[0] > 0).select(xs[0], xs[0] * nest.const(alpha, dtype))

    return elementwise(shape, dtype, args, make)


def _prelu(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data, alpha = args
    shape, dtype = result_type(call)
    alpha_at = _along(axis_of(call.attrs.axis, len(shape)), alpha)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        return (data.at(nest, index) > 0).select(data.at(nest, index), data.at(nest, index) * alpha_at(nest, index))

    return Recipe(shape, dtype, at)


def _batch_norm(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Normalisation with fixed statistics whose result is used as a tuple (else SimplifyInference took it apart)."""
    data, gamma, beta, mean, var = args
    attrs = call.attrs
    dtype = data.dtype
    axis = axis_of(attrs.axis, len(data.shape))

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        g, b, m, v = (_along(axis, t)(nest, index) for t in (gamma, beta, mean, var))
        scale = (v + attrs.epsilon).op("rsqrt")
        if attrs.scale:
            scale = scale * g
        shift = -m * scale
        if attrs.center:
            shift = shift + b
        return data.at(nest, index) * scale + shift

    return [Recipe(data.shape, dtype, at), mean, var]


def _dropout(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape = args[0].shape
    return [args[0], Recipe(shape, args[0].dtype, lambda nest, index: nest.const(1, args[0].dtype))]


def _halves(lanes: int) -> list[int]:
    """Half of the lanes, a quarter, and so on."""
    return [lanes >> n for n in range(1, lanes.bit_length())]


def _softmax_of_rows(kernel: Kernel, data: Buf, axis: int, sink: Sink, log: bool) -> None:
    """Softmax of float32 along the last axis, or its logarithm. Each row passes through the cache once."""
    shape, lanes = data.shape, kernel.isa.lanes
    length = shape[axis]
    whole = length // lanes * lanes
    stage = kernel.stage(math.prod(shape[:axis]))
    put = stage.put
    put("for (long o = lo; o < hi; o++) {")
    outer = [d for d in range(axis) if shape[d] != 1]
    if outer:
        put(f"  const long {', '.join(digits('o', [(f'y{d}', shape[d]) for d in reversed(outer)]))};")
    put(f"  const float* x = {data.name} + o * {length};")
    if surely_less(length, ROW + 1) and not log:
        put(f"  float e[{whole + lanes}] __attribute__((aligned(64)));")
    elif not log:
        put(f"  float* e = {kernel.buffer((math.prod(shape[:axis]), whole + lanes), 'float32').name} + o * {whole + lanes};")
    put("  r_vf m = r_splat_vf(-__builtin_inff()), n = m, s = {0}, t = {0};\n  long a = 0;")
    put(f"  for (; a + {2 * lanes} <= {length}; a += {2 * lanes}) {{")
    put(f"    m = r_peak_vf(*(const r_vfu*)(x + a), m); n = r_peak_vf(*(const r_vfu*)(x + a + {lanes}), n);\n  }}")
    put(f"  for (; a < {whole}; a += {lanes}) m = r_peak_vf(*(const r_vfu*)(x + a), m);")
    put("  m = r_peak_vf(m, n);")
    turns = [f"r_mix_vf({{0}}, {{0}}, {', '.join(str((l + n) % lanes) for l in range(lanes))})" for n in _halves(lanes)]
    for turn in turns:
        put(f"  m = r_peak_vf({turn.format('m')}, m);")
    put("  float most = m[0];")
    put(f"  for (; a < {length}; a++) most = x[a] > most ? x[a] : most;")
    keep, add = ("", "") if log else ("*(r_vfu*)(e + a) = v;", f" *(r_vfu*)(e + a + {lanes}) = w;")
    put(f"  for (a = 0; a + {2 * lanes} <= {length}; a += {2 * lanes}) {{")
    put(f"    const r_vf v = r_exp_vf(*(const r_vfu*)(x + a) - most), w = r_exp_vf(*(const r_vfu*)(x + a + {lanes}) - most);")
    put(f"    s += v; t += w; {keep}{add}\n  }}")
    put(f"  for (; a < {whole}; a += {lanes}) {{ const r_vf v = r_exp_vf(*(const r_vfu*)(x + a) - most); s += v; {keep} }}")
    if whole != length:
        put(f"  float rest[{lanes}];")
        put(f"  for (long l = 0; l < {lanes}; l++) rest[l] = l < {length - whole} ? x[a + l] : -__builtin_inff();")
        put(f"  {{ const r_vf v = r_exp_vf(*(const r_vfu*)rest - most); s += v; {keep} }}")
    put("  s += t;")
    for turn in turns:
        put(f"  s += {turn.format('s')};")
    put(f"  const float scale = {'r_log_f32(s[0])' if log else '1 / s[0]'};")
    nest = Nest(shape, {d: (f"y{d}", f"y{d} + 1") for d in outer})
    index = [variable(d) for d in range(len(shape))]
    scale = nest.variable("scale", "float32", 0)
    if log:
        value = BufTensor(data).at(nest, index) - nest.variable("most", "float32", 0) - scale
    else:
        value = nest.load(Buf("e", (length,), "float32"), variable(axis)) * scale
    sink.store(nest, index, value)
    stage.lines += nest.emit(indent="    ")
    put("}")


def _softmax(log: bool) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = kernel.in_memory(args[0])
        shape, dtype = data.shape, data.dtype
        axis = axis_of(call.attrs.axis, len(shape))
        if dtype == "float32" and math.prod(shape[axis + 1 :]) == 1 and 0 not in shape:
            _softmax_of_rows(kernel, data, axis, sink, log)
            return
        outer = inner = 1
        for extent in shape[:axis]:
            outer *= extent
        for extent in shape[axis + 1 :]:
            inner *= extent
        length = shape[axis]
        wide = dtype == "float64"
        c = "double" if wide else "float"
        acc = "float64" if wide else "float32"
        exp = "exp" if wide else "r_exp_f32"
        logarithm = "log" if wide else "r_log_f32"
        expo = kernel.buffer((outer, length, inner), acc)
        factor = kernel.buffer((outer, inner), acc)
        most = kernel.buffer((outer, inner), acc) if log or inner != 1 else None
        stage = kernel.stage(outer)
        low = "-__builtin_inf()" if wide else "-__builtin_inff()"
        stage.put(f"for (long o = lo; o < hi; o++) {{\n  const {CTYPES[dtype]}* x = {data.name} + o * {length * inner};"
                  f"\n  {c}* e = {expo.name} + o * {length * inner};")  # fmt: skip
        if inner == 1:
            stage.put(
                f"  {c} m[16], s[16];\n"
                f"  for (long l = 0; l < 16; l++) m[l] = {low}, s[l] = 0;\n"
                f"  for (long a = 0; a + 16 <= {length}; a += 16)\n"
                f"    for (long l = 0; l < 16; l++) m[l] = x[a + l] > m[l] ? x[a + l] : m[l];\n"
                f"  for (long a = {length // 16 * 16}; a < {length}; a++) m[0] = x[a] > m[0] ? x[a] : m[0];\n"
                f"  for (long n = 8; n > 0; n /= 2) for (long l = 0; l < n; l++)"
                f" m[l] = m[l + n] > m[l] ? m[l + n] : m[l];\n"
                f"  const {c} most = m[0];\n"
                f"  R_IVDEP\n"
                f"  for (long a = 0; a < {length}; a++) e[a] = {exp}(x[a] - most);\n"
                f"  for (long a = 0; a + 16 <= {length}; a += 16) for (long l = 0; l < 16; l++) s[l] += e[a + l];\n"
                f"  for (long a = {length // 16 * 16}; a < {length}; a++) s[0] += e[a];\n"
                f"  for (long n = 8; n > 0; n /= 2) for (long l = 0; l < n; l++) s[l] += s[l + n];"
            )
            if log:
                assert most is not None
                stage.put(f"  {most.name}[o] = most;\n  {factor.name}[o] = {logarithm}(s[0]);")
            else:
                stage.put(f"  {factor.name}[o] = 1 / s[0];")
        else:
            assert most is not None
            stage.put(
                f"  {c}* m = {most.name} + o * {inner}; {c}* s = {factor.name} + o * {inner};\n"
                f"  for (long i = 0; i < {inner}; i++) m[i] = {low}, s[i] = 0;\n"
                f"  for (long a = 0; a < {length}; a++)\n"
                f"    for (long i = 0; i < {inner}; i++)"
                f" m[i] = x[a * {inner} + i] > m[i] ? x[a * {inner} + i] : m[i];\n"
                f"  for (long a = 0; a < {length}; a++)\n    R_IVDEP\n"
                f"    for (long i = 0; i < {inner}; i++) {{\n"
                f"      {c} v = {exp}(x[a * {inner} + i] - m[i]); e[a * {inner} + i] = v; s[i] += v;\n    }}\n"
                f"  for (long i = 0; i < {inner}; i++) s[i] = {f'{logarithm}(s[i])' if log else '1 / s[i]'};"
            )
        stage.put("}")
        nest = Nest(shape)
        index = [variable(d) for d in range(len(shape))]
        rows = [*shape[:axis], 1, *shape[axis + 1 :]]
        at = nest.offset([*index[:axis], ZERO, *index[axis + 1 :]], rows)
        if log:
            assert most is not None
            x = BufTensor(data).at(nest, index)
            value = x - nest.load(most, at) - nest.load(factor, at)
        else:
            value = nest.load(expo, nest.offset(index, shape)) * nest.load(factor, at)
        if dtype != acc:
            value = value.cast(dtype)
        sink.store(nest, index, value)
        kernel.loops(nest)

    return lower


def _lrn(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """x / (bias + alpha / size * sum of squares over `size` neighbours along an axis) ** beta."""
    data = kernel.strided(args[0])
    attrs = call.attrs
    shape = data.shape
    axis = axis_of(attrs.axis, len(shape))
    half = attrs.size // 2
    nest = Nest(shape)
    index: list[Index] = [variable(d) for d in range(len(shape))]
    total = nest.const(0, data.dtype)
    source = BufTensor(data)
    for shift in range(-half, attrs.size - half):
        test, inner = nest.inside(nest.add(index[axis], shift), 0, shape[axis])
        x = source.at(nest, [*index[:axis], inner, *index[axis + 1 :]])
        square = x * x
        if test is not None:
            square = test.select(square, 0)
        total = total + square
    numbers = [nest.const(v, data.dtype) for v in (attrs.bias, attrs.alpha / attrs.size, attrs.beta)]
    value = source.at(nest, index) / (numbers[0] + numbers[1] * total).op("pow", numbers[2])
    sink.store(nest, [variable(d) for d in range(len(shape))], value)
    kernel.loops(nest)


def _nll_loss(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """Minus each target's prediction times its class's weight; the mean is over the weights."""
    predictions, targets, weights = (kernel.in_memory(a) for a in args)
    reduction = call.attrs.reduction
    dtype = sink.anchor.dtype
    ctype = CTYPES[dtype]
    batch, classes = predictions.shape[:2]
    inner = math.prod(predictions.shape[2:])
    each = kernel.buffer(targets.shape if reduction == "none" else (1,), dtype)
    at = f"(i / {max(inner, 1)} * {classes} + k) * {inner} + i % {max(inner, 1)}"
    stage = kernel.stage()
    stage.put(
        f"{ctype} loss = 0, weight = 0;\n"
        f"for (long i = 0; i < {batch * inner}; i++) {{\n"
        f"  const long k = {targets.name}[i];\n"
        f"  const int used = k != {call.attrs.ignore_index} && k >= 0 && k < {classes};\n"
        f"  const {ctype} w = used ? {weights.name}[k] : 0;\n"
        f"  const {ctype} v = used ? -{predictions.name}[{at}] * w : 0;\n"
        + (f"  {each.name}[i] = v;\n}}" if reduction == "none" else "  loss += v; weight += w;\n}")
    )  # fmt: skip
    if reduction != "none":
        stage.put(f"{each.name}[0] = loss{' / weight' if reduction == 'mean' else ''};")
    nest = Nest(sink.anchor.shape)
    index = [variable(d) for d in range(len(sink.anchor.shape))]
    sink.store(nest, index, nest.load(each, nest.offset(index, sink.anchor.shape)))
    kernel.loops(nest)


RECIPES: dict[str, Any] = {
    "nn.bias_add": _bias_add,
    "nn.leaky_relu": _leaky_relu,
    "nn.prelu": _prelu,
    "nn.batch_norm": _batch_norm,
    "nn.dropout": _dropout,
}
ANCHORS: dict[str, Any] = {
    "nn.softmax": _softmax(log=False),
    "nn.fast_softmax": _softmax(log=False),
    "nn.log_softmax": _softmax(log=True),
    "nn.lrn": _lrn,
    "nn.nll_loss": _nll_loss,
}
