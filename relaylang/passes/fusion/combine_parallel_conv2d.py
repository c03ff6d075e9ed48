"""CombineParallelConv2D: convolutions of one input become one wider convolution."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from relaylang.ir import (
    Call,
    IRModule,
)
from relaylang.ir.tensors import tensor_type
from relaylang.passes.fusion.combine_parallel import attr_values, combine, is_known
from relaylang.passes.fusion.side_by_side import SideBySide
from relaylang.passes.manager import Pass


def _conv2d_key(call: Call) -> Hashable | None:
    attrs, weight, ty = call.attrs, tensor_type(call.args[1]), tensor_type(call)
    data, kernel = attrs.data_layout, attrs.kernel_layout
    if weight is None or ty is None or not is_known(weight.shape) or attrs.groups != 1:
        return None
    if "O" not in kernel or "C" not in data or any(c.islower() for c in kernel + data):
        return None
    if attrs.out_layout not in ("", data):
        return None
    axis = kernel.index("O")
    return (attr_values(call, "channels", "kernel_size"), weight.shape[:axis], weight.shape[axis + 1 :], weight.dtype)


_CONV2D = SideBySide(
    "nn.conv2d",
    _conv2d_key,
    axis=lambda call: str(call.attrs.data_layout).index("C"),
    weight_axis=lambda call: str(call.attrs.kernel_layout).index("O"),
    outputs="channels",
    stretch=False,
)


def combine_parallel_conv2d(mod: IRModule, min_num_branches: int = 3) -> IRModule:
    """nn.conv2d of one input with kernels of one size and one group, in layouts without blocks.

    The operands of joined steps have one value an output channel; a step with one value for all of them is not joined.
    """
    return combine(mod, _CONV2D, min_num_branches)


@dataclass(frozen=True)
class CombineParallelConv2D(Pass):
    """Convolutions of one input with kernels of one size become one."""

    min_num_branches: int = 3

    name = "CombineParallelConv2d"
    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return combine_parallel_conv2d(mod, self.min_num_branches)
