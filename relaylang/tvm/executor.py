"""Executors: `create_executor(kind, mod).evaluate()` is a module's function as a Python function of numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, overload

import numpy as np

from relaylang.backends import compile_module
from relaylang.backends.aot import compile_aot
from relaylang.backends.target import Target
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.evaluate import Evaluator, check_free
from relaylang.interpreter.kernels.common import np_dtype
from relaylang.interpreter.values import Closure
from relaylang.ir import Expr, Function, GlobalVar, IRModule, TensorType, Type, Var, parameter_names, substitute
from relaylang.tvm.arrays import from_python, with_numpy
from relaylang.tvm.target.chosen import targets_of
from relaylang.typing import check

#: How a program is compiled: the function of a target and of an entry, by the executor's kind.
Compile = Callable[[IRModule, Target, str], Callable[..., Any]]


def _graph(mod: IRModule, target: Target, entry: str) -> Callable[..., Any]:
    return compile_module(mod, target, entry=entry).run


def _vm(mod: IRModule, target: Target, entry: str) -> Callable[..., Any]:
    executable = compile_vm(mod, target, entries=[entry])
    return lambda **values: executable.call(entry, (), values)


#: Kind -> how it compiles; None interprets.
KINDS: dict[str, Compile | None] = {
    "debug": None,
    "interpreter": None,
    "graph": _graph,
    "vm": _vm,
    "aot": lambda mod, target, entry: compile_aot(mod, target, entry=entry).run,
    "cpu": _graph,
}
#: Names in a module for a function or an expression that an executor is given.
_FUNCTION, _EXPRESSION = "(function)", "(expression)"


class Executor:
    """Runs a module's functions: interpreted, or compiled for a target by `compile`.

    `params` are values for parameters of the functions by name; the Python functions take the others, in their order.
    """

    def __init__(
        self, mod: IRModule, params: Mapping[str, Any] | None = None, *, compile: Compile | None = None, target: Any = "c"
    ) -> None:
        check(mod)
        self._mod = mod
        self._params = {name: from_python(value) for name, value in (params or {}).items()}
        self._compile = compile
        self._target = target
        self._evaluator: Evaluator | None = None
        self._programs: dict[str, Callable[..., Any]] = {}

    @overload
    def evaluate(self, expr: None = None, binds: Mapping[Var, Any] | None = None) -> Callable[..., Any]: ...

    @overload
    def evaluate(self, expr: GlobalVar | Function, binds: Mapping[Var, Any] | None = None) -> Callable[..., Any]: ...

    @overload
    def evaluate(self, expr: Expr, binds: Mapping[Var, Any] | None = None) -> Any: ...

    def evaluate(self, expr: Expr | None = None, binds: Mapping[Var, Any] | None = None) -> Any:
        """The function `expr` (a `GlobalVar`, a function, or @main where it is None) as a Python function.

        It takes values by position or by parameter name: numpy arrays, objects with a method `numpy()`, and tuples. Numbers
        and lists get the parameter's element type; compiled graphs convert arrays, too. It returns an array (`.numpy()` is
        the plain array), a tuple, or a value of `interpreter.values`. For any other expression, the result is its value, a
        Python function if it is one. `binds` gives values to its free variables; with it, the interpreter evaluates the
        expression.

        Raises `RelayError`: for arguments that do not fit, and for a failure of the program.
        """
        if binds:
            return self._bound(expr if expr is not None else self._mod["main"], binds)
        if expr is None or isinstance(expr, GlobalVar):
            name = "main" if expr is None else expr.name_hint
            return self._compiled(self._mod, name) if self._compile else self._interpreted(self._interpreter(), name)
        if self._compile:
            mod = self._mod.with_functions(self._mod.functions)
            mod[GlobalVar(_EXPRESSION)] = expr if isinstance(expr, Function) else Function((), expr)
            check(mod)
            call = self._compiled(mod, _EXPRESSION)
            return call if isinstance(expr, Function) else call()
        if not isinstance(expr, Function):
            return _result(self._interpreter(), expr)
        free, values = check_free(expr, self._params)
        if expr.checked_type is None:
            check(expr, fragment=True, module=self._mod, assume=free)
        mod = self._mod.with_functions({**self._mod.functions, GlobalVar(_FUNCTION): expr})
        return self._interpreted(Evaluator(mod, values), _FUNCTION)

    def _interpreter(self) -> Evaluator:
        if self._evaluator is None:
            self._evaluator = Evaluator(self._mod, self._params)
        return self._evaluator

    def _bound(self, expr: Expr, binds: Mapping[Var, Any]) -> Any:
        """The value of an expression whose free variables have the values of `binds`; a function becomes a Python one."""
        names = parameter_names(list(binds))
        other = {v: Var(n, v.type_annotation) for v, n in zip(binds, names) if n != v.name_hint}
        values = {n: from_python(b) for n, b in zip(names, binds.values())}
        evaluator = Evaluator(self._mod, {**self._params, **values})
        return _result(evaluator, substitute(expr, other) if other else expr)

    def _interpreted(self, evaluator: Evaluator, name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if name in evaluator.module:
                params = evaluator.module[name].params
                bound = {n for n, p in zip(parameter_names(params), params) if p.name_hint in evaluator.values}
                args, named = _by_name(params, bound, args, named)
            values = {n: from_python(v) for n, v in named.items()}
            return with_numpy(evaluator.call(name, tuple([from_python(a) for a in args]), values))

        return call

    def _compiled(self, mod: IRModule, entry: str) -> Callable[..., Any]:
        if entry not in mod:
            raise RelayError(error("R0707", f"the module has no function @{entry}"))
        params = mod[entry].params
        names = parameter_names(params)
        known = {n: self._params[p.name_hint] for n, p in zip(names, params) if p.name_hint in self._params}

        def call(*args: Any, **named: Any) -> Any:
            args, named = _by_name(params, known, args, named)
            values = {**known, **dict(zip(names, args)), **named}
            wrong = [n for n in values if n not in names] + [n for n in names if n not in values]
            if wrong:
                what = f"%{wrong[0]} is " + ("not a parameter" if wrong[0] in values else "missing")
                raise RelayError(error("R0730", f"@{entry}: {what}"))
            if len(args) > len(names):
                raise RelayError(error("R0730", f"@{entry}: too many arguments"))
            if entry not in self._programs:
                assert self._compile is not None
                self._programs[entry] = self._compile(mod, targets_of(self._target)[0], entry)
            arguments = {n: from_python(v) for n, v in values.items()}
            if self._compile is not _vm:
                arguments = {n: _converted(v, p.checked_type) for n, p in zip(names, params) for v in [arguments[n]]}
            return with_numpy(self._programs[entry](**arguments))

        return call


def _result(evaluator: Evaluator, expr: Expr) -> Any:
    """The value of an expression; a function becomes a Python one."""
    value = with_numpy(evaluator.expression(expr))
    if not isinstance(value, Closure):
        return value
    return lambda *args: with_numpy(evaluator.apply(value, *[from_python(a) for a in args]))


def _converted(value: Any, ty: Type | None) -> Any:
    """A graph's input: numbers and arrays of them take the parameter's element type, as in TVM's graph executor."""
    if isinstance(value, (int, float)):
        value = np.asarray(value)
    if not isinstance(ty, TensorType) or not isinstance(value, (np.ndarray, np.generic)) or value.dtype.name == ty.dtype:
        return value
    if value.dtype.kind not in "biuf":
        return value
    with np.errstate(all="ignore"):
        return value.astype(np_dtype(ty.dtype))


