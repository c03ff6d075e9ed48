"""ForwardFoldScaleAxis: the half of FoldScaleAxis for factors in front of products."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.manager import Pass
from relaylang.passes.simplify.fold_scale_axis import forward_fold_scale_axis


@dataclass(frozen=True)
class ForwardFoldScaleAxis(Pass):
    """Fold factors in front of convolutions and matrix products into their weights."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return forward_fold_scale_axis(mod)
