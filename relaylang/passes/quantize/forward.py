"""The walk of automatic quantisation: rules see what their operands became, before it is an expression again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from relaylang.ir import Call, Expr, Function, Tuple, TupleGetItem, children, post_order, rebuild
from relaylang.ir.typed import forget_stale_types, retype
from relaylang.ops.record import Op
from relaylang.rules.quantization.common import Mark, Rules, Value, plain

#: `(operator, call, what its operands became)` to what a call becomes; None where its operands are plain expressions.
Forward = Callable[[Op, Call, list[Value]], Value]


def forward(func: Function, change: Forward, shared: Callable[[Mark], Mark] | None = None) -> Function:
    """A function whose calls of operators are changed, operands first. Types are forgotten where they may have changed.

    `shared` is asked about a marked value with several users, for each of them.
    """
    order = list(post_order(func))
    users = Counter(id(child) for node in order for child in children(node)) if shared is not None else {}
    done: dict[int, Value] = {}
    exprs: dict[int, Expr] = {}

    def operand(child: Expr) -> Value:
        value = done[id(child)]
        return shared(value) if shared is not None and isinstance(value, Mark) and users[id(child)] > 1 else value

    def expr_of(child: Expr) -> Expr:
        if id(child) not in exprs:
            exprs[id(child)] = plain(operand(child))
        return exprs[id(child)]

    for node in order:
        value: Value = None
        if isinstance(node, Call) and isinstance(node.op, Op):
            value = change(node.op, node, [operand(a) for a in node.args])
        elif isinstance(node, Tuple):
            fields = tuple([operand(f) for f in node.fields])
            value = fields if any([isinstance(f, (Mark, tuple)) for f in fields]) else None
        elif isinstance(node, TupleGetItem) and isinstance(done[id(node.tuple_value)], tuple):
            value = done[id(node.tuple_value)][node.index]
        done[id(node)] = retype(rebuild(node, tuple(map(expr_of, children(node)))), node) if value is None else value
    rewritten = forget_stale_types(done[id(func)])
    assert isinstance(rewritten, Function)
    return rewritten


def by_table(rules: Rules, state: Any) -> Forward:
    """The change that the rules of a table make."""

    def change(op: Op, call: Call, args: list[Value]) -> Value:
        rule = rules.get(op.name)
        return rule(call, args, state) if rule is not None else None

    return change
