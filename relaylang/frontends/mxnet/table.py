"""The table of MXNet's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.common import Table
from relaylang.frontends.mxnet import families
from relaylang.frontends.mxnet.aliases import ALIASES, SPARSE

#: Operators that have no form in Relay, with the reason.
REFUSED = {
    "Custom": "it calls Python code, which is not in the file",
    "_Native": "it calls Python code, which is not in the file",
    "_NDArray": "it calls Python code, which is not in the file",
    "_TensorRT": "TensorRT compiled it; export the network before that",
    "_CachedOp": "it calls a graph that is not in the file",
    "_random_uniform": "random numbers differ from call to call",
    "_random_normal": "random numbers differ from call to call",
    "_sample_multinomial": "random numbers differ from call to call",
    "_shuffle": "random numbers differ from call to call",
    "CTCLoss": "Relay has no operator for this loss",
}


@cache
def table() -> Table:
    """All conversions, by the operator's own name."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


def own_name(name: str) -> str:
    """The name under which the table has an operator: old and short names stand for others."""
    name = name.removeprefix(SPARSE)
    return ALIASES.get(name, name)


__all__ = ["REFUSED", "own_name", "table"]
