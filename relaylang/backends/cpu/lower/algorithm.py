"""Sorting and searching: stable merge sorts of places, and bisection.

A nan counts as greater than every number, as numpy has it.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Sink, Value
from relaylang.backends.cpu.lower.common import axis_of, result_types
from relaylang.backends.cpu.lower.scatter import around, pass_on, target_of
from relaylang.ir import Call, TupleType
from relaylang.kernels.dtypes import CTYPES, is_float
from relaylang.kernels.index import variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar


def _before(a: str, b: str, dtype: str, ascending: bool, nans_last: bool = False) -> str:
    """C: whether value `a` stands before `b`, which it does not where they are equal."""
    low, high = (a, b) if ascending else (b, a)
    number, nan = (a, b) if nans_last else (low, high)
    return f"({low} < {high} || ({nan} != {nan} && {number} == {number}))" if is_float(dtype) else f"({low} < {high})"


def places(kernel: Kernel, data: Buf, axis: int, ascending: bool, nans_last: bool = False) -> Buf:
    """The places of the elements along an axis, in order: int32, of shape (lines, extent)."""
    outer, length, inner = around(data.shape, axis)
    lines = outer * inner
    found = kernel.buffer((lines, length), "int32")
    other = kernel.buffer((lines, length), "int32")
    test = _before("x[p[r] * step]", "x[p[l] * step]", data.dtype, ascending, nans_last)
    stage = kernel.stage(lines)
    stage.put(
        f"""for (long u = lo; u < hi; u++) {{
  const long step = {inner};
  const {CTYPES[data.dtype]}* x = {data.name} + u / {max(inner, 1)} * {length * inner} + u % {max(inner, 1)};
  int32_t* p = {found.name} + u * {length};
  int32_t* q = {other.name} + u * {length};
  for (long i = 0; i < {length}; i++) p[i] = i;
  for (long w = 1; w < {length}; w *= 2) {{
    for (long a = 0; a < {length}; a += 2 * w) {{
      const long m = a + w < {length} ? a + w : {length}, e = m + w < {length} ? m + w : {length};
      long l = a, r = m;
      for (long k = a; k < e; k++) q[k] = l < m && (r >= e || !{test}) ? p[l++] : p[r++];
    }}
    int32_t* const t = p; p = q; q = t;
  }}
  if (p != {found.name} + u * {length}) memcpy(q, p, sizeof(int32_t) * {length});
}}"""
    )
    return found


def _gathered(data: Buf, order: Buf, axis: int, shape: tuple[int, ...], dtype: str, values: bool) -> Recipe:
    """The first elements along an axis in order: themselves, or their places."""
    rest = [n for d, n in enumerate(data.shape) if d != axis]

    def at(nest: Nest, index: Any) -> Scalar:
        line = nest.offset([i for d, i in enumerate(index) if d != axis], rest)
        where: Index = nest.add(nest.scale(line, data.shape[axis]), index[axis])
        place = nest.load(order, where)
        if not values:
            return place.cast(dtype)
        own = place.cast("int64")
        return BufTensor(data).at(nest, [*index[:axis], own, *index[axis + 1 :]])

    return Recipe(shape, dtype, at)


def _sorted(values: bool) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        data = kernel.in_memory(args[0])
        axis = axis_of(call.attrs.axis, len(data.shape))
        order = places(kernel, data, axis, bool(call.attrs.is_ascend))
        out = target_of(kernel, sink)
        found = _gathered(data, order, axis, out.shape, out.dtype, values)
        nest = Nest(out.shape)
        index = [variable(d) for d in range(len(out.shape))]
        nest.store(out, nest.offset(index, out.shape), found.at(nest, index))
        kernel.loops(nest)
        pass_on(kernel, sink, out)

    return lower


def _topk(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data = kernel.in_memory(args[0])
    axis = axis_of(call.attrs.axis, len(data.shape))
    order = places(kernel, data, axis, bool(call.attrs.is_ascend))
    ty = call.checked_type
    fields: Any = ty.fields if isinstance(ty, TupleType) else (ty,)
    kinds = {"both": (True, False), "values": (True,), "indices": (False,)}[call.attrs.ret_type]
    out: list[Any] = [_gathered(data, order, axis, tuple(f.shape), f.dtype, kind) for f, kind in zip(fields, kinds)]
    return out if isinstance(ty, TupleType) else out[0]


def _unique(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The different values, where each stands first, which one each element is, how many there are, how often each is."""
    data = kernel.in_memory(args[0])
    n = data.size
    order = places(kernel, data, 0, True)
    values, first, which, number, *counts = out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    named = kernel.buffer((n,), "int32")
    same = f"{data.name}[p[k]] == {data.name}[p[k - 1]]"
    if is_float(data.dtype):
        same += f" || ({data.name}[p[k]] != {data.name}[p[k]] && {data.name}[p[k - 1]] != {data.name}[p[k - 1]])"
    stage = kernel.stage()
    stage.put(f"const int32_t* p = {order.name};\nlong n = -1;\nfor (long k = 0; k < {n}; k++) {{\n"
              f"  if (!k || !({same})) {named.name}[++n] = p[k];\n  {which.name}[p[k]] = n;\n}}")  # fmt: skip
    if not call.attrs.sorted:
        # Numbers in the order in which the values come: each element's is that of its value's first place.
        stage.put(f"n = -1;\nfor (long i = 0; i < {n}; i++) {{\n  const long at = {named.name}[{which.name}[i]];\n"
                  f"  if (at == i) {first.name}[++n] = i;\n"
                  f"  {which.name}[i] = at == i ? n : {which.name}[at];\n}}")  # fmt: skip
    else:
        stage.put(f"memcpy({first.name}, {named.name}, sizeof(int32_t) * (n + 1));")
    stage.put(f"{number.name}[0] = n + 1;\nfor (long i = 0; i < {n}; i++) {{\n"
              f"  {values.name}[i] = i <= n ? {data.name}[{first.name}[i]] : 0;\n"
              f"  if (i > n) {first.name}[i] = {n};\n}}")  # fmt: skip
    for buf in counts:
        stage.put(f"memset({buf.name}, 0, sizeof(int32_t) * {max(1, n)});\n"
                  f"for (long i = 0; i < {n}; i++) {buf.name}[{which.name}[i]]++;")  # fmt: skip
    return [BufTensor(b) for b in out]


def _searchsorted(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    line, values = (kernel.in_memory(a) for a in args)
    length = line.shape[-1]
    own = 0 if len(line.shape) == 1 else length
    width = max(1, values.shape[-1] if values.shape else 1)
    out = target_of(kernel, sink)
    kind = np.promote_types(line.dtype, values.dtype).name
    held = f"({CTYPES[kind]})s[m]"
    test = f"!{_before('v', held, kind, True)}" if call.attrs.right else _before(held, "v", kind, True)
    stage = kernel.stage(math.prod(values.shape))
    stage.put(
        f"""for (long u = lo; u < hi; u++) {{
  const {CTYPES[line.dtype]}* s = {line.name} + u / {width} * {own};
  const {CTYPES[kind]} v = {values.name}[u];
  long l = 0, r = {length};
  while (l < r) {{ const long m = (l + r) / 2; if ({test}) l = m + 1; else r = m; }}
  {out.name}[u] = {"l != 0" if out.dtype == "bool" else "l"};
}}"""
    )
    pass_on(kernel, sink, out)


#: Written with stages of their own: never fused.
RECIPES: dict[str, Any] = {"topk": _topk, "unique": _unique}
ANCHORS: dict[str, Any] = {"sort": _sorted(True), "argsort": _sorted(False), "searchsorted": _searchsorted}
