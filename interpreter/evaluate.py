"""The interpreter's public face: evaluate a module's function, or an expression.

Usage:

    evaluate(module, x, weight=w)               # @main(x, w)
    evaluate(expr, values={"x": x})             # an expression with free variables
    Evaluator(module).call("main", (x, w))      # the same, for several calls
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, did_you_mean, error
from relaylang.interpreter.dynamic import is_static
from relaylang.interpreter.errors import Trap, evaluation_error
from relaylang.interpreter.kernels.common import np_dtype
from relaylang.interpreter.linker import Linker
from relaylang.interpreter.machine import run
from relaylang.interpreter.memory import MemoryLimit
from relaylang.interpreter.names import Names
from relaylang.interpreter.onlookers import Observer, Onlookers
from relaylang.interpreter.signatures import contradictions, has_names
from relaylang.interpreter.time_limit import time_limit as limited_time
from relaylang.interpreter.values import Closure, Value, as_slot_value, is_tensor, mismatch, tensor_type, to_arrays
from relaylang.interpreter.watch import Watch
from relaylang.ir import (
    Expr,
    Function,
    GlobalVar,
    IRModule,
    MetaRef,
    TensorType,
    Type,
    Var,
    free_vars,
    parameter_names,
    post_order,
)
from relaylang.ir.types import TupleType, type_text
from relaylang.typing import check
from relaylang.typing.places import result_span

_MAIN = "main"


class Evaluator:
    """Evaluates one module again and again; each function is compiled when it is first called.

    `values` gives free variables and missing constants their values by name (`x`, `meta[relay.Constant][0]`).
    `observer(binding, value, seconds)` is called behind each operator call. `watch` sees every binding and call (see
    `interpreter.watch`). A call may allocate `memory_limit` bytes: `math.inf` is no limit, None the default of
    `interpreter.memory`. It may take `time_limit` seconds.
    """

    def __init__(
        self,
        module: IRModule | None = None,
        values: Mapping[str, Any] | None = None,
        observer: Observer | None = None,
        watch: Watch | None = None,
        memory_limit: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.module = module if module is not None else IRModule()
        self.values = dict(values or {})
        self.observer = observer
        self.watch = watch
        self._limit = MemoryLimit(memory_limit)
        self._seconds = time_limit
        self._linker = Linker(Names(self.module, self.values), Onlookers(observer, watch, self._limit))
        if any([f.checked_type is None for f in self.module.functions.values()]):
            check(self.module)

    def call(self, name: str | GlobalVar, args: tuple[Any, ...], named: Mapping[str, Any] | None = None) -> Value:
        """Call a function of the module with checked arguments. The result's scalars are 0-dimensional arrays."""
        if isinstance(name, str):
            if name not in self.module:
                near = did_you_mean(name, [g.name_hint for g in self.module])
                notes = [f"did you mean @{near}?"] if near else []
                raise RelayError(error("R0403", f"there is no function @{name}", notes=notes))
            name = self.module.get_global_var(name)
        code = self._linker.names.code(name)
        named = named or {}
        own = parameter_names(code.function.params) if args and named else []
        twice = [n for n in own[: len(args)] if n in named]
        if twice:
            raise RelayError(error("R0401", f"{code.name} gets %{twice[0]} twice", code.function.span))
        arguments = bind_arguments(code.function, args, {**self._named(code.function), **named}, code.name)
        return checked_result(code.function, arguments, self._run(code, arguments), code.name)

    def _named(self, function: Function) -> dict[str, Any]:
        """Values that were given for the function's parameters."""
        params = function.params
        pairs = zip(parameter_names(params), params)
        return {n: self.values[p.name_hint] for n, p in pairs if p.name_hint in self.values}

    def expression(self, expr: Expr) -> Value:
        """The value of an expression that need not belong to the module's functions."""
        free, values = check_free(expr, self.values)
        if expr.checked_type is None:
            check(expr, fragment=True, module=self.module, assume=free)
        main = Function((), expr)
        module = self.module.with_functions({**self.module.functions, GlobalVar("<expression>"): main})
        linker = Linker(Names(module, values, self._linker.names.codes), Onlookers(self.observer, self.watch, self._limit))
        return self._run(linker.names.code(module.get_global_var("<expression>")), [], linker)

    def apply(self, function: Value, *args: Any) -> Value:
        """Call a function value."""
        if not isinstance(function, Closure):
            raise RelayError(error("R0407", "this is no function to call"))
        arguments = bind_arguments(function.code.function, args, {}, function.code.name)
        return to_arrays(run(self._linker, function.code, arguments, function.captured))

    def _run(self, code: Any, arguments: list[Value], linker: Linker | None = None) -> Value:
        try:
            with limited_time(self._seconds):
                return to_arrays(run(linker or self._linker, code, arguments))
        except Trap as trap:
            span = trap.node.span if trap.node is not None else code.function.span
            raise evaluation_error(trap.code, trap.message, span, None, []) from None


