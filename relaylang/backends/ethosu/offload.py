"""A program partitioned for the Ethos-U, and a note for every call that stays on the host."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.backends.ethosu.layers.table import pattern_table
from relaylang.diagnostics import Diagnostic
from relaylang.ir import IRModule
from relaylang.partition.engine import Judge, Refuse, run
from relaylang.partition.staying import host_notes
from relaylang.partition.targets.ethos_u import RECIPE


@dataclass(frozen=True)
class Partitioned:
    """A module whose entry calls regions, and a note for every call of the entry that stays on the host."""

    module: IRModule
    notes: list[Diagnostic]
    offloaded: int
    kept: int


def offload(
    mod: IRModule, entry: str = "main", refuse: Refuse | None = None, prefix: str = "", judge: Judge | None = None
) -> Partitioned:
    """Partition a checked module, whose parameters are bound and whose constants are folded.

    `refuse`, `judge` and `prefix` are those of the engine's `run`. The new module is typed.
    """
    outcome = run(mod, pattern_table(), RECIPE, entry=entry, prefix=prefix, refuse=refuse, judge=judge)
    trace = outcome.traces[mod.get_global_var(entry)]
    return Partitioned(outcome.module, *host_notes(trace, mod, RECIPE.name, "int8 and int16"))


__all__ = ["Partitioned", "offload"]
