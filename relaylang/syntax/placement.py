"""Analyses a program before it is printed: shared nodes, the scopes they belong to, missing metadata values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any as AnyValue

from relaylang.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    MetaRef,
    RawAttrs,
    Var,
    pattern_vars,
)
from relaylang.ir.module import IRModule
from relaylang.ir.scopes import Scope, common
from relaylang.ir.visit import children, post_order
from relaylang.ops.record import Op

#: A scope's name: the node that opens it and which of its scopes it is; () is the outermost.
ScopeKey = tuple[int, int] | tuple[()]

#: The nodes that always stand in line.
LEAVES = frozenset({Var, Constant, GlobalVar, Op, Constructor, MetaRef})


class _Scope(Scope):
    """A scope with its name."""

    __slots__ = ("key",)

    def __init__(self, key: ScopeKey, parent: _Scope | None) -> None:
        super().__init__(parent)
        self.key = key


def _uses(node: Expr, scope: _Scope) -> list[tuple[Expr, _Scope]]:
    """A node's children, each with the scope in which it is used."""
    key = id(node)
    match node:
        case Function(_, body):
            return [(body, _Scope((key, 0), scope))] if body is not None else []
        case Let(_, value, body):
            return [(value, scope), (body, _Scope((key, 0), scope))]
        case If(cond, then, other):
            return [(cond, scope), (then, _Scope((key, 0), scope)), (other, _Scope((key, 1), scope))]
        case Match(data, clauses):
            arms = [(clause.rhs, _Scope((key, i), scope)) for i, clause in enumerate(clauses)]
            return [(data, scope), *arms]
    return [(child, scope) for child in children(node)]


def place(root: Expr) -> dict[int, ScopeKey]:
    """The scope of every node below `root` that gets a graph name if it is not printed in line."""
    scopes: dict[int, _Scope] = {id(root): _Scope((), None)}
    for node in reversed(list(post_order(root))):
        if type(node) in LEAVES:
            continue
        for child, scope in _uses(node, scopes[id(node)]):
            if type(child) not in LEAVES:
                known = scopes.get(id(child))
                scopes[id(child)] = scope if known is None else common(known, scope)
    return {key: scope.key for key, scope in scopes.items()}


def out_of_scope(root: Expr, free: Collection[int]) -> list[Var]:
    """The variables that a node uses outside the scope that binds them, which a node of several scopes may do.

    `free` are the identities of those that nothing below `root` binds.
    """
    scopes: dict[int, _Scope] = {id(root): _Scope((), None)}
    binds: dict[int, tuple[_Scope, ...]] = {}  # where a variable is known
    variables: list[tuple[Var, _Scope]] = []
    for node in reversed(list(post_order(root))):
        if type(node) in LEAVES:
            continue
        scope = scopes[id(node)]
        uses = _uses(node, scope)
        match node:
            case Function(params, _):
                binds.update((id(param), (uses[0][1],)) for param in params if uses)
            case Let(variable, value, body):
                uses = [(value, _Scope((id(node), 1), scope)), (body, _Scope((id(node), 0), scope))]
                binds[id(variable)] = uses[0][1], uses[1][1]
            case Match(_, clauses):
                for clause, (_, arm) in zip(clauses, uses[1:]):
                    binds.update((id(var), (arm,)) for var in pattern_vars(clause.lhs))
        for child, inner in uses:
            if type(child) is Var:
                variables.append((child, inner))
            elif type(child) not in LEAVES:
                known = scopes.get(id(child))
                scopes[id(child)] = inner if known is None else common(known, inner)
    wrong = {}
    for var, inner in variables:
        places = binds.get(id(var))
        if id(var) not in free and not any(common(place, inner) is place for place in places or ()):
            wrong[id(var)] = var
    return list(wrong.values())


def shared_nodes(root: Expr) -> set[Expr]:
    """The nodes below `root`, leaves aside, that are used more than once."""
    seen: set[Expr] = set()
    shared: set[Expr] = set()
    stack: list[Expr] = [root]
    leaves = LEAVES
    while stack:
        node = stack.pop()
        below = node.args if type(node) is Call and type(node.op) is Op else children(node)
        for child in below:
            if type(child) in leaves:
                continue
            if child in seen:
                shared.add(child)
            else:
                seen.add(child)
                stack.append(child)
    return shared


def missing_values(root: object) -> set[tuple[str, int]]:
    """The values of a metadata section that a program refers to and does not have, by type key and number."""
    missing: set[tuple[str, int]] = set()
    seen: set[int] = set()  # attributes that many calls share
    functions = list(root.functions.values()) if isinstance(root, IRModule) else [root]
    for function in functions:
        if not isinstance(function, Expr):
            continue
        for node in post_order(function):
            match node:
                case MetaRef():
                    _mentioned(node, missing)
                case Function():
                    _mentioned([*node.attrs.values(), *[p.virtual_device for p in node.params]], missing)
                case Let():
                    _mentioned(node.variable.virtual_device, missing)
                case Var():
                    _mentioned(node.virtual_device, missing)
                case Call() if node.attrs is not None and id(node.attrs) not in seen:
                    seen.add(id(node.attrs))
                    attrs = node.attrs
                    held = attrs.values if isinstance(attrs, RawAttrs) else {key: attrs[key] for key in attrs.keys()}
                    _mentioned(held, missing)
    return missing


def _mentioned(value: AnyValue, missing: set[tuple[str, int]]) -> None:
    """Add the metadata values that an attribute's value refers to. Values nest no deeper than texts allow."""
    if isinstance(value, MetaRef):
        missing.add((value.type_key, value.index))
    elif isinstance(value, (list, tuple)):
        for part in value:
            _mentioned(part, missing)
    elif isinstance(value, Mapping):
        for part in value.values():
            _mentioned(part, missing)