def as_value(given: Any, ty: Type | None) -> Value:
    """A caller's value as the program's value: numbers and lists get the wanted element type. A list may be a tuple."""
    if isinstance(given, (tuple, list)) and isinstance(ty, TupleType) and len(given) == len(ty.fields):
        return tuple([as_value(g, t) for g, t in zip(given, ty.fields)])
    if is_tensor(given) or not isinstance(given, (bool, int, float, list)):
        return as_slot_value(given)
    dtype = np_dtype(ty.dtype) if isinstance(ty, TensorType) else None
    if dtype is None:
        dtype = {"i": np.dtype(np.int32), "f": np.dtype(np.float32)}.get(np.asarray(given).dtype.kind)
    return as_slot_value(np.asarray(given).astype(dtype) if dtype is not None else np.asarray(given))


def bind_arguments(function: Function, args: tuple[Any, ...], named: Mapping[str, Any], name: str) -> list[Value]:
    """A call's arguments in order, each with its parameter's type. Raises `RelayError` with all that is wrong."""
    params = function.params
    problems = []
    if len(args) > len(params):
        problems.append(error("R0401", f"{name} takes {_plural(len(params), 'argument')}, not {len(args)}", function.span))
        raise RelayError(problems)
    names = parameter_names(params) if named else []
    unknown = [n for n in named if n not in names]
    for n in unknown:
        near = did_you_mean(n, names)
        notes = [f"did you mean %{near}?"] if near else []
        problems.append(error("R0401", f"{name} has no parameter %{n}", function.span, notes=notes))
    bound: list[Value] = []
    missing = []
    for i, param in enumerate(params):
        ty = param.checked_type or param.type_annotation
        if i < len(args):
            argument = args[i]
        elif named and names[i] in named:
            argument = named[names[i]]
        else:
            missing.append(param)
            continue
        value = as_value(argument, ty)
        wrong = mismatch(value, ty)
        if wrong:
            problems.append(error("R0402", f"the argument for %{param.name_hint} {wrong}", param.span))
        bound.append(value)
    if not problems and not missing:
        problems += _contradictory(params, bound)
    if missing:
        absent = ", ".join(f"%{p.name_hint}" + _of_type(p) for p in missing[:5]) + (", ..." if len(missing) > 5 else "")
        what = f"{name} takes {_plural(len(params), 'argument')}, not {len(bound)}"
        problems.append(error("R0401", what, function.span, notes=[f"missing: {absent}"]))
    if problems:
        raise RelayError(problems)
    return bound


def _contradictory(params: Sequence[Var], bound: Sequence[Value]) -> list[Diagnostic]:
    """What contradicts the extents that the parameters name."""
    if not any(has_names(p.checked_type or p.type_annotation) for p in params):
        return []
    typed = [(value, p.checked_type or p.type_annotation, f"%{p.name_hint}") for p, value in zip(params, bound)]
    wrongs = contradictions(typed)
    return [error("R0402", f"the argument for {typed[place][2]} {wrong}", params[place].span) for place, wrong in wrongs]


