"""Loops and conditionals over tensors, lists and handles of variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Unsupported
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.recurrent import UNROLLED
from relaylang.frontends.tensorflow.items import Items, of_tensor, stacked
from relaylang.ir import Expr

#: What a turn gives for the variables before it.
Turn = Callable[[list[Any]], list[Any]]


def loop(b: Builder, test: Callable[[list[Any]], Any], turn: Turn, first: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The variables behind `while test(*vars): vars = turn(*vars)`. A loop of few known turns is written out.

    Tensors and lists are loop variables; other values must stay the same.
    """
    written = _written_out(b, test, turn, list(first))
    if written is not None:
        return written
    start = _with_shapes(b, turn, list(first))
    at = [i for i, x in enumerate(start) if isinstance(x, (Expr, Items))]

    def filled(values: Sequence[Expr]) -> list[Any]:
        variables = list(start)
        for i, x in zip(at, values):
            item = start[i]
            variables[i] = replace(of_tensor(b, x), grows=item.grows) if isinstance(item, Items) else x
        return variables

    def body(values: list[Expr]) -> list[Expr]:
        variables = filled(values)
        results = turn(variables)
        for i, (x, y) in enumerate(zip(variables, results, strict=True)):
            if i not in at and x is not y:
                raise Unsupported("its body gives another variable or text for a loop variable")
        return [_tensor(b, results[i]) for i in at]

    def cond(values: list[Expr]) -> Expr:
        return b.scalar(_tensor(b, test(filled(values))))

    return filled(while_loop(b, cond, body, [_tensor(b, start[i]) for i in at], [_name(names[i]) for i in at]))


def _name(text: str) -> str:
    return text.rpartition("/")[2] or "v"


def _tensor(b: Builder, x: Any) -> Expr:
    if isinstance(x, Items):
        return stacked(b, x) if x.whole is None else x.whole
    if not isinstance(x, Expr):
        raise Unsupported("a variable or a text takes the place of a tensor")
    return x


def _written_out(b: Builder, test: Callable[[list[Any]], Any], turn: Turn, values: list[Any]) -> list[Any] | None:
    """The results of a loop whose condition is known in each of a few turns; None for other loops."""
    for _ in range(UNROLLED + 1):
        known = b.value(test(values))
        if known is None:
            return None
        if known.size != 1:
            raise Malformed(f"its condition has {known.size} elements")
        if not known.item():
            return values
        values = turn(values)
    return None


def _is_open(x: Any) -> bool:
    """Whether a list needs values before its elements have a known shape."""
    return (
        isinstance(x, Items)
        and x.whole is None
        and (x.shape is None or not all(isinstance(d, int) for d in x.shape))
        and not (x.rows and all(r is not None for r in x.rows))
    )


def _with_shapes(b: Builder, turn: Turn, values: list[Any]) -> list[Any]:
    """The variables, lists with the shapes of the elements that the first turn writes."""
    if not any(map(_is_open, values)):
        return values
    variables = [b.variable("first", x.checked_type) if isinstance(x, Expr) and x.checked_type is not None else x for x in values]
    results = turn(variables)
    return [replace(x, shape=y.shape) if _is_open(x) and isinstance(y, Items) else x for x, y in zip(values, results, strict=True)]


def choice(b: Builder, cond: Expr, then: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """The results of one of two branches. Values other than tensors and lists must be the same in both."""
    if len(then) != len(other):
        raise Malformed(f"its branches have {len(then)} and {len(other)} results")
    at = [i for i, (x, y) in enumerate(zip(then, other)) if x is not y]
    results = list(then)
    pairs = [(_tensor(b, then[i]), _tensor(b, other[i])) for i in at]
    if len(at) == 1:
        merged = [b.if_(cond, *pairs[0])]
    elif at:
        merged = b.fields(b.if_(cond, b.tuple([x for x, _ in pairs]), b.tuple([y for _, y in pairs])))
    else:
        merged = []
    for i, x in zip(at, merged):
        results[i] = of_tensor(b, x) if isinstance(then[i], Items) else x
    return results


__all__ = ["choice", "loop"]