def _by_name(
    params: Sequence[Var], known: Container[str], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments in order and by name. Where parameters have values of their own (`known`), the order leaves them out.

    As in TVM, one name gives all parameters of that name its value. Where every parameter has a value, other names are
    left out: a script may give all parameters of a network.
    """
    names = parameter_names(params)
    later = dict(zip(names[len(args) :], params[len(args) :]))
    named = {**{n: named[p.name_hint] for n, p in later.items() if p.name_hint in named and n not in known}, **named}
    free = [n for n in names if n not in known and n not in named]
    if len(args) == len(free):
        named = {n: v for n, v in named.items() if n in names}
    if len(args) == len(free) < len(names):
        return (), {**named, **dict(zip(free, args))}
    return args, named


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: Any = None,
    target: Any = "c",
    params: Mapping[str, Any] | None = None,
) -> Executor:
    """An executor. Kind "debug" interprets, "graph" compiles data-flow graphs for the CPU. "aot" compiles programs with
    branches and loops, too, through C source. "vm" compiles any program.

    `device` is there for scripts written for TVM; there is one, the CPU. Raises `RelayError` for an unknown kind and
    for a module that is not well-typed.
    """
    if kind not in KINDS:
        raise RelayError(error("R0730", f"unknown executor {kind}", notes=[f"executors: {', '.join(KINDS)}"]))
    return Executor(mod if mod is not None else IRModule(), params, compile=KINDS[kind], target=target)
