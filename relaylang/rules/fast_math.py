"""FastMath: the approximation of each operator that has one."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ops import OPS, Trait, having

RULES: Mapping[str, str] = {OPS[name].of: name for name in having(Trait.FAST)}
