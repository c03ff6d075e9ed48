"""CombineParallelDense: combine nn.dense calls of one input into one batch of products, or one wider product."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.fusion.combine_parallel import combine
from relaylang.passes.manager import Pass
from relaylang.rules.joining import DENSE, DENSE_BATCH


def combine_parallel_dense(mod: IRModule, min_num_branches: int = 3, to_batch: bool = True) -> IRModule:
    """nn.dense of one input. `to_batch`: weights of one shape as a batch; else weights side by side, of any widths."""
    return combine(mod, DENSE_BATCH if to_batch else DENSE, min_num_branches)


@dataclass(frozen=True)
class CombineParallelDense(Pass):
    """Combine nn.dense calls of one input: into one batch_matmul, or one wider nn.dense (`to_batch=False`)."""

    min_num_branches: int = 3
    to_batch: bool = True

    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return combine_parallel_dense(mod, self.min_num_branches, self.to_batch)
