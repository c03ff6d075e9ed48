"""The table of rules: those that both text formats have, and those of every file in `families/`."""

from __future__ import annotations

from relaylang.export import shared
from relaylang.export.relax.families import elementwise, nn, shape
from relaylang.export.walk import Rule

RULES: dict[str, Rule] = {}
for _family in (shared, elementwise, nn, shape):
    RULES.update(_family.RULES)

__all__ = ["RULES"]
