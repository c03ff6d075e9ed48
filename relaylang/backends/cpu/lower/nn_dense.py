"""Matrix products: blocks of rows against packed columns; dot products where there are only a few rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.arith import BFLOATS
from relaylang.backends.cpu.kernel import Anchored, BufTensor, Kernel, Recipe, Sink, Tensor
from relaylang.backends.cpu.lower.common import broadcast_at
from relaylang.backends.cpu.lower.contraction import lower_contraction
from relaylang.backends.cpu.lower.factors import Factors, Zero, factors_of, takes_off
from relaylang.backends.cpu.lower.few_rows import Product, lower_few_rows, reads_few_rows
from relaylang.backends.cpu.lower.nibbles import lower_nibbles, nibbles_of
from relaylang.backends.cpu.lower.reduce import reduce_over
from relaylang.backends.cpu.lower.sums import Contraction, Rows, Sum
from relaylang.ir import Call
from relaylang.kernels.dtypes import is_float
from relaylang.kernels.index import ZERO, strides_of, variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import has_sizes, step_of


def converted(kernel: Kernel, data: Tensor, dtype: str, zero: Tensor | None) -> Tensor:
    """The data in the accumulator's type, less a zero point."""
    if data.dtype == dtype and zero is None:
        return data

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        value = data.at(nest, index).cast(dtype)
        if zero is not None:
            value = value - zero.at(nest, [ZERO for _ in zero.shape]).cast(dtype)
        return value

    return Recipe(data.shape, dtype, at)


def lower_product(
    kernel: Kernel, product: Product, left: Tensor, right: Tensor, sink: Sink, dtype: str, zero: Zero = 0, right_zero: Zero = 0
) -> None:
    """Emit a product that accumulates in `dtype`, of operands less their zero points.

    The product has the strides of `as_it_lies`; those of other operands are of contiguous ones.
    """
    sizes = has_sizes((product.columns, product.depth, *product.left, *product.right))
    if kernel.isa.lanes > 1 and not sizes and reads_few_rows(product) and left.dtype == right.dtype == dtype == "float32":
        lower_few_rows(kernel, product, _memory(kernel, left), _memory(kernel, right), sink)
        return
    factors = factors_of(kernel.isa, left.dtype, right.dtype, dtype, zero, right_zero)
    data = _rows(kernel, product, left, factors)
    rank = len(sink.anchor.shape)
    batched = (rank == 3 and sink.anchor.shape[1] == product.rows) or product.batch > 1
    contraction = Contraction(
        rows=[Rows(product.rows, product.left[1], 1 if batched else 0, rank - 2)],
        columns=product.columns,
        column=rank - 1,
        column_step=product.right[1],
        sums=factors.sums([Sum(product.depth, product.left[2], product.right[2])]),
        groups=product.batch,
        group_data=product.left[0],
        group_weight=product.right[0],
        group=0 if batched else None,
    )
    lower_contraction(kernel, contraction, data, factors.weights(right, isinstance(right, _Lying)), sink, factors.arith)


