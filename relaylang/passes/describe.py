"""The help of a pass: its name with its options, and the first paragraph of its docstring."""

from __future__ import annotations

import inspect
from typing import Any

from relaylang.passes.manager import Pass


def heading(name: str, maker: Any) -> str:
    """A pass with the names, types and defaults of its options: `FuseOps(fuse_opt_level: int = -1)`."""
    options = () if isinstance(maker, Pass) else inspect.signature(maker).parameters.values()
    shown = ", ".join(_option(option) for option in options)
    return f"{name}({shown})" if shown else name


def _option(option: inspect.Parameter) -> str:
    """An option with its type, where that is a text, and its default."""
    named = f"{option.name}: {option.annotation}" if isinstance(option.annotation, str) else str(option.replace(default=option.empty))
    return named if option.default is option.empty else f"{named} = {option.default!r}"


def summary(maker: Any) -> str:
    """The first paragraph of a pass's docstring, in one line. It is empty for a pass that a file makes without a class."""
    return "" if isinstance(maker, Pass) else " ".join((inspect.getdoc(maker) or "").split("\n\n")[0].split())


__all__ = ["heading", "summary"]
