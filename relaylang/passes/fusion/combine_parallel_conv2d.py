"""CombineParallelConv2D: combine convolutions of one input into one wider convolution."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.fusion.combine_parallel import combine
from relaylang.passes.manager import Pass
from relaylang.rules.joining import CONV2D


def combine_parallel_conv2d(mod: IRModule, min_num_branches: int = 3) -> IRModule:
    """nn.conv2d of one input with kernels of one size and one group, in layouts without blocks.

    The operands of joined steps have one value for each output channel. A step with one value for all of them is not
    joined.
    """
    return combine(mod, CONV2D, min_num_branches)


@dataclass(frozen=True)
class CombineParallelConv2D(Pass):
    """Combine convolutions of one input with kernels of one size."""

    min_num_branches: int = 3

    name = "CombineParallelConv2d"
    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return combine_parallel_conv2d(mod, self.min_num_branches)
