"""Writing to places, running sums, and operators on coordinates.

An index outside its tensor is an error in the interpreter. Here its write is left out, and its read comes from the
nearest element. Compiled code never touches memory that is not its own.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Sink, Value, unsupported
from relaylang.backends.cpu.lower.common import axis_of, broadcast_at, result_type, result_types
from relaylang.backends.cpu.lower.reduce import combine, combined_text, start_text
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES, is_float, literal
from relaylang.kernels.index import ZERO, Affine, strides_of, variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar


def pass_on(kernel: Kernel, sink: Sink, found: Buf) -> None:
    """Hand a finished buffer, which may be of a wider element type, to what follows."""
    if sink.direct is found:
        return
    nest = Nest(sink.anchor.shape)
    index = [variable(d) for d in range(len(sink.anchor.shape))]
    sink.store(nest, index, BufTensor(found).at(nest, index).cast(sink.anchor.dtype))
    kernel.loops(nest)


def target_of(kernel: Kernel, sink: Sink) -> Buf:
    """Where a result is put together: the kernel's output, or a buffer where something follows."""
    return sink.direct or kernel.buffer(sink.anchor.shape, sink.anchor.dtype)


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The extents before an axis, of it, and behind it."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _running(kind: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = kernel.in_memory(args[0])
        attrs = call.attrs
        if attrs.axis is None:
            outer, length, inner = 1, math.prod(data.shape), 1
        else:
            outer, length, inner = around(data.shape, axis_of(attrs.axis, len(data.shape)))
        out = target_of(kernel, sink)
        ctype = CTYPES[out.dtype]
        value = f"{data.name}[at]"
        value = f"({value} != 0)" if out.dtype == "bool" else f"({ctype}){value}"
        step = f"s = ({ctype}){combined_text(kind, out.dtype, 's', value)};"
        write = f"{out.name}[at] = s;"
        # Minus zero is what leaves the first number as it is.
        plain = is_float(out.dtype) and kind == "sum" and not attrs.exclusive
        start = literal(-0.0, out.dtype) if plain else start_text(kind, out.dtype)
        stage = kernel.stage(outer * inner)
        stage.put(
            f"for (long u = lo; u < hi; u++) {{\n"
            f"  {ctype} s = {start};\n"
            f"  long at = u / {max(inner, 1)} * {length * inner} + u % {max(inner, 1)};\n"
            f"  for (long a = 0; a < {length}; a++, at += {inner}) "
            f"{{ {f'{write} {step}' if attrs.exclusive else f'{step} {write}'} }}\n}}"
        )
        pass_on(kernel, sink, out)

    return lower


def _copied(kernel: Kernel, data: Buf, out: Buf) -> None:
    if data.size:
        kernel.stage().put(f"memcpy({out.name}, {data.name}, sizeof({CTYPES[out.dtype]}) * {data.size});")


def _update(how: str, out: Buf, at: str, value: str) -> str:
    """C that brings one value into its place."""
    place = f"{out.name}[{at}]"
    ctype = CTYPES[out.dtype]
    if how == "update":
        return f"{place} = {value};"
    if how == "mean":
        return f"{place} = ({ctype})(({place} + {value}) / 2);"
    kind = {"add": "sum", "mul": "prod"}.get(how, how)
    return f"{{ const {ctype} v = {value}; {place} = ({ctype}){combined_text(kind, out.dtype, place, 'v')}; }}"


