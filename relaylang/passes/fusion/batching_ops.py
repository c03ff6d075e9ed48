"""BatchingOps: the three CombineParallel passes."""

from __future__ import annotations

from relaylang.passes.fusion.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from relaylang.passes.fusion.combine_parallel_conv2d import CombineParallelConv2D
from relaylang.passes.fusion.combine_parallel_dense import CombineParallelDense
from relaylang.passes.manager import Sequential


class BatchingOps(Sequential):
    """Run the three `CombineParallel` passes in turn, at level 4."""

    def __init__(self) -> None:
        super().__init__([CombineParallelConv2D(), CombineParallelDense(), CombineParallelBatchMatmul()])
