"""CombineParallelBatchMatmul: nn.batch_matmul of one left side become one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from relaylang.ir import (
    Call,
    IRModule,
)
from relaylang.ir.tensors import tensor_type
from relaylang.passes.fusion.combine_parallel import combine, is_known
from relaylang.passes.fusion.side_by_side import SideBySide
from relaylang.passes.manager import Pass


def _batch_matmul_key(call: Call) -> Hashable | None:
    right, ty, attrs = tensor_type(call.args[1]), tensor_type(call), call.attrs
    if right is None or ty is None or len(right.shape) != 3 or not is_known(right.shape):
        return None
    return (attrs.out_dtype, attrs.transpose_a, attrs.transpose_b, right.dtype, right.shape[0])


_BATCH_MATMUL = SideBySide(
    "nn.batch_matmul",
    _batch_matmul_key,
    axis=lambda _: 2,
    weight_axis=lambda call: 1 if call.attrs.transpose_b else 2,
    outputs=None,
    stretch=True,
    written=-1,
)


def combine_parallel_batch_matmul(mod: IRModule, min_num_branches: int = 3) -> IRModule:
    """nn.batch_matmul of one left side, with the right sides side by side."""
    return combine(mod, _BATCH_MATMUL, min_num_branches)


@dataclass(frozen=True)
class CombineParallelBatchMatmul(Pass):
    """nn.batch_matmul calls of one left side become one."""

    min_num_branches: int = 3

    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return combine_parallel_batch_matmul(mod, self.min_num_branches)
