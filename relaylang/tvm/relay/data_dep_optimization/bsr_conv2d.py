"""Convolutions with weights in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import Call, Function
from relaylang.passes.sparse_weights import sparse_weights
from relaylang.tvm.relay.data_dep_optimization import converted


def convert(
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

    return converted(func, params, lambda f, values: sparse_weights(f, values, "nn.conv2d", blocksize, sparsity_threshold, wanted))


#: For functions with constant weights; `convert` takes them, too.
convert2 = convert

__all__ = ["convert", "convert2"]
