"""The table of PyTorch's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.common import Table
from relaylang.frontends.torch import families


@cache
def table() -> Table:
    """All conversions, by the operator's name without its overload: `aten.add`."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


__all__ = ["table"]
