"""Products with sparse matrices, by rows (CSR) or rows of blocks (BSR): made dense first, as the interpreter does it.

An entry whose column is not there is an error to the interpreter; here it is left out.
"""
from __future__ import annotations

import math
from typing import Any

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Value, unsupported
from relaylang.backends.cpu.lower.common import result_types
from relaylang.backends.cpu.lower.sampling import alone
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.nest import Buf
from relaylang.kernels.sizes import smallest


def _plus(dtype: str) -> str:
    """C: what adds to a number; a sum of truth values is modulo 2."""
    return "^=" if dtype == "bool" else "+="


def _dense_of(kernel: Kernel, parts: list[Buf], columns: int) -> Buf:
    values, indices, indptr = parts
    high, across = (*values.shape[1:], 1, 1)[:2]
    rows, count = max(indptr.size - 1, 0), smallest(values.shape[0], indices.size)
    out = kernel.buffer((rows * high, columns), values.dtype)
    kernel.stage(rows).put(f"""memset({out.name} + lo * {high * columns}, 0, sizeof(*{out.name}) * {high * columns} * (hi - lo));
for (long i = lo; i < hi; i++)
  for (long k = {indptr.name}[i] < 0 ? 0 : {indptr.name}[i]; k < {indptr.name}[i + 1] && k < {count}; k++)
    for (long a = 0; a < {high}; a++) for (long b = 0; b < {across}; b++) {{
      const long c = (long){indices.name}[k] * {across} + b;
      if (c < 0 || c >= {columns}) continue;
      {out.name}[(i * {high} + a) * {columns} + c] {_plus(values.dtype)} {values.name}[(k * {high} + a) * {across} + b];
    }}""")
    return out


def _dense(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    data = bufs[0]
    lines, columns = math.prod(data.shape[:-1]), data.shape[-1]
    weight = _dense_of(kernel, bufs[1:], columns)
    units = weight.shape[0]
    place = f"o * {lines} + u" if call.attrs.sparse_lhs else f"u * {units} + o"
    t = CTYPES[out.dtype]
    kernel.stage(lines).put(f"""for (long u = lo; u < hi; u++) for (long o = 0; o < {units}; o++) {{
  {t} s = 0;
  for (long k = 0; k < {columns}; k++)
    s {_plus(out.dtype)} ({t}){data.name}[u * {columns} + k] * {weight.name}[o * {columns} + k];
  {out.name}[{place}] = s;
}}""")


def _add(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    data = bufs[0]
    sparse = _dense_of(kernel, bufs[1:], data.shape[1])
    if sparse.shape != data.shape:
        raise unsupported(f"the sparse matrix has the shape {sparse.shape}, the dense one {data.shape}", call)
    kernel.stage().put(f"for (long i = 0; i < {data.size}; i++)"
                       f" {{ {out.name}[i] = {data.name}[i]; {out.name}[i] {_plus(out.dtype)} {sparse.name}[i]; }}")  # fmt: skip


def _conv2d(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """A kernel of 1 x 1 or 3 x 3. The rows of the latter go over the window, then the channels (NHWC), or the reverse."""
    data, last = bufs[0], call.attrs.layout == "NHWC"
    if list(call.attrs.kernel_size) not in ([1, 1], [3, 3]):
        raise unsupported(f"{call.op.name} of {list(call.attrs.kernel_size)} cannot be compiled", call)  # type: ignore[attr-defined]
    side = int(call.attrs.kernel_size[0])
    n, a, b, c = data.shape
    (h, w, channels) = (a, b, c) if last else (b, c, a)
    weight = _dense_of(kernel, bufs[1:], side * side * channels)
    units, t = weight.shape[0], CTYPES[out.dtype]
    from_ = f"((n * {h} + y) * {w} + x) * {channels} + c" if last else f"((n * {channels} + c) * {h} + y) * {w} + x"
    tap = f"(a * {side} + b) * {channels} + c" if last else f"(c * {side} + a) * {side} + b"
    to = f"(u * {w} + j) * {units} + o" if last else f"((n * {units} + o) * {h} + i) * {w} + j"
    kernel.stage(n * h).put(f"""for (long u = lo; u < hi; u++) for (long j = 0; j < {w}; j++) for (long o = 0; o < {units}; o++) {{
  const long n = u / {max(h, 1)}, i = u % {max(h, 1)};
  {t} s = 0;
  for (long a = 0; a < {side}; a++) for (long b = 0; b < {side}; b++) {{
    const long y = i + a - {side // 2}, x = j + b - {side // 2};
    if (y < 0 || y >= {h} || x < 0 || x >= {w}) continue;
    for (long c = 0; c < {channels}; c++)
      s {_plus(out.dtype)} ({t}){data.name}[{from_}] * {weight.name}[o * {weight.shape[1]} + {tap}];
  }}
  {out.name}[{to}] = s;
}}""")


def _transpose(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """A square matrix, by rows: entries go behind those of lower rows in their column."""
    values, indices, indptr = (kernel.in_memory(a) for a in args)
    out_values, out_indices, out_indptr = out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    size, count = max(indptr.size - 1, 0), indices.size
    width = math.prod(values.shape[1:])
    free = kernel.buffer((size + 1,), "int64")
    kernel.stage().put(f"""int64_t* f = {free.name};
memset(f, 0, sizeof(*f) * {size + 1});
for (long k = 0; k < {count}; k++) {{ const long c = {indices.name}[k]; if (c >= 0 && c < {size}) f[c + 1]++; }}
for (long i = 0; i < {size}; i++) f[i + 1] += f[i];
for (long i = 0; i < {indptr.size}; i++) {out_indptr.name}[i] = f[i];
for (long i = 0; i < {size}; i++)
  for (long k = {indptr.name}[i] < 0 ? 0 : {indptr.name}[i]; k < {indptr.name}[i + 1] && k < {count}; k++) {{
    const long c = {indices.name}[k];
    if (c < 0 || c >= {size} || f[c] >= {count}) continue;
    {out_indices.name}[f[c]] = i;
    memcpy({out_values.name} + f[c]++ * {width}, {values.name} + k * {width}, sizeof(*{values.name}) * {width});
  }}""")
    return [BufTensor(b) for b in out]


#: Written by stages of their own: never fused.
RECIPES: dict[str, Any] = {"nn.sparse_transpose": _transpose}
ANCHORS: dict[str, Any] = {
    "nn.sparse_dense": alone(_dense, sums=True),
    "nn.internal.sparse_dense_padded": alone(_dense, sums=True),
    "nn.sparse_add": alone(_add, sums=True),
    "nn.sparse_conv2d": alone(_conv2d, sums=True),
}
