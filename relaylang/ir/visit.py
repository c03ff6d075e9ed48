"""Walks over expressions, none of which recurses on the program's depth."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from relaylang.ir.expr import (
    Call,
    Clause,
    Expr,
    Function,
    If,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    pattern_vars,
)

#: How a kind of node lists its children, in evaluation order; kinds that are not here have none.
#: The operator of a call comes last, as in TVM's printed order. Binders (parameters, let and pattern variables) are not
#: children.
_CHILDREN: dict[type, Callable[..., tuple[Expr, ...]]] = {
    Call: lambda e: (*e.args, e.op),
    Tuple: lambda e: e.fields,
    TupleGetItem: lambda e: (e.tuple_value,),
    Let: lambda e: (e.value, e.body),
    If: lambda e: (e.cond, e.true_branch, e.false_branch),
    Function: lambda e: (e.body,) if e.body is not None else (),
    Match: lambda e: (e.data, *(c.rhs for c in e.clauses)),
    RefCreate: lambda e: (e.value,),
    RefRead: lambda e: (e.ref,),
    RefWrite: lambda e: (e.ref, e.value),
}


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions that stand directly inside one, in evaluation order (a call's operator last)."""
    lister = _CHILDREN.get(type(expr))
    return lister(expr) if lister is not None else ()


#: On a stack of nodes: the one below it has had its children visited.
_READY: Any = object()


#: A walk: it yields the walks that it waits for, is sent what they return, and returns its own result.
Walk = Generator["Walk", Any, Any]


def walk(first: Walk) -> Any:
    """Run a walk and those that it yields, to any depth."""
    stack = [first]
    value: Any = None
    while stack:
        try:
            inner = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
        else:
            stack.append(inner)
            value = None
    return value


def post_order(expr: Expr) -> Iterator[Expr]:
    """Every node once, children before their parents, from left to right; variables and operators included."""
    done: set[int] = set()
    stack: list[Expr] = [expr]
    listers = _CHILDREN
    while stack:
        node = stack.pop()
        if node is _READY:
            yield stack.pop()
            continue
        key = id(node)
        if key in done:
            continue
        done.add(key)
        if type(node) is Call:  # most nodes of most programs
            stack += (node, _READY)
            if id(node.op) not in done:
                stack.append(node.op)
            stack += node.args[::-1]
            continue
        lister = listers.get(type(node))
        if lister is None:
            yield node
            continue
        stack += (node, _READY)
        stack += lister(node)[::-1]


def visit_order(expr: Expr) -> Iterator[Expr]:
    """Every node once, in the order in which TVM's visitors finish them.

    It is `post_order` with three differences. A call's operator comes before its operands, and parameters before the body.
    A let's variable comes between its value and its body.
    """
    done: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
            continue
        if id(node) in done:
            continue
        done.add(id(node))
        stack.append((node, True))
        inner = children(node)
        if isinstance(node, Call):
            inner = (node.op, *node.args)
        elif isinstance(node, Function):
            inner = (*node.params, *inner)
        elif isinstance(node, Let):
            inner = (node.value, node.variable, node.body)
        stack += [(child, False) for child in reversed(inner)]


def post_order_visit(expr: Expr, fvisit: Callable[[Expr], None]) -> None:
    """Call `fvisit` on every node once, children first, in TVM's order (see `visit_order`)."""
    for node in visit_order(expr):
        fvisit(node)


def rebuild(node: Expr, new: tuple[Expr, ...]) -> Expr:
    """The node with other children, in the order of `children`; the node itself where all children are the same.

    A rebuilt node keeps its span; its type is left for the checker.
    """
    # Expressions are equal where they are the same one.
    if type(node) is Call:
        if new[-1] is node.op and new[:-1] == node.args:
            return node
        return Call(new[-1], new[:-1], node.attrs, node.type_args, node.span)
    if children(node) == new:
        return node
    match node:
        case Tuple():
            return Tuple(new, node.span)
        case TupleGetItem():
            return TupleGetItem(new[0], node.index, node.span)
        case Let():
            return Let(node.variable, new[0], new[1], node.span)
        case If():
            return If(new[0], new[1], new[2], node.span)
        case Function():
            return Function(node.params, new[0], node.ret_type, node.type_params, node.attrs, node.span)
        case Match():
            clauses = [Clause(c.lhs, rhs, c.span) for c, rhs in zip(node.clauses, new[1:])]
            return Match(new[0], clauses, node.complete, node.span)
        case RefCreate():
            return RefCreate(new[0], node.span)
        case RefRead():
            return RefRead(new[0], node.span)
        case RefWrite():
            return RefWrite(new[0], new[1], node.span)
    raise AssertionError(f"{type(node).__name__} has no children")


