"""Values for variables and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir.expr import Constant, Expr, Function, Var
from relaylang.ir.module import IRModule
from relaylang.ir.types import TensorType
from relaylang.ir.visit import free_vars, substitute


def bind(expr: Expr, binds: Mapping[Var, Any]) -> Expr:
    """An expression with values for variables: expressions, or arrays, which become constants.

    A function loses the parameters among them. Variables that the values use become parameters behind the others.
    """
    values = {v: x if isinstance(x, Expr) else Constant(np.asarray(x)) for v, x in binds.items()}
    if not isinstance(expr, Function):
        return substitute(expr, values)
    body = substitute(expr.body, values)
    params = [p for p in expr.params if p not in values]
    if body is expr.body and len(params) == len(expr.params):
        return expr
    free = set(free_vars(expr))
    params += [v for v in free_vars(Function(params, body)) if v not in free]
    return Function(params, body, expr.ret_type, expr.type_params, expr.attrs, expr.span)


def bind_params_by_name(func: Function, params: Mapping[str, Any]) -> Function:
    """The function with constants for the parameters of these names; other names have no effect.

    Raises `RelayError` (R0514) where two parameters of the function have one of the names.
    """
    count = Counter(p.name_hint for p in func.params)
    twice = [name for name in params if count[name] > 1]
    if twice:
        raise RelayError([error("R0514", f"{count[name]} parameters are called %{name}", func.span) for name in twice])
    bound = bind(func, {p: params[p.name_hint] for p in func.params if p.name_hint in params})
    assert isinstance(bound, Function)
    return bound


def bind_params(mod: IRModule, params: Mapping[str, Any] | None, entry: str = "main") -> IRModule:
    """The module with constants for parameters of its entry; other names have no effect.

    Raises `RelayError` (R0514) for a value of another element type or rank than its parameter.
    """
    if not params:
        return mod
    func: Function = mod[entry]
    values: dict[Var, Constant] = {}
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
    new = bind(func, values)
    assert isinstance(new, Function)
    return mod.with_functions({**mod.functions, mod.get_global_var(entry): new})


__all__ = ["bind", "bind_params", "bind_params_by_name"]
