"""Joining: products of one input with several weights as one wider product, by the product's operator.

A rule is a `Family`. It says which properties products must share. It makes the whole product, the steps behind it, and
each branch's part.
"""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.rules.joining.common import Family, Step
from relaylang.rules.joining.products import BATCH_MATMUL, CONV2D, DENSE, DENSE_BATCH

RULES: Mapping[str, Family] = {family.name: family for family in (CONV2D, DENSE, BATCH_MATMUL)}

__all__ = ["BATCH_MATMUL", "CONV2D", "DENSE", "DENSE_BATCH", "RULES", "Family", "Step"]