def _scatter_elements(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, indices, updates = (kernel.in_memory(a) for a in args)
    axis = axis_of(call.attrs.axis, len(data.shape))
    out = target_of(kernel, sink)
    _copied(kernel, data, out)
    steps, own, new = strides_of(data.shape), strides_of(indices.shape), strides_of(updates.shape)
    stage = kernel.stage()
    for d, extent in enumerate(indices.shape):
        stage.put(f"for (long i{d} = 0; i{d} < {extent}; i{d}++)")
    at = " + ".join([f"i{d} * {s}" for d, s in enumerate(own)] or ["0"])
    place = " + ".join([f"i{d} * {s}" for d, s in enumerate(steps) if d != axis] + [f"k * {steps[axis]}"])
    value = f"{updates.name}[{' + '.join(f'i{d} * {s}' for d, s in enumerate(new))}]"
    stage.put(f"{{\n  long k = {indices.name}[{at}]; k += k < 0 ? {data.shape[axis]} : 0;\n"
              f"  if (k < 0 || k >= {data.shape[axis]}) continue;\n"
              f"  {_update(call.attrs.reduction, out, place, value)}\n}}")  # fmt: skip
    pass_on(kernel, sink, out)


def _scatter_nd(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, indices, updates = (kernel.in_memory(a) for a in args)
    how = call.attrs.mode
    out = target_of(kernel, sink)
    _copied(kernel, data, out)
    depth, places = indices.shape[0], math.prod(indices.shape[1:])
    row = math.prod(data.shape[depth:])
    steps = strides_of(data.shape)
    stage = kernel.stage()
    stage.put(f"for (long p = 0; p < {places}; p++) {{\n  long at = 0, k;")
    for d in range(depth):
        stage.put(f"  k = {indices.name}[{d * places} + p]; k += k < 0 ? {data.shape[d]} : 0;\n"
                  f"  if (k < 0 || k >= {data.shape[d]}) continue;\n  at += k * {steps[d]};")  # fmt: skip
    value = f"{updates.name}[p * {row} + i]"
    stage.put(f"  for (long i = 0; i < {row}; i++) {{ {_update(how, out, 'at + i', value)} }}\n}}")
    pass_on(kernel, sink, out)


def _sparse_to_dense(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    indices, values = (kernel.in_memory(a) for a in args[:2])
    out = target_of(kernel, sink)
    nest = Nest(out.shape)
    default = args[2].at(nest, [ZERO for _ in args[2].shape])
    where = nest.offset([variable(d) for d in range(len(out.shape))], out.shape)
    nest.store(out, where, default.cast(out.dtype))
    kernel.loops(nest)
    points, depth = (*indices.shape, 1, 1)[:2]
    stage = kernel.stage()
    stage.put(f"for (long p = 0; p < {points}; p++) {{\n  long at = 0, k;")
    for d, step in enumerate(strides_of(out.shape)[:depth]):
        stage.put(f"  k = {indices.name}[p * {depth} + {d}]; k += k < 0 ? {out.shape[d]} : 0;\n"
                  f"  if (k < 0 || k >= {out.shape[d]}) continue;\n  at += k * {step};")  # fmt: skip
    stage.put(f"  {out.name}[at] = {values.name}[{'p' if values.shape else 0}];\n}}")
    pass_on(kernel, sink, out)


def _strided_set(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, v, begin, end, strides = (kernel.in_memory(a) for a in args)
    out = target_of(kernel, sink)
    _copied(kernel, data, out)
    rank = len(v.shape)
    if rank != len(data.shape):
        raise unsupported("strided_set of a tensor of another rank cannot be compiled", call)
    stage = kernel.stage()
    for d, n in enumerate(data.shape):
        # Python's slices: a negative place counts from the end; then the place is clamped to the axis. A slice that
        # goes backwards begins at the last element at most. It ends before the first one at least.
        step = f"{strides.name}[{d}]" if d < strides.size else "1"
        stage.put(f"const long s{d} = {step}, low{d} = -(s{d} < 0), high{d} = {n} - (s{d} < 0);")
        for name, places, whole in (("b", begin, (0, n - 1)), ("e", end, (n, -1))):
            if d < places.size:
                stage.put(f"long {name}{d} = {places.name}[{d}]; {name}{d} += {name}{d} < 0 ? {n} : 0;\n"
                          f"{name}{d} = {name}{d} < low{d} ? low{d} : {name}{d} > high{d} ? high{d} : {name}{d};")  # fmt: skip
            else:
                stage.put(f"const long {name}{d} = s{d} < 0 ? {whole[1]} : {whole[0]};")
    own, steps = strides_of(v.shape), strides_of(data.shape)
    for d, extent in enumerate(v.shape):
        stage.put(f"for (long i{d} = 0, k{d} = b{d}; i{d} < {extent} && (s{d} < 0 ? k{d} > e{d} : s{d} > 0 && k{d} < e{d});"
                  f" i{d}++, k{d} += s{d})")  # fmt: skip
    at = " + ".join(f"k{d} * {s}" for d, s in enumerate(steps)) or "0"
    source = " + ".join(f"i{d} * {s}" for d, s in enumerate(own)) or "0"
    stage.put(f"  {out.name}[{at}] = {v.name}[{source}];")
    pass_on(kernel, sink, out)


def _invert_permutation(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data = kernel.in_memory(args[0])
    out = target_of(kernel, sink)
    stage = kernel.stage()
    stage.put(f"memset({out.name}, 0, sizeof({CTYPES[out.dtype]}) * {out.size});\n"
              f"for (long i = 0; i < {data.size}; i++) {{ long k = {data.name}[i]; k += k < 0 ? {data.size} : 0;"
              f" if (k >= 0 && k < {data.size}) {out.name}[k] = i; }}")  # fmt: skip
    pass_on(kernel, sink, out)


def _unravel_index(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data, extents = args
    shape, dtype = result_type(call)
    rank = extents.shape[0]

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        left = data.at(nest, list(index[1:])).cast("int64")
        out = left
        for d in reversed(range(rank)):
            extent = extents.at(nest, [Affine({}, d)]).cast("int64")
            digit = left.op("mod", extent) if d else left
            left = left / extent
            test = nest.as_scalar(index[0]).eq(d)
            out = digit if d == rank - 1 else test.select(digit, out)
        return out.cast(dtype)

    return Recipe(shape, dtype, at)


def _adv_index(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data, *indices = args[0]
    shape, dtype = result_type(call)
    width = len(shape) - (len(data.shape) - len(indices))

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        where: list[Index] = []
        for part, extent in zip(indices, data.shape):
            k = broadcast_at(part, nest, index[:width]).cast("int64")
            k = (k < 0).select(k + extent, k)
            where.append(k.op("clamp", 0, extent - 1))
        return data.at(nest, [*where, *index[width:]])

    return Recipe(shape, dtype, at)


def _trilu(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data, k = args
    shape, dtype = result_type(call)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        row, column = (nest.as_scalar(i) for i in index[-2:])
        first = k.at(nest, [ZERO for _ in k.shape]).cast("int64")
        test = column - row >= first if call.attrs.upper else column - row <= first
        return test.select(data.at(nest, index), nest.const(0, dtype))

    return Recipe(shape, dtype, at)


def _matrix_set_diag(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The rows of `diagonals` hold them from the highest down. Each is aligned at the left or the right end of its
    row."""
    data, diagonals = args
    attrs = call.attrs
    shape, dtype = result_type(call)
    rows, columns = shape[-2:]
    several, width = attrs.k1 != attrs.k2, diagonals.shape[-1]
    skipped = []
    for k in range(attrs.k1, attrs.k2 + 1):
        right = attrs.super_diag_right_align if k >= 0 else attrs.sub_diag_right_align
        skipped.append(width - min(rows + min(k, 0), columns - max(k, 0)) if right and several else 0)
    begins = kernel.constant(np.asarray(skipped), "int64")

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        row, column = (nest.as_scalar(i) for i in index[-2:])
        k = column - row
        test = (k >= attrs.k1) & (k <= attrs.k2)
        line = (k - attrs.k1).op("clamp", 0, attrs.k2 - attrs.k1)
        place = row.op("min", column) + nest.load(begins, line)
        place = place.op("clamp", 0, max(width - 1, 0))
        where: list[Index] = [*index[:-2], place]
        if several:
            where.insert(-1, attrs.k2 - attrs.k1 - line)
        return test.select(diagonals.at(nest, where), data.at(nest, index))

    return Recipe(shape, dtype, at)


def _sparse_reshape(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Each place's number in the old shape, converted to a place in the new shape. One extent of the new shape may be
    -1."""
    indices, old, new = (kernel.in_memory(a) for a in args)
    places, extents = (kernel.buffer(shape, dtype) for shape, dtype in result_types(call))
    had, has, count = old.size, new.size, indices.shape[0]
    kernel.stage().put(f"""long total = 1, known = 1, same = {had} == {has};
for (long d = 0; d < {had}; d++) total *= {old.name}[d];
for (long d = 0; d < {has}; d++) known *= {new.name}[d] == -1 ? 1 : {new.name}[d];
for (long d = 0; d < {has}; d++) {{
  {extents.name}[d] = {new.name}[d] == -1 ? r_div(total, known) : {new.name}[d];
  same = same && {extents.name}[d] == {old.name}[d];
}}
for (long i = 0; i < {count}; i++) {{
  long at = 0, left = total;
  for (long d = 0; d < {had}; d++) at = at * {old.name}[d] + {indices.name}[i * {had} + d];
  for (long d = 0; d < {has}; d++) {{
    const long extent = {extents.name}[d];
    left = r_div(left, extent);
    long k = left ? r_floor_div(at, left) : 0;
    if (d) k = r_floor_mod(k, extent);
    {places.name}[i * {has} + d] = same ? {indices.name}[i * {had} + d] : k;
  }}
}}""")
    return [BufTensor(places), BufTensor(extents)]


def _einsum(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """Loops over the result's letters with those that are summed in front of the last of them."""
    parts = args[0]
    text = call.attrs.equation.replace(" ", "")
    if "." in text:
        raise unsupported("einsum with an ellipsis cannot be compiled", call)
    given, _, result = text.partition("->")
    terms = given.split(",")
    if "->" not in text:
        result = "".join(sorted(c for c in set(given) - {","} if given.count(c) == 1))
    extents: dict[str, int] = {}
    for term, part in zip(terms, parts):
        for letter, extent in zip(term, part.shape):
            extents[letter] = max(extent, extents.get(letter, 1))
    summed = [c for c in extents if c not in result]
    out = target_of(kernel, sink)
    nest = Nest(out.shape)
    place = nest.offset([variable(d) for d in range(len(out.shape))], out.shape)
    nest.store(out, place, nest.const(0, out.dtype))
    kernel.loops(nest)
    order = [*result[:-1], *summed, *result[-1:]]
    nest = Nest([extents[c] for c in order])
    where = {c: variable(n) for n, c in enumerate(order)}
    value: Scalar | None = None
    for term, part in zip(terms, parts):
        factor = part.at(nest, [ZERO if n == 1 else where[c] for c, n in zip(term, part.shape)])
        factor = factor.cast(out.dtype)
        value = factor if value is None else value * factor
    assert value is not None
    nest.reduce(out, nest.offset([where[c] for c in result], out.shape), combine("sum", out.dtype), value)
    kernel.loops(nest)
    pass_on(kernel, sink, out)


RECIPES: dict[str, Any] = {"unravel_index": _unravel_index, "adv_index": _adv_index, "trilu": _trilu,
                           "matrix_set_diag": _matrix_set_diag}  # fmt: skip
#: Written by stages of their own: never fused.
APART: dict[str, Any] = {"sparse_reshape": _sparse_reshape}
ANCHORS: dict[str, Any] = {
    "cumsum": _running("sum"),
    "cumprod": _running("prod"),
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "sparse_to_dense": _sparse_to_dense,
    "strided_set": _strided_set,
    "invert_permutation": _invert_permutation,
    "einsum": _einsum,
}
