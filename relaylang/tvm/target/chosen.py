"""The targets that scripts give to compilers: a text, a target, several of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.backends import parse_target
from relaylang.backends.target import Target


def targets_of(target: Any) -> list[Target]:
    """The targets of what scripts give: a text, a target, several in a list, or by device. None means the CPU."""
    if target is None:
        return parse_target("c")
    if isinstance(target, Target):
        return [target]
    if isinstance(target, Mapping):
        target = list(target.values())
    if isinstance(target, (list, tuple)):
        return [found for item in target for found in targets_of(item)]
    return parse_target(str(target))


__all__ = ["targets_of"]
