"""BackwardFoldScaleAxis: the half of FoldScaleAxis for factors behind products."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.manager import Pass
from relaylang.passes.simplify.fold_scale_axis import backward_fold_scale_axis


@dataclass(frozen=True)
class BackwardFoldScaleAxis(Pass):
    """Fold factors behind convolutions and matrix products into their weights."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return backward_fold_scale_axis(mod)
