"""CombineParallelBatchMatmul: combine nn.batch_matmul calls with one left operand."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.fusion.combine_parallel import combine
from relaylang.passes.manager import Pass
from relaylang.rules.joining import BATCH_MATMUL


@dataclass(frozen=True)
class CombineParallelBatchMatmul(Pass):
    """Combine nn.batch_matmul calls with one left operand."""

    min_num_branches: int = 3

    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return combine(mod, BATCH_MATMUL, self.min_num_branches)
