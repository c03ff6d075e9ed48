"""CombineParallelBatchMatmul: combine nn.batch_matmul calls with one left operand."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.fusion.combine_parallel import combine
from relaylang.passes.manager import Pass
from relaylang.rules.joining import BATCH_MATMUL


def combine_parallel_batch_matmul(mod: IRModule, min_num_branches: int = 3) -> IRModule:
    """nn.batch_matmul of one left side, with the right sides side by side."""
    return combine(mod, BATCH_MATMUL, min_num_branches)


@dataclass(frozen=True)
class CombineParallelBatchMatmul(Pass):
    """Combine nn.batch_matmul calls with one left operand."""

    min_num_branches: int = 3

    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return combine_parallel_batch_matmul(mod, self.min_num_branches)