def checked_result(function: Function, args: Sequence[Value], value: Value, name: str) -> Value:
    """The value of a call, which the function's declared result fits. Raises `RelayError` (R0414) where it does not.

    The checker takes `?` for every extent. So a body of open extents may give others than those that are declared.
    """
    declared = function.ret_type
    if declared is None or (function.body is not None and is_static(function.body.checked_type)):
        return value
    wrong = mismatch(value, declared)
    if wrong is None and has_names(declared):
        typed = [(arg, p.checked_type or p.type_annotation, f"%{p.name_hint}") for p, arg in zip(function.params, args)]
        found = [why for place, why in contradictions([*typed, (value, declared, "the result")]) if place == len(typed)]
        wrong = found[0] if found else None
    if wrong is not None:
        raise RelayError(error("R0414", f"the result of {name} {wrong}", result_span(function)))
    return value


def _plural(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _of_type(var: Var) -> str:
    ty = var.checked_type or var.type_annotation
    return f" of type {type_text(ty)}" if ty is not None else ""


def missing_values(expr: Expr) -> list[Var | MetaRef]:
    """The parts of an expression that need a value by name: free variables, and constants without a value."""
    needed: list[Var | MetaRef] = list(free_vars(expr))
    return needed + [node for node in post_order(expr) if isinstance(node, MetaRef)]


def check_free(expr: Expr, values: Mapping[str, Any]) -> tuple[dict[Var, Type], dict[str, Any]]:
    """The types that the values give free variables, and the values as those of their types. Every free variable and
    missing constant must have a value that fits its type. Raises `RelayError`."""
    problems = []
    typed_values = dict(values)
    types: dict[Var, Type] = {}
    for node in missing_values(expr):
        what = f"%{node.name_hint}" if isinstance(node, Var) else node.name_hint
        ty = node.checked_type or node.type_annotation
        if node.name_hint not in values:
            of = f" of type {type_text(ty)}" if ty is not None else ""
            problems.append(error("R0403", f"{what}{of} has no value", node.span, notes=["give it one by its name"]))
            continue
        value = typed_values[node.name_hint] = as_value(values[node.name_hint], ty)
        wrong = mismatch(value, ty)
        if isinstance(node, Var) and is_tensor(value):
            types[node] = tensor_type(value)
        if wrong:
            problems.append(error("R0402", f"the value for {what} {wrong}", node.span))
    if problems:
        raise RelayError(problems)
    return types, typed_values


def evaluate(
    program: IRModule | Expr,
    *args: Any,
    entry: str = _MAIN,
    values: Mapping[str, Any] | None = None,
    module: IRModule | None = None,
    observer: Observer | None = None,
    watch: Watch | None = None,
    memory_limit: float | None = None,
    time_limit: float | None = None,
    **named: Any,
) -> Value:
    """The value of a module's function `entry` for arguments in order or by name, or of an expression.

    An expression that is a function is called with the arguments. For another one, `values` and the named arguments give
    its free variables and missing constants. `module` holds the functions that it calls.
    `values` also gives parameters by name: those that have the name of an option here (`entry`, `values`, ...).
    Tensors are numpy arrays, tuples tuples; constructed values, references and closures as in `interpreter.values`.
    `observer` is called behind each operator call. `watch` sees every binding (see `interpreter.watch`).
    `memory_limit` is in bytes: `math.inf` is no limit. None is the default of `interpreter.memory`, which stops a recursion
    without an end. `time_limit` is in seconds: a run that takes longer is R0413.
    Raises `RelayError`: R0401 to R0403 for the arguments, others for errors of the run.
    """
    if isinstance(program, IRModule):
        return Evaluator(program, values, observer, watch, memory_limit, time_limit).call(entry, args, named)
    if isinstance(program, Function):
        free, values = check_free(program, values or {})
        if program.checked_type is None:
            check(program, fragment=True, module=module, assume=free)
        functions = dict(module.functions) if module is not None else {}
        functions = {g: f for g, f in functions.items() if g.name_hint != "fn"}
        functions[GlobalVar("fn")] = program
        holder = module.with_functions(functions) if module is not None else IRModule(functions)
        return Evaluator(holder, values, observer, watch, memory_limit, time_limit).call("fn", args, named)
    if args:
        raise RelayError(error("R0401", f"an expression takes no arguments, but {len(args)} were given", program.span))
    return Evaluator(module, {**(values or {}), **named}, observer, watch, memory_limit, time_limit).expression(program)
