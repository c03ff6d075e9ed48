"""OutlineCompilerFunctionsWithExistingGlobalSymbols: lift partitions into the module."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.partition.functions import outline_compiler_functions
from relaylang.passes.manager import Pass


@dataclass(frozen=True)
class OutlineCompilerFunctionsWithExistingGlobalSymbols(Pass):
    """Lift partitions that stand in place or in a let into the module, named by their `global_symbol`."""

    compiler_filter: str = ""

    def run(self, mod: IRModule) -> IRModule:
        return outline_compiler_functions(mod, self.compiler_filter)
