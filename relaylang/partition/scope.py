"""The scope of partitioning: the outermost dataflow of a function.

Nodes inside branches, match arms and nested functions are not touched; a value that these use counts as used outside.
"""

from __future__ import annotations

from collections.abc import Callable

from relaylang.ir import (
    Call,
    Expr,
    Function,
    If,
    Let,
    Match,
    children,
    post_order,
)
from relaylang.ops.record import Op
from relaylang.partition.lets import is_closed


def scope_nodes(body: Expr) -> list[Expr]:
    """The nodes of the outermost scope, each once, what a node waits for (`dependencies`) before it."""
    here = {id(node) for node in _ordered(body, _here)}
    return _ordered(body, lambda node: tuple([n for n in dependencies(node, here) if id(n) in here]))


def _ordered(body: Expr, before: Callable[[Expr], tuple[Expr, ...]]) -> list[Expr]:
    """Depth first: each node behind those that `before` names."""
    done: set[int] = set()
    order: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(body, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
            continue
        if id(node) in done:
            continue
        done.add(id(node))
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(before(node)))
    return order


def _here(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Function():
            return ()
        case If():
            return (node.cond,)
        case Match():
            return (node.data,)
        case Let():
            return (node.value,)
        case Call(op=Op()):
            return node.args
    return children(node)


def dependencies(node: Expr, here: set[int]) -> tuple[Expr, ...]:
    """The nodes of the outermost scope (their ids are `here`) that a node of it waits for.

    For a branch, a match or a function these are also the values that its inner expressions use.
    """
    if isinstance(node, Call) and (isinstance(node.op, Op) or is_closed(node.op)):
        return node.args
    if not isinstance(node, (If, Match, Let, Function)):
        return children(node)
    if is_closed(node):
        return ()
    needed: list[Expr] = []
    seen: set[int] = set()
    stack: list[Expr] = list(children(node))
    while stack:
        inner = stack.pop()
        if id(inner) in seen:
            continue
        seen.add(id(inner))
        if id(inner) in here:
            needed.append(inner)
        else:
            stack.extend(children(inner))
    return tuple(needed)


def user_map(body: Expr) -> dict[int, list[Expr]]:
    """For each node (by id) the nodes that refer to it, in all scopes."""
    users: dict[int, list[Expr]] = {}
    for node in post_order(body):
        for child in children(node):
            users.setdefault(id(child), []).append(node)
    return users
