"""Loops as recursive functions, the form that Relay has for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylang.frontends.common.builder import Builder, joined
from relaylang.frontends.common.report import Unsupported
from relaylang.ir import Call, Expr, FuncType, Let, TupleType, Type, Var, type_text
from relaylang.ir.typed import typed

#: The types of loop variables settle after few rounds: each round turns extents to `?`.
_ROUNDS = 8


def while_loop(
    b: Builder,
    cond: Callable[[list[Expr]], Expr],
    body: Callable[[list[Expr]], Sequence[Expr]],
    initial: Sequence[Expr],
    names: Sequence[str] = (),
    name: str = "while_loop",
) -> list[Expr]:
    """The values of the loop variables behind `while cond(*vars): vars = body(*vars)`.

    `cond` gives a bool scalar. Where an extent of a variable changes from turn to turn, it is `?` in the variable's type.
    The loop is a local function that calls itself last; it uses values of the program around it freely.
    """
    types: list[Type] = [_type(x) for x in initial]
    named = list(names) + [f"v{i}" for i in range(len(names), len(types))]
    for _ in range(_ROUNDS):
        variables = [b.variable(n, t) for n, t in zip(named, types)]
        test, after = cond(list(variables)), list(body(list(variables)))
        wider = [joined(t, _type(x)) for t, x in zip(types, after)]
        for n, t, w, x in zip(named, types, wider, after):
            if w is None:
                raise Unsupported(f"the loop variable {n} has the type `{type_text(t)}`, then `{type_text(_type(x))}`")
        if wider == types:
            return _loop(b, variables, test, after, initial, name)
        types = [w for w in wider if w is not None]
    raise Unsupported("the types of its loop variables do not settle")


def _loop(
    b: Builder, variables: list[Var], test: Expr, after: list[Expr], initial: Sequence[Expr], name: str
) -> list[Expr]:
    types = [_type(v) for v in variables]
    result = TupleType(types)
    loop = b.variable(name, FuncType(types, result))
    again = typed(Call(loop, after, None, (), b.span), result)
    function = b.function(variables, b.if_(test, again, b.tuple(variables)))
    whole = typed(Let(loop, function, typed(Call(loop, list(initial), None, (), b.span), result), b.span), result)
    return [b.field(whole, i) for i in range(len(variables))]


def _type(x: Expr) -> Type:
    assert x.checked_type is not None
    return x.checked_type


__all__ = ["while_loop"]
