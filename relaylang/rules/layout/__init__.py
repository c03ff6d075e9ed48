"""Layouts of each operator's operands and results; `rules/layout/rule.py` has the protocol of a rule."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.rules.layout import nn, tensor
from relaylang.rules.layout.rule import Rule

RULES: Mapping[str, Rule] = {**tensor.RULES, **nn.RULES}

__all__ = ["RULES", "Rule"]
