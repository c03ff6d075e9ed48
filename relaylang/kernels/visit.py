"""Walks over expressions and statements of the kernel language: their parts, and the same with other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from relaylang.kernels import ir


def parts(value: ir.Expr) -> tuple[ir.Expr, ...]:
    """The operands of an expression."""
    match value:
        case ir.Linear(terms):
            return tuple(a for a, _ in terms)
        case ir.Load(_, index) | ir.Address(_, index):
            return (index,)
        case ir.Op(_, args) | ir.Intrinsic(_, args):
            return args
        case ir.Cast(inner):
            return (inner,)
    return ()


def with_parts(value: ir.Expr, new: Sequence[ir.Expr]) -> ir.Expr:
    """The expression with other operands."""
    match value:
        case ir.Linear(terms, const):
            total = ir.number(const)
            for (_, factor), atom in zip(terms, new):
                total = ir.plus(total, ir.times(atom, factor))
            return total
        case ir.Op(name, _, ty):
            return ir.binary(name, *new) if ty == ir.INDEX and name in ir.FOLDED else ir.Op(name, tuple(new), ty)
        case ir.Load(buffer, _, ty, aligned):
            return ir.Load(buffer, new[0], ty, aligned)
        case ir.Address(buffer, _, ty):
            return ir.Address(buffer, new[0], ty)
        case ir.Intrinsic(name, _, ty):
            return ir.Intrinsic(name, tuple(new), ty)
        case ir.Cast(_, ty):
            return ir.Cast(new[0], ty)
    return value


def rewrite(value: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """The expression with `change` applied to each part of it, from the leaves up."""
    old = parts(value)
    if old:
        new = [rewrite(p, change) for p in old]
        if any(a is not b for a, b in zip(old, new)):
            value = with_parts(value, new)
    return change(value)


def exprs(stmt: ir.Stmt) -> tuple[ir.Expr, ...]:
    """A statement's own expressions."""
    match stmt:
        case ir.Let(_, value) | ir.Assign(_, value):
            return (value,)
        case ir.Store(_, index, value) | ir.Reduce(_, _, index, value):
            return (index, value)
        case ir.Loop(_, low, high):
            return (low, high)
        case ir.If(condition) | ir.While(condition):
            return (condition,)
        case ir.Call(_, args):
            return args
    return ()


def bodies(stmt: ir.Stmt) -> tuple[ir.Body, ...]:
    """The statements inside a statement."""
    match stmt:
        case ir.Loop(body=body) | ir.Block(body) | ir.While(_, body):
            return (body,)
        case ir.If(_, body, otherwise):
            return (body, otherwise)
    return ()


def rebuilt(stmt: ir.Stmt, change: Callable[[ir.Expr], ir.Expr], inner: Callable[[ir.Body], ir.Body]) -> ir.Stmt:
    """The statement with other expressions and other statements inside."""
    match stmt:
        case ir.Let(name, value, mutable):
            return ir.Let(name, change(value), mutable)
        case ir.Assign(name, value):
            return ir.Assign(name, change(value))
        case ir.Store(buffer, index, value, aligned):
            return ir.Store(buffer, change(index), change(value), aligned)
        case ir.Reduce(op_, buffer, index, value):
            return ir.Reduce(op_, buffer, change(index), change(value))
        case ir.Loop(var, low, high, body, kind, step):
            return ir.Loop(var, change(low), change(high), inner(body), kind, step)
        case ir.If(condition, body, otherwise):
            return ir.If(change(condition), inner(body), inner(otherwise))
        case ir.While(condition, body):
            return ir.While(change(condition), inner(body))
        case ir.Block(body):
            return ir.Block(inner(body))
        case ir.Call(name, args):
            return ir.Call(name, tuple(map(change, args)))
    return stmt


def substitute(body: Sequence[ir.Stmt], values: dict[str, ir.Expr]) -> ir.Body:
    """Statements with names replaced by expressions."""

    def leaf(value: ir.Expr) -> ir.Expr:
        return values.get(value.name, value) if isinstance(value, ir.Var) else value

    def change(value: ir.Expr) -> ir.Expr:
        return rewrite(value, leaf)

    return [rebuilt(s, change, lambda inner: substitute(inner, values)) for s in body]


def folded(body: Sequence[ir.Stmt]) -> ir.Body:
    """Statements without their names for constants."""
    values: dict[str, ir.Expr] = {}
    out: ir.Body = []
    for stmt in body:
        (stmt,) = substitute([stmt], values) if values else (stmt,)
        if isinstance(stmt, ir.Let) and not stmt.mutable and isinstance(stmt.value, ir.Linear) and not stmt.value.terms:
            values[stmt.name] = stmt.value
        else:
            out.append(stmt)
    return out


def statements(body: Sequence[ir.Stmt]) -> Iterator[ir.Stmt]:
    """All statements, those inside others included, in the order of the text."""
    stack = list(reversed(body))
    while stack:
        stmt = stack.pop()
        yield stmt
        for inner in reversed(bodies(stmt)):
            stack.extend(reversed(inner))


def expressions(value: ir.Expr) -> Iterator[ir.Expr]:
    """An expression and all its parts."""
    stack = [value]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(parts(node))


def used(stmt: ir.Stmt) -> set[str]:
    """The names that a statement reads or writes, without those of statements inside."""
    names = {stmt.buffer} if isinstance(stmt, (ir.Store, ir.Reduce)) else set()
    for value in exprs(stmt):
        for part in expressions(value):
            if isinstance(part, ir.Var):
                names.add(part.name)
            elif isinstance(part, (ir.Load, ir.Address)):
                names.add(part.buffer)
    return names


def names(body: Sequence[ir.Stmt]) -> set[str]:
    """The buffers and variables that statements read or write, with those of statements inside."""
    return {name for stmt in statements(body) for name in used(stmt)}


def parallel(body: Sequence[ir.Stmt]) -> ir.Loop | None:
    """The parallel loop of a stage."""
    return next((s for s in body if isinstance(s, ir.Loop) and s.kind == ir.PARALLEL), None)
