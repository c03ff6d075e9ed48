"""Loops as recursive functions, the form that Relay has for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.invariants import invariants
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.shapes import joined
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
    The loop is a local function that calls itself last. What its turns do not change is bound before it.
    """
    before = len(b.reached)
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
            return _loop(b, variables, test, after, initial, name, before)
        types = [w for w in wider if w is not None]
    raise Unsupported("the types of its loop variables do not settle")


def _loop(
    b: Builder, variables: list[Var], test: Expr, after: list[Expr], initial: Sequence[Expr], name: str, before: int
) -> list[Expr]:
    bound, (test, *after) = invariants(b, variables, [test, *after], before)
    types = [_type(v) for v in variables]
    result = TupleType(types)
    loop = b.variable(name, FuncType(types, result))
    again = typed(Call(loop, after, None, (), b.span), result)
    function = b.function(variables, b.if_(test, again, b.tuple(variables)))
    expression = typed(Let(loop, function, typed(Call(loop, list(initial), None, (), b.span), result), b.span), result)
    for variable, value in reversed(bound):
        expression = typed(Let(variable, value, expression, b.span), result)
    return [b.field(expression, i) for i in range(len(variables))]


#: A scan of so few turns is written out turn by turn.
_UNROLLED = 8


def no_rows(b: Builder, x: Expr) -> Expr:
    """A stack of tensors of this type that is empty yet."""
    shape = [int(d) if isinstance(d, int) else 0 for d in b.shape(x)]
    return b.const(b.arrays.zeros([0, *shape], np.dtype(b.dtype(x))))


def scan(
    b: Builder,
    body: Callable[[list[Expr]], Sequence[Expr]],
    state: Sequence[Expr],
    given: Sequence[Expr],
    axes: Sequence[int],
    names: Sequence[str] = (),
) -> list[Expr]:
    """The last state, and a stack of what each turn gives besides.

    `body` takes the state and a slice of each tensor along its axis. It gives the next state and any further tensors.
    """
    if not given:
        raise Malformed("it goes over no tensor")
    count, length = len(state), b.shape(given[0])[axes[0]]

    def parts(turn: Expr) -> list[Expr]:
        return [b.op("take", x, turn, axis=a) for x, a in zip(given, axes)]

    if isinstance(length, int) and 0 < length <= _UNROLLED:
        stacks: list[list[Expr]] = []
        now = list(state)
        for turn in range(int(length)):
            results = body([*now, *parts(b.const(turn, "int64"))])
            now = list(results[:count])
            stacks.append(list(results[count:]))
        return [*now, *(b.op("stack", b.tuple(row), axis=0) for row in zip(*stacks))]
    trips = b.scalar(b.slice(b.shape_of(given[0]), [axes[0]], [axes[0] + 1], [0]))
    shapes = [b.variable(f"state{i}", _type(x)) for i, x in enumerate(state)]
    first = body([*shapes, *parts(b.const(0, "int64"))])
    empty = [no_rows(b, x) for x in first[count:]]

    def turn_of(v: list[Expr]) -> list[Expr]:
        results = body([*v[1 : 1 + count], *parts(v[0])])
        rows = zip(v[1 + count :], results[count:])
        grown = [b.op("concatenate", b.tuple([all_, b.unsqueeze(x, [0])]), axis=0) for all_, x in rows]
        return [b.op("add", v[0], b.const(1, "int64")), *results[:count], *grown]

    named = ["turn", *(names or [f"state{i}" for i in range(count)]), *[f"rows{i}" for i in range(len(empty))]]
    last = while_loop(b, lambda v: b.op("less", v[0], trips), turn_of, [b.const(0, "int64"), *state, *empty], named, "scan")
    known = int(length) if isinstance(length, int) else None
    rows = [b.refine(x, [known, *[None] * (b.rank(x) - 1)]) for x in last[1 + count :]]
    return [*last[1 : 1 + count], *rows]


def _type(x: Expr) -> Type:
    assert x.checked_type is not None
    return x.checked_type


__all__ = ["no_rows", "scan", "while_loop"]