def _rows(kernel: Kernel, product: Product, left: Tensor, factors: Factors) -> Buf:
    """The data of a product as it reads them; `product.left` becomes their strides.

    Several steps at once are neighbours, so rows of other data are copied. Behind an odd row there are zeros.
    """
    steps = factors.arith.steps
    if steps == 1 or (product.left[2] == 1 and product.depth % steps == 0):
        return _memory(kernel, changed(left, factors) if factors.converts(left.dtype) else left)
    lying = Buf(_memory(kernel, left).name, (product.batch, product.rows, product.depth), left.dtype, product.left)
    values = changed(BufTensor(lying), factors)
    shape = (product.batch, product.rows, -(-product.depth // steps) * steps)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        inside, k = nest.inside(index[2], 0, product.depth)
        value = values.at(nest, [*index[:2], k])
        return value if inside is None else inside.select(value, 0)

    product.left = tuple(strides_of(shape))  # type: ignore[assignment]
    return kernel.in_memory(Recipe(shape, factors.arith.data, at))


class _Lying(BufTensor):
    """An operand whose strides the product has."""


def as_it_lies(kernel: Kernel, operand: Tensor, dtype: str, shape: Sequence[int] | None = None) -> tuple[Tensor, tuple[int, ...]]:
    """An operand of a product that sums in `dtype`, and its strides, perhaps as a tensor of another shape.

    It stays where it lies, if the product reads it as it is. In this case, any order of its axes does.
    """
    shape = operand.shape if shape is None else tuple(shape)
    if operand.dtype not in (dtype, BFLOATS.data) or not is_float(dtype):
        return operand, tuple(strides_of(shape))
    buf = kernel.strided(operand, lambda b: b.reshaped(shape) is not None).reshaped(shape)
    assert buf is not None
    kernel.any_order.add(buf.name)
    return _Lying(buf), buf.strides


def _memory(kernel: Kernel, operand: Tensor) -> Buf:
    return operand.buf if isinstance(operand, _Lying) else kernel.in_memory(operand)


def changed(data: Tensor, factors: Factors) -> Tensor:
    """The data as a product reads them."""
    dtype = factors.arith.data

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        value = data.at(nest, index)
        if takes_off(factors.less):
            zero = nest.load(factors.less, ZERO) if isinstance(factors.less, Buf) else nest.const(factors.less, "int32")
            value = value.cast(factors.arith.total) - zero.cast(factors.arith.total)
        return value.cast(dtype)

    return Recipe(data.shape, dtype, at)


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


def fused_ready(sink: Sink, rank: int) -> bool:
    """Whether the rows of a result of this rank can be handed on block by block."""
    return rank <= 2 or sink.direct is not None or sink.mergeable(0, rank - 2)


def through_buffer(kernel: Kernel, sink: Sink, dtype: str | None = None, shape: Sequence[int] | None = None) -> Sink:
    """A sink into a buffer, of type and shape as given, else as the result's. `finish` then passes the buffer on."""
    anchor = sink.anchor
    if (dtype or anchor.dtype, shape or anchor.shape) != (anchor.dtype, anchor.shape):
        anchor = Anchored(shape or anchor.shape, dtype or anchor.dtype)
    return Sink(kernel, anchor, anchor, kernel.buffer(anchor.shape, anchor.dtype))


def finish(kernel: Kernel, sink: Sink, inner: Sink) -> None:
    """Pass a buffered result on to its sink by plain loops."""
    if inner is sink:
        return
    nest = Nest(sink.anchor.shape)
    index = [variable(d) for d in range(len(sink.anchor.shape))]
    buf = inner.out.reshaped(sink.anchor.shape)
    assert buf is not None
    value = BufTensor(buf).at(nest, index)
    if sink.anchor.dtype == "bool":  # a sum of truth values is modulo 2
        value = value & 1
    sink.store(nest, index, value.cast(sink.anchor.dtype))
    kernel.loops(nest)


def of_sizes(kernel: Kernel, left: Tensor, right: Tensor, sink: Sink, transpose_a: bool, transpose_b: bool) -> None:
    """A product whose columns or depth are sizes, as a sum of products. The innermost loop runs over neighbours in memory."""
    dtype = accumulator(sink.anchor.dtype)
    inner = through_buffer(kernel, sink, dtype)
    *lines, columns = sink.anchor.shape
    depth = left.shape[-2 if transpose_a else -1]

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        outer, row, (column, k) = index[:-3], index[-3:-2], index[-2:] if transpose_b else index[:-3:-1]  # a vector has no row
        one = [k, *row] if transpose_a else [*row, k]
        two = [column, k] if transpose_b else [k, column]
        values = []
        for x, place in ((left, one), (right, two)):
            own = outer if len(x.shape) == len(index) - 1 else []
            values.append(broadcast_at(x, nest, [*own, *place], [*lines[: len(own)], *x.shape[len(own) :]]).cast(dtype))
        return values[0] * values[1]

    shape = (*lines, columns, depth) if transpose_b else (*lines, depth, columns)
    reduce_over(kernel, Recipe(shape, dtype, at), "sum", [len(shape) - (1 if transpose_b else 2)], False, inner, None)
    finish(kernel, sink, inner)


def strides_of_matrices(strides: Sequence[int], matrices: int, batch: int, turned: bool) -> tuple[int, int, int]:
    """The strides of a product's operand: those of its matrices, which may be turned, and 0 where one serves the whole batch."""
    row, column = strides[-2:][::-1] if turned else strides[-2:]
    return (strides[0] * step_of(matrices, batch), row, column)


def _product(kernel: Kernel, args: Sequence[Tensor], sink: Sink, transpose_a: bool, transpose_b: bool) -> None:
    """The product of a tensor's last axes with a matrix, or of two batches of matrices."""
    left, right = factors(kernel, args, sink.anchor.dtype)
    dtype = accumulator(sink.anchor.dtype)
    out = sink.anchor.shape
    depth, columns = left.shape[-2 if transpose_a else -1], out[-1]
    # Only products of floats read all operands where they lie. Those of others have pairs of neighbours, and parts.
    open_parts = has_sizes((*right.shape[-2:], *left.shape[-2 if transpose_a else -1 :]))
    if depth == 0 or (open_parts and (dtype not in ("float32", "float64") or {left.dtype, right.dtype} != {dtype})):
        of_sizes(kernel, left, right, sink, transpose_a, transpose_b)
        return
    # The rows of all matrices are those of one, where each meets the same matrix.
    is_matrix = len(right.shape) == 2 and (len(left.shape) < 3 or not transpose_a)
    matrices, batch, rows = (1, 1, math.prod(out[:-1])) if is_matrix else (math.prod(left.shape[:-2]), math.prod(out[:-2]), out[-2])
    lines = (depth, rows) if transpose_a else (rows, depth)
    left, one = as_it_lies(kernel, left, dtype, lines if is_matrix else (matrices, *lines))
    others = math.prod(right.shape[:-2])
    right, two = as_it_lies(kernel, right, dtype)
    if has_sizes([depth]):  # which both operands have, and one may know: weights are then packed before the run
        depth = right.shape[-1 if transpose_b else -2]
    product = Product(
        batch,
        rows,
        columns,
        depth,
        strides_of_matrices(one, matrices, batch, transpose_a),
        strides_of_matrices(two, others, batch, not transpose_b),
    )
    plain = fused_ready(sink, len(out)) if is_matrix else len(out) == 3
    if not plain or dtype != sink.anchor.dtype:
        inner = through_buffer(kernel, sink, dtype, out if is_matrix else (batch, rows, columns))
    else:
        inner = sink
    lower_product(kernel, product, left, right, inner, dtype)
    finish(kernel, sink, inner)


def _dense(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    weight = nibbles_of(kernel, call.args[1])
    if weight is None:
        _product(kernel, args, sink, False, True)
        return
    inner = sink if fused_ready(sink, len(sink.anchor.shape)) else through_buffer(kernel, sink)
    lower_nibbles(kernel, args[0], weight, inner)
    finish(kernel, sink, inner)


def _matmul(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    _product(kernel, args, sink, call.attrs.transpose_a, call.attrs.transpose_b)


ANCHORS: dict[str, Any] = {"nn.dense": _dense, "nn.matmul": _matmul, "nn.batch_matmul": _matmul}
