"""The table of rules: those that both text formats have, and those of every file in `families/`."""

from __future__ import annotations

from relaylang.export import shared
from relaylang.export.stablehlo.families import elementwise, image, nn, shape
from relaylang.export.walk import Rule

RULES: dict[str, Rule] = {}
for _family in (shared, elementwise, image, nn, shape):
    RULES.update(_family.RULES)

__all__ = ["RULES"]
