"""How help shows a pass: its name with its options, and the first paragraph of its docstring."""

from __future__ import annotations

import inspect
from typing import Any

from relaylang.passes.manager import Pass


def heading(name: str, maker: Any) -> str:
    """A pass with the names, types and defaults of its options: `FuseOps(fuse_opt_level: int = -1)`."""
    options = () if isinstance(maker, Pass) else inspect.signature(maker).parameters.values()
    shown = ", ".join(str(option).replace("'", "") if option.default is option.empty else _with_default(option) for option in options)
    return f"{name}({shown})" if shown else name


def _with_default(option: inspect.Parameter) -> str:
    said = "" if option.annotation is option.empty else f": {option.annotation}"
    return f"{option.name}{said} = {option.default!r}" if said else f"{option.name}={option.default!r}"


def summary(maker: Any) -> str:
    """The first paragraph of a pass's docstring, in one line; nothing for a pass that a file makes without a class."""
    return "" if isinstance(maker, Pass) else " ".join((inspect.getdoc(maker) or "").split("\n\n")[0].split())


__all__ = ["heading", "summary"]
