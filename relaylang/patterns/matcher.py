"""Matching a pattern against an expression.

Recursion follows the pattern, whose depth its author chose, never the program.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, Function, TensorType, Tuple, TupleGetItem, Var
from relaylang.ops.record import Op
from relaylang.patterns import language as pt

_COMMUTATIVE = frozenset({"add", "multiply"})


@dataclass(frozen=True)
class Match:
    """What a pattern met.

    `nodes` are the calls, tuples and projections that the pattern names, the root last; `constants` the constants that
    it names; `inputs` what its open ends (wildcards, variables) stand for, each once, in the pattern's order.
    `bindings` has an expression for every part of the pattern that took part.
    """

    root: Expr
    nodes: tuple[Expr, ...]
    constants: tuple[Constant, ...]
    inputs: tuple[Expr, ...]
    bindings: dict[pt.DFPattern, Expr]


def find_match(pattern: pt.DFPattern, expr: Expr) -> Match | None:
    """The match of a pattern at an expression, or None. A part that stands twice in a pattern meets one node."""
    trail: list[tuple[pt.DFPattern, Expr]] = []
    bound: dict[pt.DFPattern, Expr] = {}
    if not _matches(pattern, expr, bound, trail):
        return None
    nodes: dict[int, Expr] = {}
    inputs: dict[int, Expr] = {}
    constants: dict[int, Constant] = {}
    for part, node in trail:
        match part:
            case pt.CallPattern() | pt.TuplePattern() | pt.TupleGetItemPattern():
                nodes[id(node)] = node
                for child in _open_ends(part, node):
                    inputs[id(child)] = child
            case pt.ConstantPattern() if isinstance(node, Constant):
                constants[id(node)] = node
            case pt.WildcardPattern() | pt.VarPattern() | pt.ExprPattern():
                if isinstance(node, Op):
                    continue
                inputs[id(node)] = node
    kept = tuple(n for n in inputs.values() if id(n) not in nodes and id(n) not in constants)
    return Match(expr, tuple(nodes.values()), tuple(constants.values()), kept, bound)


def _matches(pattern: pt.DFPattern, expr: Expr, bound: dict[Any, Expr], trail: list[tuple[pt.DFPattern, Expr]]) -> bool:
    if pattern in bound:
        return bound[pattern] is expr
    mark = len(trail)
    if not _matches_part(pattern, expr, bound, trail):
        for part, _ in trail[mark:]:
            bound.pop(part, None)
        del trail[mark:]
        return False
    bound[pattern] = expr
    trail.append((pattern, expr))
    return True


def _matches_part(
    pattern: pt.DFPattern, expr: Expr, bound: dict[Any, Expr], trail: list[tuple[pt.DFPattern, Expr]]
) -> bool:
    match pattern:
        case pt.WildcardPattern():
            return True
        case pt.ConstantPattern():
            return isinstance(expr, Constant)
        case pt.VarPattern():
            return isinstance(expr, Var) and pattern.name in ("", expr.name_hint)
        case pt.OpNamePattern():
            return isinstance(expr, Op) and expr.name == pattern.name
        case pt.ExprPattern():
            return _same_expr(pattern.expr, expr)
        case pt.AltPattern():
            return _matches(pattern.left, expr, bound, trail) or _matches(pattern.right, expr, bound, trail)
        case pt.CallPattern():
            return isinstance(expr, Call) and _matches_call(pattern, expr, bound, trail)
        case pt.TuplePattern():
            if not isinstance(expr, Tuple):
                return False
            return pattern.fields is None or _match_all(pattern.fields, expr.fields, bound, trail)
        case pt.TupleGetItemPattern():
            if not isinstance(expr, TupleGetItem) or pattern.index not in (None, expr.index):
                return False
            return _matches(pattern.tuple, expr.tuple_value, bound, trail)
        case pt.AttrPattern():
            return _has_attrs(pattern.attrs, expr) and _matches(pattern.pattern, expr, bound, trail)
        case pt.DataTypePattern():
            ty = expr.checked_type
            fits = isinstance(ty, TensorType) and ty.dtype == pattern.dtype
            return fits and _matches(pattern.pattern, expr, bound, trail)
        case pt.ShapePattern():
            ty = expr.checked_type
            fits = isinstance(ty, TensorType) and ty.shape == pattern.shape
            return fits and _matches(pattern.pattern, expr, bound, trail)
        case pt.TypePattern():
            return expr.checked_type == pattern.type and _matches(pattern.pattern, expr, bound, trail)
    raise AssertionError(f"{type(pattern).__name__} is no pattern")


def _matches_call(pattern: pt.CallPattern, call: Call, bound: dict[Any, Expr], trail: list) -> bool:
    if not _matches(pattern.op, call.op, bound, trail):
        return False
    if pattern.args is None:
        return True
    if _match_all(pattern.args, call.args, bound, trail):
        return True
    if isinstance(call.op, Op) and call.op.name in _COMMUTATIVE:
        return _match_all(pattern.args, call.args[::-1], bound, trail)
    return False


def _match_all(parts: tuple[pt.DFPattern, ...], exprs: tuple[Expr, ...], bound: dict[Any, Expr], trail: list) -> bool:
    if len(parts) != len(exprs):
        return False
    mark = len(trail)
    for part, expr in zip(parts, exprs):
        if not _matches(part, expr, bound, trail):
            for done, _ in trail[mark:]:
                bound.pop(done, None)
            del trail[mark:]
            return False
    return True


def _open_ends(part: pt.DFPattern, node: Expr) -> tuple[Expr, ...]:
    """What stands under a matched node where the pattern leaves it open."""
    if isinstance(part, pt.CallPattern) and part.args is None and isinstance(node, Call):
        return node.args
    if isinstance(part, pt.TuplePattern) and part.fields is None and isinstance(node, Tuple):
        return node.fields
    return ()


def _same_expr(wanted: Expr, expr: Expr) -> bool:
    if wanted is expr:
        return True
    if isinstance(wanted, Constant) and isinstance(expr, Constant):
        return wanted.dtype == expr.dtype and np.array_equal(wanted.data, expr.data)
    return isinstance(wanted, Op) and isinstance(expr, Op) and wanted.name == expr.name


def _has_attrs(wanted: dict[str, Any], expr: Expr) -> bool:
    if isinstance(expr, Function):
        return all(key in expr.attrs and _same_value(expr.attrs[key], value) for key, value in wanted.items())
    if not isinstance(expr, Call):
        return False
    attrs = expr.attrs
    return all(hasattr(attrs, key) and _same_value(getattr(attrs, key), value) for key, value in wanted.items())


def _same_value(have: Any, want: Any) -> bool:
    if isinstance(have, (list, tuple)) and isinstance(want, (list, tuple)):
        return len(have) == len(want) and all(_same_value(a, b) for a, b in zip(have, want))
    return bool(have == want)
