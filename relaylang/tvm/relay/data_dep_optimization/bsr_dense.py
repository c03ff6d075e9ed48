"""Dense layers with weights in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import Function
from relaylang.passes.sparse_weights import sparse_weights
from relaylang.tvm.relay.data_dep_optimization import converted


def convert(func: Function, params: Mapping[str, Any], blocksize: tuple[int, int], sparsity_threshold: float) -> tuple[Function, Any]:
    """A function whose dense layers have weights in blocks, and its parameters. Weights with fewer zeros stay."""
    return converted(func, params, lambda f, values: sparse_weights(f, values, "nn.dense", blocksize, sparsity_threshold))


__all__ = ["convert"]
