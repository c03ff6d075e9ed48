"""`relay.optimize`: the passes that TVM runs before it compiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params_by_name
from relaylang.passes.manager import Sequential
from relaylang.passes.spec import STANDARD, parse_passes
from relaylang.tvm.arrays import from_python


def optimize(mod: IRModule, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[IRModule, dict[str, Any]]:
    """The module after the passes of the current context's level, and the parameters that are left: none.

    `params` become constants of @main. `target` has no effect: no layout depends on it. Raises `RelayError`.
    """
    if params:
        mod = mod.with_functions(mod.functions)
        mod["main"] = bind_params_by_name(mod["main"], {name: from_python(value) for name, value in params.items()})
    return Sequential(parse_passes(STANDARD))(mod), {}


__all__ = ["optimize"]
