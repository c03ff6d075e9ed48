"""Weights in blocks: the sparse form of each operator whose weight may be mostly zeros.

A rule makes a matrix of the weight, with a row for each output. It makes the call that takes the matrix in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.ir import Call, Expr
from relaylang.ops.build import op_call

Blocks = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Rule:
    """`matrix(attributes, weight)` is None for a call that has no sparse form. `call(call, blocks)` takes data, indices and
    row pointers. `thin` says whether blocks of one column lose their axis."""

    matrix: Callable[[Any, np.ndarray], np.ndarray | None]
    call: Callable[[Call, Sequence[Expr]], Call]
    thin: Callable[[Any], bool] = lambda attrs: False


def _of_convolution(attrs: Any, weight: np.ndarray) -> np.ndarray | None:
    kernel = tuple(attrs.kernel_size or ())
    plain = attrs.groups == 1 and set(attrs.strides) == set(attrs.dilation) == {1}
    if not plain or (kernel, set(attrs.padding)) not in (((1, 1), {0}), ((3, 3), {1})):
        return None
    match attrs.data_layout, attrs.kernel_layout:
        case "NHWC", "HWIO":
            return weight.reshape(-1, weight.shape[-1]).T
        case "NCHW", "OIHW":
            return weight.reshape(weight.shape[0], -1)
    return None


def _convolution(call: Call, blocks: Sequence[Expr]) -> Call:
    attrs: Any = call.attrs
    return op_call("nn.sparse_conv2d", [call.args[0], *blocks], layout=attrs.data_layout, kernel_size=list(attrs.kernel_size))


RULES: Mapping[str, Rule] = {
    "nn.dense": Rule(lambda attrs, weight: weight, lambda call, blocks: op_call("nn.sparse_dense", [call.args[0], *blocks])),
    "nn.conv2d": Rule(_of_convolution, _convolution, lambda attrs: tuple(attrs.kernel_size) == (1, 1)),
}
#: The operator that exchanges the axes of a matrix, and the product that takes its weight so.
TRANSPOSE, PRODUCT = "transpose", "nn.dense"
