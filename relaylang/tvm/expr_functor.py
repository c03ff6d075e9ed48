"""Visitors and mutators of expressions under TVM's names, for passes that are written as classes.

    class Halve(ExprMutator):
        def visit_constant(self, const):
            return Constant(const.data / 2)

    half = Halve().visit(expr)

A visitor visits each node once and keeps its result, so that sharing stays. An overriding method continues with
`super().visit_call(call)` or `self.visit(child)`. This recurses, and deep programs get a large stack. New passes are
shorter with `relaylang.ir.rewrite`, which does not recurse.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from relaylang.ir import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    MetaRef,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
)
from relaylang.ops.record import Op
from relaylang.passes.context import share_contexts

#: The visiting method of each class of nodes.
_METHODS: dict[type, str] = {
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    Var: "visit_var",
    GlobalVar: "visit_global_var",
    If: "visit_if",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Constant: "visit_constant",
    Op: "visit_op",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Constructor: "visit_constructor",
    Match: "visit_match",
    MetaRef: "visit_meta_ref",
}


class NoMethod(NotImplementedError, TypeError):
    """A functor has no method for a class of nodes."""


#: The deepest program that is visited without a stack of its own; the frames and bytes for each level.
_SHALLOW, _FRAMES, _BYTES = 80, 10, 6000
_MOST_BYTES = 1 << 30


def _depth(expr: Expr) -> int:
    """The length of the longest way from the expression to a leaf."""
    depth: dict[int, int] = {}
    for node in post_order(expr):
        depth[id(node)] = 1 + max([depth[id(c)] for c in children(node)], default=0)
    return depth[id(expr)]


def _with_stack(levels: int, work: Callable[[], Any]) -> Any:
    """The result of `work`, computed in a thread whose stack holds a recursion of so many levels."""
    outcome: list[Any] = []
    contexts = share_contexts()

    def run() -> None:
        contexts()
        try:
            outcome.extend((True, work()))
        except BaseException as problem:  # raised again in the caller's thread
            outcome.extend((False, problem))

    limit, size = sys.getrecursionlimit(), threading.stack_size(min(_MOST_BYTES, (1 << 24) + levels * _BYTES))
    try:
        sys.setrecursionlimit(max(limit, 1000 + levels * _FRAMES))
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(size)
    try:
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    done, value = outcome
    if not done:
        raise value
    return value


class ExprFunctor:
    """Calls the method of a node's class (`visit_call`, `visit_let`, ...), once for each node."""

    _visiting = False

    def __init__(self) -> None:
        self.memo_map: dict[Expr, Any] = {}

    def visit(self, expr: Expr) -> Any:
        """The result of the method for the expression's class. Raises `TypeError` where there is no such method."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        result = self._dispatch(expr) if self._visiting else self._begin(expr)
        self.memo_map[expr] = result
        return result

    def _begin(self, expr: Expr) -> Any:
        self._visiting = True
        try:
            levels = _depth(expr)
            return self._dispatch(expr) if levels <= _SHALLOW else _with_stack(levels, lambda: self._dispatch(expr))
        finally:
            self._visiting = False

    def _dispatch(self, expr: Expr) -> Any:
        kind = next((k for k in type(expr).__mro__ if k in _METHODS), None)
        method = getattr(self, _METHODS[kind], None) if kind is not None else None
        if method is None:
            what = _METHODS.get(kind, "method for it") if kind is not None else "method for it"
            raise NoMethod(f"{type(self).__name__} met a {type(expr).__name__} and has no {what}")
        return method(expr)

    def visit_type(self, typ: Any) -> Any:
        """A type that an expression names; itself."""
        return typ


class ExprVisitor(ExprFunctor):
    """Visits every node of an expression; override the methods of the kinds that you need."""

    def visit_leaf(self, node: Expr) -> None:
        """A node with nothing in it."""

    visit_var = visit_global_var = visit_constant = visit_op = visit_constructor = visit_meta_ref = visit_leaf

    def visit_tuple(self, tup: Tuple) -> None:
        for field in tup.fields:
            self.visit(field)

    def visit_call(self, call: Call) -> None:
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_let(self, let: Let) -> None:
        self.visit(let.variable)
        self.visit(let.value)
        self.visit(let.body)

    def visit_function(self, fn: Function) -> None:
        for param in fn.params:
            self.visit(param)
        if isinstance(fn.body, Expr):
            self.visit(fn.body)

    def visit_if(self, branch: If) -> None:
        self.visit(branch.cond)
        self.visit(branch.true_branch)
        self.visit(branch.false_branch)

    def visit_tuple_getitem(self, item: TupleGetItem) -> None:
        self.visit(item.tuple_value)

    def visit_ref_create(self, ref: RefCreate) -> None:
        self.visit(ref.value)

    def visit_ref_read(self, ref: RefRead) -> None:
        self.visit(ref.ref)

    def visit_ref_write(self, ref: RefWrite) -> None:
        self.visit(ref.ref)
        self.visit(ref.value)

    def visit_match(self, match: Match) -> None:
        self.visit(match.data)
        for clause in match.clauses:
            self.visit(clause.rhs)


class ExprMutator(ExprFunctor):
    """Builds an expression from its methods' results. A node without changes stays the same object."""

    def visit_leaf(self, node: Expr) -> Expr:
        """A node with nothing in it: itself."""
        return node

    visit_var = visit_global_var = visit_constant = visit_op = visit_constructor = visit_meta_ref = visit_leaf

    def visit_tuple(self, tup: Tuple) -> Expr:
        fields = tuple([self.visit(field) for field in tup.fields])
        return tup if fields == tup.fields else Tuple(fields, tup.span)

    def visit_call(self, call: Call) -> Expr:
        op = self.visit(call.op)
        args = tuple([self.visit(arg) for arg in call.args])
        if op is call.op and args == call.args:
            return call
        return Call(op, args, call.attrs, call.type_args, call.span)

    def visit_let(self, let: Let) -> Expr:
        variable, value, body = self.visit(let.variable), self.visit(let.value), self.visit(let.body)
        if variable is let.variable and value is let.value and body is let.body:
            return let
        return Let(variable, value, body, let.span)

    def visit_function(self, fn: Function) -> Expr:
        params = tuple([self.visit(param) for param in fn.params])
        body = self.visit(fn.body) if isinstance(fn.body, Expr) else fn.body
        if body is fn.body and params == fn.params:
            return fn
        return Function(params, body, fn.ret_type, fn.type_params, fn.attrs, fn.span)

    def visit_if(self, branch: If) -> Expr:
        cond = self.visit(branch.cond)
        yes, no = self.visit(branch.true_branch), self.visit(branch.false_branch)
        if cond is branch.cond and yes is branch.true_branch and no is branch.false_branch:
            return branch
        return If(cond, yes, no, branch.span)

    def visit_tuple_getitem(self, item: TupleGetItem) -> Expr:
        value = self.visit(item.tuple_value)
        return item if value is item.tuple_value else TupleGetItem(value, item.index, item.span)

    def visit_ref_create(self, ref: RefCreate) -> Expr:
        value = self.visit(ref.value)
        return ref if value is ref.value else RefCreate(value, ref.span)

    def visit_ref_read(self, ref: RefRead) -> Expr:
        inner = self.visit(ref.ref)
        return ref if inner is ref.ref else RefRead(inner, ref.span)

    def visit_ref_write(self, ref: RefWrite) -> Expr:
        inner, value = self.visit(ref.ref), self.visit(ref.value)
        return ref if inner is ref.ref and value is ref.value else RefWrite(inner, value, ref.span)

    def visit_match(self, match: Match) -> Expr:
        data = self.visit(match.data)
        bodies = [self.visit(clause.rhs) for clause in match.clauses]
        if data is match.data and all(new is old.rhs for new, old in zip(bodies, match.clauses)):
            return match
        clauses = [Clause(c.lhs, body, c.span) for c, body in zip(match.clauses, bodies)]
        return Match(data, clauses, match.complete, match.span)


__all__ = [
    "Call",
    "Clause",
    "Constant",
    "Constructor",
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
    "Function",
    "GlobalVar",
    "If",
    "Let",
    "Match",
    "Op",
    "RefCreate",
    "RefRead",
    "RefWrite",
    "Tuple",
    "TupleGetItem",
    "Var",
]
