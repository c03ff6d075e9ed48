"""`tvm.relay.data_dep_optimization`: changes of a function that depend on its parameters' values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relaylang.ir import Call, Function, IRModule
from relaylang.passes.sparse_weights import sparse_weights, without_transposes
from relaylang.tvm.arrays import from_python
from relaylang.tvm.runtime.ndarray import NDArray
from relaylang.tvm.typed_results import typed
from relaylang.typing import check

_Values = dict[str, np.ndarray]


def _converted(
    func: Function, params: Mapping[str, Any], change: Callable[[Function, _Values], tuple[Function, _Values]]
) -> tuple[Function, dict[str, NDArray]]:
    """What `change` makes of a typed function and its parameters. Raises `RelayError`."""
    mod = IRModule.from_expr(func)
    check(mod)
    function, values = change(mod["main"], {name: from_python(value) for name, value in params.items()})
    return typed(IRModule.from_expr(function))["main"], {name: NDArray(value) for name, value in values.items()}


def sparse_dense(
    func: Function, params: Mapping[str, Any], blocksize: tuple[int, int], sparsity_threshold: float
) -> tuple[Function, Any]:
    """A function whose dense layers have weights in blocks, and its parameters. Weights with fewer zeros stay."""
    return _converted(func, params, lambda f, values: sparse_weights(f, values, "nn.dense", blocksize, sparsity_threshold))


def sparse_conv2d(
    func: Function,
    params: Mapping[str, Any],
    blocksize: tuple[int, int],
    sparsity_threshold: float,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> tuple[Function, Any]:
    """A function whose convolutions of this layout and kernel have weights in blocks, and its parameters."""

    def wanted(call: Call) -> bool:
        attrs: Any = call.attrs
        return bool(attrs.data_layout == layout and set(attrs.kernel_size or ()) == {kernel_size})

    return _converted(func, params, lambda f, values: sparse_weights(f, values, "nn.conv2d", blocksize, sparsity_threshold, wanted))


def simplify_fc_transpose(func: Function, params: Mapping[str, Any]) -> tuple[Function, Any]:
    """A function whose dense layers take `w.T` for the transposition of a parameter `w`, and its parameters."""
    return _converted(func, params, without_transposes)
