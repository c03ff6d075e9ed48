"""Products with sparse matrices, which are made dense first: what they mean, not how to be fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, plus, windows
from relaylang.interpreter.kernels.indexing import check_range
from relaylang.interpreter.kernels.nn_conv import exact_matmul


def dense_of(values: Any, indices: Any, indptr: Any, columns: int) -> np.ndarray:
    """A matrix from its rows (CSR) or rows of blocks (BSR): row i has the entries `indptr[i]` to `indptr[i + 1]`."""
    high, across = (*values.shape[1:], 1, 1)[:2]
    starts, indices = indptr.astype(np.int64), indices.astype(np.int64)
    rows = max(len(starts) - 1, 0)
    if rows and (starts[0] < 0 or (np.diff(starts) < 0).any() or starts[-1] > min(len(values), len(indices))):
        raise KernelError(f"the row pointers must grow from 0 to at most {min(len(values), len(indices))}")
    where = np.repeat(np.arange(rows), np.diff(starts)) if rows else starts[:0]
    used = slice(int(starts[0]), int(starts[-1])) if rows else slice(0)
    check_range(indices[used], -(-columns // across))
    out = np.zeros((rows, -(-columns // across), high, across), values.dtype)
    add = np.add if values.dtype.kind != "b" else np.bitwise_xor
    add.at(out, (where, indices[used]), values[used].reshape(len(where), high, across))
    return out.transpose(0, 2, 1, 3).reshape(rows * high, out.shape[1] * across)[:, :columns]


def sparse_dense(attrs: Any, dense: Any, values: Any, indices: Any, indptr: Any) -> Any:
    sparse = dense_of(values, indices, indptr, dense.shape[-1])
    return exact_matmul(sparse, dense.T, dense.dtype) if attrs.sparse_lhs else exact_matmul(dense, sparse.T, dense.dtype)


def sparse_transpose(attrs: Any, values: Any, indices: Any, indptr: Any) -> Any:
    """A square matrix, by rows."""
    starts = indptr.astype(np.int64)
    size = len(starts) - 1
    if size < 0 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(indices):
        raise KernelError(f"the row pointers must grow from 0 to {len(indices)}")
    check_range(indices, size)
    rows = np.repeat(np.arange(size), np.diff(starts))
    order = np.argsort(indices, kind="stable")
    row_starts = np.concatenate([[0], np.cumsum(np.bincount(indices.astype(np.int64), minlength=size))])
    return values[order], rows[order].astype(indices.dtype), row_starts.astype(indptr.dtype)


def sparse_add(attrs: Any, dense: Any, values: Any, indices: Any, indptr: Any) -> Any:
    sparse = dense_of(values, indices, indptr, dense.shape[1])
    if sparse.shape != dense.shape:
        raise KernelError(f"the sparse matrix has the shape {sparse.shape}, the dense one {dense.shape}")
    return plus(dense, sparse)


def sparse_conv2d(attrs: Any, x: Any, values: Any, indices: Any, indptr: Any) -> Any:
    """A kernel of 1 x 1 or 3 x 3. The rows of a 3 x 3 kernel go over the window, then the channels (NHWC)."""
    nhwc = x if attrs.layout == "NHWC" else x.transpose(0, 2, 3, 1)
    size = tuple(attrs.kernel_size)
    if size not in ((1, 1), (3, 3)):
        raise KernelError(f"kernel_size={list(size)} is not one of 1 x 1 and 3 x 3")
    if size == (3, 3):
        padded = np.pad(nhwc, ((0, 0), (1, 1), (1, 1), (0, 0))).transpose(0, 3, 1, 2)
        view = windows(np.ascontiguousarray(padded), size, (1, 1), (1, 1))  # n, c, kh, kw, h, w
        axes = (0, 4, 5, 2, 3, 1) if attrs.layout == "NHWC" else (0, 4, 5, 1, 2, 3)
        nhwc = view.transpose(axes).reshape(*nhwc.shape[:3], 9 * nhwc.shape[3])
    weight = dense_of(values, indices, indptr, nhwc.shape[-1])
    sums = exact_matmul(nhwc, weight.T, x.dtype)
    return sums if attrs.layout == "NHWC" else np.ascontiguousarray(sums.transpose(0, 3, 1, 2))


KERNELS: dict[str, Kernel] = {
    "nn.sparse_dense": sparse_dense,
    "nn.internal.sparse_dense_padded": sparse_dense,
    "nn.sparse_transpose": sparse_transpose,
    "nn.sparse_add": sparse_add,
    "nn.sparse_conv2d": sparse_conv2d,
}
