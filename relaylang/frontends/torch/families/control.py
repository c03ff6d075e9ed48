"""Operators whose arguments are graphs: conditionals become `if`, loops become recursive functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported, loops
from relaylang.frontends.torch.node import Node
from relaylang.frontends.torch.pt2 import Graph
from relaylang.ir import Expr


def _listed(value: Any) -> list[Any]:
    """Operands that are given as one value, or as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _exprs(n: Node, values: list[Any]) -> list[Expr]:
    return [v if isinstance(v, Expr) else n.b.const(v) for v in values]


def cond(n: Node) -> Any:
    """A condition that is known leaves one branch."""
    b, test, operands = n.b, n.get("0"), _listed(n.get("3"))
    known = b.value(test) if isinstance(test, Expr) else test
    if known is not None:
        return n.body("1" if bool(known) else "2", operands)
    then, other = n.tensors("1", operands), n.tensors("2", operands)
    if len(then) != len(other) or not then:
        raise Unsupported("its branches give different numbers of tensors")
    test = b.scalar(b.cast(test, "bool"))
    if len(then) == 1:
        return [b.if_(test, then[0], other[0])]
    return b.fields(b.if_(test, b.tuple(then), b.tuple(other)))


def while_loop(n: Node) -> Any:
    """Further operands stay the same in all turns."""
    b, carried, more = n.b, _exprs(n, _listed(n.get("2"))), _listed(n.get("3"))

    def test(v: list[Expr]) -> Expr:
        return b.scalar(b.cast(n.tensors("0", [*v, *more])[0], "bool"))

    return loops.while_loop(b, test, lambda v: n.tensors("1", [*v, *more]), carried)


def scan(n: Node) -> Any:
    """Over the first axis of tensors, with a state."""
    state, rows, more = (_listed(n.get(name)) for name in ("1", "2", "3"))
    return loops.scan(n.b, lambda v: n.tensors("0", [*v, *more]), _exprs(n, state), rows, [0] * len(rows))


def associative_scan(n: Node) -> Any:
    """The combination of all rows up to each: the turns are done one after the other."""
    b, rows, more = n.b, _listed(n.get("1")), _listed(n.get("2"))
    if not rows:
        raise Malformed("it goes over no tensor")
    first = [b.slice(x, [0], [1], [0]) for x in rows]
    rest = [b.slice(x, [1], [(1 << 31) - 1], [0]) for x in rows]
    if b.shape(rest[0])[0] == 0:
        return rows

    def turn(v: list[Expr]) -> list[Expr]:
        combined = n.tensors("0", [*v, *more])
        return [*combined, *combined]

    scanned = loops.scan(b, turn, [b.squeeze(x, [0]) for x in first], rest, [0] * len(rest))
    return [b.op("concatenate", b.tuple([x, rows]), axis=0) for x, rows in zip(first, scanned[len(rows) :])]


def map_(n: Node) -> Any:
    """A graph for each row of tensors; it has no state."""
    rows, more = _listed(n.get("1")), _listed(n.get("2"))
    return loops.scan(n.b, lambda v: n.tensors("0", [*v, *more]), [], rows, [0] * len(rows))


def inline(n: Node) -> Any:
    """A graph that stands for itself: its operands are the arguments behind it."""
    names = list(n.call.args)
    graphs = [name for name in names if isinstance(n.call.args[name], Graph)]
    if len(graphs) != 1:
        raise Unsupported("it has several graphs")
    operands: list[Any] = []
    for name in names[names.index(graphs[0]) + 1 :]:
        value = n.get(name)
        if name.isdigit() and not isinstance(value, (str, dict)):
            operands += _listed(value)
    return n.body(graphs[0], operands)


_INLINE = (
    "wrap",
    "wrap_with_set_grad_enabled",
    "wrap_with_autocast",
    "wrap_activation_checkpoint",
    "tag_activation_checkpoint",
    "invoke_subgraph",
    "hints_wrapper",
)
_CONTROL: dict[str, Callable[[Node], Any]] = {
    "cond": cond,
    "while_loop": while_loop,
    "scan": scan,
    "associative_scan": associative_scan,
    "map_impl": map_,
}

RULES = (
    *(Rule(f"higher_order.{name}", convert) for name, convert in _CONTROL.items()),
    *(Rule(f"higher_order.{name}", inline) for name in _INLINE),
)
