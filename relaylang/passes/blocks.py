"""What passes over blocks (chains of lets in A-normal form) share: walks written as recursions that need no stack of
Python's, and types and patterns with parts replaced."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from relaylang.ir import (
    Expr,
    FuncType,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefType,
    TupleType,
    Type,
    TypeCall,
    Var,
)
from relaylang.ir.expr import Pattern

#: A walk: it yields the walks that it waits for, is sent what they return, and returns its own result.
Walk = Generator["Walk", Any, Any]


def walk(first: Walk) -> Any:
    """Run a walk and those that it yields, to any depth."""
    stack = [first]
    value: Any = None
    while stack:
        try:
            inner = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
        else:
            stack.append(inner)
            value = None
    return value


def map_type(ty: Type, f: Callable[[Type], Type | None]) -> Type:
    """A type with parts replaced, outermost first: `f` gives what stands for a part, or None to look into it."""
    made = f(ty)
    if made is not None:
        return made
    match ty:
        case TupleType():
            return TupleType([map_type(t, f) for t in ty.fields])
        case RefType():
            return RefType(map_type(ty.value, f))
        case TypeCall():
            return TypeCall(ty.func, [map_type(t, f) for t in ty.args])
        case FuncType():
            return FuncType([map_type(t, f) for t in ty.arg_types], map_type(ty.ret_type, f), ty.type_params)
    return ty


def type_of(expr: Expr) -> Type:
    """The type that the checker found, or that a variable is given."""
    ty = expr.checked_type or (expr.type_annotation if isinstance(expr, Var) else None)
    assert ty is not None, f"{type(expr).__name__} has no type"
    return ty


def map_pattern(pattern: Pattern, new: Mapping[Var, Var]) -> Pattern:
    """A pattern that binds other variables."""
    match pattern:
        case PatternVar():
            return PatternVar(new[pattern.var], pattern.span)
        case PatternConstructor():
            return PatternConstructor(pattern.constructor, [map_pattern(p, new) for p in pattern.patterns], pattern.span)
        case PatternTuple():
            return PatternTuple([map_pattern(p, new) for p in pattern.patterns], pattern.span)
    return pattern


def free_name(gv_name: str, taken: set[str]) -> str:
    """A name for a function of the module that none has yet."""
    name, number = gv_name, 0
    while name in taken:
        number += 1
        name = f"{gv_name}_{number}"
    taken.add(name)
    return name
