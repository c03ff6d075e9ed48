"""The table of PaddlePaddle's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.common import Table
from relaylang.frontends.paddle import families

#: Operations that only talk to the person who runs the program. They have no results that others use.
LEFT_OUT = frozenset(("assert", "builtin.set_parameter", "cf.assert", "print", "seed"))
#: Operations that have no form in Relay, with the reason.
REFUSED = {
    "py_func": "it is Python code, which is not in the file",
    "run_program": "its program is not in the file",
}


@cache
def table() -> Table:
    """All conversions, by the names of PaddlePaddle 3."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


__all__ = ["LEFT_OUT", "REFUSED", "table"]
