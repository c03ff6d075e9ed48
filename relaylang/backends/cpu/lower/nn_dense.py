"""Matrix products: blocks of rows against packed columns; dot products where there are only a few rows."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.backends.cpu.dtypes import is_float
from relaylang.backends.cpu.gemm import block_kernel, vector_types
from relaylang.backends.cpu.index import ZERO, variable
from relaylang.backends.cpu.kernel import Anchored, BufTensor, Kernel, Recipe, Sink, Tensor, unsupported
from relaylang.backends.cpu.lower.common import convert
from relaylang.backends.cpu.scalar import Buf, Index, Nest, Scalar
from relaylang.ir import Call

_WEIGHTS_IN_CACHE = 600_000
#: Up to this many rows, a product reads its weights in place.
_FEW_ROWS = 3


@dataclass
class Product:
    """`out[b][m][n] = sum_k left[b][m][k] * right[b][n][k]`, each operand with its strides (a batch stride may be 0)."""

    batch: int
    rows: int
    columns: int
    depth: int
    left: tuple[int, int, int]  # strides: batch, row, depth
    right: tuple[int, int, int]  # strides: batch, column, depth


def converted(kernel: Kernel, data: Tensor, dtype: str, zero: Tensor | None) -> Tensor:
    """The data in the accumulator's type, less a zero point."""
    if data.dtype == dtype and zero is None:
        return data

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        value = convert(nest, data.at(nest, index), dtype)
        if zero is not None:
            value = nest.op("({0} - {1})", [value, convert(nest, zero.at(nest, [ZERO for _ in zero.shape]), dtype)], dtype)
        return value

    return Recipe(data.shape, dtype, at)


