"""Multiply-accumulates of each operator's call.

A rule gets a typed call and returns their number: 0 where an extent is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from relaylang.ir import Call
from relaylang.ir.tensors import static_shape
from relaylang.ops import Trait, having

Rule = Callable[[Call], int]


def _convolution(call: Call) -> int:
    data, weight = (static_shape(arg.checked_type) for arg in call.args[:2])
    out = static_shape(call.checked_type)
    if data is None or weight is None or out is None:
        return 0
    layout = call.attrs.data_layout
    channels = prod(d for d, axis in zip(data, [c for c in layout if c.isalpha()]) if axis in "Cc")
    kernel = call.attrs.kernel_size
    if kernel is None:
        kernel_layout = [c for c in call.attrs.kernel_layout if c.isalpha()]
        kernel = [d for d, axis in zip(weight, kernel_layout) if axis in "DHW"]
    return prod(out) * prod(kernel) * (channels // call.attrs.groups)


def _dense(call: Call) -> int:
    data, out = static_shape(call.args[0].checked_type), static_shape(call.checked_type)
    return 0 if data is None or out is None else prod(out) * data[-1]


def _matmul(call: Call) -> int:
    data, out = static_shape(call.args[0].checked_type), static_shape(call.checked_type)
    if data is None or out is None:
        return 0
    return prod(out) * data[-2 if getattr(call.attrs, "transpose_a", False) else -1]


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(having(Trait.CONV), _convolution),
    "nn.conv2d_transpose": _convolution,
    **dict.fromkeys(("nn.dense", "qnn.dense"), _dense),
    **dict.fromkeys(("nn.matmul", "nn.batch_matmul", "qnn.batch_matmul"), _matmul),
}
