"""MergeCompilerRegions: merge neighbouring regions of one target."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.partition.annotations import merge_compiler_regions
from relaylang.passes.manager import Pass


@dataclass(frozen=True)
class MergeCompilerRegions(Pass):
    """Merge neighbouring regions of one target where no circle results."""

    def run(self, mod: IRModule) -> IRModule:
        return merge_compiler_regions(mod)
