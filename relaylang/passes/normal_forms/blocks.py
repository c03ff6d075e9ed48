"""Helpers of passes over blocks (chains of lets in A-normal form): types of values, and patterns with new variables."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ir import (
    Expr,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    TensorType,
    TupleType,
    Type,
    Var,
)
from relaylang.ir.expr import Pattern
from relaylang.ir.typemaps import HasPart
from relaylang.ir.types import type_parts

#: How many fields a value has at most that a pass takes apart field by field.
MOST_FIELDS = 10_000


def is_wide(ty: Type) -> bool:
    """Whether a type has so many parts that no code is written for each of them."""
    return type_parts(ty, MOST_FIELDS) > MOST_FIELDS


def is_data(ty: Type) -> bool:
    """Whether values are tensors, or tuples of so few that code for each of them can be written."""
    beside = HasPart(lambda part: not isinstance(part, (TensorType, TupleType)))
    return not is_wide(ty) and not beside(ty)


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
