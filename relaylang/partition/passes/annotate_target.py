"""AnnotateTarget: mark the operators that a target takes."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.partition.annotations import annotate_target
from relaylang.passes.manager import Pass


@dataclass(frozen=True)
class AnnotateTarget(Pass):
    """Put compiler_begin and compiler_end around operators that a target takes."""

    targets: str | list[str]
    include_non_call_ops: bool = True

    def run(self, mod: IRModule) -> IRModule:
        return annotate_target(mod, self.targets, self.include_non_call_ops)
