"""Lets and scopes as partitioning sees them.

A program in A-normal form partitions as its graph form does. First the values of lets without effects take the places
of their variables. Several uses of a variable share one node. Lets with effects stay. So do lets of recursive
functions. Lets that only a closure or a branch uses stay, too: their values would move into it.
"""

from __future__ import annotations

from collections.abc import Callable

from relaylang.ir import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Var,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.scopes import Scope, common
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.passes.effects import may_have_effects, pure_functions
from relaylang.passes.normal_forms.bindings import ATOMS
from relaylang.passes.normal_forms.to_graph_normal_form import recursive_variables

#: A function and its post-order -> the nodes, by id, that may have effects or hold such a node.
Effects = Callable[[Expr, "list[Expr]"], "set[int]"]


def is_closed(node: Expr) -> bool:
    """Whether a function is a composite or another compiler's, which refers to nothing but its parameters."""
    return isinstance(node, Function) and (
        node.body is None or any([key in node.attrs for key in ("Composite", "PartitionedFromPattern", "Compiler")])
    )


def places(node: Expr, here: Scope, open_lets: bool) -> list[tuple[Expr, Scope]]:
    """The operands of a node, each with its scope.

    Bodies of functions, branches and match arms have scopes of their own; with `open_lets`, so have those of lets.
    """
    if isinstance(node, Function):
        return [] if is_closed(node) else [(node.body, Scope(here))]
    if isinstance(node, If):
        return [(node.cond, here), (node.true_branch, Scope(here)), (node.false_branch, Scope(here))]
    if isinstance(node, Match):
        return [(node.data, here), *[(c.rhs, Scope(here)) for c in node.clauses]]
    if isinstance(node, Let):
        return [(node.value, here), (node.body, Scope(here) if open_lets else here)]
    return [(child, here) for child in children(node)]


def find_scopes(root: Expr, order: list[Expr], open_lets: bool) -> tuple[dict[int, Scope], dict[Scope, Expr], dict[Var, Scope]]:
    """The scope of each node but atoms, by id; each scope's opening node; the scope of each variable's uses.

    A node that several scopes share belongs to the innermost that holds them all. `order` is the post-order of `root`.
    """
    scopes: dict[int, Scope] = {id(root): Scope(None)}
    openers: dict[Scope, Expr] = {}
    used: dict[Var, Scope] = {}
    for node in reversed(order):
        here = scopes.get(id(node))
        if here is None:
            continue  # an atom, or inside of a composite
        for child, scope in places(node, here, open_lets):
            if scope is not here:
                openers[scope] = node
            if type(child) in ATOMS:
                if isinstance(child, Var):
                    known = used.get(child)
                    used[child] = scope if known is None else known if known is scope else common(known, scope)
                continue
            known = scopes.get(id(child))
            scopes[id(child)] = scope if known is None else known if known is scope else common(known, scope)
    return scopes, openers, used


_REFERENCES = (RefCreate, RefRead, RefWrite)


def is_simple(order: list[Expr]) -> bool:
    """Whether nodes cannot have effects: calls of operators without a state, of constructors and of composites."""
    for node in order:
        if type(node) is Call:
            op = node.op
            if not (isinstance(op, Constructor) or (isinstance(op, Op) and not op.stateful) or is_closed(op)):
                return False
        elif isinstance(node, _REFERENCES):
            return False
    return True


def effects_of(mod: IRModule) -> Effects:
    """A function that finds the nodes with effects, or around such nodes, by id. It takes a function's post-order.

    References, operators with a state, and functions not known to be pure have effects.
    """
    pure: list[frozenset[GlobalVar]] = []

    def effects(expr: Expr, order: list[Expr]) -> set[int]:
        if is_simple(order):
            return set()
        if not pure:
            pure.append(pure_functions(mod))
        effectful = may_have_effects(expr, pure[0])
        stateful = False
        for node in order:
            if isinstance(node, Call) and isinstance(node.op, Op) and node.op.stateful:
                effectful.add(id(node))
                stateful = True
            elif stateful and not isinstance(node, Function) and any([id(c) in effectful for c in children(node)]):
                effectful.add(id(node))
        return effectful

    return effects


def place_lets(func: Function, effects: Effects, order: list[Expr] | None = None) -> Function:
    """The function with its lets without effects put in place; itself where there are none. `order` is its post-order.

    Linear, and without recursion. Types stay.
    """
    order = list(post_order(func)) if order is None else order
    lets = [node for node in order if type(node) is Let]
    if not lets:
        return func
    impure = effects(func, order)
    recursive = recursive_variables(func) if any([isinstance(node.value, Function) for node in lets]) else ()
    scopes: dict[int, Scope] = {}
    used: dict[Var, Scope] = {}
    if any([isinstance(node, (If, Match)) or (type(node) is Function and node is not func) for node in order]):
        scopes, _, used = find_scopes(func, order, open_lets=False)
    gone: set[int] = set()
    for node in lets:
        where = used.get(node.variable)
        moves = where is not None and where is not scopes.get(id(node))
        if not moves and id(node.value) not in impure and node.variable not in recursive:
            gone.add(id(node))
    if not gone:
        return func
    new = _placed(func, gone)
    assert isinstance(new, Function)
    return new


def _placed(func: Function, gone: set[int]) -> Expr:
    done: dict[int, Expr] = {}
    values: dict[Var, Expr] = {}

    def copy(node: Expr) -> Expr:
        if type(node) is Var:
            return values.get(node, node)
        return done.get(id(node), node)

    stack: list[tuple[Expr, int]] = [(func, 0)]
    while stack:
        node, step = stack.pop()
        if type(node) in ATOMS or (step == 0 and id(node) in done):
            continue
        if type(node) is Function and is_closed(node):
            done[id(node)] = node
        elif isinstance(node, Let) and step < 2:
            # The value before the body, in which the variable may stand for it.
            if step == 0:
                stack += [(node, 1), (node.value, 0)]
            else:
                if id(node) in gone:
                    values[node.variable] = copy(node.value)
                stack += [(node, 2), (node.body, 0)]
        elif step == 0:
            stack.append((node, 1))
            stack.extend([(c, 0) for c in reversed(children(node)) if type(c) not in ATOMS])
        elif id(node) in gone:
            assert isinstance(node, Let)
            done[id(node)] = copy(node.body)
        else:
            done[id(node)] = retype(rebuild(node, tuple([copy(c) for c in children(node)])), node)
    return copy(func)


__all__ = ["Effects", "effects_of", "find_scopes", "is_closed", "place_lets"]
