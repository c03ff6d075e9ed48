"""Loops of a known number of turns: each is one operator, whose body is a program of its own.

Such a loop is a function that calls itself last, while a counter is less than a limit. A parameter that grows by a row in each
turn becomes a tensor of all rows. What a turn does not change is computed before the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.backends.cpu.external import OpaqueOp
from relaylang.ir import Call, Constant, Expr, Function, If, Let, TensorType, Tuple, TupleType, Type, Var, children, post_order
from relaylang.ir.typed import retype, typed, typed_tuple, typed_var
from relaylang.ir.visit import free_vars, rebuild
from relaylang.ops.record import Op

#: A loop of fewer turns is written out; one of more is no operator.
LEAST, MOST = 3, 1 << 30


class LoopOp(OpaqueOp):
    """The operator of a loop: its operands are the first states, and values that the body reads besides.

    `body` takes the turn, the states and the other values. It gives the next states, and tensors of rows.
    The operator's result has the last states, and all rows of each.
    """

    __slots__ = ("body", "first", "states", "turns")
    body: Function
    first: Constant
    states: int
    turns: int

    @property
    def rows(self) -> list[TensorType]:
        """The types of the rows of a turn."""
        result = self.body.body.checked_type
        assert isinstance(result, TupleType)
        return [ty for ty in result.fields[self.states :] if isinstance(ty, TensorType)]

    def __init__(self, body: Function, first: Constant, states: int, turns: int, number: int) -> None:
        result = body.body.checked_type
        assert isinstance(result, TupleType)
        types: list[Type] = list(result.fields[:states])
        for ty in result.fields[states:]:
            assert isinstance(ty, TensorType)
            types.append(TensorType((turns * ty.shape[0], *ty.shape[1:]), ty.dtype))  # type: ignore[operator]
        super().__init__(f"loop {number}", len(body.params) - 1, TupleType(types))
        for name, value in (("body", body), ("first", first), ("states", states), ("turns", turns)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Form:
    """The parts of a function that is such a loop.

    `turn` is the place of the counter among its parameters. No turn changes the bound `limit`. `again` is the call of the
    next turn, behind `lets`. `states` are the places of the parameters that change, `rows` those that grow, each with its new
    rows. `true` are the places of conditions that stay true.
    """

    turn: int
    limit: Expr
    lets: Sequence[tuple[Var, Expr]]
    again: Call
    states: Sequence[int]
    rows: Mapping[int, Expr]
    true: Sequence[int]
    end: Expr


def called(expr: Expr, name: str) -> Sequence[Expr]:
    return expr.args if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name else ()


def form_of(function: Function) -> Form | None:
    """The form of a function that is a counted loop; None for others."""
    if not isinstance(function.body, If) or function.type_params:
        return None
    params, body = list(function.params), function.body
    places = {param: n for n, param in enumerate(params)}
    counter = _counter(body.cond, places)
    if counter is None:
        return None
    turn, limit, true = counter
    lets, node = [], body.true_branch
    while isinstance(node, Let):
        lets.append((node.variable, node.value))
        node = node.body
    if not isinstance(node, Call) or isinstance(node.op, Op) or len(node.args) != len(params):
        return None
    bound = dict(lets)
    after = [bound.get(x, x) if isinstance(x, Var) else x for x in node.args]
    changed = {param for param, value in zip(params, after) if value is not param}
    if changed & set(free_vars(limit)) or not _one_more(after[turn], params[turn]):
        return None
    if not all(after[n] is params[n] or _is_true(after[n]) for n in true):
        return None
    users: dict[int, list[Expr]] = {}
    for inner in post_order(body.true_branch):
        for child in children(inner):
            users.setdefault(id(child), []).append(inner)
    rows = {n: row for n, param in enumerate(params) if (row := _row(after[n], param, users)) is not None}
    states = [n for n, param in enumerate(params) if n != turn and n not in rows and n not in true and after[n] is not param]
    grown = [after[n] for n in rows]
    lets = [(variable, value) for variable, value in lets if not any(value is x for x in grown)]
    return Form(turn, limit, lets, node, states, rows, true, body.false_branch)


def _counter(cond: Expr, places: Mapping[Var, int]) -> tuple[int, Expr, list[int]] | None:
    """The place of the counter in a loop's condition, its limit, and the places of conditions that hold besides."""
    terms, true, counted = [cond], [], []
    while terms:
        term = terms.pop()
        if parts := called(term, "logical_and"):
            terms += parts
        elif isinstance(term, Var) and term in places:
            true.append(places[term])
        else:
            counted.append(called(term, "less"))
    if len(counted) != 1 or len(counted[0]) != 2 or not isinstance(counted[0][0], Var) or counted[0][0] not in places:
        return None
    return places[counted[0][0]], counted[0][1], true


