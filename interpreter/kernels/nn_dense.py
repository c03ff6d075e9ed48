"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, out_dtype
from relaylang.interpreter.kernels.nn_conv import exact_matmul


def product(attrs: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    if a.shape[-1] != b.shape[-2]:
        raise KernelError(f"the inner extents {a.shape[-1]} and {b.shape[-2]} differ")
    return exact_matmul(a, b, out_dtype(attrs, a.dtype))


def dense(attrs: Any, data: Any, weight: Any) -> Any:
    """`data @ weight.T` over the last axis of data."""
    return product(attrs, data, weight, False, True)


def matmul(attrs: Any, a: Any, b: Any) -> Any:
    return product(attrs, a, b, attrs.transpose_a, attrs.transpose_b)


KERNELS: dict[str, Kernel] = {"nn.dense": dense, "nn.matmul": matmul, "nn.batch_matmul": matmul}
