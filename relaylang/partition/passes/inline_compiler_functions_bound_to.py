"""InlineCompilerFunctionsBoundTo: give partitions up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.ir import GlobalVar, IRModule
from relaylang.partition.functions import inline_compiler_functions
from relaylang.passes.manager import Pass


@dataclass(frozen=True)
class InlineCompilerFunctionsBoundTo(Pass):
    """Give these partitions up: inline what they compute."""

    global_vars: Sequence[GlobalVar | str]

    def run(self, mod: IRModule) -> IRModule:
        return inline_compiler_functions(mod, self.global_vars)
