"""Values for parameters, and the compiler, under the names that they have in `tvm.relay.build_module`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Constant, Expr, Function, IRModule, Var, free_vars, substitute
from relaylang.runtime.artifact import Artifact
from relaylang.tvm.executor import create_executor
from relaylang.typing import check


def bind(expr: Expr, binds: Mapping[Var, Any]) -> Expr:
    """An expression with values for variables: expressions, or arrays, which become constants.

    Of a function, the parameters among them are taken away, and what the values use becomes parameters behind the
    others.
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
    """The function with constants for the parameters of these names; others are left out of account.

    Raises `RelayError` where two parameters of the function have one of the names.
    """
    count = Counter(p.name_hint for p in func.params)
    twice = [name for name in params if count[name] > 1]
    if twice:
        raise RelayError([error("R0514", f"{count[name]} parameters are called %{name}", func.span) for name in twice])
    bound = bind(func, {p: params[p.name_hint] for p in func.params if p.name_hint in params})
    assert isinstance(bound, Function)
    return bound


def build(
    ir_mod: IRModule,
    target: str = "c",
    target_host: Any = None,
    executor: Any = None,
    runtime: Any = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Mapping[str, np.ndarray] | None = None,
    mod_name: str = "default",
) -> Artifact:
    """Compile a module. Returns the artifact: `.run(name=array)`, `.save(path)`. Raises `RelayError`.

    The parameters that only TVM's runtimes know are accepted and have no effect.
    """
    check(ir_mod)
    return compile_module(ir_mod, target, params=params)


__all__ = ["bind", "bind_params_by_name", "build", "create_executor"]
