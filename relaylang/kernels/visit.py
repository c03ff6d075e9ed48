"""Walks over expressions and statements of the kernel language: their parts, and the same with other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from relaylang.kernels.ir import (
    FOLDED,
    INDEX,
    PARALLEL,
    Address,
    Assign,
    Block,
    Body,
    Call,
    Cast,
    Expr,
    If,
    Intrinsic,
    Let,
    Linear,
    Load,
    Loop,
    Op,
    Reduce,
    Stmt,
    Store,
    Var,
    While,
    binary,
    number,
    plus,
    times,
)


def parts(value: Expr) -> tuple[Expr, ...]:
    """The operands of an expression."""
    match value:
        case Linear(terms):
            return tuple(a for a, _ in terms)
        case Load(_, index) | Address(_, index):
            return (index,)
        case Op(_, args) | Intrinsic(_, args):
            return args
        case Cast(inner):
            return (inner,)
    return ()


def with_parts(value: Expr, new: Sequence[Expr]) -> Expr:
    """The expression with other operands."""
    match value:
        case Linear(terms, const):
            total = number(const)
            for (_, factor), atom in zip(terms, new):
                total = plus(total, times(atom, factor))
            return total
        case Op(name, _, ty):
            return binary(name, *new) if ty == INDEX and name in FOLDED else Op(name, tuple(new), ty)
        case Load(buffer, _, ty, aligned):
            return Load(buffer, new[0], ty, aligned)
        case Address(buffer, _, ty):
            return Address(buffer, new[0], ty)
        case Intrinsic(name, _, ty):
            return Intrinsic(name, tuple(new), ty)
        case Cast(_, ty):
            return Cast(new[0], ty)
    return value


def rewrite(value: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to each part of it, from the leaves up."""
    old = parts(value)
    if old:
        new = [rewrite(p, change) for p in old]
        if any(a is not b for a, b in zip(old, new)):
            value = with_parts(value, new)
    return change(value)


def exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """A statement's own expressions."""
    match stmt:
        case Let(_, value) | Assign(_, value):
            return (value,)
        case Store(_, index, value) | Reduce(_, _, index, value):
            return (index, value)
        case Loop(_, low, high):
            return (low, high)
        case If(condition) | While(condition):
            return (condition,)
        case Call(_, args):
            return args
    return ()


def bodies(stmt: Stmt) -> tuple[Body, ...]:
    """The statements inside a statement."""
    match stmt:
        case Loop(body=body) | Block(body) | While(_, body):
            return (body,)
        case If(_, body, otherwise):
            return (body, otherwise)
    return ()


def rebuilt(stmt: Stmt, change: Callable[[Expr], Expr], inner: Callable[[Body], Body]) -> Stmt:
    """The statement with other expressions and other statements inside."""
    match stmt:
        case Let(name, value, mutable):
            return Let(name, change(value), mutable)
        case Assign(name, value):
            return Assign(name, change(value))
        case Store(buffer, index, value, aligned):
            return Store(buffer, change(index), change(value), aligned)
        case Reduce(op_, buffer, index, value):
            return Reduce(op_, buffer, change(index), change(value))
        case Loop(var, low, high, body, kind, step):
            return Loop(var, change(low), change(high), inner(body), kind, step)
        case If(condition, body, otherwise):
            return If(change(condition), inner(body), inner(otherwise))
        case While(condition, body):
            return While(change(condition), inner(body))
        case Block(body):
            return Block(inner(body))
        case Call(name, args):
            return Call(name, tuple(map(change, args)))
    return stmt


def substitute(body: Sequence[Stmt], values: dict[str, Expr]) -> Body:
    """Statements with names replaced by expressions."""

    def leaf(value: Expr) -> Expr:
        return values.get(value.name, value) if isinstance(value, Var) else value

    def change(value: Expr) -> Expr:
        return rewrite(value, leaf)

    return [rebuilt(s, change, lambda inner: substitute(inner, values)) for s in body]


def folded(body: Sequence[Stmt]) -> Body:
    """Statements without their names for constants."""
    values: dict[str, Expr] = {}
    out: Body = []
    for stmt in body:
        (stmt,) = substitute([stmt], values) if values else (stmt,)
        if isinstance(stmt, Let) and not stmt.mutable and isinstance(stmt.value, Linear) and not stmt.value.terms:
            values[stmt.name] = stmt.value
        else:
            out.append(stmt)
    return out


def statements(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """All statements, those inside others included, in the order of the text."""
    stack = list(reversed(body))
    while stack:
        stmt = stack.pop()
        yield stmt
        for inner in reversed(bodies(stmt)):
            stack.extend(reversed(inner))


def expressions(value: Expr) -> Iterator[Expr]:
    """An expression and all its parts."""
    stack = [value]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(parts(node))


def used(stmt: Stmt) -> set[str]:
    """The names that a statement reads or writes, without those of statements inside."""
    names = {stmt.buffer} if isinstance(stmt, (Store, Reduce)) else set()
    for value in exprs(stmt):
        for part in expressions(value):
            if isinstance(part, Var):
                names.add(part.name)
            elif isinstance(part, (Load, Address)):
                names.add(part.buffer)
    return names


def names(body: Sequence[Stmt]) -> set[str]:
    """The buffers and variables that statements read or write, with those of statements inside."""
    return {name for stmt in statements(body) for name in used(stmt)}


def parallel(body: Sequence[Stmt]) -> Loop | None:
    """The parallel loop of a stage."""
    return next((s for s in body if isinstance(s, Loop) and s.kind == PARALLEL), None)
