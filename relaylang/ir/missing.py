"""Constants without a value: `meta[relay.Constant][0]` in a text whose metadata section is missing."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir.expr import Constant, Expr, MetaRef
from relaylang.ir.module import IRModule
from relaylang.ir.visit import post_order, rewrite

#: How the text gets the value, and the command line.
_ADVICE = """read the text with it: init_meta_table={"KEY": [constant]}
or give it by its name in a file of parameters: --params FILE"""


def fill_missing(mod: IRModule, values: Mapping[str, Any]) -> IRModule:
    """The module with the values of constants that lack one, by name; the same module where there are none."""
    if not values:
        return mod

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, MetaRef) or new.name_hint not in values:
            return new
        return Constant(np.asarray(values[new.name_hint]), new.span)

    functions = {gv: rewrite(function, put) for gv, function in mod.functions.items()}
    if all(new is mod[gv] for gv, new in functions.items()):
        return mod
    return mod.with_functions(functions)  # type: ignore[arg-type]


def refuse_missing(mod: IRModule, values: Container[str] = (), advice: str = _ADVICE) -> None:
    """Raise `RelayError` (R0403) where a constant of the module has no value, and `values` has no entry of its name.

    `advice` has the lines of a note. NAME and KEY in it stand for the constant's name and its metadata's key.
    """
    missing: dict[str, MetaRef] = {}
    for function in mod.functions.values():
        for node in post_order(function):
            if isinstance(node, MetaRef) and node.name_hint not in values:
                missing.setdefault(node.name_hint, node)
    if not missing:
        return
    first = next(iter(missing.values()))
    more = f", and {len(missing) - 1} more have none" if len(missing) > 1 else ""
    notes = advice.replace("NAME", first.name_hint).replace("KEY", first.type_key).splitlines()
    raise RelayError(error("R0403", f"the constant {first.name_hint} has no value{more}", first.span, notes=notes))


__all__ = ["fill_missing", "refuse_missing"]
