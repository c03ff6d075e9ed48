"""MergeComposite: wrap the matches of a pattern table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relaylang.ir import IRModule
from relaylang.partition.composites import merge_composite
from relaylang.partition.tables import get_pattern_table
from relaylang.passes.manager import Pass


@dataclass(frozen=True)
class MergeComposite(Pass):
    """Wrap matches of a pattern table's rows `(name, pattern[, check])` in functions marked `Composite`.

    The name of an accelerator stands for its table. Raises `RelayError` for an accelerator without a table, and for wrong
    rows.
    """

    pattern_table: Any

    def __post_init__(self) -> None:
        if isinstance(self.pattern_table, str):
            object.__setattr__(self, "pattern_table", get_pattern_table(self.pattern_table))

    def run(self, mod: IRModule) -> IRModule:
        return merge_composite(mod, self.pattern_table)
