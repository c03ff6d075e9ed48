"""Control flow: `_cond`, `_foreach` and `_while_loop`, whose graphs are inside of the layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common.loops import no_rows, scan, while_loop
from relaylang.frontends.mxnet.node import Node
from relaylang.frontends.mxnet.reader import Symbol
from relaylang.ir import Expr


def _graphs(n: Node, count: int) -> list[Symbol]:
    if len(n.graphs) != count:
        raise Malformed(f"it has {len(n.graphs)} graphs inside; it must have {count}")
    return n.graphs


def _chosen(n: Node, name: str, values: Sequence[Any]) -> list[Any]:
    """The operands that an attribute lists by their places."""
    places = n.ints(name, [])
    if any(not 0 <= i < len(values) for i in places):
        raise Malformed(f"the attribute {name} is {places}, and the layer has {len(values)} operands")
    return [values[i] for i in places]


def _test(b: Builder, x: Expr) -> Expr:
    """A condition as a bool scalar."""
    return b.op("not_equal", b.scalar(x), b.const(0, b.dtype(x)))


def cond(n: Node, *xs: Expr) -> Any:
    """The results of one graph or another. The operands begin with those of the condition's graph."""
    graphs = _graphs(n, 3)
    names = ("cond_input_locs", "then_input_locs", "else_input_locs")
    test, then, other = (n.importer.convert_body(n, g, _chosen(n, name, xs)) for g, name in zip(graphs, names))
    if len(then) != len(other) or len(test) != 1:
        raise Malformed(f"its branches have {len(then)} and {len(other)} results")
    b = n.b
    branch = b.if_(_test(b, test[0]), b.tuple(then), b.tuple(other))
    return b.fields(branch)


def foreach(n: Node, *xs: Expr) -> Any:
    """A graph for each slice of some operands; its first results are stacked, and the others go on to the next slice."""
    b, (body,) = n.b, _graphs(n, 1)
    count, data, states = n.int("num_out_data"), n.ints("in_data_locs", []), n.ints("in_state_locs", [])
    rest = n.ints("remain_locs", [])
    places = [*data, *states, *rest]
    if sorted(places) != list(range(len(xs))) or len(body.variables) != len(xs) or len(body.heads) != count + len(states):
        raise Malformed(f"its graph has {len(body.variables)} operands and {len(body.heads)} results, which do not fit its own")
    sequences, first, fixed = xs[: len(data)], xs[len(data) : len(data) + len(states)], xs[len(data) + len(states) :]

    def turn(values: list[Expr]) -> Sequence[Expr]:
        now, parts = values[: len(states)], values[len(states) :]
        operands = dict(zip(places, [*parts, *now, *fixed]))
        results = n.importer.convert_body(n, body, [operands[i] for i in range(len(xs))])
        return [*results[count:], *results[:count]]

    results = scan(b, turn, list(first), list(sequences), [0] * len(sequences))
    return [*results[len(states) :], *results[: len(states)]]


def while_(n: Node, *xs: Expr) -> Any:
    """A graph as long as another one says, at most `max_iterations` times. Rows beyond its turns are 0."""
    b, (test, body) = n.b, _graphs(n, 2)
    count, most = n.int("num_out_data"), n.int("max_iterations")
    variables = n.ints("func_var_locs", [])
    tested, used = n.ints("cond_input_locs", []), n.ints("func_input_locs", [])
    if most < 1 or len(body.heads) != count + len(variables) or any(not 0 <= i < len(used) for i in variables):
        raise Malformed(f"its graph has {len(body.heads)} results for {count} rows and {len(variables)} variables")
    if any(not 0 <= i < len(xs) for i in (*tested, *used)):
        raise Malformed(f"its graphs use operands beyond the {len(xs)} of the layer")
    places = [used[i] for i in variables]

    def operands(values: Sequence[Expr], wanted: Sequence[int]) -> list[Expr]:
        now = dict(zip(places, values))
        return [now.get(i, xs[i]) for i in wanted]

    def turn(values: Sequence[Expr]) -> list[Any]:
        results: list[Any] = n.importer.convert_body(n, body, operands(values, used))
        return results

    first = [xs[i] for i in places]
    shapes = [b.variable(f"v{i}", x.checked_type) for i, x in enumerate(first) if x.checked_type is not None]
    empty = [no_rows(b, row) for row in turn(shapes)[:count]]
    size = len(places)

    def condition(v: list[Expr]) -> Expr:
        more = n.importer.convert_body(n, test, operands(v[1 : 1 + size], tested))
        return b.op("logical_and", b.op("less", v[0], b.const(most, "int64")), _test(b, more[0]))

    def step(v: list[Expr]) -> list[Expr]:
        results = turn(v[1 : 1 + size])
        grown = [b.concat([rows, b.unsqueeze(row, [0])], 0) for rows, row in zip(v[1 + size :], results[:count])]
        return [b.op("add", v[0], b.const(1, "int64")), *results[count:], *grown]

    names = ["turn", *[f"v{i}" for i in range(size)], *[f"rows{i}" for i in range(count)]]
    results = while_loop(b, condition, step, [b.const(0, "int64"), *first, *empty], names, "while_loop")
    return [*[_filled(b, rows, most) for rows in results[1 + size :]], *results[1 : 1 + size]]


def _filled(b: Builder, rows: Expr, most: int) -> Expr:
    """Rows, and zeros after them, `most` in all."""
    shape = b.shape(rows)
    if not all(isinstance(d, int) for d in shape[1:]):
        raise Unsupported("its rows have unknown extents; --shape gives them")
    ends = [int(d) for d in shape[1:] if isinstance(d, int)]
    zeros = b.const(b.arrays.zeros([most, *ends], np.dtype(b.dtype(rows))))
    padded = b.slice(b.concat([rows, zeros], 0), [0], [most], [0])
    return b.refine(padded, [most, *ends])


RULES = (
    Rule("_cond", cond),
    Rule("_foreach", foreach),
    Rule("_while_loop", while_),
)
