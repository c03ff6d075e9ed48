"""Helpers of passes: walks that keep types, copies with new variables, and tests of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from relaylang.ir import (
    Call,
    Clause,
    Expr,
    Function,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    Type,
    Var,
    bound_vars,
    children,
    post_order,
    rebuild,
    rebuilt,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ir.expr import Pattern
from relaylang.ir.typed import forget_types, fresh_var, retype, typed
from relaylang.ir.visit import binders
from relaylang.ops.record import Op, make_attrs


def is_opaque(func: Expr) -> bool:
    """Whether an expression is a function of another compiler, without a body, or marked `SkipOptimization`."""
    return isinstance(func, Function) and (func.body is None or "Compiler" in func.attrs or bool(func.attrs.get("SkipOptimization")))


def is_primitive(expr: Expr) -> bool:
    """Whether an expression is a function marked `Primitive`: one kernel, whose body passes leave as it is."""
    return isinstance(expr, Function) and bool(expr.attrs.get("Primitive"))


def is_kernel(expr: Expr) -> bool:
    """Whether passes leave a function as it is: it is primitive or opaque."""
    return is_primitive(expr) or is_opaque(expr)


def per_function(mod: IRModule, f: Callable[[Function], Expr]) -> IRModule:
    """The module with `f` applied to each function; itself where none changes."""
    with gc_paused():
        new = {gv: func if is_opaque(func) else f(func) for gv, func in mod.functions.items()}
    if all(new[gv] is func for gv, func in mod.functions.items()):
        return mod
    return mod.with_functions(new)  # type: ignore[arg-type]


def rewrite_typed(expr: Expr, f: Callable[[Expr, Expr], Expr]) -> Expr:
    """As `ir.rewrite`, for rewrites that keep every node's type. `f(old, new)` gets the old node and its copy with
    rewritten children, which has the old one's type. Functions that are one kernel already are not looked into.
    """
    done: dict[int, Expr] = {}
    closed = {
        id(n)
        for p in post_order(expr)
        if isinstance(p, Function) and p is not expr and is_primitive(p) and p.body is not None
        for n in post_order(p.body)
        if not isinstance(n, Op)
    }
    for node in post_order(expr):
        new = retype(rebuilt(node, done), node)
        done[id(node)] = new if id(node) in closed else retype(f(node, new), node)
    return done[id(expr)]


def _fresh_pattern(pattern: Pattern, new: Mapping[Var, Var]) -> Pattern:
    match pattern:
        case PatternVar(var):
            return PatternVar(new[var], pattern.span)
        case PatternConstructor(constructor, patterns):
            return PatternConstructor(constructor, [_fresh_pattern(p, new) for p in patterns], pattern.span)
        case PatternTuple(patterns):
            return PatternTuple([_fresh_pattern(p, new) for p in patterns], pattern.span)
    return pattern


def copy_with(expr: Expr, mapping: Mapping[Var, Expr] | None = None) -> Expr:
    """A copy of an expression in which variables are replaced, and all that it binds is bound to new variables.

    Nodes that hold none of them stay shared with the original. Types are kept: the replacements must have them.
    """
    new: dict[Var, Expr] = dict(mapping or {})
    order = list(post_order(expr))
    fresh: dict[Var, Var] = {}
    for node in order:
        fresh.update({var: fresh_var(var) for var in binders(node)})
    new.update({v: f for v, f in fresh.items() if v not in new})
    done: dict[int, Expr] = {}
    for node in order:
        if isinstance(node, Var):
            done[id(node)] = new.get(node, node)
            continue
        copy: Expr
        if isinstance(node, Call):
            copy = rebuilt(node, done)
            done[id(node)] = retype(copy, node)
            continue
        inner = tuple([done[id(c)] for c in children(node)])
        if isinstance(node, Function) and node.params:
            params = [fresh[p] for p in node.params]
            copy = Function(params, inner[0], node.ret_type, node.type_params, node.attrs, node.span)
        elif isinstance(node, Let):
            copy = Let(fresh[node.variable], inner[0], inner[1], node.span)
        elif isinstance(node, Match) and binders(node):
            clauses = [Clause(_fresh_pattern(c.lhs, fresh), r, c.span) for c, r in zip(node.clauses, inner[1:])]
            copy = Match(inner[0], clauses, node.complete, node.span)
        else:
            copy = rebuild(node, inner)
        done[id(node)] = retype(copy, node)
    return done[id(expr)]


def with_inputs(func: Function, types: Mapping[Var, Type], ret_type: Type | None = None) -> Function:
    """A copy of a function in which some parameters have other types. The checker finds the types of what uses them."""
    params = [Var(p.name_hint, types.get(p, p.checked_type), p.span, p.virtual_device) for p in func.params]
    body = copy_with(func.body, dict(zip(func.params, params)))
    kept = set(map(id, post_order(func.body)))
    # the copy's types are those of the old parameters
    forget_types([node for node in (*post_order(body), *bound_vars(body)) if id(node) not in kept])
    return Function(params, body, ret_type, func.type_params, func.attrs, func.span)


def apply_function(func: Function, args: Sequence[Expr], effects: bool = False) -> Expr:
    """The body of a function with arguments in the place of its parameters, and new variables for what it binds.

    With `effects` the arguments are bound by lets, so that they are evaluated first, and in order.
    """
    if not effects:
        return copy_with(func.body, dict(zip(func.params, args)))
    names = [fresh_var(p) for p in func.params]
    body = copy_with(func.body, dict(zip(func.params, names)))
    for name, arg in reversed(list(zip(names, args))):
        body = typed(Let(name, arg, body, body.span), body.checked_type)
    return body


def is_call(expr: Expr, *names: str) -> TypeGuard[Call]:
    """Whether an expression calls an operator of one of these names."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def with_attrs(call: Call, args: Sequence[Expr], **changed: Any) -> Call:
    """A call with other operands and some attributes changed."""
    cls = type(call.attrs)
    values = {name: getattr(call.attrs, name) for name in cls.schema}
    return Call(call.op, args, make_attrs(cls, {**values, **changed}), call.type_args, call.span)
