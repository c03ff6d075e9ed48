"""LambdaLift: lift inner functions into the module, with their free variables as parameters."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import (
    Call,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Let,
    Type,
    TypeVar,
    Var,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype, typed
from relaylang.ir.types import written
from relaylang.ir.visit import binders
from relaylang.passes.analysis import free_type_vars
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import copy_with, is_kernel


def lambda_lift(mod: IRModule) -> IRModule:
    """A typed module in which no function stands inside another, but for primitive ones and those of other compilers.

    A function that uses nothing of its surroundings becomes a function of the module. Another one becomes a function
    that takes the variables it uses, and returns a closure (marked `Closure`), as in TVM. Names are `lifted_name<n>`.
    """
    lifted: dict[GlobalVar, Function] = {}
    taken = {gv.name_hint for gv in mod.functions}
    with gc_paused():
        new = {gv: f if is_kernel(f) else _lift(f, lifted, taken) for gv, f in mod.functions.items()}
    if not lifted:
        return mod
    return mod.with_functions({**new, **lifted})


def _name(taken: set[str]) -> str:
    number = 0
    while f"lifted_name{number}" in taken:
        number += 1
    taken.add(f"lifted_name{number}")
    return f"lifted_name{number}"


def _captured(func: Function, own: Var | None) -> tuple[Var, ...]:
    """The variables that a function uses of its surroundings, in order."""
    bound: set[Var] = set(func.params)
    used: dict[Var, None] = {}
    stack: list[Expr] = [func.body]
    seen: set[int] = set()
    order: list[Expr] = []
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        order.append(node)
        inner = children(node)
        stack.extend(reversed((inner[-1], *inner[:-1]) if isinstance(node, Call) else inner))  # TVM's order: callee first
    for node in order:
        bound.update(binders(node))
    for node in order:
        if isinstance(node, Var) and node not in bound and node is not own:
            used[node] = None
    return tuple(used)


def _lift(func: Function, lifted: dict[GlobalVar, Function], taken: set[str]) -> Function:
    done: dict[int, Expr] = {}
    # A function that a let binds may call itself by the let's variable.
    own = {id(n.value): n.variable for n in post_order(func) if isinstance(n, Let) and isinstance(n.value, Function)}
    closed: set[int] = set()
    for node in post_order(func):
        if isinstance(node, Function) and node is not func and is_kernel(node):
            closed.update([id(n) for n in post_order(node)])
    for node in post_order(func):
        new = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
        if isinstance(node, Function) and node is not func and id(node) not in closed:
            assert isinstance(new, Function)
            new = retype(_lift_one(new, own.get(id(node)), lifted, taken), node)
        done[id(node)] = new
    result = done[id(func)]
    assert isinstance(result, Function)
    return result


def _lift_one(func: Function, own: Var | None, lifted: dict[GlobalVar, Function], taken: set[str]) -> Expr:
    captured = _captured(func, own)
    gv = GlobalVar(_name(taken))
    types: list[TypeVar] = free_type_vars(func)
    if not captured:
        if own is not None:
            typed(gv, func.checked_type)
        lifted_body = copy_with(func, {own: gv} if own is not None else {})
        assert isinstance(lifted_body, Function)
        lifted[gv] = Function(
            lifted_body.params,
            lifted_body.body,
            lifted_body.ret_type or _result(func),
            [*lifted_body.type_params, *types],
            lifted_body.attrs,
            lifted_body.span,
        )
        return gv
    names = {v: typed(Var(v.name_hint, written(v.checked_type or v.type_annotation), v.span), v.checked_type) for v in captured}
    inside: dict[Var, Expr] = dict(names)
    if own is not None:
        inside[own] = typed(Call(gv, [names[v] for v in captured]), func.checked_type)
    inner = copy_with(func, inside)
    assert isinstance(inner, Function)
    closure = Function(inner.params, inner.body, inner.ret_type or _result(func), inner.type_params, inner.attrs, inner.span)
    typed(closure, func.checked_type)
    ret_type = written(func.checked_type)
    lifted[gv] = Function(list(names.values()), closure, ret_type, types, {"Closure": 1}, func.span)
    return Call(gv, captured, None, (), func.span)


def _result(func: Function) -> Type | None:
    ty = func.checked_type
    return written(ty.ret_type) if isinstance(ty, FuncType) else None


@dataclass(frozen=True)
class LambdaLift(Pass):
    """Lift inner functions into the module."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return lambda_lift(mod)