def rebuilt(node: Expr, done: Mapping[int, Expr]) -> Expr:
    """The node with each child replaced by its entry in `done`, by id; the node itself where none changes."""
    if type(node) is Call:
        args, op = tuple([done[id(a)] for a in node.args]), done[id(node.op)]
        if op is node.op and args == node.args:
            return node
        return Call(op, args, node.attrs, node.type_args, node.span)
    inner = children(node)
    return rebuild(node, tuple([done[id(c)] for c in inner])) if inner else node


def rewrite(expr: Expr, f: Callable[[Expr, Expr], Expr]) -> Expr:
    """Rebuild an expression bottom-up: `f(old, new)` gets each node and its copy with rewritten children.

    `f` returns the node's replacement. Each node is visited once, so sharing is kept. An unchanged node stays the same
    object, with its type. A new node has no checked type yet.
    """
    done: dict[int, Expr] = {}
    for node in post_order(expr):
        done[id(node)] = f(node, rebuilt(node, done))
    return done[id(expr)]


def substitute(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    """Replace variables. Binders are left as they are: a bound variable must not be among the keys."""
    if not mapping:
        return expr
    return rewrite(expr, lambda old, new: mapping.get(new, new) if isinstance(new, Var) else new)


bind = substitute


def _variables(expr: Expr) -> tuple[dict[Var, None], dict[Var, None]]:
    """All variables, and the bound ones, in the order of the text.

    A binder comes before its scope, and a call's operator before its operands.
    """
    variables: dict[Var, None] = {}
    bound: dict[Var, None] = {}
    seen: set[int] = set()
    stack: list[Expr | Clause] = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        kind = type(node)
        if kind is Var:
            variables[node] = None  # type: ignore[index]
            continue
        seen.add(id(node))
        new: Iterable[Var] = ()
        match node:
            case Call(op, args):
                stack += args[::-1]
                stack.append(op)
            case Let(variable, value, body):
                new = (variable,)
                stack += (body, value)
            case Function(params):
                new = params
                stack += children(node)
            case Match(data, clauses):
                stack += (*clauses[::-1], data)
            case Clause(lhs, rhs):
                new = pattern_vars(lhs)
                stack.append(rhs)
            case _:
                stack += children(node)[::-1]  # type: ignore[arg-type]
        for variable in new:
            variables[variable] = bound[variable] = None
    return variables, bound


def binders(node: Expr) -> Sequence[Var]:
    """The variables that a node itself binds: parameters, the variable of a let, those of a match's patterns."""
    match node:
        case Function():
            return node.params
        case Let():
            return (node.variable,)
        case Match():
            return [variable for clause in node.clauses for variable in pattern_vars(clause.lhs)]
    return ()


def bound_vars(expr: Expr) -> list[Var]:
    """The variables that parameters, lets and patterns inside the expression bind, each once, in program order."""
    return list(_variables(expr)[1])


def all_vars(expr: Expr) -> list[Var]:
    """Every variable that occurs or is bound, each once, in program order."""
    return list(_variables(expr)[0])


def free_vars(expr: Expr) -> list[Var]:
    """The variables that nothing inside the expression binds, in order of first occurrence.

    Variables are unique binders (by identity), so a variable that is bound somewhere inside is not free.
    """
    variables, bound = _variables(expr)
    return [variable for variable in variables if variable not in bound]


def node_count(expr: Expr) -> int:
    """How many different nodes an expression has."""
    return sum(1 for _ in post_order(expr))
