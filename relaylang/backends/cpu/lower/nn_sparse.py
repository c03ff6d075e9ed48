"""Products with sparse matrices, by rows (CSR) or rows of blocks (BSR): made dense first, as the interpreter does it.

An entry whose column is not there is an error to the interpreter; here it is left out.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Number, Value, unsupported
from relaylang.backends.cpu.lower.common import result_types
from relaylang.backends.cpu.lower.reduce import combine
from relaylang.backends.cpu.lower.sampling import alone
from relaylang.backends.cpu.lower.scatter import filled, within
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.nest import Buf
from relaylang.kernels.sizes import must_equal, smallest


def _entries(b: Builder, indptr: Buf, row: ir.Expr, count: int) -> AbstractContextManager[ir.Var]:
    """A loop over the numbers of a row's entries, of which there are `count` in all rows."""
    first, end = (ir.cast(ir.load(indptr, at), ir.INDEX) for at in (row, row + 1))
    return b.loop("k", ir.maximum(first, 0), ir.minimum(end, count))


def _add_product(b: Builder, total: ir.Var, one: ir.Expr, two: ir.Expr) -> None:
    """Add a product to a number; a sum of truth values is modulo 2."""
    one, two = ir.cast(one, total.type), ir.cast(two, total.type)
    b.assign(total, ir.op(combine("sum", total.type), total, ir.op(combine("prod", total.type), one, two)))


def _dense_of(kernel: Kernel, parts: list[Buf], columns: int) -> Buf:
    values, indices, indptr = parts
    high, across = (*values.shape[1:], 1, 1)[:2]
    rows, count = max(indptr.size - 1, 0), smallest(values.shape[0], indices.size)
    out = kernel.buffer((rows * high, columns), values.dtype)
    b = Builder()
    with b.loop("i", rows, kind=ir.PARALLEL) as i:
        with b.loop("c", high * columns) as c:
            b.store(out, 0, i * (high * columns) + c)
        with _entries(b, indptr, i, count) as k, b.loops("a", (high, across)) as (y, x):
            c = b.let("c", ir.cast(ir.load(indices, k), ir.INDEX) * across + x)
            with b.when(within(c, columns)):
                at, value = (i * high + y) * columns + c, ir.load(values, (k * high + y) * across + x)
                b.add(ir.Reduce(combine("sum", out.dtype), out.name, at, value))
    kernel.stage(body=b.body)
    return out


def _dense(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    data = bufs[0]
    lines, columns = math.prod(data.shape[:-1]), data.shape[-1]
    weight = _dense_of(kernel, bufs[1:], columns)
    units = weight.shape[0]
    b = Builder()
    with b.loop("u", lines, kind=ir.PARALLEL) as u, b.loop("o", units) as o:
        s = b.var("s", ir.Const(0, out.dtype))
        with b.loop("k", columns) as k:
            _add_product(b, s, ir.load(data, u * columns + k), ir.load(weight, o, k))
        b.store(out, s, o * lines + u if call.attrs.sparse_lhs else u * units + o)
    kernel.stage(body=b.body)


def _add(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    data = bufs[0]
    sparse = _dense_of(kernel, bufs[1:], data.shape[1])
    if not all(map(must_equal, sparse.shape, data.shape)):
        raise unsupported(f"the sparse matrix has the shape {sparse.shape}, the dense one {data.shape}", call)
    b = Builder()
    with b.loop("i", data.size) as i:
        one, two = (ir.cast(ir.load(buf, i), out.dtype) for buf in (data, sparse))
        b.store(out, ir.op(combine("sum", out.dtype), one, two), i)
    kernel.stage(body=b.body)


def _conv2d(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """A kernel of 1 x 1 or 3 x 3. The rows of the latter go over the window, then the channels (NHWC), or the reverse."""
    data, last = bufs[0], call.attrs.layout == "NHWC"
    if list(call.attrs.kernel_size) not in ([1, 1], [3, 3]):
        raise unsupported(f"{call.op.name} of {list(call.attrs.kernel_size)} cannot be compiled", call)  # type: ignore[attr-defined]
    side = int(call.attrs.kernel_size[0])
    batch, *rest = data.shape
    h, w, channels = rest if last else (*rest[1:], rest[0])
    weight = _dense_of(kernel, bufs[1:], side * side * channels)
    b = Builder()
    with b.loop("u", batch * h, kind=ir.PARALLEL) as u, b.loops("p", (w, weight.shape[0])) as (j, o):
        n, i = b.let("n", u // max(h, 1)), b.let("i", u % max(h, 1))
        s = b.var("s", ir.Const(0, out.dtype))
        with b.loops("a", (side, side)) as (dy, dx):
            y, x = b.let("y", i + dy - side // 2), b.let("x", j + dx - side // 2)
            with b.when(within(y, h) & within(x, w)), b.loop("c", channels) as c:
                pixel = (n, y, x, c) if last else (n, c, y, x)
                at = (dy * side + dx) * channels + c if last else (c * side + dy) * side + dx
                _add_product(b, s, ir.load(data, *pixel), ir.load(weight, o, at))
        b.store(out, s, *((n, i, j, o) if last else (n, o, i, j)))
    kernel.stage(body=b.body)


def _transpose(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """A square matrix, by rows: entries go behind those of lower rows in their column."""
    values, indices, indptr = (kernel.in_memory(a) for a in args)
    out_values, out_indices, out_indptr = out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    size, count = max(indptr.size - 1, 0), indices.size
    width = math.prod(values.shape[1:])
    free = kernel.buffer((size + 1,), "int64")
    filled(kernel, free, Number(0, free.dtype))
    b = Builder()

    def column(k: ir.Expr) -> ir.Var:
        return b.let("c", ir.cast(ir.load(indices, k), ir.INDEX))

    with b.loop("k", count) as k:
        c = column(k)
        with b.when(within(c, size)):
            b.store(free, ir.load(free, c + 1) + 1, c + 1)
    with b.loop("i", size) as i:
        b.store(free, ir.load(free, i + 1) + ir.load(free, i), i + 1)
    with b.loop("i", indptr.size) as i:
        b.store(out_indptr, ir.load(free, i), i)
    with b.loop("i", size) as i, _entries(b, indptr, i, count) as k:
        c = column(k)
        with b.when(within(c, size)):
            to = b.let("to", ir.cast(ir.load(free, c), ir.INDEX))
            with b.when(to < count):
                b.store(out_indices, i, to)
                b.store(free, to + 1, c)
                with b.loop("v", width) as v:
                    b.store(out_values, ir.load(values, k * width + v), to * width + v)
    kernel.stage(body=b.body)
    return [BufTensor(buf) for buf in out]


#: Written by stages of their own: never fused.
RECIPES: dict[str, Any] = {"nn.sparse_transpose": _transpose}
ANCHORS: dict[str, Any] = {
    "nn.sparse_dense": alone(_dense, sums=True),
    "nn.internal.sparse_dense_padded": alone(_dense, sums=True),
    "nn.sparse_add": alone(_add, sums=True),
    "nn.sparse_conv2d": alone(_conv2d, sums=True),
}
