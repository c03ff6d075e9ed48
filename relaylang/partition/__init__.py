"""Programs partitioned for accelerators: what an accelerator takes becomes functions of their own.

    from relaylang.partition import explain, partition, prepare, table_text

    ready = prepare(mod, "cmsis-nn", params)
    done = partition(ready, "cmsis-nn")
    print(table_text(explain(ready, done, "cmsis-nn"), "cmsis-nn"))

Each accelerator is a file of `relaylang.partition.targets`. Names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relaylang.ir.binding import bind_params as bind_params
    from relaylang.partition.api import partition as partition
    from relaylang.partition.api import prepare as prepare
    from relaylang.partition.entries import Entry as Entry
    from relaylang.partition.recipe import Recipe as Recipe
    from relaylang.partition.report import Row as Row
    from relaylang.partition.report import explain as explain
    from relaylang.partition.report import hints as hints
    from relaylang.partition.report import json_text as json_text
    from relaylang.partition.report import summary as summary
    from relaylang.partition.report import table_text as table_text
    from relaylang.partition.tables import PATTERN_TABLES as PATTERN_TABLES
    from relaylang.partition.tables import accelerators as accelerators
    from relaylang.partition.tables import get_pattern_table as get_pattern_table
    from relaylang.partition.tables import register_pattern_table as register_pattern_table

_MODULES = {
    "relaylang.ir.binding": ("bind_params",),
    "relaylang.partition.api": ("partition", "prepare"),
    "relaylang.partition.entries": ("Entry",),
    "relaylang.partition.recipe": ("Recipe",),
    "relaylang.partition.report": ("Row", "explain", "hints", "json_text", "summary", "table_text"),
    "relaylang.partition.tables": ("PATTERN_TABLES", "accelerators", "get_pattern_table", "register_pattern_table"),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])


__all__ = [
    "PATTERN_TABLES",
    "Entry",
    "Recipe",
    "Row",
    "accelerators",
    "bind_params",
    "explain",
    "get_pattern_table",
    "hints",
    "json_text",
    "partition",
    "prepare",
    "register_pattern_table",
    "summary",
    "table_text",
]
