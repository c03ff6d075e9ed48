"""Products with sparse matrices, which are made dense first: what they mean, not how to be fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, windows
from relaylang.interpreter.kernels.indexing import check_range
from relaylang.interpreter.kernels.nn_conv import exact_matmul


def dense_of(values: Any, indices: Any, indptr: Any, columns: int) -> np.ndarray:
    """A matrix from its rows (CSR) or rows of blocks (BSR): row i has the entries `indptr[i]` to `indptr[i + 1]`."""
    blocks = values.reshape(len(values), -1, values.shape[2] if values.ndim == 3 else 1)
    rows, (high, wide) = len(indptr) - 1, blocks.shape[1:]
    where = np.repeat(np.arange(rows), np.diff(indptr))
    start = int(indptr[0])
    check_range(indices, -(-columns // wide))
    out = np.zeros((rows, -(-columns // wide), high, wide), values.dtype)
    used = slice(start, start + len(where))
    np.add.at(out, (where, indices[used]), blocks[used])
    return out.transpose(0, 2, 1, 3).reshape(rows * high, -1)[:, :columns]


def sparse_dense(attrs: Any, dense: Any, values: Any, indices: Any, indptr: Any) -> Any:
    sparse = dense_of(values, indices, indptr, dense.shape[-1])
    return (
        exact_matmul(sparse, dense.T, dense.dtype) if attrs.sparse_lhs else exact_matmul(dense, sparse.T, dense.dtype)
    )


def sparse_transpose(attrs: Any, values: Any, indices: Any, indptr: Any) -> Any:
    """A square matrix, by rows."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(indices, minlength=len(indptr) - 1))])
    return values[order], rows[order].astype(indices.dtype), starts.astype(indptr.dtype)


def sparse_add(attrs: Any, dense: Any, values: Any, indices: Any, indptr: Any) -> Any:
    return dense + dense_of(values, indices, indptr, dense.shape[1])


def sparse_conv2d(attrs: Any, x: Any, values: Any, indices: Any, indptr: Any) -> Any:
    """A kernel of 1 x 1 or 3 x 3; the rows of the latter go over the window, then the channels (NHWC)."""
    nhwc = x if attrs.layout == "NHWC" else x.transpose(0, 2, 3, 1)
    size = tuple(attrs.kernel_size)
    if size not in ((1, 1), (3, 3)):
        raise KernelError(f"a kernel of {size[0]} x {size[1]} is not one of 1 x 1 and 3 x 3")
    if size == (3, 3):
        padded = np.pad(nhwc, ((0, 0), (1, 1), (1, 1), (0, 0))).transpose(0, 3, 1, 2)
        view = windows(np.ascontiguousarray(padded), size, (1, 1), (1, 1))  # n, c, kh, kw, h, w
        axes = (0, 4, 5, 2, 3, 1) if attrs.layout == "NHWC" else (0, 4, 5, 1, 2, 3)
        nhwc = view.transpose(axes).reshape(*nhwc.shape[:3], -1)
    weight = dense_of(values, indices, indptr, nhwc.shape[-1])
    made = exact_matmul(nhwc.reshape(-1, nhwc.shape[-1]), weight.T, x.dtype).reshape(*nhwc.shape[:3], -1)
    return made if attrs.layout == "NHWC" else np.ascontiguousarray(made.transpose(0, 3, 1, 2))


KERNELS: dict[str, Kernel] = {
    "nn.sparse_dense": sparse_dense,
    "nn.internal.sparse_dense_padded": sparse_dense,
    "nn.sparse_transpose": sparse_transpose,
    "nn.sparse_add": sparse_add,
    "nn.sparse_conv2d": sparse_conv2d,
}
