"""RemoveUnusedFunctions: drop functions that no entry calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.analysis import reachable
from relaylang.passes.manager import Pass


def remove_unused_functions(mod: IRModule, entry_functions: Sequence[str] | None = None) -> IRModule:
    """The module with the functions that its entries may call, directly or not, and no others."""
    names = ["main"] if entry_functions is None else list(entry_functions)
    entries = [mod.get_global_var(n) for n in names if n in mod]
    kept = set(reachable(mod, entries))
    if len(kept) == len(mod.functions):
        return mod
    return mod.with_functions({gv: f for gv, f in mod.functions.items() if gv in kept})


@dataclass(frozen=True)
class RemoveUnusedFunctions(Pass):
    """Drop functions that the entries (@main) never call."""

    entry_functions: list[str] | None = None

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return remove_unused_functions(mod, self.entry_functions)
