"""MarkCompilerFunctionsAsExtern: mark partitions whose code exists elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.partition.functions import mark_compiler_functions_as_extern
from relaylang.passes.manager import Pass


@dataclass(frozen=True)
class MarkCompilerFunctionsAsExtern(Pass):
    """Replace the attributes of partitions by `Extern`: their code exists elsewhere."""

    compiler_filter: str = ""

    def run(self, mod: IRModule) -> IRModule:
        return mark_compiler_functions_as_extern(mod, self.compiler_filter)
