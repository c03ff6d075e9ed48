"""A quantised network in three functions: conversion of inputs, the network in whole numbers, conversion of outputs."""

from __future__ import annotations

from collections.abc import Iterator, Set

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    children,
    free_vars,
    post_order,
    rebuilt,
)
from relaylang.ir.scope_builder import ScopeBuilder
from relaylang.ir.typed import retype, typed_var
from relaylang.ops.record import Op
from relaylang.passes.rewriting import is_call
from relaylang.rules.quantization.realise import CONVERSIONS
from relaylang.typing import check


def partition_conversions(mod: IRModule, quantized_dtypes: Set[str], ensure_fully_integral: bool = False) -> IRModule:
    """The functions `quantize_inputs`, `quantized_main` and `dequantize_outputs` of a quantised @main, and a @main that calls them.

    With `ensure_fully_integral` the middle one has values of `quantized_dtypes` alone, and the others convert only.
    Raises `RelayError` (R0530) where that is not so.
    """
    check(mod)
    func = mod["main"]
    before, values = _inputs(func)
    middle, after = _outputs(Function(list(values), before), quantized_dtypes)
    prefix = Function(func.params, Tuple(list(values.values())))
    parts = IRModule(
        {GlobalVar("quantize_inputs"): prefix, GlobalVar("quantized_main"): middle, GlobalVar("dequantize_outputs"): after},
        mod.type_definitions,
    )
    params = [typed_var(p.name_hint, p.checked_type) for p in func.params]
    lines = ScopeBuilder()
    inputs = lines.let("quantized_inputs", Call(parts.get_global_var("quantize_inputs"), params))
    fields = [TupleGetItem(inputs, i) for i in range(len(values))]
    outputs = lines.let("quantized_outputs", Call(parts.get_global_var("quantized_main"), fields))
    lines.ret(lines.let("dequantized_outputs", Call(parts.get_global_var("dequantize_outputs"), [outputs])))
    parts[GlobalVar("main")] = Function(params, lines.get())
    check(parts)
    if ensure_fully_integral:
        for node in _not_integral(prefix, middle, after, quantized_dtypes):
            title = "a part of the network is not in whole numbers"
            raise RelayError(error("R0530", title, node.span, notes=['partition_conversions="enabled" keeps such parts']))
    return parts


def _inputs(func: Function) -> tuple[Expr, dict[Var, Expr]]:
    """The body behind the conversions of inputs, and what each of its new parameters stands for."""
    order = list(post_order(func.body))
    of: dict[int, Var | None] = {}  # what converts one parameter, and that parameter
    for node in order:
        if isinstance(node, Var):
            of[id(node)] = node
        elif is_call(node, *CONVERSIONS):
            args = [a for a in node.args if not isinstance(a, Constant)]
            sources = {of.get(id(a)) for a in args}
            of[id(node)] = sources.pop() if len(sources) == 1 else None
    done: dict[int, Expr] = {}
    values: dict[Var, Expr] = {}
    for node in order:
        if not (isinstance(node, Call) and of.get(id(node)) is not None):
            for child in children(node):
                param = of.get(id(child))
                if param is not None:
                    new = typed_var(param.name_hint, child.checked_type)
                    done[id(child)], values[new] = new, child
                    of[id(child)] = None  # once
        done.setdefault(id(node), retype(rebuilt(node, done), node))
    body = done[id(func.body)]
    used = set(free_vars(body))
    rest = {v: v for v in used - {*values}}
    return body, {v: e for v, e in {**values, **rest}.items() if v in used}


def _outputs(func: Function, dtypes: Set[str]) -> tuple[Function, Function]:
    """The function up to the one value from which all outputs are converted, and the function behind it."""
    converted: dict[int, Expr] = {}
    inputs = False
    stack, seen = [func.body], set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node.checked_type, TensorType) and node.checked_type.dtype in dtypes and not isinstance(node, Constant):
            converted[id(node)] = node
            continue
        inputs = inputs or isinstance(node, Var)
        stack += children(node)
    if len(converted) != 1 or inputs:
        var = typed_var("input", func.body.checked_type)
        return func, Function([var], var)
    ((at, result),) = converted.items()
    var = typed_var("input", result.checked_type)
    done: dict[int, Expr] = {at: var}
    for node in post_order(func.body):
        done.setdefault(id(node), retype(rebuilt(node, done), node))
    return Function(func.params, result), Function([var], done[id(func.body)])


def _not_integral(prefix: Function, middle: Function, after: Function, dtypes: Set[str]) -> Iterator[Expr]:
    """Nodes that compute other than in whole numbers."""
    for func in (prefix, after):
        yield from (n for n in post_order(func) if isinstance(n, Call) and not is_call(n, *CONVERSIONS))
    for node in post_order(middle):
        ty = node.checked_type
        if isinstance(ty, TensorType) and ty.dtype not in dtypes and not isinstance(node, Op):
            yield node
