"""The table of PyTorch's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.common import Table
from relaylang.frontends.torch import families

_LIMIT = "it is the limit of an iteration, and its signs and order are those of a library"
_SINGULAR = "it needs singular values, which are the limit of an iteration"
#: Operators that have no form in Relay, with the reason.
REFUSED = {
    f"aten.{name}": reason
    for names, reason in (
        ("_linalg_eigh _linalg_eigvals linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh", _LIMIT),
        ("_linalg_svd linalg_svd linalg_svdvals svd", _LIMIT),
        ("linalg_cond linalg_matrix_rank linalg_pinv pinverse", _SINGULAR),
    )
    for name in names.split()
}


@cache
def table() -> Table:
    """All conversions, by the operator's name without its overload: `aten.add`."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


__all__ = ["REFUSED", "table"]
