"""TVM's place for pattern tables: `get_pattern_table`, `register_pattern_table`, `partition_for_cmsisnn` and the others."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    # They stand above the operators, in relaylang.partition.driver.
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("relaylang.partition.driver"), name)
