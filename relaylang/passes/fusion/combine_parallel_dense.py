"""CombineParallelDense: combine nn.dense calls of one input into one batch of products, or one wider product."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.fusion.combine_parallel import combine
from relaylang.passes.manager import Pass
from relaylang.rules.joining import DENSE, DENSE_BATCH


@dataclass(frozen=True)
class CombineParallelDense(Pass):
    """Combine nn.dense calls of one input: into one batch_matmul, or one wider nn.dense (`to_batch=False`)."""

    min_num_branches: int = 3
    to_batch: bool = True

    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return combine(mod, DENSE_BATCH if self.to_batch else DENSE, self.min_num_branches)