def lower_product(kernel: Kernel, product: Product, left: Tensor, right: Tensor, sink: Sink, dtype: str,
                  right_zero: str = "", extra: Sequence[Tensor] = ()) -> None:  # fmt: skip
    """Emit a product that accumulates in `dtype` (float32 or int32). `left` is of that type already.

    `right_zero` is a C expression subtracted from each weight; it may use the column `j` and the buffers of `extra`.
    """
    data = kernel.in_memory(left)
    isa = kernel.isa.of(dtype)
    if product.rows <= _FEW_ROWS and dtype == "float32" and right.dtype == dtype and product.right[2] == 1 \
            and product.left[2] == 1 and product.batch == 1:  # fmt: skip
        _dot_products(kernel, product, data, kernel.in_memory(right), sink)
        return
    ctype, _, _ = vector_types(dtype)
    rows, columns, depth = product.rows, product.columns, product.depth
    tiling = isa.tiling(columns, rows)
    vectors, size = tiling.vectors, min(rows, tiling.rows)
    width = vectors * isa.lanes
    blocks = -(-columns // width)
    panel = depth * width
    batches = product.batch if product.right[0] else 1

    def text(source: str, target: str) -> str:
        value = f"({ctype}){source}[b * {product.right[0]} + j * {product.right[1]} + k * {product.right[2]}]"
        if right_zero:
            value += f" - {right_zero}"
        return (
            f"{ctype}* q = {target};\n"
            f"for (long b = 0; b < {batches}; b++) for (long j0 = 0; j0 < {columns}; j0 += {width})\n"
            f"  for (long k = 0; k < {depth}; k++)\n"
            f"    for (long j = j0; j < j0 + {width}; j++) *q++ = j < {columns} ? {value} : 0;"
        )

    packed = kernel.packed(right, batches * blocks * panel, dtype, text, extra)
    segments, tiles = tiling.segments, tiling.tiles
    segment = min(rows, tiles * size)
    # Four steps of the sum are unrolled, the rest is a loop of its own in the packed order.
    unroll = next(n for n in (4, 3, 2, 1) if depth % n == 0)
    step = product.left[2]
    block = f"{kernel.name}_block"
    offsets = [r * product.left[1] for r in range(size)]
    taps = [n * step for n in range(unroll)]
    kernel.functions.append(block_kernel(block, isa, dtype, vectors, offsets, 1, taps))
    stage = kernel.stage(product.batch * segments * blocks)
    put = stage.put
    put("for (long u = lo; u < hi; u++) {")
    if columns * depth * 4 > _WEIGHTS_IN_CACHE:
        put(f"  const long s = u % {segments}, b = u / {segments} % {blocks}, n = u / {segments * blocks};")
    else:
        put(f"  const long b = u % {blocks}, s = u / {blocks} % {segments}, n = u / {segments * blocks};")
    # The last segment reaches back over the one before. It stores only its own results: another thread may be storing
    # the rest.
    put(f"  const long m1 = s * {segment}, m0 = m1 < {rows - segment} ? m1 : {rows - segment};")
    put(f"  const {ctype}* x = {data.name} + n * {product.left[0]} + m0 * {product.left[1]}L;")
    at_batch = f"n * {blocks} + b" if batches > 1 else "b"
    put(f"  const {ctype}* w = {packed.name} + ({at_batch}) * {panel}L;")
    put(f"  const long c0 = b * {width}, cn = {columns} - c0 < {width} ? {columns} - c0 : {width};")
    put(f"  {ctype} t[{size * width}] __attribute__((aligned(64)));")
    direct = sink.direct
    if direct is None:
        put(f"  {ctype} r[{segment * width}] __attribute__((aligned(64)));")
        row = width
    else:
        put(f"  {ctype}* r = {direct.name} + (n * {rows} + m0) * {columns}L + c0;")
        row = columns
    put(f"  for (long q = 0; q < {tiles}; q++) {{")
    put(f"    const long p = q < {tiles - 1} ? q * {size} : {segment - size};")
    put(f"    {block}(x + p * {product.left[1]}L, w, t, {depth // unroll}, {unroll * step});")
    first = "m0 + p < m1 ? m1 - m0 - p : 0" if direct is not None and segments > 1 else "0"
    put(f"    for (long i = {first}; i < {size}; i++)")
    put(f"      for (long c = 0; c < cn; c++) r[(p + i) * {row} + c] = t[i * {width} + c];")
    put("  }")
    if direct is None:
        stage.lines += _pass_on(sink, product, "r", width, "m0", f"m0 + {segment}", put, ctype, "m1")
    put("}")


def _pass_on(sink: Sink, product: Product, source: str, step: int, low: str, high: str, put: Any, ctype: str,
             own: str | None = None) -> list[str]:  # fmt: skip
    """Store rows `own..high` (by default all), columns `c0..c0 + cn` of the result.

    The block's rows are `step` apart and begin with `low`.
    """
    shape = sink.anchor.shape
    rank = len(shape)
    put(f"  const {ctype}* v = {source} - (({low}) * {step} + c0);")
    bounds = {rank - 1: ("c0", "c0 + cn")}
    strides = [0] * rank
    strides[-1] = 1
    flat = None
    first = 1 if product.batch > 1 or (rank == 3 and shape[1] == product.rows) else 0
    if first:
        bounds[0] = ("n", "n + 1")
    total = step
    for d in range(rank - 2, first - 1, -1):
        strides[d] = total
        total *= shape[d]
    if rank - 2 > first:
        flat = (first, rank - 2, own or low, high)
    elif rank - 2 == first:
        bounds[first] = (own or low, high)
    return sink.store_block("v", strides, bounds, flat)


def _dot_products(kernel: Kernel, product: Product, data: Buf, weights: Buf, sink: Sink) -> None:
    """A few rows: each weight is read once, in vectors along the sum, four columns at a time."""
    lanes = kernel.isa.lanes
    depth, columns, rows = product.depth, product.columns, product.rows
    whole = depth // lanes * lanes
    chunk = 32
    stage = kernel.stage(-(-columns // chunk))
    put = stage.put
    put("for (long u = lo; u < hi; u++) {")
    put(f"  const long n = 0, c0 = u * {chunk}, cn = {columns} - c0 < {chunk} ? {columns} - c0 : {chunk};\n  (void)n;")
    put(f"  float r[{rows * chunk}];")
    for count in (4, 1):
        start = "0" if count == 4 else "cn / 4 * 4"
        put(f"  for (long j = {start}; j + {count} <= cn; j += {count}) {{")
        for c in range(count):
            put(f"    const float* w{c} = {weights.name} + (c0 + j + {c}) * {product.right[1]}L;")
        for m in range(rows):
            put(f"    const float* x{m} = {data.name} + {m * product.left[1]};")
            put("    r_vf " + ", ".join(f"a{m}_{c} = {{0}}" for c in range(count)) + ";")
        put(f"    for (long k = 0; k < {whole}; k += {lanes}) {{")
        for m in range(rows):
            put(f"      const r_vf v{m} = *(const r_vfu*)(x{m} + k);")
        for c in range(count):
            put(f"      {{ const r_vf w = *(const r_vfu*)(w{c} + k); "
                + " ".join(f"a{m}_{c} = r_fma_vf(w, v{m}, a{m}_{c});" for m in range(rows)) + " }")  # fmt: skip
        put("    }")
        for m in range(rows):
            for c in range(count):
                put(f"    float s{m}_{c} = r_sum_vf(a{m}_{c});")
        if whole < depth:
            put(f"    for (long k = {whole}; k < {depth}; k++) {{")
            for m in range(rows):
                put("      " + " ".join(f"s{m}_{c} += w{c}[k] * x{m}[k];" for c in range(count)))
            put("    }")
        for m in range(rows):
            put("    " + " ".join(f"r[{m * chunk} + j + {c}] = s{m}_{c};" for c in range(count)))
        put("  }")
    stage.lines += _pass_on(sink, product, "r", chunk, "0", str(rows), put, "float")
    put("}")


def accumulator(dtype: str) -> str:
    """The type in which a product is summed. Short floats are summed in float32, short integers in int32, which wraps
    as they do."""
    if is_float(dtype):
        return "float64" if dtype == "float64" else "float32"
    return "int64" if dtype in ("int64", "uint64") else "int32"


def factors(kernel: Kernel, args: Sequence[Tensor], dtype: str) -> list[Tensor]:
    """The operands of a product. A product in integers converts float operands to `dtype` first; so does one of bools.
    Floats and bools become integers before they are multiplied."""
    if is_float(dtype) or not any(dtype == "bool" or is_float(x.dtype) for x in args):
        return list(args)
    return [converted(kernel, x, dtype, None) for x in args]


def dense_product(data: Tensor, columns: int) -> Product:
    depth = data.shape[-1]
    rows = 1
    for extent in data.shape[:-1]:
        rows *= extent
    return Product(1, rows, columns, depth, (0, depth, 1), (0, depth, 1))


def fused_ready(sink: Sink, rank: int) -> bool:
    """Whether the rows of a result of this rank can be handed on block by block."""
    return rank <= 2 or sink.direct is not None or sink.mergeable(0, rank - 2)


def through_buffer(kernel: Kernel, sink: Sink, dtype: str | None = None) -> Sink:
    """A sink into a buffer, of type `dtype` if given, else of the result's type. `finish` then passes the buffer on."""
    anchor = sink.anchor
    if dtype is not None and dtype != anchor.dtype:
        anchor = Anchored(anchor.shape, dtype)
    return Sink(kernel, anchor, anchor, kernel.buffer(anchor.shape, anchor.dtype))


def finish(kernel: Kernel, sink: Sink, inner: Sink) -> None:
    """Pass a buffered result on to its sink by plain loops."""
    if inner is sink:
        return
    nest = Nest(sink.anchor.shape)
    index = [variable(d) for d in range(len(sink.anchor.shape))]
    value = BufTensor(inner.out).at(nest, index)
    if sink.anchor.dtype == "bool":  # a sum of truth values is modulo 2
        value = nest.op("({0} & 1)", [value], value.dtype)
    sink.store(nest, index, convert(nest, value, sink.anchor.dtype))
    kernel.loops(nest)


def _dense(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    data, weight = factors(kernel, args, sink.anchor.dtype)
    dtype = accumulator(sink.anchor.dtype)
    plain = fused_ready(sink, len(data.shape)) and dtype == sink.anchor.dtype
    inner = sink if plain else through_buffer(kernel, sink, dtype)
    lower_product(kernel, dense_product(data, weight.shape[0]), converted(kernel, data, dtype, None), weight, inner, dtype)
    finish(kernel, sink, inner)


def _matmul(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    left, right = factors(kernel, args, sink.anchor.dtype)
    attrs = call.attrs
    dtype = accumulator(sink.anchor.dtype)
    batched = len(left.shape) == 3
    if not batched and len(left.shape) != 2:
        raise unsupported(f"{call.op.name} of {len(left.shape)} dimensions cannot be compiled", call)  # type: ignore[attr-defined]
    out = sink.anchor.shape
    rows, columns = out[-2:]
    depth = left.shape[-2] if attrs.transpose_a else left.shape[-1]
    one = (1, left.shape[-1]) if attrs.transpose_a else (left.shape[-1], 1)
    two = (right.shape[-1], 1) if attrs.transpose_b else (1, right.shape[-1])
    batch = out[0] if batched else 1
    product = Product(
        batch, rows, columns, depth,
        (rows * depth if batched and left.shape[0] > 1 else 0, *one),
        (columns * depth if batched and right.shape[0] > 1 else 0, *two),
    )  # fmt: skip
    inner = sink if dtype == sink.anchor.dtype else through_buffer(kernel, sink, dtype)
    lower_product(kernel, product, converted(kernel, left, dtype, None), right, inner, dtype)
    finish(kernel, sink, inner)


ANCHORS: dict[str, Any] = {"nn.dense": _dense, "nn.matmul": _matmul, "nn.batch_matmul": _matmul}
