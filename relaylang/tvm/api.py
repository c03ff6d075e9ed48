"""The Python interface under TVM's names: `parse`, `create_executor`, `build`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, overload

import numpy as np

from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError, error
from relaylang.interpreter import Executor as Interpreter
from relaylang.interpreter.evaluate import from_python, with_numpy
from relaylang.ir import Expr, Function, GlobalVar, IRModule, Var, parameter_names
from relaylang.runtime.artifact import Artifact
from relaylang.stdlib.library import read
from relaylang.typing import infer


def parse(source: str, source_name: str = "from_string", init_module: IRModule | None = None) -> IRModule:
    """The module that a text holds, unchecked; an expression becomes its @main. Raises `RelayError`.

    `init_module` holds definitions that the text may use, which come into the result. A text whose head says
    `import "prelude.rly"` uses the Prelude.

    `relaylang.syntax.parse` returns the notes and the free variables too.
    """
    result = read(source, source_name, init_module)
    if result.module is not None:
        return result.module
    assert result.expr is not None
    return IRModule.from_expr(result.expr)


def checked(mod: IRModule) -> IRModule:
    """The module with its types found, in place. Raises `RelayError` with every error in it."""
    found = infer(mod)
    if any(d.severity == "error" for d in found):
        raise RelayError(found)
    return mod


class Executor:
    """Runs a module's functions. `evaluate()` gives a Python function of numpy arrays."""

    def __init__(self, kind: str, mod: IRModule, target: str, params: Mapping[str, np.ndarray] | None) -> None:
        self._kind = kind
        self._target = target
        self._mod = checked(mod)
        self._params = dict(params or {})
        self._artifacts: dict[str, Any] = {}
        self._interpreter: Interpreter | None = None

    @overload
    def evaluate(self, expr: None = None, binds: Mapping[Var, Any] | None = None) -> Callable[..., Any]: ...

    @overload
    def evaluate(self, expr: GlobalVar | Function, binds: Mapping[Var, Any] | None = None) -> Callable[..., Any]: ...

    @overload
    def evaluate(self, expr: Expr, binds: Mapping[Var, Any] | None = None) -> Any: ...

    def evaluate(self, expr: Expr | None = None, binds: Mapping[Var, Any] | None = None) -> Any:
        """The function `expr` (a `GlobalVar`, a function, or @main where it is None) as a Python function.

        It takes numpy arrays, or whatever `numpy.asarray` takes, by position or by parameter name, and returns an
        array, or a tuple of values. Any other expression is evaluated at once and its value returned. `binds` gives
        the expression's free variables values; with it the expression is interpreted.
        """
        if self._kind == "interpreter" or binds:
            if self._interpreter is None:
                self._interpreter = Interpreter(self._mod, self._params)
            return self._interpreter.evaluate(expr, binds)
        if expr is None:
            return self._function(self._mod, "main")
        if isinstance(expr, GlobalVar):
            return self._function(self._mod, expr.name_hint)
        mod = self._mod.with_functions(self._mod.functions)
        mod[GlobalVar("(expression)")] = expr if isinstance(expr, Function) else Function((), expr)
        call = self._function(checked(mod), "(expression)")
        return call if isinstance(expr, Function) else call()

    def _function(self, mod: IRModule, entry: str) -> Callable[..., Any]:
        if entry not in mod:
            raise RelayError(error("R0707", f"the module has no function @{entry}"))
        params = mod[entry].params
        names = parameter_names(params)
        known = {n: self._params[p.name_hint] for n, p in zip(names, params) if p.name_hint in self._params}

        def run(*args: Any, **named: Any) -> Any:
            # Parameters with values of their own are not among those that are given in order.
            free = [n for n in names if n not in known and n not in named]
            in_order = zip(free if len(args) == len(free) else names, args)
            values = {**known, **dict(in_order), **named}
            wrong = [n for n in values if n not in names] + [n for n in names if n not in values]
            if wrong or len(args) > len(names):
                what = (
                    "too many arguments"
                    if not wrong
                    else f"%{wrong[0]} is " + ("not a parameter" if wrong[0] in values else "missing")
                )
                raise RelayError(error("R0730", f"@{entry}: {what}"))
            if entry not in self._artifacts:
                self._artifacts[entry] = compile_module(mod, self._target, entry=entry)
            return with_numpy(self._artifacts[entry].run(**{n: from_python(v) for n, v in values.items()}))

        return run


_KINDS = {"debug": "interpreter", "interpreter": "interpreter", "graph": "cpu", "vm": "cpu", "aot": "cpu", "cpu": "cpu"}


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: Any = None,
    target: str = "c",
    params: Mapping[str, np.ndarray] | None = None,
) -> Executor:
    """An executor: kind "debug" interprets, "graph", "vm" and "aot" compile for the CPU (one backend stands for all).

    `device` is there for scripts written for TVM; there is one, the CPU. Raises `RelayError` for an unknown kind and
    for a module that is not well-typed.
    """
    if kind not in _KINDS:
        raise RelayError(error("R0730", f"unknown executor {kind}", notes=[f"executors: {', '.join(_KINDS)}"]))
    return Executor(_KINDS[kind], mod if mod is not None else IRModule(), target, params)


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
    return compile_module(checked(ir_mod), target, params=params)
