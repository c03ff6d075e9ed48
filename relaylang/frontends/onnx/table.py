"""The table of ONNX's conversions, from the families' files."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from relaylang.frontends.common import Table

#: The files of `families/`.
FAMILIES = (
    "casts",
    "control",
    "elementwise",
    "quantized",
    "sequence",
    "shape",
)


@cache
def table() -> Table:
    """All conversions."""
    return Table(*(import_module(f"relaylang.frontends.onnx.families.{name}").RULES for name in FAMILIES))


__all__ = ["FAMILIES", "table"]
