"""Values in place of the parameters of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params
from relaylang.ir.missing import fill_missing
from relaylang.typing import check


def bound(mod: IRModule, params: Mapping[str, Any], entry: str) -> IRModule:
    """The checked module with values in place of parameters of the entry function, and of its missing constants, by name."""
    if params:
        mod = bind_params(fill_missing(mod, params), params, entry)
        check(mod)
    return mod
