"""The table of rules: those of every file in `families/`."""

from __future__ import annotations

from relaylang.export.onnx.families import elementwise, indexing, nn, quantized, recurrent, shape
from relaylang.export.walk import Rule

RULES: dict[str, Rule] = {}
for _family in (elementwise, indexing, nn, quantized, recurrent, shape):
    RULES.update(_family.RULES)

__all__ = ["RULES"]