def begins(form: Form, values: Sequence[Any]) -> bool:
    """Whether a loop can begin with these values: states that are tensors, no rows, and true conditions."""
    grown = [values[n] for n in form.rows]
    empty = all(isinstance(v, Expr) and isinstance(v.checked_type, TensorType) and v.checked_type.shape[0] == 0 for v in grown)
    true = all(isinstance(values[n], Expr) and _is_true(values[n]) for n in form.true)
    return empty and true and all(isinstance(values[n], Expr) and isinstance(values[n].checked_type, TensorType) for n in form.states)


def _one_more(after: Expr, turn: Var) -> bool:
    parts = called(after, "add")
    return len(parts) == 2 and parts[0] is turn and isinstance(parts[1], Constant) and parts[1].data.ndim == 0 and parts[1].data == 1


def _is_true(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.dtype == "bool" and expr.data.ndim == 0 and bool(expr.data)


def _row(after: Expr, param: Var, users: Mapping[int, Sequence[Expr]]) -> Expr | None:
    """The rows that a turn puts behind those of a parameter, which nothing else uses; None for other parameters."""
    parts = called(after, "concatenate")
    attrs: Any = after.attrs if parts else None  # type: ignore[attr-defined]
    if not parts or attrs.axis != 0 or not isinstance(parts[0], Tuple) or len(parts[0].fields) != 2 or parts[0].fields[0] is not param:
        return None
    lone = len(users.get(id(param), ())) == len(users.get(id(parts[0]), ())) == len(users.get(id(after), ())) == 1
    return parts[0].fields[1] if lone else None


def is_static(ty: Any) -> bool:
    return isinstance(ty, TensorType) and all(isinstance(d, int) for d in ty.shape)


class Fixed:
    """Which values depend on constants and bound parameters alone."""

    def __init__(self, bound: frozenset[str]) -> None:
        self.bound = bound
        self._known: dict[int, bool] = {}
        self._kept: list[Expr] = []

    def __call__(self, expr: Expr) -> bool:
        stack = [expr]
        while stack:
            node = stack[-1]
            if id(node) in self._known:
                stack.pop()
                continue
            inner = children(node)
            waiting = [child for child in inner if id(child) not in self._known]
            if waiting and not isinstance(node, (Function, If)):
                stack += waiting
                continue
            stack.pop()
            self._kept.append(node)
            match node:
                case Constant():
                    is_fixed = True
                case Op():
                    is_fixed = not node.stateful and not isinstance(node, OpaqueOp)
                case Var(name):
                    is_fixed = name in self.bound
                case Function() | If():
                    is_fixed = False
                case _:
                    is_fixed = all(self._known[id(child)] for child in inner)
            self._known[id(node)] = is_fixed
        return self._known[id(expr)]


def loop_call(
    turn: Var,
    first: Constant,
    turns: int,
    states: Mapping[Var, Expr],
    results: Sequence[Expr],
    fresh: set[int],
    fixed: Fixed,
    number: int,
) -> Call | None:
    """The call of a loop whose turn gives `results` of a turn and of states; None where a type is not known.

    `fresh` are the nodes of one turn, by id. `states` has the first value of each. `number` tells loops apart.
    """
    own = {id(turn), *map(id, states)}
    depends: dict[int, bool] = {}
    order: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(x, False) for x in reversed(results)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
            depends[id(node)] = any(depends[id(child)] for child in children(node))
        elif id(node) not in depends:
            inside = id(node) in fresh and not isinstance(node, (Var, Constant, Op))
            depends[id(node)] = id(node) in own
            if inside:
                stack.append((node, True))
                stack += [(child, False) for child in reversed(children(node))]
    others: dict[int, tuple[Var, Expr]] = {}
    done: dict[int, Expr] = {}

    def taken(node: Expr) -> Expr:
        if id(node) in own or isinstance(node, (Constant, Op)) or fixed(node):
            return node
        if id(node) not in others:
            others[id(node)] = typed_var(f"(x{len(others)})", node.checked_type), node
        return others[id(node)][0]

    for node in order:
        if depends[id(node)]:
            done[id(node)] = retype(rebuild(node, tuple([done.get(id(c)) or taken(c) for c in children(node)])), node)
    body = typed_tuple([done.get(id(x)) or taken(x) for x in results])
    initial = [value for _, value in others.values()]
    if not all(is_static(x.checked_type) for x in (*initial, *body.fields)):
        return None
    params = [turn, *states, *(var for var, _ in others.values())]
    bound = [var for var in free_vars(body) if var not in params]
    op = LoopOp(Function([*params, *bound], body), first, len(states), turns, number)
    call = Call(op, [*states.values(), *initial, *bound])
    return typed(call, op.result)


def whole_number(value: Any) -> int | None:
    """The value of a constant scalar of whole numbers; None for other values."""
    known = isinstance(value, Constant) and value.data.ndim == 0 and value.dtype in ("int32", "int64")
    return int(np.asarray(value.data)) if known else None


__all__ = ["LEAST", "MOST", "Fixed", "Form", "LoopOp", "begins", "form_of", "is_static", "loop_call", "whole_number"]
