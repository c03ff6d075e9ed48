"""Slices by constant and by computed bounds."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Rule, strided
from relaylang.frontends.tflite.families.shape import moved
from relaylang.frontends.tflite.node import Node


def slice_(n: Node) -> Any:
    """A size of -1 goes to the end."""
    return moved(n, n.refined(strided.slice_by_size(n.b, n.x(0), n.x(1), n.x(2))))


def strided_slice(n: Node) -> Any:
    """numpy's indexing by masks."""
    masks = {name: n.options.get(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    steps = n.ints(3, "the steps")
    return moved(n, strided.strided_slice(n.b, n.x(0), n.x(1), n.x(2), steps, masks, bool(n.options.get("offset"))))


RULES = (
    Rule("SLICE", slice_),
    Rule("STRIDED_SLICE", strided_slice),
)
