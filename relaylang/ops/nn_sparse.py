"""Products with sparse matrices: rows in CSR form, or blocks of rows in BSR form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import Dim, TensorType, TupleType, Type
from relaylang.ops.record import Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import add_dim, mul_dim, need_rank

F = OpPattern.OUT_ELEMWISE_FUSABLE


@attrs_class("relay.attrs.SparseDenseAttrs")
class SparseDenseAttrs:
    sparse_lhs: bool = False


@attrs_class("relay.attrs.SparseTransposeAttrs")
class SparseTransposeAttrs:
    pass


@attrs_class("relay.attrs.SparseConv2DAttrs")
class SparseConv2DAttrs:
    layout: str = "NHWC"
    kernel_size: Ints = (1, 1)


def rows_of(data: TensorType, indptr: TensorType, ctx: RelationContext) -> Dim:
    """The number of rows of a sparse matrix. Each entry of `indptr` but the last begins a row, or a row of blocks."""
    need_rank(indptr, 1, 3, ctx)
    return mul_dim(add_dim(indptr.shape[0], -1), data.shape[1] if len(data.shape) > 1 else 1)


def sparse_dense(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes dense_data (m, k) and a sparse matrix (n, k). The matrix is data (nonzeros,) or blocks (blocks, bh, bw),
    indices, and indptr (n / bh + 1,). The result is (m, n), where sparse_lhs (n, m), of the dense element type.
    """
    dense, values, indptr = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 3, ctx)
    if len(values.shape) not in (1, 3):
        ctx.fail(f"must have 1 dimension (CSR) or 3 (BSR), not `{values!r}`", 1)
    need_rank(dense, 2, 0, ctx)
    if len(values.shape) == 3 and values.shape[2] == 0:
        ctx.fail(f"must have blocks that are not empty, not `{values!r}`", 1)
    rows = rows_of(values, indptr, ctx)
    return TensorType((rows, dense.shape[0]) if attrs.sparse_lhs else (dense.shape[0], rows), dense.dtype)


def sparse_transpose(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a square sparse matrix as sparse_data, sparse_indices and sparse_indptr: data of any rank, indices and
    indptr vectors. The result is a tuple of three of the same types.
    """
    for i in range(2):
        need_rank(tensor(types, i, ctx), 1, i, ctx)
    return TupleType([tensor(types, i, ctx) for i in range(3)])


def sparse_add(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes dense_data of any shape; sparse_data, of its element type, and sparse_indices are vectors. The result has
    the type of dense_data.
    """
    dense, values, indices = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 2, ctx)
    if values.dtype != dense.dtype:
        ctx.fail(f"is of {values.dtype}, but the dense matrix is of {dense.dtype}", 1)
    need_rank(values, 1, 1, ctx)
    need_rank(indices, 1, 2, ctx)
    return dense


def sparse_conv2d(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, h, w, c) or, by layout, (n, c, h, w). The sparse weight is data (blocks, bh[, bw]), indices, and
    indptr. The result has the data's element type and, for c, bh * (length of indptr - 1) channels.
    """
    data, values, indptr = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 3, ctx)
    need_rank(data, 4, 0, ctx)
    if len(values.shape) not in (2, 3):
        ctx.fail(f"must have 2 or 3 dimensions (BSR), not `{values!r}`", 1)
    if len(values.shape) == 3 and values.shape[2] == 0:
        ctx.fail(f"must have blocks that are not empty, not `{values!r}`", 1)
    channels = rows_of(values, indptr, ctx)
    if attrs.layout == "NHWC":
        return TensorType((*data.shape[:3], channels), data.dtype)
    return TensorType((data.shape[0], channels, *data.shape[2:]), data.dtype)


SPARSE = ("sparse_data", "sparse_indices", "sparse_indptr")
WEIGHT = ("weight_data", "weight_indices", "weight_indptr")

OPS = (
    Op(
        "nn.sparse_dense",
        ("dense_data", *SPARSE),
        SparseDenseAttrs,
        sparse_dense,
        F,
        1,
        needs=(0, 1, 3),
        doc="Product with a transposed sparse matrix.",
        takes="tensor[_,_] same integer[n] integer[_]",
        python="(dense_mat, sparse_mat, sparse_lhs=False)",
    ),
    Op(
        "nn.internal.sparse_dense_padded",
        ("data", *WEIGHT),
        SparseDenseAttrs,
        sparse_dense,
        F,
        1,
        needs=(0, 1, 3),
        doc="Product with a sparse weight that is padded for a GPU.",
        takes="tensor[_,_] same integer[n] integer[_]",
        python=None,
    ),
    Op(
        "nn.sparse_transpose",
        SPARSE,
        SparseTransposeAttrs,
        sparse_transpose,
        F,
        1,
        doc="A square sparse matrix, transposed.",
        takes="tensor[n] integer[n] integer[_]",
        results=3,
        python="(x)",
    ),
    Op(
        "nn.sparse_add",
        ("dense_data", *SPARSE),
        None,
        sparse_add,
        OpPattern.OPAQUE,
        1,
        needs=(0, 1, 2),
        doc="The sum of a dense and a sparse matrix.",
        takes="tensor[_,_] same integer[n] integer[_]",
        python="(dense_mat, sparse_mat)",
        example="fn (%x: Tensor[(3, 4), float32], %data: Tensor[(2), float32], %indices: Tensor[(2), int32], "
        "%indptr: Tensor[(4), int32]) { nn.sparse_add(%x, %data, %indices, %indptr) }",
    ),
    Op(
        "nn.sparse_conv2d",
        ("dense_data", *SPARSE),
        SparseConv2DAttrs,
        sparse_conv2d,
        F,
        1,
        needs=(0, 1, 3),
        doc="2-D convolution with a sparse weight.",
        takes="tensor[_,_,_,_] same integer[n] integer[_]",
        python=None,
    ),
)
