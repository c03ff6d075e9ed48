"""Values for the parameters of a module's entry function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Constant, Expr, Function, IRModule, TensorType, substitute


def bind_params(mod: IRModule, params: Mapping[str, Any] | None, entry: str = "main") -> IRModule:
    """The module with values for parameters of its entry. Raises `RelayError` for one that does not fit."""
    if not params:
        return mod
    func: Function = mod[entry]
    values: dict[Any, Expr] = {}
    wrong = []
    for param in func.params:
        if param.name_hint not in params:
            continue
        array = np.asarray(params[param.name_hint])
        ty = param.checked_type or param.type_annotation
        if isinstance(ty, TensorType) and (ty.dtype != array.dtype.name or len(ty.shape) != array.ndim):
            wrong.append(error("R0514", f"%{param.name_hint} is `{ty!r}`, its value {array.dtype} {array.shape}", param.span))
        values[param] = Constant(array, param.span)
    if wrong:
        raise RelayError(wrong)
    rest = [p for p in func.params if p not in values]
    new = Function(rest, substitute(func.body, values), func.ret_type, func.type_params, func.attrs, func.span)  # type: ignore
    return mod.with_functions({**mod.functions, mod.get_global_var(entry): new})


__all__ = ["bind_params"]
